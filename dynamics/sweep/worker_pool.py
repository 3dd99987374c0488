"""Where the points of a sweep are run: in this process, or in others.

Both take calls and return futures, as `dynamics.sweep.cluster` does. A process that dies, killed by
hand or by a system without memory, fails the future of its own call and no other;
`dynamics.sweep.run` decides what becomes of the points of that call.
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
"""Variable by which a process imports no modules from the folder that it starts in."""
ENVIRONMENT = {**dict.fromkeys(THREADS, "1"), SAFE_PATH: "1", "LOKY_MAX_MEMORY_LEAK_SIZE": "4e9"}
"""Environment of the processes: one thread each, modules never come from the folder they start in,
and one that makes programs, which take memory, is not a leak."""


class Workers(ABC):
    """Workers of a sweep, wherever they are.

    `size`: calls that may be under way at once; `lost`: raised by the future of a call whose worker
    died.
    """

    size: float = 1
    lost: tuple[type[BaseException], ...] = ()

    @abstractmethod
    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Start a call; its future has the result."""

    def wait(self, futures: Iterable[Future[Any]], seconds: float) -> set[Future[Any]]:
        """Wait until at least one future is done, for some seconds at most.

        Returns set of Future: those that are done.
        """
        return set(wait(list(futures), seconds, FIRST_COMPLETED).done)

    def close(self) -> None:  # noqa: B027 (nothing is under way in this process)
        """End what is under way."""


class InProcess(Workers):
    """The calling process, which runs a call at once; also for models that are in no file."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Run a call; its future is done."""
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future


class WorkerPool(Workers):
    """Processes on this machine, each a loky pool of one, so that a dead one breaks no other.

    They are started at once and load the system while the sweep is prepared.

    `size`: number of processes; `reference`: name or model file of the system that they will run;
    `digests`: hashes of the parts of its model.
    """

    def __init__(self, size: int, reference: str, digests: Mapping[str, str]) -> None:
        from loky.process_executor import BrokenProcessPool

        self.size = size
        self.lost = (BrokenProcessPool,)
        self._system = (reference, dict(digests))
        self._executors = [self._started() for _ in range(size)]
        self._calls: list[Future[Any] | None] = [None] * size

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Start a call in a process that is idle; a dead one is replaced first."""
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
        """End all processes at once, whatever they do."""
        for executor in self._executors:
            executor.shutdown(kill_workers=True)

    def _started(self) -> Any:
        from loky.process_executor import ProcessPoolExecutor

        former = os.environ.get(SAFE_PATH)
        os.environ[SAFE_PATH] = "1"  # also for resource trackers, which inherit this environment
        try:
            executor = ProcessPoolExecutor(max_workers=1, env=ENVIRONMENT)
            resource_tracker.ensure_running()  # unblocks Ctrl-C, if started later
            # Ctrl-C is for the sweep, which then ends its workers: these inherit that it is blocked
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
    """The first call of a process: detach it from the terminal, watch its parent, load."""
    os.setsid()
    # What libraries print goes to stderr: stdout belongs to the results of the command.
    os.dup2(2, 1)
    warnings.formatwarning = lambda message, *_, **__: f"attdyn: {message}\n"
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    with contextlib.suppress(InvalidRequest):  # told when points are to be run
        load_unchanged(reference, digests)


def _end_with(parent: int) -> None:
    """End this process when its parent has ended, however it did."""
    while os.getppid() == parent:
        time.sleep(0.25)
    os._exit(1)
