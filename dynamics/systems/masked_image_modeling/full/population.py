r"""The population problem in full, by brute force: the oracle of the reduction.

`FullPopulation` trains every entry of Q; the risk is summed over all masks, clusters and latents.
It shares nothing with `ReducedPopulation` but what is read off a row, so their agreement is
evidence for the reduction and for both expectations.
"""

from __future__ import annotations

from functools import cache
from math import comb

import numpy as np

from dynamics import codegen
from dynamics.codegen.kernels.advance import advance
from dynamics.systems.masked_image_modeling import cost
from dynamics.systems.masked_image_modeling.empirical import sampling
from dynamics.systems.masked_image_modeling.full.problem import FullProblem, random_basis
from dynamics.systems.masked_image_modeling.kernels import full as brute_kernels
from dynamics.systems.masked_image_modeling.parameters import Parameters
from dynamics.validation import integer, refuse

MOST_DIGITS = 15.0


class FullPopulation(FullProblem):
    """Every entry of Q trained, by brute enumeration, in a random orthonormal basis.

    Parameters
    ----------
    parameters : Parameters
    max_configurations : int
        Largest number of masked images that is accepted.
    basis : int or None
        Seed of the basis; None for the unit vectors.

    Raises
    ------
    InvalidRequest
        If the enumeration is larger than that, with the number it needs; or if memory or the time
        of a gradient are too much (`cost`).
    """

    view = "full population"

    def __init__(
        self,
        parameters: Parameters,
        max_configurations: int = 200_000,
        basis: int | None = 0,
    ) -> None:
        cost.check_matrices(parameters)
        needed = _enumerable(parameters, max_configurations)
        cost.check_images(parameters, needed, needed, "population", ("masked", parameters.masked))
        self.settings = {"images": needed, "basis": "unit" if basis is None else basis}
        axes = None
        if basis is not None:
            seed = integer("basis", basis, at_least=0, at_most=2**62)
            axes = random_basis(parameters.d, np.random.default_rng(seed))
        super().__init__(parameters, sampling.every(parameters), _module(), axes)


def _enumerable(parameters: Parameters, limit: int) -> int:
    """The number of masked images, if there are not too many."""
    # Numbers of thousands of digits are slow to make, and not for reading.
    few = sampling.digits(parameters) < MOST_DIGITS
    needed = sampling.number(parameters) if few else None
    if needed is not None and needed <= limit:
        return needed
    hidden = 0
    while comb(parameters.P, hidden + 1) * sampling.latents(parameters) <= limit:
        hidden += 1
    told = f"{needed:,}" if few else f"about 1e{sampling.digits(parameters):.0f}"
    refuse(
        "masked",
        parameters.masked,
        f"needs {told} masked images in the full population problem at P={parameters.P}",
        f"a number with at most {limit:,} of them (the reduced problem has no such limit)",
        hidden or "a smaller P",
    )


@cache
def _module() -> codegen.CompiledModule:
    names = (brute_kernels.gradient, brute_kernels.order_parameters, brute_kernels.summary)
    parts = [codegen.kernel_source(*names, advance)]
    return codegen.build("Masked image modelling, full population problem.", ("Q",), parts)
