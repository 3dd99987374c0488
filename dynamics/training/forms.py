"""The forms that a problem takes along one run, each from the moment at which it was taken.

A problem may have a better form of itself for another part of a run: a finer truncation where the
certificate is lost, a cheaper expectation late in training. The drivers ask it whenever the time
has doubled, and where a gradient is not a number; the moments do not depend on the machine.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any

from dynamics.problem import FloatArray, Problem
from dynamics.validation import InvalidRequest


class Forms:
    """Forms of a problem by the step, or the time, from which they hold.

    Parameters
    ----------
    problem : Problem
        The form at the start.
    """

    def __init__(self, problem: Problem) -> None:
        self.starts: list[float] = [0]
        self.problems = [problem]
        self._states: list[FloatArray] = []

    @property
    def now(self) -> Problem:
        """The last form."""
        return self.problems[-1]

    def reconsidered(self, start: float, state: FloatArray) -> Problem:
        """The form with which to go on from a state; kept where it is a new one."""
        form = self.now.reconsidered(state)
        if form is not self.now:
            self.starts.append(start)
            self.problems.append(form)
            self._states.append(state.copy())
        return form

    def state(self) -> list[tuple[float, FloatArray, dict[str, Any]]]:
        """Every later form by where it was taken and its settings, for `restore`."""
        later = zip(self.starts[1:], self._states, self.problems[1:], strict=True)
        return [(start, state, dict(form.settings)) for start, state, form in later]

    def restore(self, taken: Iterable[tuple[float, FloatArray, dict[str, Any]]]) -> None:
        """Take the same forms once more: each depends on the one before and the state alone.

        Raises
        ------
        InvalidRequest
            If another form is taken now.
        """
        for start, state, settings in taken:
            before, form = self.now, self.reconsidered(start, state)
            if form is before or form.settings != settings:
                raise InvalidRequest(
                    f"the form that the run took at {start:g} is not taken again "
                    f"({settings} there, {dict(form.settings)} here); start anew"
                )

    def at(self, moment: float) -> Problem:
        """The form that holds at a step or time."""
        return self.problems[bisect_right(self.starts, moment) - 1]

    def between(self, first: int, last: int) -> Iterator[tuple[int, int, Problem]]:
        """Pieces (first, last, form) of the steps from first to last."""
        stops = [*self.starts[1:], last]
        for start, stop, form in zip(self.starts, stops, self.problems, strict=True):
            begin, end = max(first, int(start)), min(last, int(stop))
            if begin < end:
                yield begin, end, form

    def settings(self, unit: float = 1.0) -> dict[str, Any]:
        """Settings of the first form, and when which other one was taken.

        Parameters
        ----------
        unit : float
            Time of one step, where the moments are steps.
        """
        found = dict(self.problems[0].settings)
        if len(self.problems) > 1:
            pairs = zip(self.starts, self.problems, strict=True)
            found["forms"] = [[unit * start, dict(form.settings)] for start, form in pairs]
        return found
