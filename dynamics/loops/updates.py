"""An update rule at the rates of a run, as loops take it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynamics.loops.kernels.program import List
from dynamics.loops.kernels.update import Update
from theory.update_rules import GD, UpdateRule

FloatArray = NDArray[np.float64]
Factors = Callable[[NDArray[np.int64]], FloatArray]


def constant(steps: NDArray[np.int64]) -> FloatArray:
    """Factor 1 at every step."""
    return np.ones(steps.size)


@dataclass(frozen=True)
class Updates:
    """An update rule with the learning rates of a run.

    `eta`, shape (n,): learning rate of each entry; `sizes`, shape (n,): trained entries that each
    number of a state stands for; 1 by default; `moves`, shape (n,): entries that may move; all by
    default; `factors`: steps, counted from 0 -> factors of all learning rates; `stages`: entries
    that move in each stage, and its number of steps; the last one has no end. All always by
    default.
    """

    eta: FloatArray
    rule: UpdateRule = GD
    sizes: FloatArray | None = None
    moves: NDArray[np.bool_] | None = None
    factors: Factors = constant
    stages: Sequence[tuple[NDArray[np.bool_], int]] = ()

    @property
    def unit(self) -> float:
        """The largest learning rate, in which time is counted before factors."""
        return float(self.eta.max(initial=0.0))

    @property
    def alike(self) -> bool:
        """Whether a step depends on the entries alone."""
        return self.rule.plain and self.factors is constant and not self.stages

    def begun(self, state: FloatArray) -> FloatArray:
        """A state with the memory of the rule, which is 0, shape (n (1 + memory),)."""
        return np.concatenate([state, np.zeros(self.rule.memory * state.size)])

    def parts(self, first: int, last: int) -> Iterator[tuple[int, int, Update]]:
        """Spans of steps in which the same entries move: first, last (exclusive), loop data."""
        size, plain = self.eta.size, self.rule.plain
        every = np.ones(size, dtype=bool) if self.moves is None else self.moves
        sizes = np.ones(size) if self.sizes is None else self.sizes
        *stages, (among, _) = self.stages or ((np.ones(size, dtype=bool), last),)
        stages.append((among, last))
        begin, rested = 0, np.zeros(size, dtype=np.int64)
        program = NONE if plain else listed(self.rule)
        share = self.eta / (self.unit or 1.0)
        for among, steps in stages:
            end = begin + steps
            low, high = max(first, begin), min(last, end)
            if low < high:
                moves = every & among
                eta = np.where(moves, self.eta, 0.0)
                shares, factors = np.where(moves, share, 0.0), self.factors(np.arange(low, high))
                decay = self.rule.weight_decay
                update = Update(program, decay, eta, shares, sizes, moves, rested, factors)
                yield low, high, update
            rested = rested + np.where(among, 0, steps)
            begin = end

    def time(self, steps: NDArray[np.int64]) -> FloatArray:
        """Sum of the scheduled rates up to steps, before factors of groups.

        `steps`, ascending.
        """
        if self.factors is constant:
            return np.asarray(steps * self.unit, dtype=np.float64)
        total = np.concatenate([[0.0], np.cumsum(self.factors(np.arange(int(steps.max()))))])
        return np.asarray(self.unit * total[steps])


NONE = List(
    np.zeros(0), np.zeros((0, 4), dtype=np.int64), np.zeros(0, dtype=np.uint32), np.zeros(0),
    np.zeros(0, dtype=np.int64), 0,
)  # fmt: skip
"""The program of plain gradient descent."""


def listed(rule: UpdateRule) -> List:
    """The program of a rule as compiled loops take it, at its constants."""
    made = rule.program
    given = np.concatenate([[*rule.numbers.values()], made.constants])
    outputs = np.concatenate([made.outputs["change"], made.outputs["memory"]]).astype(np.int64)
    index = made.index.astype(np.uint32)
    return List(given, made.instructions, index, made.count, outputs, made.size)
