"""Sweeps: many runs over a grid of parameters, stored on disk, resumed where they stopped.

`axes` reads a grid, `plan` cuts it into blocks, `point_runner` runs a point, `worker_pool` has the
processes that do it, `store` is the disk, `run` ties them together, `result` reads.
"""

from dynamics.sweep.result import Sweep, load, status
from dynamics.sweep.run import sweep

__all__ = ["Sweep", "load", "status", "sweep"]
