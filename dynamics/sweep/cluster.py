"""The workers of a dask scheduler, on this machine or many.

dask reports what happens to its connections in many lines, and waits for an answer for ever where
something else listens. Here each is one line, after a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any

from dynamics.sweep.worker_pool import Workers
from dynamics.validation import InvalidRequest

PATIENCE = 6.0
"""Seconds to wait for an answer of a scheduler, and for its first worker."""
GONE = "the dask scheduler is gone; what was done is kept, and the same command goes on"
WAITING = "scheduler={!r} has no workers yet; the sweep waits for them"
LOGGERS = ("distributed", "tornado", "asyncio")


class SchedulerGone(Exception):
    """A scheduler that was lost while a sweep was under way; the message is one line."""


class Cluster(Workers):
    """The workers of a dask scheduler.

    The sweep stays where it was started and is the only one that writes the store. The scheduler
    gives the call of a dead worker to another; one that takes down worker after worker is lost.

    `scheduler`: address, as ``tcp://host:8786``. Raises InvalidRequest if dask.distributed is not
    installed, or no scheduler answers there.
    """

    size = math.inf

    def __init__(self, scheduler: str) -> None:
        try:
            import distributed
            from distributed.scheduler import KilledWorker
        except ImportError:
            raise InvalidRequest(
                f"scheduler={scheduler!r} needs dask.distributed; pip install -e '.[cluster]'"
            ) from None
        self.lost = (KilledWorker,)
        with contextlib.ExitStack() as stack:
            stack.enter_context(_silenced())
            _check_scheduler(scheduler)
            try:
                self._client: Any = distributed.Client(
                    scheduler, timeout=PATIENCE, set_as_default=False, name="attdyn sweep"
                )
            except OSError:  # it answered a moment ago
                raise SchedulerGone(GONE) from None
            stack.callback(self._client.close, timeout=PATIENCE)
            try:
                self._client.wait_for_workers(1, timeout=PATIENCE)
            except TimeoutError:
                print(f"attdyn: {WAITING.format(scheduler)}", file=sys.stderr)
            self._executor = self._client.get_executor(pure=False)
            self._open = stack.pop_all()

    @property
    def _alive(self) -> bool:
        return self._client.status in ("running", "connecting")

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Hand a call to the scheduler; `SchedulerGone` if that cannot be done."""
        if not self._alive:
            raise SchedulerGone(GONE)
        future: Future[Any] = self._executor.submit(function, *arguments)
        return future

    def wait(self, futures: Iterable[Future[Any]], seconds: float) -> set[Future[Any]]:
        """Wait until at least one future is done, for some seconds at most.

        Raises SchedulerGone.
        """
        done = super().wait(futures, seconds)
        if any(_cut_off(future) for future in done) or not (done or self._alive):
            raise SchedulerGone(GONE)
        return done

    def close(self) -> None:
        """Take back the calls that are not done."""
        if self._client.status == "running":
            self._executor.shutdown(wait=False)
        self._open.close()


def _check_scheduler(address: str) -> None:
    """Ask what is at an address, in a thread: this one may have an event loop of its own."""

    async def limited() -> str:
        return await asyncio.wait_for(_kind(address), PATIENCE)

    with ThreadPoolExecutor(1) as thread:
        try:
            kind = thread.submit(asyncio.run, limited()).result()
        except TimeoutError:
            problem = f"does not answer (in {PATIENCE:g} s)"
        except (OSError, ValueError) as error:
            why = str(error).splitlines()[0] if str(error) else type(error).__name__
            problem = f"does not answer ({why})"
        except Exception:  # bytes that dask reads as what they are not
            problem = "does not answer as dask does"
        else:
            if kind == "Scheduler":
                return
            problem = f"is a dask {kind.lower()}"
    raise InvalidRequest(
        f"scheduler={address!r} {problem}; scheduler can be the address that dask scheduler prints"
    )


async def _kind(address: str) -> str:
    """Kind of the part of dask at an address, as Scheduler or Worker."""
    from distributed.comm.core import connect

    connection = await connect(address, timeout=PATIENCE)
    try:
        await connection.write({"op": "identity", "reply": True})
        return str((await connection.read())["type"])
    finally:
        connection.abort()


@contextlib.contextmanager
def _silenced() -> Iterator[None]:
    """Nothing from dask's loggers; those with a level of their own have it back afterwards."""
    existing = [name for name in logging.root.manager.loggerDict if name.split(".")[0] in LOGGERS]
    loggers = [logging.getLogger(name) for name in {*LOGGERS, *existing}]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _cut_off(future: Future[Any]) -> bool:
    """Whether a future ended because the connection to the scheduler did."""
    return future.cancelled() or isinstance(future.exception(), (CancelledError, OSError))
