"""The points of a block on their way to a worker and back, as text.

Workers are other processes, here or on another machine. What goes to and fro is JSON: numbers
survive it bit for bit, and nothing in it can be executed.
"""

from __future__ import annotations

import json
import threading
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

from dynamics.outcome import KILLED, POINT_KINDS
from dynamics.sweep.measure import Path, Row, Work

Measured = tuple[Row, Path, str]

_ONE = threading.Lock()


def request_text(work: Work, points: Sequence[Mapping[str, Any]]) -> str:
    """Points to be run, as one line."""
    return json.dumps([work.system, dict(work.words), work.records, list(points)])


def answer_text(request: str) -> str:
    """Run the points of a request, one after the other in one thread: the answer as one line.

    Results do not depend on the number of threads; sweeps share the cores out among points.
    """
    import numba

    system, words, records, points = json.loads(request)
    work = Work(system, words, records)
    with _ONE:
        before = numba.get_num_threads()
        numba.set_num_threads(1)
        try:
            return json.dumps([_measured(work, point) for point in points])
        except Exception:
            return json.dumps({"failed": traceback.format_exc()})
        finally:
            numba.set_num_threads(before)


def _measured(work: Work, point: Mapping[str, Any]) -> Measured:
    try:
        return work.measure(point)
    except MemoryError:
        return lost()


def lost() -> Measured:
    """What is known of a point that took its worker down."""
    return {"outcome": float(POINT_KINDS.index(KILLED))}, {}, KILLED


def answer(text: str) -> list[Measured]:
    """Row, path and reason of every point.

    Raises
    ------
    RuntimeError
        With what went wrong in the worker, which is an error of this program.
    """
    found = json.loads(text)
    if isinstance(found, dict):
        raise RuntimeError(f"a worker failed:\n{found['failed']}")
    return [(row, path, reason) for row, path, reason in found]
