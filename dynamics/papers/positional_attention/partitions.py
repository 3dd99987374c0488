"""Partitions of the patches into sets: by name, and what no partition can be."""

from __future__ import annotations

from math import isqrt

from numpy.random import Generator

from dynamics.papers.positional_attention.parameters import Parameters
from dynamics.validation import nearest_name, refuse
from theory.papers.positional_attention.data_law import ANY, MIXED
from theory.symmetry import Partition


def named_partition(name: str, parameters: Parameters, generator: Generator) -> Partition:
    """The partition of a name.

    `name`: ``"contiguous"``, ``"grid"`` (square blocks of a square grid) or ``"random"`` sets of C;
    `generator`: of random sets. Raises InvalidRequest for another name, or a grid where D or C is
    not a square.
    """
    runs = Partition.contiguous([parameters.C] * parameters.L)
    side, block = isqrt(parameters.D), isqrt(parameters.C)
    squares = side**2 == parameters.D and block**2 == parameters.C and side % block == 0
    if name == "grid" and squares:
        return Partition.grid(side, side, block, block)
    if name in ("contiguous", "random"):
        return runs if name == "contiguous" else runs.shuffled(generator)
    choices = "contiguous, grid (D and C squares, as 16 and 4) or random"
    near = nearest_name(name, ["contiguous", "random", *(["grid"] if squares else [])])
    refuse("partition", name, "is not possible here", choices, near)


def check_sets(parameters: Parameters, partition: Partition) -> None:
    """Refuse a partition that the law of Assumption 1 cannot have.

    Raises InvalidRequest if it is not one of D patches into at least two sets, not all single
    patches.
    """
    sizes = [members.size for members in partition.sets]
    if partition.size != parameters.D or len(sizes) < 2 or max(sizes) < 2:
        allowed = f"{parameters.D} patches in two sets or more, one of two patches at least"
        refuse("partition", sizes, "are not the sizes of such sets", allowed, "the default")
    if parameters.random_sets == MIXED and parameters.q == 1 and min(sizes) == 1:
        refuse("random_sets", MIXED, "leaves a set of one patch no value at q=1", ANY, ANY)
