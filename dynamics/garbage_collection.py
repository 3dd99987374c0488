"""Python's collector of garbage, less often where it finds none.

Imports and compilations make millions of objects that last. Looking again and again for those that
do not took a tenth of the time of either.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

COLLECTIONS = 50_000, 20, 50
"""Thresholds of the collector, at least."""

_thresholds: list[tuple[int, int, int]] = []
_changing = threading.Lock()


def collect_less() -> None:
    """From now on collect less often; for a process that is this program's own."""
    before = gc.get_threshold()
    if before[0] > 0:  # it was not turned off
        gc.set_threshold(*map(max, before, COLLECTIONS))


@contextmanager
def fewer_collections() -> Iterator[None]:
    """Within it, in whichever thread, Python collects garbage less often, if it does at all."""
    with _changing:
        _thresholds.append(gc.get_threshold())
        collect_less()
    try:
        yield
    finally:
        with _changing:
            # The first that came in knows what was set before; the last that leaves sets it again.
            first = _thresholds[0]
            _thresholds.pop()
            if not _thresholds:
                gc.set_threshold(*first)
