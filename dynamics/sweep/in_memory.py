"""A sweep that stays nowhere: blocks in memory, in place of `dynamics.sweep.store.SweepStore`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.sweep.contents import Contents, attributes_of, block_hash, empty, filled_names
from dynamics.sweep.plan import Plan


class InMemory:
    """The results of a plan while it is run, and its contents afterwards.

    Parameters
    ----------
    plan : Plan
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._values: dict[str, NDArray[Any]] = {"outcome": empty(plan, "outcome")}
        self._done = np.zeros(len(plan.blocks), np.uint32)

    @contextmanager
    def open(self) -> Iterator[None]:
        """Nothing is to be made or to be kept from others."""
        yield

    def write(self, number: int, block: Mapping[str, NDArray[Any]]) -> None:
        """Take a block.

        Parameters
        ----------
        number : int
        block : mapping
            Quantity -> values over the box of the block.
        """
        for name in filled_names(block):
            if name not in self._values:
                self._values[name] = empty(self.plan, name)
            self._values[name][self.plan.box(number)] = block[name]
        self._done[number] = block_hash(self.plan, number, block)

    def read(self) -> Contents:
        """What has been taken so far."""
        return Contents(dict(sorted(self._values.items())), self._done, {})

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Those that a store of the plan would have."""
        return attributes_of(self.plan)
