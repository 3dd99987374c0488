"""Loading of any stored result: a run, a comparison, an overlay or a sweep."""

from __future__ import annotations

import os

from dynamics.results import storage
from dynamics.sweep.result import Sweep
from dynamics.sweep.result import load as load_sweep
from dynamics.validation import path_of


def load(path: str | os.PathLike[str]) -> storage.Result | Sweep:
    """Load a result of `dynamics.save`, `dynamics.sweep` or the command line.

    Parameters
    ----------
    path : path-like
        A zarr store, or the folder that a command has written.

    Raises
    ------
    InvalidRequest
        If the path holds no result, a result of another format, or an unreadable result.

    Examples
    --------
    >>> import dynamics, tempfile
    >>> system = dynamics.load_system("positional_attention")
    >>> problem = system.ReducedPopulation(system.Parameters(D=8, C=2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = dynamics.save(dynamics.descend(problem, eta=0.02, steps=100), f"{folder}/run")
    ...     run = dynamics.load(path)
    >>> run.view, run.outcome.kind, run.parameters["D"]
    ('reduced population', 'reached horizon', 8)
    """
    path = path_of("path", path)
    is_sweep = storage.attributes(path).get("kind") == "sweep"
    return load_sweep(path) if is_sweep else storage.load(path)
