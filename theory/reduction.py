r"""The one type that every derivation returns: a gradient descent closed on a few scalars.

A symmetry makes many trained entries equal for ever. Writing :math:`\theta` for the value they
share and :math:`n_\theta` for their number, the chain rule gives
:math:`\partial R/\partial\theta = n_\theta\, \partial R/\partial A_{ij}`, so gradient descent on
every entry is

.. math:: \theta \leftarrow \theta - \frac{\eta}{n_\theta} \frac{\partial R}{\partial \theta},
   \qquad R = E[\text{risk integrand}].

The expectation is over the latent variables of the data law. It stays symbolic here; the floor of
`dynamics` decides how to compute it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import sympy
from sympy.core.function import AppliedUndef

from theory.notation import Notation


@dataclass(frozen=True)
class ReducedSystem:
    """A closed recursion on a few scalars, with everything needed to compile it.

    Attributes
    ----------
    title : str
        What is reduced, one line.
    notation : Notation
        Table the symbols come from.
    state : tuple of sympy.Symbol
        The scalars, in the order used everywhere.
    parameters : tuple of sympy.Symbol
        Constants of the recursion.
    latents : tuple of sympy.Symbol
        Variables that the blocks are tabulated over.
    multiplicity : mapping
        State -> number of trained entries that share it.
    definitions : mapping
        Named intermediate quantities in terms of state and parameters, in order of use.
    blocks : mapping
        Named expressions in (state, definitions, parameters, latents): the pieces that
        `dynamics.loops` runs.
    functions : mapping
        Name -> `sympy.Lambda`, for the functions that `risk_integrand` is written with.
    risk_integrand : sympy.Expr
        The risk, which gradient descent descends, is its expectation over the data law. None where
        the risk is no function of the state.
    order_parameters : mapping
        Name -> expression in state, definitions and rates; what event rules speak of. The rate
        ``d_<state>`` is minus the per-entry gradient.
    observables : mapping
        Name -> expression in state, definitions and rates; what is reported beside the state.
    shift_invariant : tuple of sympy.Symbol
        Adding one number to all of these changes no definition (a softmax). Compiled code
        subtracts their maximum, so that no exponential overflows.
    invariants : tuple of sympy.Expr
        Expressions in state, definitions and rates that vanish at every state.
    steps : mapping
        State -> its value after one step, where that is not the descent above: states that are
        matrices, or products of what is trained.
    remarks : tuple of str
        What the equations assume, as sentences of a `theory.page.Section`.
    """

    title: str
    notation: Notation
    state: tuple[sympy.Symbol, ...]
    parameters: tuple[sympy.Symbol, ...]
    latents: tuple[sympy.Symbol, ...] = ()
    multiplicity: Mapping[sympy.Symbol, sympy.Expr] = field(default_factory=dict)
    definitions: Mapping[sympy.Symbol, sympy.Expr] = field(default_factory=dict)
    blocks: Mapping[str, sympy.Expr] = field(default_factory=dict)
    functions: Mapping[str, sympy.Lambda] = field(default_factory=dict)
    risk_integrand: sympy.Expr | None = None
    order_parameters: Mapping[str, sympy.Expr] = field(default_factory=dict)
    observables: Mapping[str, sympy.Expr] = field(default_factory=dict)
    shift_invariant: tuple[sympy.Symbol, ...] = ()
    invariants: tuple[sympy.Expr, ...] = ()
    steps: Mapping[sympy.Symbol, sympy.Expr] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    def expand(self, expression: sympy.Expr) -> sympy.Expr:
        """Replace functions and definitions by what they stand for, in state and parameters."""
        for name, function in self.functions.items():
            expression = expression.replace(sympy.Function(name), function)
        for name, value in reversed(list(self.definitions.items())):
            expression = expression.xreplace({name: value})
        left = {applied.func.__name__ for applied in expression.atoms(AppliedUndef)}
        return self.expand(expression) if left & set(self.functions) else expression
