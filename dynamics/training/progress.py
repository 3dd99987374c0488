"""Progress display of a long run, and its early end.

A progress bar on stderr where that is a terminal, a line every half minute elsewhere (a pipe, the
log of a batch system); Ctrl-C and SIGTERM end a run that keeps what it has.
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
"""Seconds before a bar appears: short runs show none."""
EVERY = 30.0
"""Seconds from line to line where stderr is not a terminal."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)

_active: list[threading.Event] = []
_repeats: list[threading.Timer] = []


class Bar(tqdm):  # type: ignore[misc]  # tqdm has no types
    """A bar of tqdm without its thread and its lock between processes, which killed ones leave."""

    monitor_interval = 0

    def say(self, words: str) -> None:
        """Set the text at the end of the bar from the next update on."""
        self.set_postfix_str(words, refresh=False)


Bar.set_lock(threading.RLock())


def bar(what: str, total: int | None = None, done: int = 0, unit: str = "steps") -> Bar:
    """A progress bar, shown after a delay: how many steps, how many per second, the time left.

    Where stderr is not a terminal it is a line, written every `EVERY` seconds, and nothing in a
    process of a sweep, whose own bar counts its points.

    `what`: what is under way, in front of the bar; `total`: steps in all; without it no time left
    is shown; `done`: steps that were done before, and do not count for the speed; `unit`: what is
    counted.
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
    """A stream to stderr on which every picture of a bar is a line of its own."""

    encoding = "ascii"

    def write(self, text: str) -> None:
        """Write a line, without the returns and blanks that erase a bar."""
        if text.strip():
            sys.stderr.write(f"{text.strip()}\n")

    def flush(self) -> None:
        """Flush stderr."""
        sys.stderr.flush()


def _size() -> dict[str, Any]:
    """Follow the terminal; one that does not know its size gets 80 columns, not an empty bar."""
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
    """Let Ctrl-C and SIGTERM end a command at once, in one line, before `main` handles them."""
    for number in SIGNALS:
        signal.signal(number, _leave)
    # Python repeats a KeyboardInterrupt that went through C code as a signal at its end.
    atexit.register(signal.pthread_sigmask, signal.SIG_BLOCK, SIGNALS)


def _leave(*_: object) -> None:
    os.write(2, b"attdyn: interrupted\n")
    os._exit(130)


@contextmanager
def interruption() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set, so that a run ends between chunks with all it has.

    A second signal raises KeyboardInterrupt at once.

    While numba compiles, which takes long and computes nothing, they raise KeyboardInterrupt.
    Nested uses share one event: after a signal nothing inside the outermost one goes on. Outside
    the main thread, where signals do not arrive, the event is never set.
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
    """Let SIGTERM and Ctrl-C raise KeyboardInterrupt, where no run is under way.

    An interrupt that C code drops, as LLVM does where it calls back into Python, is repeated; what
    fails because of it meanwhile is an interrupt too, no error of the program.
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
    """Repeat a KeyboardInterrupt that came in a destructor or callback, where Python drops it."""
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
            # None stands for a handler that was not installed from Python.
            signal.signal(number, signal.SIG_DFL if before is None else before)
