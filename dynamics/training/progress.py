"""Progress display and interruption of a long run.

Progress is shown as a bar on a terminal, and as a line every 30 seconds if stderr is a pipe or a
file. Ctrl-C and SIGTERM end a run, and the run keeps its records so far.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from tqdm import tqdm

DELAY = 1.0
"""Time in seconds from the start of a run until its progress bar appears."""
EVERY = 30.0
"""Seconds between two progress lines if stderr is not a terminal."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)

_active: list[threading.Event] = []
_repeats: list[threading.Timer] = []


class Bar(tqdm):  # type: ignore[misc]  # tqdm has no types
    """tqdm bar without tqdm's monitor thread, and without the lock that a killed process leaks."""

    monitor_interval = 0

    def say(self, words: str) -> None:
        """Set the text that the bar shows at its end from the next update on."""
        self.set_postfix_str(words, refresh=False)


Bar.set_lock(threading.RLock())


def bar(what: str, total: int | None = None, done: int = 0, unit: str = "steps") -> Bar:
    """Progress bar with steps, steps per second and remaining time, shown after `DELAY` seconds.

    If stderr is not a terminal, a line every `EVERY` seconds replaces the bar, and workers of a
    sweep show nothing. The text `what` precedes the bar. The `done` steps of an earlier process are
    excluded from the speed.
    """
    terminal = sys.stderr.isatty()
    look: dict[str, Any] = {"delay": DELAY, **_size()}
    if not terminal:
        look = {"file": _Lines(), "ncols": 0, "ascii": True, "delay": EVERY, "mininterval": EVERY}
    silent = not terminal and multiprocessing.parent_process() is not None
    return Bar(
        desc=what, total=total, initial=done, unit=f" {unit}", unit_scale=True, disable=silent,
        leave=False, miniters=1, **look,
    )  # fmt: skip


class _Lines:
    """Stream to stderr that prints every update of a bar as a new line."""

    encoding = "ascii"

    def write(self, text: str) -> None:
        """Write a line without the carriage returns and blanks that erase a bar."""
        if text.strip():
            sys.stderr.write(f"{text.strip()}\n")

    def flush(self) -> None:
        """Flush stderr."""
        sys.stderr.flush()


def _size() -> dict[str, Any]:
    """Width options of tqdm: the width of the terminal, or 80 columns if unknown."""
    try:
        sized = min(os.get_terminal_size(sys.stderr.fileno())) > 0
    except (OSError, ValueError, AttributeError):
        sized = False
    return {"dynamic_ncols": True} if sized else {"ncols": 80, "nrows": 20}


def is_command() -> bool:
    """Whether this process is ``attdyn``, or ``python -m dynamics``."""
    program = os.path.basename(sys.argv[0]) if sys.argv else ""
    return program == "attdyn" or (program == "-m" and "dynamics" in sys.orig_argv)


def leave_at_signals() -> None:
    """Exit at once with a one-line message at Ctrl-C or SIGTERM, until `main` handles signals."""
    for number in SIGNALS:
        signal.signal(number, _leave)
    # If a KeyboardInterrupt passed through C code, Python raises the signal again at exit.
    atexit.register(signal.pthread_sigmask, signal.SIG_BLOCK, SIGNALS)


def _leave(*_: object) -> None:
    os.write(2, b"attdyn: interrupted\n")
    os._exit(130)


@contextmanager
def interruption() -> Iterator[threading.Event]:
    """Context with an event that Ctrl-C or SIGTERM sets; a run then ends after its chunk.

    A second signal, or a signal while numba compiles, raises KeyboardInterrupt at once. Nested
    contexts share one event. Only the main thread receives signals, so in another thread the event
    is never set.
    """
    if _active or threading.current_thread() is not threading.main_thread():
        yield _active[0] if _active else threading.Event()
        return
    raised = threading.Event()
    _active.append(raised)

    def handler(number: int, frame: FrameType | None) -> None:
        if raised.is_set():
            raise KeyboardInterrupt
        raised.set()
        while frame is not None:
            if str(frame.f_globals.get("__name__")).startswith("numba.core."):
                raise KeyboardInterrupt
            frame = frame.f_back

    try:
        with _handled(SIGNALS, handler):
            yield raised
    finally:
        _active.clear()


@contextmanager
def termination() -> Iterator[None]:
    """Context in which SIGTERM and Ctrl-C raise KeyboardInterrupt.

    An interrupt that C code drops (LLVM calling back into Python) is raised again. An exception
    that the interrupt causes is replaced by KeyboardInterrupt.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    earlier, sys.unraisablehook = sys.unraisablehook, _again
    try:
        with _handled(SIGNALS, signal.default_int_handler):
            yield
    except Exception as error:
        if _repeats:
            raise KeyboardInterrupt from error
        raise
    finally:
        sys.unraisablehook = earlier
        while _repeats:
            _repeats.pop().cancel()


def _again(lost: Any) -> None:
    """Raise again a KeyboardInterrupt that Python dropped in a destructor or callback."""
    if isinstance(lost.exc_value, KeyboardInterrupt):
        _repeats.append(threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)))
        _repeats[-1].start()
    else:
        sys.__unraisablehook__(lost)


@contextmanager
def _handled(signals: tuple[signal.Signals, ...], handler: Callable[..., Any]) -> Iterator[None]:
    earlier = {number: signal.signal(number, handler) for number in signals}
    try:
        yield
    finally:
        for number, before in earlier.items():
            # `before` is None for a handler that was not installed from Python.
            signal.signal(number, signal.SIG_DFL if before is None else before)
