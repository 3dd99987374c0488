"""Quantities of a sweep: a number, or a yes or no, of every run.

A sweep is a dataset whose dimensions are the swept parameters. ``"time_T1"`` is a number of each
run. ``"patch_association>=1"``, ``"time_T1<1e4"`` and ``"reached(T1)"`` are 1 where the sentence is
true, 0 where it is false, NaN where nothing is known.

What is known of a run depends on its outcome. A run that converged decides everything: it is at
rest, and an event without a time is later than every number. One that reached its horizon says of
such an event only that it is later than the horizon: how it compares with a greater number is not
known. A run that failed on its way (oscillating, diverged, interrupted, killed) decides only the
events that it reached; its last values are those of another time and are left out.
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

    `text`: as it was requested; `name`: the variable; `relation`: ``""`` for the variable itself,
    one of `RELATIONS`, or ``"reached"``; `number`: what it is compared with; NaN where it is not.
    """

    text: str
    name: str
    relation: str = ""
    number: float = float("nan")

    @property
    def yes_no(self) -> bool:
        """Whether it is a yes or no."""
        return bool(self.relation)

    @property
    def is_time(self) -> bool:
        """Whether the variable is the time of an event."""
        return self.name.startswith(TIME)

    @classmethod
    def read(cls, text: str, dataset: xarray.Dataset) -> Quantity:
        """A quantity of a dataset from its text.

        Raises InvalidRequest if there is no such variable or event, or the text is none of the
        three forms.
        """
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
        """Its value in every run, on all dimensions; NaN where nothing is known."""
        values, outcome = everywhere(dataset, self.name), outcomes(dataset)
        whole = complete(outcome, kinds(dataset))
        decided = (whole | (self.is_time & (outcome >= 0))) & ~np.isnan(values)
        if not self.yes_no:
            return np.where(decided, values, np.nan)
        if self.is_time:
            late = whole & np.isnan(values)
            values = np.where(late, np.inf, values)
            decided |= late & ~(self.number > _known_until(dataset))  # NaN: of reached(NAME)
        if self.relation == "reached":
            answer = np.isfinite(values)
        else:
            answer = RELATIONS[self.relation](values, self.number)
        return np.where(decided, answer, np.nan)


def variables(dataset: xarray.Dataset) -> list[str]:
    """Names of the numbers that runs have; neither paths nor what is noted of blocks.

    Raises InvalidRequest if the dataset is not that of a sweep.
    """
    runs = set(_outcome(dataset).dims)
    found = dataset.data_vars.items()
    return [str(n) for n, values in found if n not in (OUTCOME, DONE) and runs >= {*values.dims}]


def outcomes(dataset: xarray.Dataset) -> NDArray[np.int64]:
    """How every run ended: an index into `kinds`, or "pending", or "invalid".

    Raises InvalidRequest if the dataset is not that of a sweep.
    """
    return _outcome(dataset).values.astype(np.int64)


def _outcome(dataset: xarray.Dataset) -> xarray.DataArray:
    if OUTCOME not in dataset.data_vars:
        raise InvalidRequest("the dataset has no variable 'outcome': it is not that of a sweep")
    return dataset[OUTCOME]


def kinds(dataset: xarray.Dataset) -> tuple[str, ...]:
    """The kinds of outcome that ``outcome`` counts."""
    return tuple(_unpacked(dataset.attrs.get("kinds", POINT_KINDS)))


def complete(outcome: NDArray[np.int64], names: Sequence[str]) -> NDArray[np.bool_]:
    """Whether runs went to their end, so that an event without a time did not happen.

    `outcome`: index into the names; `names`: kinds of outcome.
    """
    return np.isin(outcome, [code for code, kind in enumerate(names) if kind in COMPLETE])


def _known_until(dataset: xarray.Dataset) -> FloatArray:
    """The time until which runs say that an event did not happen; infinite of one at rest."""
    if END_TIME not in dataset.data_vars:  # a dataset made by hand
        return np.full(dataset[OUTCOME].shape, np.inf)
    at_rest = [code for code, kind in enumerate(kinds(dataset)) if kind == CONVERGED]
    ends = everywhere(dataset, END_TIME) * (1.0 + 1e-12)  # eta times steps is rounded
    return np.where(np.isin(outcomes(dataset), at_rest), np.inf, ends)


def json_attribute(dataset: xarray.Dataset, name: str) -> Mapping[str, Any]:
    """An attribute that is a JSON object; empty where there is none.

    `name`: ``"fixed"`` or ``"derived"``.
    """
    return dict(_unpacked(dataset.attrs.get(name, {})))


def presentation_of(dataset: xarray.Dataset) -> Presentation:
    """How the dataset is shown; names are written out where it does not say."""
    title = str(dataset.attrs.get("system", ""))
    return Presentation.from_attributes(dataset.attrs) or Presentation.empty(title)


def numbers(held: Mapping[str, Any]) -> dict[str, float]:
    """Those of the held values that are numbers."""
    return {
        name: value
        for name, value in held.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }


def everywhere(dataset: xarray.Dataset, name: str) -> FloatArray:
    """A variable or coordinate on all dimensions, in the order of those of ``outcome``."""
    import xarray

    outcome = dataset[OUTCOME]
    spread, _ = xarray.broadcast(dataset[name], outcome)
    return np.array(spread.transpose(*outcome.dims).values, dtype=np.float64)


def _unpacked(attribute: Any) -> Any:
    """An attribute that may be JSON, as it is in a file."""
    return json.loads(attribute) if isinstance(attribute, str) else attribute
