"""A model of one's own in a browser: its programs as lists, and its data at some constants.

The lists are those of `dynamics.models.engine.reduced_risk`, which an interpreter in the page runs
(`own_programs`, `assets/lists.js`). Real constants move freely: they are inputs of the lists, and
weights, samples, starts and fixed arrays are functions of them (`real_constants`). Another whole
number or word is another program: the page has those near the first positions of the sliders, as
many as its limits on bytes and trials allow. A law that can only be sampled is replaced by a few
hundred samples.

Where the constants have special values (equal probabilities, say) more may stay equal than at
others; the page has the classes that hold at all of them.
"""

from __future__ import annotations

import dataclasses
import math
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


@np.errstate(all="ignore")  # functions of the model are evaluated at values where some overflow
def page_model(system: System, parameters: Any) -> PageModel:
    """The model of the page.

    Parameters
    ----------
    system : System
        Of a model.
    parameters : Parameters
        First positions of the sliders.

    Raises
    ------
    InvalidRequest
        If the model has too many scalars for a page, or computes something that has no program.
    """
    center = center_of(unheld(system), parameters)
    return page_of(center, points_around(center))


def page_of(center: Center, points: list[Point]) -> PageModel:
    """The model of a page from its points.

    Parameters
    ----------
    center : Center
    points : list of Point
    """
    at_sliders = object.__new__(type(center.problem))  # a copy would be made anew, and compiled
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
    for name, value in constants.items():
        if name in center.still:
            continue
        if isinstance(value, float) and name not in center.held:
            weights = points[0].readings.inputs[0]
            sliders.append(real_slider(name, constants, center.limits, weights, center.remark))
        else:
            values = {
                point.at[name]: None for point in points
                if {**point.at, name: None} == {**points[0].at, name: None}
            }  # fmt: skip
            ends = f"{center.command} --{name} ... writes a page with another"
            sliders.append(choice(name, list(values), ends))
    return tuple(sliders)


def page_script(points: Sequence[Point], limits: Sequence[Limit], fixed: Mapping[str, Any]) -> str:
    """JavaScript that defines ``MODEL``.

    Parameters
    ----------
    points : sequence of Point
    limits : sequence of Limit
    fixed : mapping
        Names and the command; see ``FIXED`` in `assets/own_model.js`.
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
