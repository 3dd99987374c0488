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

from dynamics.registry import System
from dynamics.results.outcome import KILLED, POINT_KINDS
from dynamics.sweep.measure import Path, Row, Work
from dynamics.validation import InvalidRequest

Measured = tuple[Row, Path, str]

_ONE = threading.Lock()


def request_text(work: Work, points: Sequence[Mapping[str, Any]]) -> str:
    """Points to be run, as one line."""
    described = [work.reference, dict(work.words), work.records, dict(work.digests)]
    return json.dumps([*described, list(points)])


def answer_text(request: str, system: System | None = None) -> str:
    """Run the points of a request, one after the other in one thread: the answer as one line.

    Results do not depend on the number of threads; sweeps share the cores out among points.

    Parameters
    ----------
    request : str
    system : System, optional
        The system of the request, where it is known; else it is loaded by its reference.
    """
    import numba

    reference, words, records, digests, points = json.loads(request)
    work = Work(reference, words, records, digests, system)
    try:
        _ = work.system
    except InvalidRequest as error:
        return refusal_text(error)
    with _ONE:
        before = numba.get_num_threads()
        numba.set_num_threads(1)
        try:
            return json.dumps([_measured(work, point) for point in points])
        except Exception:
            return json.dumps({"failed": traceback.format_exc()})
        finally:
            numba.set_num_threads(before)


def refusal_text(error: InvalidRequest) -> str:
    """The answer of a worker that cannot have the system of a request, as one line."""
    return json.dumps({"refused": str(error)})


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
    InvalidRequest
        If the worker cannot have the system, such as a model that was changed meanwhile.
    RuntimeError
        With what went wrong in the worker, which is an error of this program.
    """
    found = json.loads(text)
    if isinstance(found, dict) and "refused" in found:
        raise InvalidRequest(found["refused"])
    if isinstance(found, dict):
        raise RuntimeError(f"a worker failed:\n{found['failed']}")
    return [(row, path, reason) for row, path, reason in found]
