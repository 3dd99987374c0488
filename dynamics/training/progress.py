"""Progress of long runs: a bar on stderr where that is a terminal, and nothing anywhere else.

tqdm is imported at the first run, so that ``import dynamics`` stays light.
"""

from __future__ import annotations

import os
import sys
from typing import Any

DELAY = 1.0
"""Seconds before a bar appears: short runs show none."""


def bar(what: str, total: int | None = None, done: int = 0, unit: str = "steps") -> Any:
    """A progress bar: how many steps, how many per second, and the time left.

    Parameters
    ----------
    what : str
        What is under way, in front of the bar.
    total : int, optional
        Steps in all; without it no time left is told.
    done : int
        Steps that were done before, and do not count for the speed.
    unit : str
        What is counted.

    Returns
    -------
    tqdm.tqdm
        A context manager with ``update(steps)``; it removes itself at the end.
    """
    from tqdm import tqdm

    return tqdm(
        desc=what,
        total=total,
        initial=done,
        unit=f" {unit}",
        unit_scale=True,
        disable=None,
        delay=DELAY,
        leave=False,
        miniters=1,
        **_size(),
    )


def _size() -> dict[str, Any]:
    """Follow the terminal; one that does not know its size gets 80 columns, not an empty bar."""
    try:
        known = min(os.get_terminal_size(sys.stderr.fileno())) > 0
    except (OSError, ValueError, AttributeError):
        known = False
    return {"dynamic_ncols": True} if known else {"ncols": 80, "nrows": 20}
