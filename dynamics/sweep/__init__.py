"""Sweeps: many runs over a grid of parameters, kept on disk, resumed where they stopped.

>>> import dynamics
>>> found = dynamics.sweep(
...     "positional_attention", {"q": "0.2:0.6:3", "C": "2,4", "D": 8, "time": 100}, workers=0
... )
>>> found.dataset.sizes["q"], found.outcomes["reached horizon"]
(3, 6)

`axes` reads a grid, `plan` cuts it into blocks, `measure` runs a point, `crew` and `cluster` are
those who do it, `store` keeps it, `run` ties them together.
"""

from dynamics.sweep.result import Sweep, load, repaired, status, sweep

__all__ = ["Sweep", "load", "repaired", "status", "sweep"]
