"""Settings of this process: its cores; and other ones for a while, of garbage and threads of BLAS.

Imports and compilations make millions of objects that last. Looking again and again for those that
do not took a tenth of the time of either, and half a second at the end of a process.

Threads of BLAS that have finished wait for the next product by computing, some tenth of a second
long, and meanwhile the threads of compiled steps have half of the machine: gradient descent on
samples took 1.4 to 1.7 times as long where products in two threads, as of A = P^T P, had been
computed shortly before.
"""

from __future__ import annotations

import atexit
import gc
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

SAFE_PATH = "PYTHONSAFEPATH"
"""Variable by which a process imports no modules from the folder that it starts in."""
COLLECTIONS = 50_000, 20, 50
"""Thresholds of the collector, at least."""
cleared_at_end: list[dict[str, Any]] = []
"""Globals of model files, which may hold open files: `end_quickly` lets go of them."""


def cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class ForAWhile:
    """A setting that several threads change and set back, in whatever order they leave.

    `change`: changes it, and returns what sets it back.
    """

    def __init__(self, change: Callable[[], Callable[[], None]]) -> None:
        self._change, self._changing = change, threading.Lock()
        self._inside: list[Callable[[], None]] = []

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """The setting is changed within, in whichever thread."""
        with self._changing:
            self._inside.append(self._change())
        try:
            yield
        finally:
            with self._changing:
                # The first that came in knows what was set before; the last that leaves uses it.
                first = self._inside[0]
                self._inside.pop()
                if not self._inside:
                    first()


def collect_less() -> None:
    """From now on collect garbage less often; for a process that is this program's own."""
    before = gc.get_threshold()
    if before[0] > 0:  # it was not turned off
        gc.set_threshold(*map(max, before, COLLECTIONS))


def end_quickly() -> None:
    """Look for no garbage at the end of the process; for one that runs this program's code alone.

    The collector would also close the files that a module has open.
    """
    atexit.register(_end)


def _end() -> None:
    for names in cleared_at_end:
        names.clear()
    gc.freeze()


def end_as_usual() -> None:
    """End as Python does: somebody else's modules may leave files open."""
    atexit.unregister(_end)


@cache
def _blas() -> Any:
    """The libraries of BLAS in this process; that of numpy is, and they are looked for once."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def _change_blas_threads() -> Callable[[], None]:
    restore: Callable[[], None] = _blas().limit(limits=1).restore_original_limits
    return restore


one_blas_thread = ForAWhile(_change_blas_threads)
"""A context, and a decorator, within which numpy computes products in one thread."""
