"""Workers on many machines: an existing scheduler of dask.distributed.

The sweep itself stays where it was started and is the only one that writes the store. What it sends
and gets is the same text as with local workers, so the values are the same. Blocks of a worker that
is lost are given to another by the scheduler; one that takes down worker after worker is reported
as lost.
"""

from __future__ import annotations

import os
import queue
from typing import Any

from dynamics.sweep.messages import answer_text
from dynamics.sweep.worker_pool import Answer
from dynamics.validation import InvalidRequest

ADDRESS = "DASK_SCHEDULER_ADDRESS"
PATIENCE = "10s"
GONE = "the dask scheduler is gone; what was done is kept, and the same command goes on"


def address(given: str | None) -> str | None:
    """Where the scheduler is: as given, or as the environment says."""
    return given or os.environ.get(ADDRESS) or None


class Cluster:
    """Workers behind a scheduler.

    Parameters
    ----------
    scheduler : str
        As ``tcp://host:8786``.

    Raises
    ------
    InvalidRequest
        If dask.distributed is not installed, or nothing answers there.
    """

    def __init__(self, scheduler: str) -> None:
        try:
            import distributed
        except ImportError:
            raise InvalidRequest(
                f"scheduler={scheduler!r} needs dask.distributed; pip install 'attdyn[cluster]'"
            ) from None
        try:
            self._client: Any = distributed.Client(
                scheduler, timeout=PATIENCE, set_as_default=False, name="attdyn sweep"
            )
        except (OSError, ValueError, TimeoutError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InvalidRequest(
                f"scheduler={scheduler!r} does not answer ({reason}); "
                "scheduler can be the address that dask scheduler prints"
            ) from None
        self._futures: dict[Any, int] = {}
        self._done: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def submit(self, ticket: int, request: str) -> None:
        """Hand a request to the scheduler; earlier ones come first."""
        future = self._client.submit(answer_text, request, pure=False, priority=-ticket)
        self._futures[future] = ticket
        future.add_done_callback(self._done.put)

    def wait(self, seconds: float) -> Answer | None:
        """The next answer, or None after some time.

        Raises
        ------
        RuntimeError
            What a worker raised.
        """
        from asyncio import CancelledError
        from concurrent import futures

        from distributed.scheduler import KilledWorker

        try:
            future = self._done.get(timeout=seconds)
        except queue.Empty:
            if self._client.status not in ("running", "connecting"):
                raise InvalidRequest(GONE) from None
            return None
        ticket = self._futures.pop(future)
        try:
            return Answer(ticket, future.result())
        except KilledWorker:
            return Answer(ticket, None)
        except (CancelledError, futures.CancelledError, OSError):
            raise InvalidRequest(GONE) from None

    def close(self) -> None:
        """Take back what is not done."""
        if self._client.status == "running":
            self._client.cancel(list(self._futures), force=True)
        self._client.close(timeout=PATIENCE)
