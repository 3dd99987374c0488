r"""The idealised problem (P), reduced to three scalars.

`ReducedPopulation` iterates the derived recursion on (alpha, gamma, rho); how the expectation over
the random sets is taken is chosen in `expectation`. Its oracle is `brute.FullPopulation`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from dynamics.problem import CompiledProblem, FloatArray, Layout
from dynamics.systems.positional_attention.expectation import configurations, spectral
from dynamics.systems.positional_attention.expectation import enumerate as exact
from dynamics.systems.positional_attention.parameters import Parameters
from dynamics.validation import real, refuse
from theory.reduction import ReducedSystem
from theory.systems.positional_attention import recursion
from theory.systems.positional_attention.data_law import bayes_error
from theory.systems.positional_attention.events import EVENTS, ORDER_PARAMETERS
from theory.systems.positional_attention.notation import NOTATION

EXPECTATIONS = ("auto", "exact", "spectral")
ENUMERATED = 20_000
"""Configurations up to which enumeration is faster than the spectral expectation (measured)."""
LAYOUT = Layout(("alpha", "gamma", "rho"), ((), (), ()), groups=("v", "A", "A"))


def derivations(parameters: Parameters | None = None) -> Mapping[str, ReducedSystem]:
    """The exact reduction and its leading order; with parameters, for their degree p."""
    degree = None if parameters is None else parameters.p
    return {"exact": recursion.derive(degree), "leading order": recursion.leading_order()}


class ReducedPopulation(CompiledProblem):
    """(P) on the symmetric manifold: gradient descent on (alpha, gamma, rho), exact.

    Parameters
    ----------
    parameters : Parameters
    expectation : str
        How the expectation over the random sets is taken: ``"exact"`` sums all multisets of types;
        ``"spectral"`` is exact to a tolerance at any size; ``"auto"`` takes the faster.
    tolerance : float
        Of the spectral expectation, relative to the gross contributions.

    Raises
    ------
    InvalidRequest
        For an unknown expectation, or a size that cannot be enumerated.

    Notes
    -----
    The gradient is per entry: dR/dalpha, dR/dgamma / (D (C-1)), dR/drho / (D (D-C)).
    """

    system = "positional_attention"
    view = "reduced population"
    notation = NOTATION
    events = EVENTS
    order_names = ORDER_PARAMETERS

    def __init__(
        self, parameters: Parameters, expectation: str = "auto", tolerance: float = 1e-10
    ) -> None:
        if expectation not in EXPECTATIONS:
            refuse("expectation", expectation, "is unknown", ", ".join(EXPECTATIONS), "exact")
        tolerance = real("tolerance", tolerance, at_least=1e-12, at_most=1e-2)
        if expectation == "auto":
            few = exact.count(parameters.L, parameters.C) <= ENUMERATED
            expectation = "exact" if few else "spectral"
        self.parameters = parameters
        self.reduction = recursion.derive(parameters.p)
        if expectation == "exact":
            size = (parameters.D, parameters.C, parameters.q)
            self.configurations = exact.configurations(*size)
            self.settings = {"expectation": "exact"}
            module = configurations.compiled(parameters.p, self.configurations.threaded)
            data = configurations.arrays(self.configurations, self.reduction, parameters)
        else:
            self.settings = {"expectation": "spectral", "tolerance": tolerance}
            module = spectral.compiled(parameters.p)
            data = spectral.arrays(self.reduction, parameters, tolerance)
        super().__init__(module, data, LAYOUT)

    @property
    def initial_state(self) -> FloatArray:
        """(alpha0, 0, 0), Parametrization 3.1, idealised case."""
        return np.array([self.parameters.alpha0, 0.0, 0.0])

    def observables(self, state: ArrayLike) -> dict[str, float]:
        """Entries of S, G, alpha G, risk, errors, patch association, hidden polylogs at a state."""
        flat = self.layout.flatten(state)
        alpha, gamma, rho = flat
        out = np.empty(len(self.reduction.observables))
        self.module.reported(flat, -self.gradient(flat), self._data[0], out)
        risk, error = self._summary(flat)
        known = {"risk": float(risk)}
        if self.settings["expectation"] == "exact":
            known["error"] = float(error)
        return (
            dict(zip(self.reduction.observables, map(float, out), strict=True))
            | known
            | {
                "bayes_error": bayes_error(self.parameters.L, self.parameters.C, self.parameters.q),
                "patch_association": float(min(self.parameters.beta, gamma) > rho),
                "cosine": float(np.sign(alpha)),
            }
        )

    def error_bound(self, state: ArrayLike) -> dict[str, FloatArray]:
        """Gradient and risk with their gross contributions and the bound on their error.

        Parameters
        ----------
        state : float array, shape (3,)

        Returns
        -------
        dict
            ``value``, ``gross`` and ``bound``, shape (4,): per-entry gradient, then risk. Under the
            exact expectation the bound is a rounding unit times the gross.
        """
        flat = self.layout.flatten(state)
        value = np.append(self.gradient(flat), self.risk(flat))
        if self.settings["expectation"] == "exact":
            gross = np.abs(value)
            return {"value": value, "gross": gross, "bound": np.finfo(float).eps * gross}
        gross, bound = self._data[5][3].copy(), self._data[5][4].copy()
        share = np.append(self._data[1], 1.0)
        return {"value": value, "gross": gross * share, "bound": bound * share}

    def failure(self) -> str:
        """What the spectral expectation would have needed, where that is above its budget."""
        if self.settings["expectation"] == "exact" or self._data[5][5][1] == 0.0:
            return ""
        nodes = self._data[5][5][0]
        return (
            f"the spectral expectation needs more than {nodes:.1e} nodes for one gradient here, "
            f"above its budget of {spectral.BUDGET:.1e}; loosen the tolerance or start elsewhere"
        )
