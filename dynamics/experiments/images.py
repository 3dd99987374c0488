"""What figures and claims on real images share: no parameters, kept runs, steps as an axis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from dynamics.experiments.figure import FigureRequest
from dynamics.experiments.measurement import Study, Undecided
from dynamics.registry import System
from dynamics.training.checkpoint import Checkpoint
from dynamics.validation import InvalidRequest

ERRORS = 5.0
"""Standard errors by which two means differ, for a claim to hold."""
FILE = ".checkpoint"
"""Ends the name of the file of a run."""
TICKS = (0, 20, 100, 500)


def check_no_parameters(system: System, request: FigureRequest, name: str) -> None:
    """Refuse parameters: networks on real images have none of the model's.

    Parameters
    ----------
    system : System
    request : FigureRequest
    name : str
        Of the figure.
    """
    if request.parameters is not None or request.user_parameters:
        raise InvalidRequest(f"figure {name} has no parameters of {system.name}; it has options")


def checkpoint_folder(options: Mapping[str, Any]) -> Path | None:
    """The folder where a figure keeps its runs; emptied of runs where it does not resume.

    Parameters
    ----------
    options : mapping
        Of the figure: ``checkpoints``, empty for none, and ``resume``.
    """
    folder = Path(options["checkpoints"]) if options["checkpoints"] else None
    if folder is not None and not options["resume"]:
        for path in folder.glob(f"*{FILE}"):
            Checkpoint(path).discard()
    return folder


@contextmanager
def on_images(study: Study) -> Iterator[None]:
    """Surround the runs of a claim: undecided for parameters, or where packages are missing.

    Parameters
    ----------
    study : Study

    Raises
    ------
    Undecided
        With the reason.
    """
    if study.parameters is not None:
        raise Undecided("the claim is of networks on real images, which have no such parameters")
    try:
        yield
    except InvalidRequest as refusal:
        raise Undecided(str(refusal), "measurement") from refusal


def steps_axis(panel: Axes, steps: ArrayLike) -> None:
    """Make steps the horizontal axis: from 0 on, as logarithms after the first that is recorded.

    Parameters
    ----------
    panel : Axes
    steps : int array, shape (records,)
        Ascending from 0.
    """
    records = np.asarray(steps)
    first, last = float(records[min(1, len(records) - 1)]), int(records[-1])
    panel.set_xscale("symlog", linthresh=first)
    panel.set_xlim(-0.15 * first, 1.25 * last)
    ticks = [int(step) for step in records if step in (*TICKS, last)]
    panel.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    panel.minorticks_off()
    panel.set_xlabel("steps")
