"""Data of the kernels of the reduced population problem: configurations and scratch."""

from typing import NamedTuple

import numpy as np


class Configurations(NamedTuple):
    """Weighted configurations, ordered so that a lane reads what it has just written.

    Attributes
    ----------
    latents : three float arrays
        The patch values x = 1, -1, 0; the set sums z = -C..C; all sums Z = 2C-D..D.
    composition : float array, shape (K, 3)
        Patches of each value in a set of each type.
    multiples : float array, shape (K, 3)
        Of the parts of a share: 1, 2 min(a, b), C - a - b.
    sum_index : uint64 array, shape (K,)
        Position of the type's sum among the set sums.
    index : uint32 array, shape (L, n)
        Flat position (type, Z) of each set of each configuration, the signal set first.
    probability : float array, shape (n,)
        Sums to 1.
    entries : uint32 array, shape (e,)
        The flat positions of random sets that occur, ordered by Z, then type.
    starts : uint32 array, shape (e + 1,)
        Where in `members` each entry begins.
    members : uint32 array, shape ((L - 1) n,)
        The configurations that hold each entry in a random set, as often as they hold it.
    cuts : int array, shape (lanes + 1,)
        Entries at which `entries` is cut into lanes of about equal work.
    """

    latents: tuple[np.ndarray, np.ndarray, np.ndarray]
    composition: np.ndarray
    multiples: np.ndarray
    sum_index: np.ndarray
    index: np.ndarray
    probability: np.ndarray
    entries: np.ndarray
    starts: np.ndarray
    members: np.ndarray
    cuts: np.ndarray


class Work(NamedTuple):
    """Scratch of a gradient.

    Attributes
    ----------
    parts : float array, shape (4, 3, 2 C + 1, sums Z)
        Parts of h by (z, Z), and of its derivatives by alpha, gamma, rho.
    parts_at : float array, shape (3,)
        The state whose parts these are; NaN before there are any.
    flat_parts : float array, shape (12, 2 C + 1, sums Z)
        The same memory; a reshape inside the kernel costs a tenth of a gradient.
    table : float array, shape (K, sums Z)
        h(type, Z), or its negative, or a derivative, that of the signal set spread or not; or e^-h.
    total : float array, shape (K * sums Z,)
        W(type, Z), flat.
    weights : float array, shape (3, 2 C + 1, sums Z)
        W by part.
    chance : float array, shape (n,)
        Weight of each configuration.
    """

    parts: np.ndarray
    parts_at: np.ndarray
    flat_parts: np.ndarray
    table: np.ndarray
    total: np.ndarray
    weights: np.ndarray
    chance: np.ndarray


class ReducedData(NamedTuple):
    """What the kernels need beside the state (alpha, gamma, rho).

    Attributes
    ----------
    constants : float array
        Values of the parameters of the reduction.
    share : float array, shape (3,)
        One over the number of entries of each state.
    configurations : Configurations
    work : Work
    """

    constants: np.ndarray
    share: np.ndarray
    configurations: Configurations
    work: Work
