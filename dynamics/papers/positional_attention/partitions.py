"""Partitions of the patches into sets: construction by name, and checks."""

from __future__ import annotations

from math import isqrt

from numpy.random import Generator

from dynamics.papers.positional_attention.parameters import Parameters
from dynamics.validation import nearest_name, refuse
from theory.papers.positional_attention.data_law import ANY, MIXED
from theory.symmetry import Partition


def named_partition(name: str, parameters: Parameters, generator: Generator) -> Partition:
    """Partition of the patches into sets of C, by name.

    `name` is ``"contiguous"``, ``"grid"`` for blocks of a square grid, or ``"random"``; `generator`
    draws a random partition. Raises InvalidRequest for another name, or for a grid if D or C is not
    a square number.
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
    """Raise InvalidRequest unless D patches form at least two sets, one with several patches."""
    sizes = [members.size for members in partition.sets]
    if partition.size != parameters.D or len(sizes) < 2 or max(sizes) < 2:
        allowed = f"{parameters.D} patches in at least two sets, one with at least two patches"
        refuse("partition", sizes, "are not possible set sizes", allowed, "the default")
    if parameters.random_sets == MIXED and parameters.q == 1 and min(sizes) == 1:
        refuse("random_sets", MIXED, "leaves a set of one patch no value at q=1", ANY, ANY)
