"""Who runs the blocks on one machine: this process, or others that can be lost.

Each worker is a process with one thread, started by this module and spoken to over pipes. One that
dies (killed by hand, or by a system out of memory) costs its block: the block is reported as lost
and another worker takes its place.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from dynamics.registry import System
from dynamics.sweep.messages import answer_text

SINGLE = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Answer:
    """What came of a request; ``text`` is None where its worker was lost."""

    ticket: int
    text: str | None


class Workers(Protocol):
    """Those who run requests, in any order."""

    def submit(self, ticket: int, request: str) -> None:
        """Take a request; its answer carries the same ticket."""

    def wait(self, seconds: float) -> Answer | None:
        """The next answer, or None after some time."""

    def close(self) -> None:
        """Drop what is not done."""


class Here:
    """The process that asks, for small sweeps and for models that are in no file.

    Parameters
    ----------
    system : System
    """

    def __init__(self, system: System) -> None:
        self._system = system
        self._waiting: deque[tuple[int, str]] = deque()

    def submit(self, ticket: int, request: str) -> None:
        """Take a request."""
        self._waiting.append((ticket, request))

    def wait(self, seconds: float) -> Answer | None:
        """Run the next request."""
        if not self._waiting:
            return None
        ticket, request = self._waiting.popleft()
        return Answer(ticket, answer_text(request, self._system))

    def close(self) -> None:
        """Drop what is left."""
        self._waiting.clear()


class Crew:
    """Processes on this machine, started at once: they load what they need meanwhile.

    Parameters
    ----------
    size : int
        How many.
    reference : str
        What the system that they will run is found by.
    digests : mapping
        Hashes of the parts of its model.
    """

    def __init__(self, size: int, reference: str, digests: Mapping[str, str]) -> None:
        self._system = [reference, json.dumps(dict(digests))]
        self._requests: queue.SimpleQueue[tuple[int, str] | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self._processes: dict[int, subprocess.Popen[str]] = {}
        self._closed = False
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._attend, args=(k,), daemon=True) for k in range(size)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, ticket: int, request: str) -> None:
        """Take a request; the first worker that is free gets it."""
        self._requests.put((ticket, request))

    def wait(self, seconds: float) -> Answer | None:
        """The next answer, or None after some time."""
        try:
            return self._answers.get(timeout=seconds)
        except queue.Empty:
            return None

    def close(self) -> None:
        """End all workers at once, whatever they do."""
        with self._lock:
            self._closed = True
            for process in self._processes.values():
                process.kill()
        for _ in self._threads:
            self._requests.put(None)
        for thread in self._threads:
            thread.join()

    def _attend(self, number: int) -> None:
        """Hand requests to one worker, and start another when it is lost."""
        process = self._started(number)
        while (taken := self._requests.get()) is not None and not self._closed:
            ticket, request = taken
            if process is None or process.poll() is not None:
                _ended(process)
                process = self._started(number)
            if process is None:
                break
            self._answers.put(Answer(ticket, _asked(process, request)))
        _ended(process)

    def _started(self, number: int) -> subprocess.Popen[str] | None:
        with self._lock:
            if self._closed:
                return None
            # A session of its own: Ctrl-C reaches the sweep, which then ends its workers.
            self._processes[number] = subprocess.Popen(
                [sys.executable, "-m", "dynamics.sweep.worker", *self._system],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8",
                env=os.environ | dict.fromkeys(SINGLE, "1"), start_new_session=True,
            )  # fmt: skip
            return self._processes[number]


def _asked(process: subprocess.Popen[str], request: str) -> str | None:
    """The answer of a worker; None if it is lost."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(request + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
    except (OSError, ValueError):
        line = ""
    if line.endswith("\n"):
        return line
    process.kill()
    process.wait()
    return None


def _ended(process: subprocess.Popen[str] | None) -> None:
    """End a worker, if there is one, and close its pipes."""
    if process is None:
        return
    process.kill()
    with contextlib.suppress(OSError, ValueError):
        process.communicate()
