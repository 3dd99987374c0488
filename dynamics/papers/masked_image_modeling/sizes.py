"""Types of rows of Q, predicted times of gradients, and limits on sizes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from dynamics.papers.masked_image_modeling.parameters import Parameters
from dynamics.validation import check_cost
from theory.papers.masked_image_modeling.images import image_digits
from theory.papers.masked_image_modeling.rows import Rows
from theory.papers.masked_image_modeling.symmetry import row_types

MOST_PATCHES = 2**13
"""Maximum number of patches P; the types of rows of Q take seconds there, growing as P^2."""
PER_KEY = 1.5e-8
"""Seconds that each pair of a masked query and a key, in each image, adds to a gradient."""
PER_PRODUCT = 1.5e-9
"""Seconds of a rotation of Q from a random basis and back, divided by P d^2."""
MOST_NUMBERS = 2**29
"""Maximum count of numbers in the images or matrices of a full problem, which take 4 GiB."""
MOST_SECONDS = 60.0
"""A full problem is refused if one gradient takes more than this number of predicted seconds."""
MATRICES = 12
"""Minimum number of d x d matrices in a run: states, gradients, rates, basis, records."""


@lru_cache(maxsize=64)
def rows_of(parameters: Parameters) -> Rows:
    """Cached types of rows; raises InvalidRequest for more patches than `MOST_PATCHES`."""
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
    """Raise InvalidRequest if the matrices of dimension d exceed `MOST_NUMBERS`."""
    sizes = range(parameters.P + parameters.features, parameters.d)
    check_cost("d", parameters.d, lambda d: MATRICES * d**2, MOST_NUMBERS, "numbers", sizes)


def check_samples(parameters: Parameters, samples: int, batch: int) -> None:
    """Raise InvalidRequest for samples above `MOST_NUMBERS`, or a gradient above `MOST_SECONDS`."""
    # Count of numbers of one image: latents, random numbers of the latents, masks.
    each = 3 * parameters.P + 2 * parameters.masked + 3 * parameters.features
    check_cost("samples", samples, lambda n: n * each, MOST_NUMBERS, "numbers")
    seconds = PER_KEY * parameters.P * parameters.masked
    check_cost("samples", batch, lambda n: n * seconds, MOST_SECONDS, "seconds for each gradient")
