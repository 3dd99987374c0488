"""Predicted time of a gradient of a full problem, by which sizes are refused.

Full problems that would not fit, or whose gradients would not end, are refused before anything of
their size is made.
"""

from __future__ import annotations

from math import isqrt
from typing import TYPE_CHECKING

from dynamics.validation import refuse
from theory.papers.masked_image_modeling.images import image_digits

if TYPE_CHECKING:
    from dynamics.papers.masked_image_modeling.parameters import Parameters

PER_KEY = 1.5e-8
"""Seconds for each key of each masked query of an image."""
PER_PRODUCT = 1.5e-9
"""Seconds for each patch and entry of Q, to read Q in a basis in general position and write it
back."""
MOST_NUMBERS = 2**29
"""Numbers that the images or the matrices of a full problem may hold: 4 GiB."""
MOST_SECONDS = 60.0
"""Longest gradient of a full problem."""
MATRICES = 12
"""Matrices d x d that a run holds: states, slopes, rates, the basis, the records at least."""


def gradient_seconds(parameters: Parameters, samples: int | None = None) -> float:
    """Predicted seconds of one gradient of a full problem, on samples or over all images."""
    keys = float(parameters.P * parameters.masked)
    if samples is not None:
        return PER_KEY * keys * samples
    images = 10.0 ** min(image_digits(parameters), 250.0)
    return PER_KEY * keys * images + PER_PRODUCT * parameters.P * parameters.d**2


def check_matrices(parameters: Parameters) -> None:
    """Refuse a dimension at which a dense Q does not fit."""
    depth, side = parameters.d, isqrt(MOST_NUMBERS // MATRICES)
    if depth <= side:
        return
    least = parameters.P + parameters.features
    problem = f"needs {MATRICES} matrices of {depth:,} x {depth:,} entries in a full problem"
    problem += f", {_memory(MATRICES * depth**2)}"
    allowed = f"a size with at most {side:,} rows (the reduced problem has no such limit)"
    if least <= side:
        refuse("d", depth, problem, allowed, side)
    refuse("P", parameters.P, problem, allowed, f"about {parameters.P * side // depth}")


def check_images(
    parameters: Parameters, images: int, step_images: int, full: str, option: tuple[str, int]
) -> None:
    """Refuse images that do not fit, or gradients of a full problem that take too long.

    `images`: masked images that are held; `step_images`: those of one step; `full`:
    ``"population"`` or ``"empirical"``; `option`: that decides how many there are.
    """
    # Latents, the random numbers behind them, masks; see `images`.
    each = 3 * parameters.P + 2 * parameters.masked + 3 * parameters.features
    seconds = gradient_seconds(parameters, step_images if full == "empirical" else None)
    share, problem, allowed = 1.0, "", ""
    if images * each > MOST_NUMBERS:
        share = MOST_NUMBERS / (images * each)
        problem = f"needs {images * each:,} numbers at P={parameters.P}, {_memory(images * each)}"
        allowed = f"a number that needs at most {_memory(MOST_NUMBERS)}"
    elif seconds > MOST_SECONDS:
        share = MOST_SECONDS / seconds
        problem = f"needs about {seconds:,.0f} s for each gradient at P={parameters.P}"
        allowed = f"a number that needs at most {MOST_SECONDS:g} s"
    if problem:
        near = int(images * share) if full == "empirical" else "a smaller P"
        allowed += " (the reduced problem has no such limit)"
        refuse(*option, f"{problem} in the full {full} problem", allowed, near)


def _memory(numbers: int) -> str:
    return f"{numbers * 8 / 2**30:,.3g} GiB"
