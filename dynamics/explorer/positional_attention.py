"""Positional attention in a browser: its kernels for some degrees, and the law in symbols.

The configurations of the random sets are listed in the browser (`assets/positional_attention.js`),
so D, C, q and the rest move freely; their probabilities, the constants and the shares are printed
from the same expressions as the derivation. A degree p has kernels of its own.
"""

from __future__ import annotations

import sympy

from dynamics.explorer.kinds import MATRIX, VECTOR, kind_of
from dynamics.explorer.printing import asset, closure, expression, function_of, script
from dynamics.registry import System
from dynamics.systems.positional_attention.parameters import Parameters
from dynamics.systems.positional_attention.reduced.population import ReducedPopulation
from theory.systems.positional_attention import recursion
from theory.systems.positional_attention.data_law import RANDOM_SETS, type_probability

DEGREES = (3, 5, 7, 9)
MOST_CONFIGURATIONS = 20_000
"""Configurations that a browser sums while a slider is dragged."""


def model_script(system: System) -> str:
    """JavaScript that defines ``MODEL`` for the worker of a page.

    Parameters
    ----------
    system : System
    """
    reduction = recursion.derive(DEGREES[0])
    letters = [s.name for s in reduction.parameters]
    shares = [1 / sympy.sympify(reduction.multiplicity[s]) for s in reduction.state]
    laws = ",\n".join(
        f"  {name}: (a, b, C, q) => {expression(type_probability(name))}" for name in RANDOM_SETS
    )
    parts = [
        f"const KERNELS = {{\n{_kernels()}\n}};",
        f"const typeProbability = {{\n{laws},\n}};",
        f"const constantsOf = {function_of(letters, reduction.parameters)};",
        f"const sharesOf = {function_of(['D', 'C'], shares)};",
        "const startOf = ({ nu, p }) => Math.pow(nu, 1 / (p - 1));",
        f"const LIMITS = {script({'configurations': MOST_CONFIGURATIONS})};",
        f"const OBSERVABLES = {script(list(reduction.observables))};",
        f"const ORDER = {script(list(reduction.order_parameters))};",
        asset("positional_attention.js"),
    ]
    return "\n\n".join(parts)


def _kernels() -> str:
    """The printed functions of each degree."""
    printed = []
    for degree in DEGREES:
        problem = ReducedPopulation(Parameters(D=8, C=2, p=degree), expectation="exact")
        data = kind_of(problem.expectation.data)
        functions = {
            "gradient": (VECTOR, data, VECTOR),
            "hessian": (VECTOR, data, MATRIX),
            "order_parameters": (VECTOR, VECTOR, data, VECTOR),
            "summary": (VECTOR, data, VECTOR),
            "reported": (VECTOR, VECTOR, VECTOR, VECTOR),
        }
        printed.append(f"  {degree}: {closure(problem.source, functions)}")
    return ",\n".join(printed)
