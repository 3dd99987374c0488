"""One thread of BLAS, where its others would stand in the way of compiled code.

Threads of BLAS that have finished wait for the next product by computing, some tenth of a second
long, and meanwhile the threads of compiled steps have half of the machine: a second run of gradient
descent on samples took 1.4 to 1.7 times as long as the first, because the test error of the first
had been computed by products in two threads.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_limits: list[Any] = []
_changing = threading.Lock()


@cache
def _libraries() -> Any:
    """The libraries of BLAS in this process; that of numpy is, and they are looked for once."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Within it, in whichever thread, numpy computes products in one thread."""
    with _changing:
        _limits.append(_libraries().limit(limits=1))
    try:
        yield
    finally:
        with _changing:
            # The first that came in knows how many there were; the last that leaves sets it again.
            first = _limits[0]
            _limits.pop()
            if not _limits:
                first.restore_original_limits()
