"""Workers that run the points of a sweep: the calling process, or other processes.

All workers, also those of `dynamics.sweep.cluster`, take calls and return futures. If a process
dies, killed by a user or for lack of memory, only the future of its own call fails; the module
`dynamics.sweep.run` then runs the points of this call again.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from multiprocessing import resource_tracker
from typing import Any

from dynamics.registry import load_unchanged
from dynamics.validation import InvalidRequest

THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
SAFE_PATH = "PYTHONSAFEPATH"
"""Environment variable that stops Python from importing modules of the working directory."""
ENVIRONMENT = {**dict.fromkeys(THREADS, "1"), SAFE_PATH: "1", "LOKY_MAX_MEMORY_LEAK_SIZE": "4e9"}
"""Environment of worker processes: one thread each, no imports from the working directory, and a
high memory limit, because compiling programs takes memory."""


class Workers(ABC):
    """Interface of the workers of a sweep."""

    size: float = 1
    """Maximum number of simultaneous calls."""
    lost: tuple[type[BaseException], ...] = ()
    """Exceptions that a future raises if the worker of its call died."""

    @abstractmethod
    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Start a call and return its future."""

    def wait(self, futures: Iterable[Future[Any]], seconds: float) -> set[Future[Any]]:
        """Wait, at most for some seconds, until a future is done; return the futures done."""
        return set(wait(list(futures), seconds, FIRST_COMPLETED).done)

    def close(self) -> None:  # noqa: B027 (a call in this process is always finished)
        """Cancel unfinished calls."""


class InProcess(Workers):
    """The calling process as a worker: it runs a call at once, also for a model without a file."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Run a call and return a finished future."""
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future


class WorkerPool(Workers):
    """Processes on this machine; each is a loky pool of size one, so a crash fails only one call.

    The processes start at once and load the system `reference` while the sweep is prepared. A
    process refuses a model if the hashes of its parts differ from `digests`.
    """

    def __init__(self, size: int, reference: str, digests: Mapping[str, str]) -> None:
        from loky.process_executor import BrokenProcessPool

        self.size = size
        self.lost = (BrokenProcessPool,)
        self._system = (reference, dict(digests))
        self._executors = [self._started() for _ in range(size)]
        self._calls: list[Future[Any] | None] = [None] * size

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Start a call in an idle process; a dead process is replaced first."""
        idle = next(k for k, call in enumerate(self._calls) if call is None or call.done())
        try:
            call = self._executors[idle].submit(function, *arguments)
        except self.lost:
            self._executors[idle].shutdown(kill_workers=True)
            self._executors[idle] = self._started()
            call = self._executors[idle].submit(function, *arguments)
        self._calls[idle] = call
        return call

    def close(self) -> None:
        """Kill all processes of the pool."""
        for executor in self._executors:
            executor.shutdown(kill_workers=True)

    def _started(self) -> Any:
        from loky.process_executor import ProcessPoolExecutor

        former = os.environ.get(SAFE_PATH)
        os.environ[SAFE_PATH] = "1"  # inherited by loky's resource tracker process
        try:
            executor = ProcessPoolExecutor(max_workers=1, env=ENVIRONMENT)
            resource_tracker.ensure_running()  # its start would unblock Ctrl-C, blocked below
            # Workers inherit a blocked Ctrl-C; the calling process handles it and ends the workers.
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                executor.submit(_prepare_worker, os.getpid(), *self._system)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        finally:
            if former is None:
                del os.environ[SAFE_PATH]
            else:
                os.environ[SAFE_PATH] = former
        return executor


def _prepare_worker(parent: int, reference: str, digests: Mapping[str, str]) -> None:
    """Initialize a worker: detach it from the terminal, watch its parent, load the system."""
    os.setsid()
    # Output of libraries goes to stderr: stdout is reserved for the results of the command.
    os.dup2(2, 1)
    warnings.formatwarning = lambda message, *_, **__: f"attdyn: {message}\n"
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    with contextlib.suppress(InvalidRequest):  # the error is reported when points are run
        load_unchanged(reference, digests)


def _end_with(parent: int) -> None:
    """End this process when its parent has ended for any reason."""
    while os.getppid() == parent:
        time.sleep(0.25)
    os._exit(1)
