"""Page of a user's model: its programs as instruction lists, and its data at some constants.

An interpreter in the page runs the lists of `dynamics.models.engine.reduced_risk` (`own_programs`,
`assets/lists.js`). Real constants vary continuously as inputs of the lists. Weights, samples,
starts and fixed arrays are functions of the real constants (`real_constants`). Each value of an
integer or text constant needs its own program, so a page offers only some values near the initial
positions of the sliders, limited by bytes and attempts. A law that can only be sampled is replaced
by a few hundred samples. The classes of equal entries are those valid at all real constants;
special values, such as equal probabilities, may have fewer classes.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynamics.explorer.declared import unheld
from dynamics.explorer.own_points import Center, Point, center_of, points_around
from dynamics.explorer.own_sliders import choice, printed_limits, real_slider
from dynamics.explorer.page_model import PageModel, Slider
from dynamics.explorer.printing import asset, expression, function_of, script
from dynamics.explorer.tables import Tables
from dynamics.models.engine.limits import Limit
from dynamics.models.engine.real_constants import Reading
from dynamics.system import System
from theory.program import OPERATIONS

DIVIDES = re.compile(r"\s*(\w+)\s*%\s*(\w+)\s*<=\s*0\s*")
"""Pattern of a limit by which the second constant in the text must divide the first constant."""


@np.errstate(all="ignore")  # functions of the model may overflow at some values
def page_model(system: System, parameters: Any) -> PageModel:
    """PageModel of a model, with the sliders initially at the given parameters.

    Raises InvalidRequest if the model has too many scalars for a page, or an operation that lists
    of instructions cannot express.
    """
    center = center_of(unheld(system), parameters)
    return page_of(center, points_around(center))


def page_of(center: Center, points: list[Point]) -> PageModel:
    """PageModel from the points of a page around its center."""
    at_sliders = object.__new__(type(center.problem))  # a copy needs no compilation
    vars(at_sliders).update(vars(center.problem), parameters=center.parameters)
    names = center.problem.realization.constants
    return PageModel(
        page_script(
            points,
            center.limits,
            {
                "name": center.system.name,
                "command": center.command,
                "others": {name: names[name] for name in center.still},
                "reals": [n for n in names if n in center.problem.realization.reals],
                "state_names": center.problem.layout.names,
                "observable_names": center.observable_names,
                "order_names": center.problem.order_names,
            },
        ),
        at_sliders,
        _sliders(center, points),
        center.observable_names,
        tuple(center.matrices()),
        center.draws,
    )


def _sliders(center: Center, points: list[Point]) -> tuple[Slider, ...]:
    sliders = []
    constants = dataclasses.asdict(center.parameters)
    divided = {
        found[2]: found[1] for limit in center.limits
        if (found := DIVIDES.fullmatch(limit.text)) and {found[1], found[2]} <= points[0].at.keys()
    }  # fmt: skip
    for name, value in constants.items():
        if name in center.still:
            continue
        if isinstance(value, float) and name not in center.held:
            weights = points[0].readings.inputs[0]
            sliders.append(real_slider(name, constants, center.limits, weights, center.remark))
        else:
            whole = divided.get(name, "")
            free = {name, whole, *(other for other in divided if divided[other] == name)}
            held = [
                each.at for each in points
                if all(other in free or each.at[other] == points[0].at[other] for other in each.at)
            ]  # fmt: skip
            ends = f"{center.command} --{name} ... writes a page with another value"
            slider = choice(name, list({at[name]: None for at in held}), ends)
            if whole:
                pairs = sorted({(at[whole], at[name]) for at in held})
                divisors = {
                    each: tuple(d for other, d in pairs if other == each) for each, _ in pairs
                }
                slider = dataclasses.replace(slider, divides=whole, divisors=divisors)
            sliders.append(slider)
    return tuple(sliders)


def page_script(points: Sequence[Point], limits: Sequence[Limit], fixed: Mapping[str, Any]) -> str:
    """JavaScript that defines ``MODEL``.

    The mapping `fixed` becomes ``FIXED`` in `assets/own_model.js`: names, constants, the command.
    """
    functions, programs, tables = {"() => 1": 0}, dict[str, int](), Tables()

    def function(formula: Any) -> int:
        names = sorted(symbol.name for symbol in formula.free_symbols)
        return functions.setdefault(function_of(names, expression(formula)), len(functions))

    def array(read: Reading) -> dict[str, Any]:
        parts = [[function(f), tables.number(table)] for f, table in read.parts]
        return {"size": math.prod(read.shape), "parts": parts}

    listed = [
        {
            "at": point.at,
            "programs": [
                programs.setdefault(script(each), len(programs))
                for each in point.lists.documents(tables)
            ],
            "given": [function(formula) for formula in point.lists.given],
            "rows": [array(read) for read in point.lists.rows],
            "one_by_one": point.lists.one_by_one,
            "weights": array(point.readings.inputs[0]),
            "start": array(point.readings.start),
            "law": point.law,
            "constants": point.constants,
            "matrices": {
                name: {
                    "rows": each.labels.shape[0],
                    "columns": each.labels.shape[1],
                    "labels": tables.number(each.labels),
                    "base": array(each.base),
                    "along": tables.number(each.along),
                }
                for name, each in point.matrices.items()
            },
        }
        for point in points
    ]
    parts = [
        f"const OPERATIONS = {script(OPERATIONS)};",
        f"const PROGRAMS = [{', '.join(programs)}];",
        f"const FUNCTIONS = [{', '.join(functions)}];",
        "const ONE = 0; // the function that is 1",
        f"const LIMITS = {printed_limits(limits)};",
        f"const POINTS = {script(listed)};",
        f"const FIXED = {script(fixed)};",
        tables.script(),
        asset("points.js"),
        asset("lists.js"),
        asset("own_model.js"),
    ]
    return "\n\n".join(parts)
