"""A model of one's own in a browser: its traced programs, and its data at some constants.

The programs are printed from the functions that the engine compiles (`traced_program`). Real
constants move freely: they are arguments of the programs, and weights, samples, starts and fixed
arrays are functions of them (`real_constants`). Another whole number or word is another program:
the page holds those near the values where the sliders stand, as many as its budgets allow. A law
that can only be drawn from is known by a few hundred draws in a page.

Where the constants have special values (equal probabilities, say) more may stay equal than at
others; the page has the classes that hold at all of them.
"""

from __future__ import annotations

import base64
import dataclasses
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.explorer.description import page_description
from dynamics.explorer.own_points import Center, Point, center_of, points_around
from dynamics.explorer.own_sliders import (
    chosen_slider,
    idle_slider,
    limits_of,
    printed_limits,
    real_slider,
)
from dynamics.explorer.page_model import PageModel, Slider
from dynamics.explorer.printing import asset, expression, script
from dynamics.explorer.real_constants import Reading
from dynamics.explorer.traced_program import Tables
from dynamics.registry import System


def page_model(system: System, parameters: Any) -> PageModel:
    """What a page needs of a model.

    Parameters
    ----------
    system : System
        Of a model.
    parameters : Parameters
        Where the sliders stand at first.

    Raises
    ------
    InvalidRequest
        If the model has too many scalars for a page, or a primitive that is not printed.
    """
    center = center_of(system, parameters)
    tables = Tables()
    points = points_around(center, tables)
    shown = copy(center.problem)
    shown.parameters = parameters
    return PageModel(
        _script(center, points, tables),
        shown,
        _sliders(center, points),
        center.observable_names,
        tuple(center.matrices()),
        center.draws,
    )


def model_script(system: System, parameters: Any = None) -> str:
    """JavaScript that defines ``MODEL`` for the worker of a page.

    Parameters
    ----------
    system : System
    parameters : Parameters, optional
        Around which whole constants are held; the defaults without them.
    """
    return page_model(system, system.Parameters() if parameters is None else parameters).script


def description(system: System, parameters: Any = None) -> dict[str, Any]:
    """What the page of a model says, as JSON.

    Parameters
    ----------
    system, parameters
        As for `model_script`.
    """
    selected = system.Parameters() if parameters is None else parameters
    return page_description(system, page_model(system, selected))


def _command(center: Center) -> str:
    return f"attdyn explore {center.system.reference}"


def _sliders(center: Center, points: list[Point]) -> tuple[Slider, ...]:
    sliders = []
    constants = dataclasses.asdict(center.parameters)
    limits = limits_of(center.model)
    for name, value in constants.items():
        if isinstance(value, float) and name not in center.held:
            sliders.append(
                real_slider(name, constants, limits, points[0].readings.inputs[0], center.remark)
            )
            continue
        if value is None or isinstance(value, bool):
            continue
        if name in center.idle:
            sliders.append(idle_slider(name, value))
            continue
        others = {n: v for n, v in points[0].at.items() if n != name}
        values = [
            point.at[name] for point in points
            if all(point.at[n] == v for n, v in others.items())
        ]  # fmt: skip
        if len(set(values)) > 1:
            sliders.append(chosen_slider(name, list(dict.fromkeys(values)), _command(center)))
        else:
            sliders.append(_still(name, value, _command(center)))
    return tuple(sliders)


def _still(name: str, value: Any, command: str) -> Slider:
    """The slider of a constant of which a page holds one value."""
    return chosen_slider(name, [value], command)


class _Functions:
    """Functions of the constants, each once."""

    def __init__(self) -> None:
        self.texts: list[str] = ["() => 1"]

    def number(self, function: Any) -> int:
        """The position of a function among the texts."""
        names = sorted(symbol.name for symbol in function.free_symbols)
        text = f"({{ {', '.join(names)} }}) => {expression(function)}" if names else (
            f"() => {expression(function)}"
        )  # fmt: skip
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text)


def _script(center: Center, points: list[Point], tables: Tables) -> str:
    """JavaScript that defines ``MODEL``."""
    functions = _Functions()
    programs: list[str] = []

    def array(read: Reading) -> dict[str, Any]:
        parts = [[functions.number(f), tables.number(table)] for f, table in read.parts]
        return {"size": int(np.prod(read.shape)), "parts": parts}

    def program(text: str | None) -> int | None:
        if text is None:
            return None
        if text not in programs:
            programs.append(text)
        return programs.index(text)

    listed = [
        {
            "at": point.at,
            "programs": [program(text) for text in point.programs],
            "inputs": [array(read) for read in point.readings.inputs],
            "start": array(point.readings.start),
            "law": point.law,
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
    problem = center.problem
    fixed = {
        "name": center.system.name,
        "command": _command(center),
        "reals": [n for n in center.model.constants if n in problem.realization.reals],
        "state_names": problem.layout.names,
        "observable_names": center.observable_names,
        "order_names": problem.order_names,
    }
    parts = [
        asset("special.js"),
        f"const PROGRAMS = [{', '.join(programs)}];",
        f"const FUNCTIONS = [{', '.join(functions.texts)}];",
        "const ONE = 0; // the function that is 1",
        f"const LIMITS = {printed_limits(limits_of(center.model))};",
        f"const POINTS = {script(listed)};",
        f"const FIXED = {script(fixed)};",
        f"const ENCODED = {script([encoded(table) for table in tables.arrays])};",
        asset("own_model.js"),
    ]
    return "\n\n".join(parts)


TYPES: dict[str, type[np.integer[Any]]] = {"u1": np.uint8, "i2": np.int16, "i4": np.int32}


def encoded(values: NDArray[np.float64]) -> tuple[str, str]:
    """The shortest type that holds an array exactly, and its bytes as base64.

    Parameters
    ----------
    values : float array

    Examples
    --------
    >>> encoded(np.array([0.0, 3.0]))
    ('u1', 'AAM=')
    """
    signless = not np.signbit(values[values == 0]).any()
    for name, kind in TYPES.items():
        least, most = np.iinfo(kind).min, np.iinfo(kind).max
        inside = values.size == 0 or (values.min() >= least and values.max() <= most)
        if signless and inside and np.array_equal(values, np.rint(values)):
            return name, base64.b64encode(values.astype(kind).tobytes()).decode()
    return "f8", base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()
