"""Row types of parameters, predicted times of gradients, and sizes that are refused."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from dynamics.papers.masked_image_modeling.parameters import Parameters
from dynamics.validation import check_cost
from theory.papers.masked_image_modeling.images import image_digits
from theory.papers.masked_image_modeling.rows import Rows
from theory.papers.masked_image_modeling.symmetry import row_types

MOST_PATCHES = 2**13
"""Patches whose row types are found in some seconds; that time grows as their square."""
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


@lru_cache(maxsize=64)
def rows_of(parameters: Parameters) -> Rows:
    """The row types of parameters, computed once; sizes at which that takes minutes are refused."""
    sizes: Sequence[int] = ()
    if parameters.family == "one_cluster":
        sizes = range(parameters.C_global, parameters.P, parameters.C_local)
    check_cost("P", parameters.P, lambda P: P, MOST_PATCHES, "patches", sizes)
    return Rows(parameters, row_types(parameters.area_ids))


def population_seconds(parameters: Parameters) -> float:
    """Predicted seconds of a gradient over all masked images."""
    images = 10.0 ** min(image_digits(parameters), 250.0)
    pairs = PER_KEY * parameters.P * parameters.masked * images
    return pairs + PER_PRODUCT * parameters.P * parameters.d**2


def check_matrices(parameters: Parameters) -> None:
    """Refuse a dimension at which a dense Q does not fit."""
    sizes = range(parameters.P + parameters.features, parameters.d)
    check_cost("d", parameters.d, lambda d: MATRICES * d**2, MOST_NUMBERS, "numbers", sizes)


def check_samples(parameters: Parameters, samples: int, batch: int) -> None:
    """Refuse samples that do not fit, or steps on a batch that take too long."""
    # Latents, the random numbers behind them, masks; see `images`.
    each = 3 * parameters.P + 2 * parameters.masked + 3 * parameters.features
    check_cost("samples", samples, lambda n: n * each, MOST_NUMBERS, "numbers")
    seconds = PER_KEY * parameters.P * parameters.masked
    check_cost("samples", batch, lambda n: n * seconds, MOST_SECONDS, "seconds for each gradient")
