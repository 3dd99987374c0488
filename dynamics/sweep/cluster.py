"""Workers of a dask scheduler, on one machine or several.

If a connection fails, dask logs many lines; if another program answers at the address, dask waits
forever. This module reports each problem in one line, after a timeout.
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
"""Maximum number of seconds to wait for a scheduler's answer, and for its first worker."""
GONE = "the dask scheduler is lost; finished blocks are kept, and the same command resumes"
WAITING = "scheduler={!r} has no workers yet; the sweep waits for them"
LOGGERS = ("distributed", "tornado", "asyncio")


class SchedulerGone(Exception):
    """Error: the scheduler was lost during a sweep; the message is one line."""


class Cluster(Workers):
    """The workers of the dask scheduler at an address such as ``tcp://host:8786``.

    Only the process that started the sweep writes the store. If a worker dies, the scheduler
    repeats the worker's call on another worker; a call that kills several workers counts as lost.
    Raises InvalidRequest if dask.distributed is not installed, or no scheduler answers.
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
            except OSError:  # the scheduler answered before, so it is lost now
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
        """Submit a call to the scheduler; raises `SchedulerGone` if the scheduler is lost."""
        if not self._alive:
            raise SchedulerGone(GONE)
        future: Future[Any] = self._executor.submit(function, *arguments)
        return future

    def wait(self, futures: Iterable[Future[Any]], seconds: float) -> set[Future[Any]]:
        """Wait until a future is done, or the seconds have passed; return the futures done.

        Raises SchedulerGone if the scheduler is lost.
        """
        done = super().wait(futures, seconds)
        if any(_cut_off(future) for future in done) or not (done or self._alive):
            raise SchedulerGone(GONE)
        return done

    def close(self) -> None:
        """Cancel the unfinished calls of the sweep."""
        if self._client.status == "running":
            self._executor.shutdown(wait=False)
        self._open.close()


def _check_scheduler(address: str) -> None:
    """Check that a dask scheduler answers; a thread is used as the caller may run an event loop."""

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
        except Exception:  # dask misreads the bytes of another protocol
            problem = "does not answer as dask does"
        else:
            if kind == "Scheduler":
                return
            problem = f"is a dask {kind.lower()}"
    raise InvalidRequest(
        f"scheduler={address!r} {problem}; scheduler can be the address that dask scheduler prints"
    )


async def _kind(address: str) -> str:
    """Type of the dask node at an address, such as Scheduler or Worker."""
    from distributed.comm.core import connect

    connection = await connect(address, timeout=PATIENCE)
    try:
        await connection.write({"op": "identity", "reply": True})
        return str((await connection.read())["type"])
    finally:
        connection.abort()


@contextlib.contextmanager
def _silenced() -> Iterator[None]:
    """Context in which dask's loggers are silent; their levels are restored at its end."""
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
    """Whether a future failed because the connection to the scheduler ended."""
    return future.cancelled() or isinstance(future.exception(), (CancelledError, OSError))
