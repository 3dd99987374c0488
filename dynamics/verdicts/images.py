"""Shared code of figures and claims on real images: options, checkpoints, error bars."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from dynamics.images.protocol import estimate
from dynamics.system import System
from dynamics.training.checkpoint import Checkpoint
from dynamics.validation import InvalidRequest
from dynamics.verdicts.figure import FigureRequest

ERRORS = 5.0
"""Minimum difference of two means, in standard errors, at which a claim that they differ holds."""
FILE = ".checkpoint"
"""Suffix of the names of checkpoint files."""
TICKS = (0, 20, 100, 500)


def request_on_images(
    system: System,
    request: FigureRequest,
    figure: str,
    quick: Mapping[str, Any],
    thorough: Mapping[str, Any],
    **least: int,
) -> tuple[dict[str, Any], Path | None]:
    """Options of a figure on images, and the folder of its checkpoints (None if not stored).

    The function deletes the folder's checkpoints unless the option ``resume`` is set. The returned
    options lack ``resume`` and ``checkpoints``; lists become tuples, and ``seeds`` lists the seeds.

    `figure`: name of the figure; `quick`, `thorough`, `**least`: see `FigureRequest.options`.
    Raises InvalidRequest if the request sets Parameters, or for an invalid option.
    """
    options = request.options({**quick, "resume": 0, "checkpoints": ""}, thorough, **least)
    if request.parameters is not None or request.user_parameters:
        raise InvalidRequest(f"figure {figure} has options, but no parameters of {system.name}")
    resume, checkpoints = options.pop("resume"), options.pop("checkpoints")
    folder = Path(checkpoints) if checkpoints else None
    if folder is not None and not resume:
        for path in folder.glob(f"*{FILE}"):
            Checkpoint(path).discard()
    options = {name: tuple(v) if isinstance(v, list) else v for name, v in options.items()}
    return options | {"seeds": tuple(request.seeds(options["seeds"]))}, folder


def ascending(values: Iterable[Any]) -> tuple[Any, ...]:
    """Distinct values in ascending order."""
    return tuple(sorted(set(values)))


def error_bars(panel: Axes, x: ArrayLike, values: ArrayLike, **look: Any) -> None:
    """Draw the means of values (n, seeds) over the seeds, with standard errors."""
    means, errors, _ = np.transpose([estimate(row) for row in np.asarray(values)])
    style: dict[str, Any] = {"ms": 4, "lw": 1.2, "capsize": 2}
    panel.errorbar(x, means, yerr=np.nan_to_num(errors), **(style | look))


def steps_axis(panel: Axes, steps: ArrayLike) -> None:
    """Scale the horizontal axis of steps: linear up to the first record after 0, then log."""
    records = np.asarray(steps)
    first, last = float(records[min(1, len(records) - 1)]), int(records[-1])
    panel.set_xscale("symlog", linthresh=first)
    panel.set_xlim(-0.15 * first, 1.25 * last)
    ticks = [int(step) for step in records if step in (*TICKS, last)]
    panel.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    panel.minorticks_off()
    panel.set_xlabel("steps")
