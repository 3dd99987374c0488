"""Positional attention in a browser: its kernels for some degrees, and the law in symbols.

The configurations of the random sets are listed in the browser (`assets/positional_attention.js`),
so D, C, q and the rest move freely; their probabilities, the constants and the shares are printed
from the same expressions as the derivation. A degree p has kernels of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sympy

from dynamics import codegen
from dynamics.explorer.kinds import VECTOR
from dynamics.explorer.page_model import PageModel, Slider
from dynamics.explorer.prepared import kernel_functions
from dynamics.explorer.printing import asset, closure, expression, function_of, script
from dynamics.registry import System
from dynamics.systems.positional_attention.parameters import Parameters
from dynamics.systems.positional_attention.reduced.population import ReducedPopulation
from theory.papers.positional_attention import recursion
from theory.papers.positional_attention.data_law import RANDOM_SETS, type_probability

DEGREES = (3, 5, 7, 9)
MOST_CONFIGURATIONS = 20_000
"""Configurations that a browser sums while a slider is dragged."""
LARGEST = f"sizes end where {MOST_CONFIGURATIONS:,} configurations do"


SLIDERS = (
    Slider("D", minimum=4, maximum=64, ends=LARGEST),
    Slider("C", minimum=2, maximum=16),
    Slider("q", minimum=0.0, maximum=1.0, open_minimum=True),
    Slider("p", minimum=3, maximum=DEGREES[-1], values=DEGREES, ends="a page has these degrees"),
    Slider("nu", minimum=1e-8, maximum=1.0, logarithmic=True),
    Slider("beta", minimum=-5.0, maximum=5.0),
    Slider("scale", minimum=0.01, maximum=10.0, logarithmic=True),
    Slider("random_sets", values=RANDOM_SETS),
)
"""The constants of the reduced problem. The others are of samples (d, sigma, omega), or follow from
these (alpha0)."""
ATTENTION = {
    "name": "S",
    "title": "attention after the softmax",
    "meaning": "row i: where patch i looks; patches are ordered by their sets",
    "classes": [
        {"label": "itself", "value": "Lambda"},
        {"label": "its set", "value": "Gamma"},
        {"label": "other sets", "value": "Xi"},
    ],
}


def page_model(system: System, parameters: Parameters) -> PageModel:
    """The model of the page.

    Parameters
    ----------
    system : System
    parameters : Parameters
        First positions of the sliders.
    """
    problem = ReducedPopulation(parameters)
    observables = (*recursion.derive(DEGREES[0]).observables, "risk", "error")
    return PageModel(model_script(), problem, SLIDERS, observables, (ATTENTION,))


def model_script() -> str:
    """JavaScript that defines ``MODEL`` for the worker of a page."""
    reduction = recursion.derive(DEGREES[0])

    def listed(values: Iterable[Any]) -> str:
        return f"[{', '.join(map(expression, values))}]"

    letters = [s.name for s in reduction.parameters]
    shares = [1 / sympy.sympify(reduction.multiplicity[s]) for s in reduction.state]
    laws = ",\n".join(
        f"  {name}: (a, b, C, q) => {expression(type_probability(name))}" for name in RANDOM_SETS
    )
    parts = [
        f"const KERNELS = {{\n{_kernels()}\n}};",
        f"const typeProbability = {{\n{laws},\n}};",
        f"const constantsOf = {function_of(letters, listed(reduction.parameters))};",
        f"const sharesOf = {function_of(['D', 'C'], listed(shares))};",
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
        functions = kernel_functions(problem) | {"reported": (VECTOR,) * 4}
        reduction = recursion.derive(degree)
        reported = codegen.evaluate("reported", list(reduction.observables.values()), reduction)
        source = "\n\n".join([problem.source, reported])
        printed.append(f"  {degree}: {closure(source, functions)}")
    return ",\n".join(printed)
