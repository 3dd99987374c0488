"""Pages with the data of the kernels for every combination of values of their sliders.

The data come from Python, because a browser would take too long to list the terms of the
expectation. The page has the kernels themselves once.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dynamics.explorer.kinds import MATRIX, VECTOR, Kind, kind_of
from dynamics.explorer.page_model import PageModel, Slider, scalars
from dynamics.explorer.printing import asset, closure, script
from dynamics.explorer.tables import Tables
from dynamics.problem import CompiledProblem
from dynamics.registry import System
from dynamics.validation import InvalidRequest

Point = dict[str, Any]


def page_model(
    system: System,
    parameters: Any,
    grid: Mapping[str, Sequence[Any]],
    scratch: Sequence[str] = (),
    constants: Sequence[str] = (),
    native: Mapping[str, str] | None = None,
    own: tuple[str, Callable[[Any], Any]] | None = None,
) -> PageModel:
    """A system of which a page holds the data at all combinations of some values.

    Parameters
    ----------
    system : System
    parameters : Parameters
        The values of what the grid does not have.
    grid : mapping
        Constant -> its values. Combinations that are not valid, or have another expectation than
        the problem at the parameters, are left out.
    scratch : sequence of str
        Fields of the data that are memory of the kernels.
    constants : sequence of str
        Symbols of the rules of events: attributes of the parameters.
    native : mapping, optional
        Kernel -> its text in JavaScript.
    own : (name of an asset, problem -> data), optional
        JavaScript of the kernels, and their data, where they are not printed.
    """
    at_start = system.ReducedPopulation(parameters)
    points: list[tuple[Point, Any]] = []
    for values in itertools.product(*grid.values()):
        point = dict(zip(grid, values, strict=True))
        try:
            problem = system.ReducedPopulation(dataclasses.replace(parameters, **point))
        except InvalidRequest:
            continue
        if problem.settings.get("expectation") == at_start.settings.get("expectation"):
            points.append((point, problem))
    command = f"attdyn explore {system.name}"
    text = _script(points, scratch, constants, native or {}, command, own)
    sliders = tuple(
        Slider(name, values=tuple(values), ends="a page has the data of these values")
        for name, values in grid.items()
    )
    risk = ("risk",) if own is None and "summary" in kernel_functions(at_start) else ()
    return PageModel(text, at_start, sliders, (*at_start.order_names, *risk))


def encoded(value: Any, tables: Tables, scratch: Sequence[str] = ()) -> Any:
    """A value of a kernel as JSON that `decoded` of `assets/prepared.js` reads.

    Parameters
    ----------
    value : number, array, None, or tuple of these
    tables : Tables
        Gets the arrays.
    scratch : sequence of str
        Fields of a named tuple whose real numbers the kernels write before they read them.
    """
    match value:
        case np.ndarray() if value.dtype.names:
            names = value.dtype.names
            return {"rows": [dict(zip(names, row, strict=True)) for row in value.tolist()]}
        case np.ndarray() if value.dtype.kind == "c":
            return None
        case np.ndarray():
            entries = "whole" if value.dtype.kind in "iub" else "real"
            return {entries: tables.number(value), "shape": value.shape}
        case tuple() if hasattr(value, "_fields"):
            fields = zip(value._fields, value, strict=True)
            blanked = {name: _blank(one) if name in scratch else one for name, one in fields}
            return {"fields": {name: encoded(one, tables) for name, one in blanked.items()}}
        case tuple():
            return {"tuple": [encoded(entry, tables) for entry in value]}
        case _:
            return value.item() if isinstance(value, np.generic) else value


def _blank(value: Any) -> Any:
    """A value with NaN for its real numbers, which the kernels overwrite before they read them."""
    if isinstance(value, tuple):
        entries = map(_blank, value)
        return type(value)(*entries) if hasattr(value, "_fields") else tuple(entries)
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return np.full_like(value, np.nan)
    return value


def _script(
    made: Sequence[tuple[Point, Any]],
    scratch: Sequence[str],
    constants: Sequence[str],
    native: Mapping[str, str],
    command: str,
    own: tuple[str, Callable[[Any], Any]] | None,
) -> str:
    """JavaScript that defines ``MODEL``."""
    tables, kernels, points = Tables(), dict[str, str](), list[Any]()
    for point, problem in made:
        if own is None and problem.source not in kernels:
            kernels[problem.source] = closure(problem.source, kernel_functions(problem), native)
        points.append(
            {
                "at": point,
                "kernels": 0 if own else list(kernels).index(problem.source),
                "start": encoded(problem.initial_state, tables),
                "constants": {name: float(getattr(problem.parameters, name)) for name in constants},
                "data": encoded(own[1](problem) if own else problem._data, tables, scratch),
            }
        )
    first = made[0][1]
    fixed = {
        "state_names": scalars(first),
        "order_names": first.order_names,
        "risk": own is None and "summary" in kernel_functions(first),
        "reads_pass": first.reads_pass,
        "command": command,
    }
    parts = [
        asset(own[0]) if own else f"const KERNELS = [{', '.join(kernels.values())}];",
        f"const POINTS = {script(points)};",
        f"const FIXED = {script(fixed)};",
        tables.script(),
        asset("points.js"),
        asset("prepared.js"),
    ]
    return "\n\n".join(parts)


def kernel_functions(problem: CompiledProblem) -> dict[str, tuple[Kind, ...]]:
    """Functions of a generated file that a page calls, and the kinds of their arguments."""
    data = kind_of(problem._data)
    functions: dict[str, tuple[Kind, ...]] = {
        "gradient": (VECTOR, data, VECTOR),
        "order_parameters": (VECTOR, VECTOR, data, VECTOR),
    }
    if "def summary(" in problem.source:
        functions["summary"] = (VECTOR, data, VECTOR)
    if problem.has_jacobian:
        functions["hessian"] = (VECTOR, data, MATRIX)
    return functions
