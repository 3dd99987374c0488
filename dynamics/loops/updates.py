"""An update rule with the learning rates of a run, in the form that compiled loops take."""

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
    """Learning-rate factor 1 for every step."""
    return np.ones(steps.size)


@dataclass(frozen=True)
class Updates:
    """An update rule with the learning rates of a run.

    The array `eta`, shape (n,), holds the learning rate of each entry; `sizes`, shape (n,), the
    number of trained entries that share each scalar, by default 1; `moves`, shape (n,), marks the
    trainable entries. The function `factors` maps steps, counted from 0, to factors of all learning
    rates. Each stage in `stages` is a pair (mask of trained entries, number of steps); the last
    stage continues to the end of the run.
    """

    eta: FloatArray
    rule: UpdateRule = GD
    sizes: FloatArray | None = None
    moves: NDArray[np.bool_] | None = None
    factors: Factors = constant
    stages: Sequence[tuple[NDArray[np.bool_], int]] = ()

    @property
    def unit(self) -> float:
        """Largest learning rate; with factors of 1, time is this rate times the number of steps."""
        return float(self.eta.max(initial=0.0))

    @property
    def alike(self) -> bool:
        """Whether all steps use the same update: gradient descent, constant rate, no stages."""
        return self.rule.plain and self.factors is constant and not self.stages

    def begun(self, state: FloatArray) -> FloatArray:
        """State followed by the rule's memory, initially 0, shape (n (1 + memory),)."""
        return np.concatenate([state, np.zeros(self.rule.memory * state.size)])

    def parts(self, first: int, last: int) -> Iterator[tuple[int, int, Update]]:
        """Yield (first, end, loop data) for each span of steps that train the same entries."""
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
        """Time of ascending steps: `unit` times the sum of the factors of all earlier steps."""
        if self.factors is constant:
            return np.asarray(steps * self.unit, dtype=np.float64)
        total = np.concatenate([[0.0], np.cumsum(self.factors(np.arange(int(steps.max()))))])
        return np.asarray(self.unit * total[steps])


NONE = List(
    np.zeros(0), np.zeros((0, 4), dtype=np.int64), np.zeros(0, dtype=np.uint32), np.zeros(0),
    np.zeros(0, dtype=np.int64), 0,
)  # fmt: skip
"""Empty program, for plain gradient descent."""


def listed(rule: UpdateRule) -> List:
    """Program of an update rule in the form of compiled loops, with its constants filled in."""
    made = rule.program
    given = np.concatenate([[*rule.numbers.values()], made.constants])
    outputs = np.concatenate([made.outputs["change"], made.outputs["memory"]]).astype(np.int64)
    index = made.index.astype(np.uint32)
    return List(given, made.instructions, index, made.count, outputs, made.size)
