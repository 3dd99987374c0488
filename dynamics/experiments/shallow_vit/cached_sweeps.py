"""Sweeps behind a figure: rows of growing N through `dynamics.sweep`, kept until it is drawn.

A figure that is interrupted leaves its sweeps in the folder of generated files, and the same figure
goes on from there; once drawn they are removed. With the option ``store`` they stay in a folder of
the user's choice.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.codegen import cache_directory
from dynamics.experiments.shallow_vit.success import ETA, STEPS, Rows, cut, ended
from dynamics.phase_diagrams.selection import Quantity
from dynamics.results.versions import versions
from dynamics.sweep import Sweep, sweep

if TYPE_CHECKING:
    from dynamics.experiments.figure import FigureRequest
    from dynamics.problem import FloatArray
    from dynamics.registry import System

AT_ONCE = 3
"""Numbers of samples that are swept before it is looked which rows have ended."""


class Interrupted(Exception):
    """A sweep was stopped; the same figure goes on."""


@contextmanager
def folder(name: str, request: FigureRequest, options: Mapping[str, Any]) -> Iterator[Path]:
    """Where the sweeps of one figure are.

    Parameters
    ----------
    name : str
        Of the figure.
    request : FigureRequest
    options : mapping
        All its options; ``store`` among them, empty for the folder of generated files.
    """
    if options["store"]:
        yield Path(str(options["store"]))
        return
    asked = [name, versions(), dict(request.given), request.seed, dict(options), request.parameters]
    digest = hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode()).hexdigest()
    chosen = cache_directory() / "figures" / f"{name}-{digest[:16]}"
    yield chosen
    shutil.rmtree(chosen, ignore_errors=True)


def swept(system: System, given: Mapping[str, Any], path: Path, workers: int) -> Sweep:
    """A sweep in a store.

    Raises
    ------
    Interrupted
        If it was stopped; what is done stays in the store.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    found = sweep(system, given, path, workers=workers)
    if found.interrupted:
        raise Interrupted("interrupted: the same figure goes on from here")
    return found


def values(found: Sweep, quantity: str, dims: Sequence[str]) -> FloatArray:
    """A quantity of a sweep over some dimensions, those of length 1 that have none among them."""
    dataset = found.dataset
    order = [str(dim) for dim in dataset["outcome"].dims]
    seen = Quantity.read(quantity, dataset).of(dataset)
    return np.asarray(np.transpose(seen, [order.index(dim) for dim in dims]))


def plain(law: Any, leave: Sequence[str] = ()) -> dict[str, Any]:
    """Parameters as a sweep is given them."""
    return {name: value for name, value in asdict(law).items() if name not in leave}


def rows(
    system: System,
    request: Mapping[str, Any],
    axis: tuple[str, Sequence[float]],
    counts: Sequence[int],
    where: tuple[Path, int],
) -> Rows:
    """Trials over one axis and N, each row until it has ended.

    Parameters
    ----------
    system : System
    request : mapping
        What the sweep is given beside the axis and N: parameters, formulas, ``seed``.
    axis : (name, values)
    counts : sequence of int
        N, ascending.
    where : (path, workers)
        Beginning of the names of the stores; processes.
    """
    name, places = axis
    seeds = list(request["seed"])
    loss, steps = np.full((2, len(places), len(counts), len(seeds)), np.nan)
    going = list(range(len(places)))
    for first in range(0, len(counts), AT_ONCE):
        part = slice(first, min(first + AT_ONCE, len(counts)))
        given = {
            **request, name: [places[k] for k in going], "samples": list(counts[part]),
            "eta": ETA, "steps": STEPS,
        }  # fmt: skip
        path = where[0].with_name(f"{where[0].name}-{counts[first]}.zarr")
        found = swept(system, given, path, where[1])
        dims = (name, "samples", "seed")
        ends = values(found, "test_loss", dims)
        loss[going, part] = np.where(np.isnan(ends), np.inf, ends)
        steps[going, part] = values(found, "time_t_zero", dims) / ETA
        done = Rows(np.array(counts), loss, steps).share[:, : part.stop]
        going = [
            k
            for k in going
            if not any(ended(done[k, :n].tolist()) for n in range(2, part.stop + 1))
        ]
        if not going:
            break
    return cut(Rows(np.array(counts), loss, steps))
