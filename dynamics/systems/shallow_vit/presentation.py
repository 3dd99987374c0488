"""What every problem of the shallow Vision Transformer has in common: how it is shown and read.

A presentation holds the letters, the panels and the phases of a run.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from dynamics.codegen import loops
from dynamics.problem import FloatArray, IntArray, columns_of, record_of
from dynamics.results.presentation import Panel, PlotDescription, Presentation, conditions
from dynamics.systems.empirical_problem import SampledProblem
from dynamics.systems.shallow_vit.projection import Reader
from theory.papers.shallow_vit.notation import EVENTS, NOTATION, ORDER_PARAMETERS, RATES

TOGETHER = 1 << 15
"""Numbers of the states and attentions that are read at once: they fit a processor's cache."""
PRESENTATION = Presentation(
    title="Shallow Vision Transformer, hinge loss (Li, Wang, Liu, Chen 2023)",
    notation=NOTATION,
    plot=PlotDescription(
        panels=(
            Panel(
                (
                    ("relevant", 5), ("relevant_by_relevant", 0), ("relevant_by_confusion", 1),
                    ("relevant_by_other", 2),
                ),
                label="attention to\nrelevant tokens",
                words=("all queries", "relevant", "confusion", "others"),
            ),
            Panel(
                (("risk", 0), ("test_loss", 1), ("active", 2), ("test_error", 4)),
                label="loss, errors",
            ),
            Panel(
                (("B_11", 0), ("B_12", 1), ("B_1k", 3), ("B_k1", 4), ("B_kk", 2), ("B_kl", 5)),
                level="0",
                label="scores, class means",
            ),
            Panel(
                (("lucky_W", 0), ("lucky_U", 1), ("gate_classes", 2)),
                label="neurons",
                words=("open to +", "open to $-$", "gate classes"),
            ),
        ),
        spans=(("below the margin", None, "t_zero"), ("zero loss", "t_zero", None)),
        marks={"t_zero": r"$t_{\mathrm{zero}}$"},
        asides={"mass_75": r"$P_* = 75\,\%$"},
        overlaid=("relevant", "test_loss", "test_error", "B_11", "lucky_W"),
    ),
    event_latex=conditions(EVENTS),
    unused=("noise",),
)  # fmt: skip


class VitProblem(SampledProblem):
    """Base of the problems of the system.

    Order parameters are those of all training samples, whatever the batch of a step; they are read
    off the pass that makes the gradient where that is over all.
    """

    system = "shallow_vit"
    presentation = PRESENTATION
    events = EVENTS
    order_names = ORDER_PARAMETERS
    rates = RATES
    flows = False

    @property
    @abstractmethod
    def reader(self) -> Reader:
        """What is read off a state on the patterns."""

    @abstractmethod
    def parts(self, states: FloatArray) -> tuple[FloatArray, ...]:
        """W_O, V, K, Q of flat states, shape (records, ...) each."""

    @abstractmethod
    def attended(self, state: FloatArray) -> tuple[FloatArray, IntArray, FloatArray]:
        """Attention to relevant and confusion keys as training has it; see `Reader.odds`."""

    @abstractmethod
    def tested(self, state: FloatArray) -> dict[str, float]:
        """``test_loss`` (the hinge, over the margin) and ``test_error`` on fresh samples."""

    def order_parameters(self, state: ArrayLike, gradient: FloatArray | None = None) -> FloatArray:
        """Risk over the margin, active, error, relevant, of all training samples.

        Parameters
        ----------
        state : float array, shape (n,)
        gradient : float array, shape (n,), optional
            Not needed: none of them is a rate.
        """
        flat = self.layout.flatten(state)
        return loops.order_parameters(self.addressed, flat, flat, len(self.order_names))

    def _summary(self, state: FloatArray) -> FloatArray:
        return self.order_parameters(state)[[0, 2]]

    def observables(self, state: ArrayLike) -> dict[str, float]:
        """Order parameters, errors on fresh samples, attention, scores, neurons at a state.

        The last finite state of a run that diverged may be too large for some of them.
        """
        return record_of(self.observables_along(self.layout.flatten(state)[None, :]), 0)

    def observables_along(self, states: FloatArray) -> dict[str, FloatArray]:
        """`observables` of states, shape (records, n): name -> values, shape (records,)."""
        counts = self.reader.counts
        together = max(1, TOGETHER // (counts.size * counts.shape[1] + self.layout.size))
        blocks = [
            self._observed(np.ascontiguousarray(states[first : first + together]))
            for first in range(0, max(1, len(states)), together)
        ]
        return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def _observed(self, states: FloatArray) -> dict[str, FloatArray]:
        """The observables of states that are read together."""
        order = np.array([self.order_parameters(state) for state in states])
        seen = [self.attended(state) for state in states]
        masses, (_, patterns, weights) = np.array([masses for masses, *_ in seen]), seen[0]
        return (
            self.reader.read(self.parts(states))
            | {"odds": self.reader.odds(masses, patterns, weights)}
            | dict(zip(self.order_names, order.T, strict=True))
            | columns_of([self.tested(state) for state in states])
        )
