"""Reading any result by its path: runs, comparisons, overlays, sweeps."""

from __future__ import annotations

import os
from pathlib import Path

from dynamics import store
from dynamics.sweep.result import Sweep
from dynamics.sweep.result import load as load_sweep


def load(path: str | os.PathLike[str]) -> store.Result | Sweep:
    """Read what `dynamics.save`, `dynamics.sweep` or the command line wrote.

    Parameters
    ----------
    path : path-like
        A zarr store, or the folder of a command.

    Returns
    -------
    Trajectory, Comparison, Overlay or Sweep

    Raises
    ------
    InvalidRequest
        If there is no result, one of another format, or one that cannot be read.
    """
    if store.attributes(Path(path)).get("kind") == "sweep":
        return load_sweep(path)
    return store.load(path)
