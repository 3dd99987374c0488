"""The law that a default comparison is laid beside: a reduced run, one picture, one sentence."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from dynamics.cli import report
from dynamics.results.trajectory import Trajectory

if TYPE_CHECKING:
    from dynamics.default_runs import Contrast
    from dynamics.system import System


@dataclass(frozen=True)
class Beside:
    """A run under a contrast, beside the reduced run of a comparison.

    Attributes
    ----------
    contrast : Contrast
    first, run : Trajectory
        The reduced run of the comparison, and that under the contrast.
    remark : str
        What distinguishes the two laws.
    """

    contrast: Contrast
    first: Trajectory
    run: Trajectory
    remark: str

    def document(self) -> dict[str, Any]:
        """Parameters that differ, events and end of the run, and the remark, as plain values."""
        whole = report.document(self.run)
        parts = {name: whole[name] for name in ("events", "reasons", "final", "outcome")}
        return {"parameters": dict(self.contrast.parameters), **parts, "remark": self.remark}

    def lines(self) -> list[str]:
        """Lines of text: each event that the two runs do not share, and the end."""
        end = report.document(self.run)["final"]
        lines = ["", f"{'beside it':<20}{self._label(self.run)}, reduced"]
        for name, event in self.run.events.items():
            if self.first.events[name] and not event:
                lines.append(f"{name:<20}none: {event.reason}")
        names = [*self.run.layout.names, "G", "risk", "error"]
        numbers = ", ".join(f"{name}={end[name]:.6g}" for name in names if name in end)
        return [*lines, f"{'at the end':<20}{numbers}", f"{'criterion':<20}{self.remark}", ""]

    def pictures(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        """File name of both runs laid over each other, and what draws them."""
        from dynamics import plotting

        runs = {self._label(run): run for run in (self.first, self.run)}
        yield "beside.png", partial(plotting.several, runs, self.contrast.overlaid)

    def _label(self, run: Trajectory) -> str:
        letters = run.presentation.notation
        return ", ".join(
            f"{letters[name].letter} = {run.parameters[name]}" for name in self.contrast.parameters
        )


def lay_beside(
    system: System,
    contrast: Contrast,
    first: Trajectory,
    options: Mapping[str, Any],
    train: Callable[[Any], Trajectory],
) -> Beside:
    """Train the reduced problem under a contrast.

    Parameters
    ----------
    system : System
    contrast : Contrast
    first : Trajectory
        The reduced run of the comparison.
    options : mapping
        Of the reduced problem, as of `System.problem`.
    train : callable
        Problem -> its run, like that of the comparison.
    """
    parameters = system.Parameters(**first.parameters)
    other = dataclasses.replace(parameters, **contrast.parameters)
    run = train(system.problem(other, None, options))
    return Beside(contrast, first, run, contrast.remark(parameters))
