"""A system whose data are laid out in Python, for each of some values of its constants.

Where a browser could not list what an expectation sums over, the page holds the data of the kernels
for every combination of the values that its sliders have, and the kernels themselves once.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynamics.explorer.kinds import MATRIX, VECTOR, Kind, kind_of
from dynamics.explorer.page_model import scalars
from dynamics.explorer.printing import asset, closure, script
from dynamics.problem import CompiledProblem
from dynamics.registry import System
from dynamics.validation import InvalidRequest

Point = dict[str, Any]


class Tables:
    """Arrays as text, each once.

    Attributes
    ----------
    texts : dict
        Base64 of the bytes -> number of the table.
    """

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}

    def encoded(self, value: Any, scratch: Sequence[str] = ()) -> Any:
        """A value of a kernel as JSON that `decoded` of `assets/prepared.js` reads.

        Parameters
        ----------
        value : number, array, None, or tuple of these
        scratch : sequence of str
            Fields of a named tuple whose real numbers the kernels write before they read them.
        """
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, tuple):
            names = getattr(value, "_fields", None)
            if names is None:
                return {"tuple": [self.encoded(entry) for entry in value]}
            pairs = zip(names, value, strict=True)
            return {
                "fields": {
                    name: self.encoded(_blank(entry) if name in scratch else entry)
                    for name, entry in pairs
                }
            }
        return value.item() if isinstance(value, np.generic) else value

    def _array(self, value: np.ndarray) -> Any:
        if value.dtype.names:
            names = value.dtype.names
            return {"rows": [dict(zip(names, row, strict=True)) for row in value.tolist()]}
        if value.dtype.kind == "c":
            return None
        whole = value.dtype.kind in "iub"
        numbers = np.ascontiguousarray(value, dtype=np.int32 if whole else np.float64)
        text = base64.b64encode(numbers.tobytes()).decode()
        number = self.texts.setdefault(text, len(self.texts))
        return {"whole" if whole else "real": number, "shape": list(value.shape)}


def _blank(value: Any) -> Any:
    """A value with NaN in place of its real numbers: memory holds whatever was there before."""
    if isinstance(value, tuple):
        entries = map(_blank, value)
        return type(value)(*entries) if hasattr(value, "_fields") else tuple(entries)
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return np.full_like(value, np.nan)
    return value


def problems(
    system: System, parameters: Any, grid: Mapping[str, Sequence[Any]]
) -> list[tuple[Point, CompiledProblem]]:
    """The reduced problem at each combination of values that is valid.

    Parameters
    ----------
    system : System
    parameters : Parameters
        The values of what the grid does not have.
    grid : mapping
        Constant -> its values.
    """
    usual = {name: getattr(parameters, name) for name in parameters.__dataclass_fields__}
    made = []
    for values in itertools.product(*grid.values()):
        point = dict(zip(grid, values, strict=True))
        try:
            made.append((point, system.ReducedPopulation(system.Parameters(**usual | point))))
        except InvalidRequest:
            continue
    return made


def model_script(
    made: Sequence[tuple[Point, CompiledProblem]],
    constants: Sequence[str],
    scratch: Sequence[str],
    native: Mapping[str, str],
    prefix: str,
) -> str:
    """JavaScript that defines ``MODEL``.

    Parameters
    ----------
    made : sequence of (values, problem)
    constants : sequence of str
        Symbols of the rules of events: attributes of the parameters.
    scratch : sequence of str
        Fields of the data that are memory of the kernels.
    native : mapping
        Kernels that have a text of their own.
    prefix : str
        Of the command that writes another page: ``attdyn explore NAME``.
    """
    sources: dict[str, int] = {}
    tables, kernels = Tables(), list[str]()
    points: list[Any] = []
    for point, problem in made:
        if problem.source not in sources:
            sources[problem.source] = len(kernels)
            kernels.append(closure(problem.source, _functions(problem), native))
        parameters = problem.parameters
        points.append(
            {
                "at": point,
                "kernels": sources[problem.source],
                "start": tables.encoded(problem.initial_state),
                "constants": {name: float(getattr(parameters, name)) for name in constants},
                "data": tables.encoded(problem._data, scratch),
            }
        )
    first = made[0][1]
    fixed = {
        "state_names": scalars(first),
        "order_names": first.order_names,
        "risk": "summary" in _functions(first),
        "reads_pass": first.reads_pass,
        "command": prefix,
    }
    parts = [
        f"const KERNELS = [{', '.join(kernels)}];",
        f"const TABLES = {script(list(tables.texts))};",
        f"const POINTS = {script(points)};",
        f"const FIXED = {script(fixed)};",
        asset("prepared.js"),
    ]
    return "\n\n".join(parts)


def observables(problem: CompiledProblem) -> tuple[str, ...]:
    """What the model of the page reports: order parameters, and the risk."""
    risk = ("risk",) if "summary" in _functions(problem) else ()
    return (*problem.order_names, *risk)


def _functions(problem: CompiledProblem) -> dict[str, tuple[Kind, ...]]:
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
