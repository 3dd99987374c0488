"""What runs the calls of a sweep, wherever that is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any


class Workers(ABC):
    """What runs calls.

    Attributes
    ----------
    size : float
        Calls that may be under way at once.
    lost : tuple of exception types
        Raised by the future of a call whose worker died.
    """

    size: float = 1
    lost: tuple[type[BaseException], ...] = ()

    @abstractmethod
    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Start a call; its future has the result."""

    def wait(self, futures: Iterable[Future[Any]], seconds: float) -> set[Future[Any]]:
        """Wait until at least one future is done, for some seconds at most.

        Parameters
        ----------
        futures : iterable of Future
        seconds : float

        Returns
        -------
        set of Future
            Those that are done.
        """
        return set(wait(list(futures), seconds, FIRST_COMPLETED).done)

    def close(self) -> None:  # noqa: B027 (nothing is under way in this process)
        """End what is under way."""
