"""Sweeps: many runs over a grid of parameters, stored on disk and resumable.

The module `axes` parses a grid, `plan` divides the grid into blocks, `point_runner` runs a point,
`worker_pool` manages processes, `store` writes to disk, `run` executes a sweep, and `result` reads
the stored sweep.
"""

from dynamics.sweep.result import Sweep, load, status
from dynamics.sweep.run import sweep

__all__ = ["Sweep", "load", "status", "sweep"]
