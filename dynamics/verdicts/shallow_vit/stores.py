"""Stored sweeps of the figures of the shallow ViT, from which an interrupted figure resumes.

Sweeps are stored in the cache folder until the figure is complete, or in the folder ``store`` of
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
from typing import Any

import numpy as np

from dynamics.cache import cache_directory
from dynamics.phase_diagrams.quantities import Quantity
from dynamics.problem import FloatArray
from dynamics.results.storage import versions
from dynamics.sweep import Sweep, sweep
from dynamics.system import System
from dynamics.validation import path_of
from dynamics.verdicts.figure import FigureRequest
from dynamics.verdicts.shallow_vit.trial_rows import ETA, STEPS, Trials, ended, of_trials

AT_ONCE = 3
"""Number of sample sizes N in one sweep; rows that have ended are left out of the next sweep."""


class Interrupted(Exception):
    """Raised if a sweep was stopped; a second request for the same figure resumes it."""


@contextmanager
def folder(name: str, request: FigureRequest, options: Mapping[str, Any]) -> Iterator[Path]:
    """Folder of a figure's sweeps: the option ``store`` or, if it is empty, a cache folder."""
    if options["store"]:
        yield path_of("store", options["store"])
        return
    key = [name, versions(), dict(options), asdict(request)]
    digest = hashlib.sha256(json.dumps(key, sort_keys=True, default=str).encode()).hexdigest()
    path = cache_directory() / "figures" / f"{name}-{digest[:16]}"
    yield path
    shutil.rmtree(path, ignore_errors=True)


def stored_sweep(
    system: System, law: Any, axes: Mapping[str, Any], path: Path, workers: int
) -> Sweep:
    """Run or resume a stored sweep; `axes`: name of a parameter or option -> values or formula.

    Raises Interrupted if the sweep was stopped; the finished part stays in the store.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    result = sweep(system, asdict(law) | dict(axes), path, workers=workers)
    if result.interrupted:
        raise Interrupted("interrupted: the same command resumes the figure")
    return result


def values(result: Sweep, quantity: str, dims: Sequence[str]) -> FloatArray:
    """Values of a quantity on the dimensions `dims`; a sweep's other dimensions have length 1."""
    dataset = result.dataset
    order = [str(dim) for dim in dataset["outcome"].dims]
    array = Quantity.read(quantity, dataset).of(dataset)
    return np.asarray(np.transpose(array, [order.index(dim) for dim in dims]))


def stored_trials(
    system: System, law: Any, axes: Mapping[str, Any], axis: str, counts: Sequence[int],
    path: Path, workers: int,
) -> list[Trials]:  # fmt: skip
    """Trials as in `trial_rows.trials_of`, but run by stored sweeps.

    `axes`: name -> values or formula, including ``seed`` and `axis`; `axis`: name of the parameter
    that differs between rows; `counts`: ascending N; `path`: prefix of the stores' names;
    `workers`: number of processes.
    """
    loss, steps = np.full((2, len(axes[axis]), len(counts), len(axes["seed"])), np.nan)
    going = list(range(len(axes[axis])))
    for first in range(0, len(counts), AT_ONCE):
        part = slice(first, min(first + AT_ONCE, len(counts)))
        request = {
            **axes, axis: [axes[axis][k] for k in going], "samples": list(counts[part]),
            "eta": ETA, "steps": STEPS,
        }  # fmt: skip
        store = path.with_name(f"{path.name}-{counts[first]}.zarr")
        result = stored_sweep(system, law, request, store, workers)
        ends = values(result, "test_loss", (axis, "samples", "seed"))
        loss[going, part] = np.where(np.isnan(ends), np.inf, ends)
        steps[going, part] = values(result, "time_t_zero", (axis, "samples", "seed")) / ETA
        lengths = range(part.stop + 1)
        going = [k for k in going if not any(ended(loss[k, :n]) for n in lengths)]
        if not going:
            break
    return [of_trials(counts, *each) for each in zip(loss, steps, strict=True)]
