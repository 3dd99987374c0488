"""Quantities of a sweep: a number, or a yes or no, for every run.

``"time_T1"`` is a number; ``"patch_association>=1"``, ``"time_T1<1e4"`` and ``"reached(T1)"`` are 1
for yes, 0 for no, NaN if unknown. An event that a converged run did not reach counts as later than
any number. An event that a run did not reach before its horizon counts as later than the horizon;
its comparison with a time after the horizon is unknown. For a failed run (oscillating, diverged,
interrupted, killed) only the events that it reached are known; its final values are unknown.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynamics.presentation import Presentation
from dynamics.problem import FloatArray
from dynamics.results.outcome import CONVERGED, HORIZON, POINT_KINDS
from dynamics.validation import InvalidRequest, known_word, refuse
from theory.summary import summarized

if TYPE_CHECKING:
    import xarray

OUTCOME, END_TIME, DONE = "outcome", "end_time", "done"
COMPLETE = (CONVERGED, HORIZON)
TIME = "time_"
RELATIONS = {
    "<=": operator.le, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
    "<": operator.lt, ">": operator.gt,
}  # fmt: skip
NAME = r"([A-Za-z_]\w*)"
REACHED = re.compile(rf"\s*reached\(\s*{NAME}\s*\)\s*")
COMPARED = re.compile(rf"\s*{NAME}\s*({'|'.join(RELATIONS)})\s*(\S+)\s*")


@summarized
@dataclass(frozen=True)
class Quantity:
    """A number, or a yes or no, of every run.

    The `text` is the quantity as requested; `name` is the variable from which it is computed. The
    `relation` is ``""`` for the variable itself, one of `RELATIONS`, or ``"reached"``. The `number`
    is the right side of the comparison, NaN without a comparison.
    """

    text: str
    name: str
    relation: str = ""
    number: float = float("nan")

    @property
    def yes_no(self) -> bool:
        """Whether the quantity is a yes or no."""
        return bool(self.relation)

    @property
    def is_time(self) -> bool:
        """Whether the variable is the time of an event."""
        return self.name.startswith(TIME)

    @classmethod
    def read(cls, text: str, dataset: xarray.Dataset) -> Quantity:
        """Parse a quantity; raises InvalidRequest for an unknown variable or another form."""
        there = variables(dataset)
        if match := REACHED.fullmatch(text):
            events = [name.removeprefix(TIME) for name in there if name.startswith(TIME)]
            known_word("quantity", match[1], events, "is not an event of the dataset")
            return cls(text, TIME + match[1], "reached")
        if match := COMPARED.fullmatch(text):
            name, relation, written = match.groups()
            known_word("quantity", name, there, "is not in the dataset")
            try:
                number = float(written)
            except ValueError:
                number = float("nan")
            if np.isnan(number):
                what = f"compares with {written}, which is not a number"
                refuse("quantity", text, what, "a comparison with a number", name)
            return cls(text, name, relation, number)
        return cls(text, known_word("quantity", text.strip(), there, "is not in the dataset"))

    def of(self, dataset: xarray.Dataset) -> FloatArray:
        """Values of the quantity in all runs, in the shape of ``outcome``, NaN if unknown."""
        values, outcome = everywhere(dataset, self.name), outcomes(dataset)
        whole = complete(outcome, kinds(dataset))
        decided = (whole | (self.is_time & (outcome >= 0))) & ~np.isnan(values)
        if not self.yes_no:
            return np.where(decided, values, np.nan)
        if self.is_time:
            late = whole & np.isnan(values)
            values = np.where(late, np.inf, values)
            decided |= late & ~(self.number > _known_until(dataset))  # NaN for reached(NAME)
        if self.relation == "reached":
            answer = np.isfinite(values)
        else:
            answer = RELATIONS[self.relation](values, self.number)
        return np.where(decided, answer, np.nan)


def variables(dataset: xarray.Dataset) -> list[str]:
    """Names of the variables with one number for each run, except ``outcome`` and ``done``."""
    runs = set(_outcome(dataset).dims)
    found = dataset.data_vars.items()
    return [str(n) for n, values in found if n not in (OUTCOME, DONE) and runs >= {*values.dims}]


def outcomes(dataset: xarray.Dataset) -> NDArray[np.int64]:
    """Outcome of every run of a sweep: an index into `kinds`, or `PENDING`, or `INVALID`."""
    return _outcome(dataset).values.astype(np.int64)


def _outcome(dataset: xarray.Dataset) -> xarray.DataArray:
    if OUTCOME not in dataset.data_vars:
        raise InvalidRequest("the dataset has no variable 'outcome', so it is not from a sweep")
    return dataset[OUTCOME]


def kinds(dataset: xarray.Dataset) -> tuple[str, ...]:
    """Names of the outcomes; the variable ``outcome`` holds indices into this tuple."""
    return tuple(_unpacked(dataset.attrs.get("kinds", POINT_KINDS)))


def complete(outcome: NDArray[np.int64], names: Sequence[str]) -> NDArray[np.bool_]:
    """Whether each run converged or ended at its horizon."""
    return np.isin(outcome, [code for code, kind in enumerate(names) if kind in COMPLETE])


def _known_until(dataset: xarray.Dataset) -> FloatArray:
    """End time of each run, infinite if the run converged; no unreached event occurs earlier."""
    if END_TIME not in dataset.data_vars:  # a dataset made by hand
        return np.full(dataset[OUTCOME].shape, np.inf)
    at_rest = [code for code, kind in enumerate(kinds(dataset)) if kind == CONVERGED]
    ends = everywhere(dataset, END_TIME) * (1.0 + 1e-12)  # above the rounding of eta * steps
    return np.where(np.isin(outcomes(dataset), at_rest), np.inf, ends)


def json_attribute(dataset: xarray.Dataset, name: str) -> Mapping[str, Any]:
    """Mapping of a JSON attribute (``"fixed"`` or ``"derived"``) of a dataset; empty if missing."""
    return dict(_unpacked(dataset.attrs.get(name, {})))


def presentation_of(dataset: xarray.Dataset) -> Presentation:
    """Presentation stored in a dataset; one with plain variable names if missing."""
    title = str(dataset.attrs.get("system", ""))
    return Presentation.from_attributes(dataset.attrs) or Presentation.empty(title)


def numbers(held: Mapping[str, Any]) -> dict[str, float]:
    """Select the entries of `held` whose values are numbers."""
    return {
        name: value
        for name, value in held.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }


def everywhere(dataset: xarray.Dataset, name: str) -> FloatArray:
    """Values of a variable or coordinate, broadcast to the shape of ``outcome``."""
    import xarray

    outcome = dataset[OUTCOME]
    spread, _ = xarray.broadcast(dataset[name], outcome)
    return np.array(spread.transpose(*outcome.dims).values, dtype=np.float64)


def _unpacked(attribute: Any) -> Any:
    """Decode an attribute that may be JSON text."""
    return json.loads(attribute) if isinstance(attribute, str) else attribute
