"""Ending a run early and keeping what it has: Ctrl-C, and the SIGTERM of a batch system."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)

_active: list[threading.Event] = []


@contextmanager
def interruption() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set, so that a run ends between chunks with all it has.

    Nested uses share one event: after a signal nothing inside the outermost one goes on. Outside
    the main thread, where signals do not arrive, the event is never set.
    """
    if _active or threading.current_thread() is not threading.main_thread():
        yield _active[0] if _active else threading.Event()
        return
    raised = threading.Event()
    _active.append(raised)
    try:
        with _handled(SIGNALS, lambda *_: raised.set()):
            yield raised
    finally:
        _active.clear()


@contextmanager
def termination() -> Iterator[None]:
    """Let SIGTERM raise KeyboardInterrupt, as Ctrl-C does, where no run is under way."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with _handled((signal.SIGTERM,), signal.default_int_handler):
        yield


@contextmanager
def _handled(signals: tuple[signal.Signals, ...], handler: Callable[..., Any]) -> Iterator[None]:
    earlier = {number: signal.signal(number, handler) for number in signals}
    try:
        yield
    finally:
        for number, before in earlier.items():
            # None stands for a handler that was not installed from Python.
            signal.signal(number, signal.SIG_DFL if before is None else before)
