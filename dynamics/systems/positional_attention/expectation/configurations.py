r"""Configurations of the random sets, and the problem compiled around a weighted sum of them.

A configuration is a multiset of types (a, b) of the L-1 random sets, with a weight. Which
configurations there are, and how they are weighted, is decided elsewhere (`enumerate`: all of
them); here they are laid out for the kernels: gathered set by set, scattered entry by entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import factorial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynamics import codegen
from dynamics.kernels import exponential
from dynamics.kernels.advance import advance
from dynamics.kernels.exponential import exponentials
from dynamics.kernels.logistic import logistic, logistic_loss
from dynamics.systems.positional_attention import kernels
from theory.systems.positional_attention import recursion

if TYPE_CHECKING:
    from dynamics.systems.positional_attention.parameters import Parameters
    from theory.reduction import ReducedSystem

LARGEST_FACTORIAL = 150
"""Set size up to which the numbers of arrangements are exact floats."""


@dataclass(frozen=True)
class Configurations:
    """Everything about the law that a step needs.

    Attributes
    ----------
    values, set_sums, totals : float arrays
        The patch values x = 1, -1, 0; the set sums z = -C..C; all sums Z = 2C-D..D.
    composition : float array, shape (K, 3)
        Patches of each value in a set of each type.
    place : uint64 array, shape (K,)
        Position of the type's sum in `set_sums`.
    index : uint32 array, shape (L, n)
        Flat position (type, Z) of each set of each configuration, the signal set first.
    probability : float array, shape (n,)
        Sums to 1.
    entries : uint32 array, shape (e,)
        The flat positions that occur.
    starts : uint32 array, shape (e + 1,)
        Where in `members` each entry begins.
    members : uint32 array, shape (L n,)
        The configurations that hold each entry, as often as they hold it.
    """

    values: NDArray[np.float64]
    set_sums: NDArray[np.float64]
    totals: NDArray[np.float64]
    composition: NDArray[np.float64]
    place: NDArray[np.uint64]
    index: NDArray[np.uint32]
    probability: NDArray[np.float64]
    entries: NDArray[np.uint32]
    starts: NDArray[np.uint32]
    members: NDArray[np.uint32]

    @property
    def threaded(self) -> bool:
        """Whether a step is shared among threads: a property of the problem."""
        return self.probability.size >= codegen.THREADED_FROM

    def cuts(self, lanes: int) -> NDArray[np.int64]:
        """Entries at which to cut `entries` into lanes of about equal work, shape (lanes + 1,)."""
        wanted = np.linspace(0, self.members.size, lanes + 1)
        return np.searchsorted(self.starts, wanted).astype(np.int64)


def type_compositions(set_size: int) -> NDArray[np.int64]:
    """Patches at +1, -1 and 0 in each of the K = (C+1)(C+2)/2 types, shape (K, 3)."""
    pairs = [(a, b) for a in range(set_size + 1) for b in range(set_size + 1 - a)]
    return np.array([(a, b, set_size - a - b) for a, b in pairs])


def type_probabilities(composition: NDArray[np.int64], q: float) -> NDArray[np.float64]:
    """P(a, b) = C!/(a! b! (C-a-b)!) (q/2)^(a+b) (1-q)^(C-a-b)."""
    set_size = int(composition[0].sum())
    if set_size > LARGEST_FACTORIAL:
        from scipy.stats import multinomial

        return np.asarray(multinomial.pmf(composition, set_size, [q / 2, q / 2, 1 - q]))
    arrangements = [
        factorial(set_size) // (factorial(a) * factorial(b) * factorial(c))
        for a, b, c in composition.tolist()
    ]
    filled = composition[:, 0] + composition[:, 1]
    return np.array(arrangements, dtype=float) * (q / 2) ** filled * (1 - q) ** composition[:, 2]


def assemble(
    patches: int, set_size: int, types: NDArray[np.int64], probability: NDArray[np.float64]
) -> Configurations:
    """Lay out configurations, those of weight 0 left out, ordered by Z.

    Parameters
    ----------
    patches, set_size : int
        D and C.
    types : int array, shape (n, L-1)
        Type of each random set.
    probability : float array, shape (n,)
        Weights.
    """
    composition = type_compositions(set_size)
    sums = composition[:, 0] - composition[:, 1]
    set_sums = np.arange(-set_size, set_size + 1)
    totals = np.arange(2 * set_size - patches, patches + 1)
    total = set_size + sums[types].sum(axis=1)
    kept = np.flatnonzero(probability > 0)
    kept = kept[np.argsort(total[kept], kind="stable")]
    column = total[kept] - totals[0]
    signal = np.flatnonzero(sums == set_size)
    held = np.concatenate([np.broadcast_to(signal, (kept.size, 1)), types[kept]], axis=1)
    index = np.ascontiguousarray((held * totals.size + column[:, None]).T, dtype=np.uint32)
    order = np.argsort(index, axis=None, kind="stable")
    entries, first = np.unique(index.ravel()[order], return_index=True)
    return Configurations(
        values=np.array([1.0, -1.0, 0.0]),
        set_sums=set_sums.astype(float),
        totals=totals.astype(float),
        composition=composition.astype(float),
        place=(sums + set_size).astype(np.uint64),
        index=index,
        probability=probability[kept],
        entries=entries,
        starts=np.append(first, order.size).astype(np.uint32),
        members=(order % kept.size).astype(np.uint32),
    )


def arrays(
    chosen: Configurations, reduction: ReducedSystem, parameters: Parameters
) -> tuple[Any, ...]:
    """What the compiled functions need beside the state, in the order of `kernels.gradient`."""
    grid = (chosen.values.size, chosen.set_sums.size, chosen.totals.size)
    table = np.empty((chosen.place.size, chosen.totals.size))
    work = (
        np.empty((4, *grid)),
        table,
        np.empty(table.size),
        np.empty(grid),
        np.empty(chosen.probability.size),
    )
    laid_out = (
        chosen.index,
        chosen.probability,
        chosen.entries,
        chosen.starts,
        chosen.members,
        chosen.cuts(codegen.LANES if chosen.threaded else 1),
    )
    latents = (chosen.values, chosen.set_sums, chosen.totals)
    types = (chosen.composition, chosen.place)
    return (*constants_and_shares(reduction, parameters), latents, types, laid_out, work)


def constants_and_shares(
    reduction: ReducedSystem, parameters: Parameters
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Values of the reduction's parameters, and one over the number of entries of each state."""
    values = {symbol: getattr(parameters, symbol.name) for symbol in reduction.parameters}
    constants = np.array([float(value) for value in values.values()])
    share = np.array([1 / float(reduction.multiplicity[s].subs(values)) for s in reduction.state])
    return constants, share


def contributions(
    module: codegen.CompiledModule, data: tuple[Any, ...], state: NDArray[np.float64]
) -> NDArray[np.float64]:
    """What each configuration adds to the per-entry gradient and the risk, shape (4, n)."""
    constants, share, latents, types, laid_out, work = data
    patch, index = work[0], laid_out[0]
    module.patch_table(state, constants, latents, patch)
    sums = np.empty((4, index.shape[1]))
    for k in range(4):
        module.set_table(patch[k], types, work[1])
        sums[k] = work[1].ravel()[index].sum(axis=0)
    with np.errstate(over="ignore"):
        slopes = -sums[1:] / (1.0 + np.exp(sums[0])) * share[:, None]
    return np.concatenate([slopes, np.logaddexp(0.0, -sums[:1])])


@cache
def compiled(degree: int, threaded: bool) -> codegen.CompiledModule:
    """The generated file for one p, with or without threads."""
    reduction = recursion.derive(degree)
    first = ["patch", *(f"patch_{theta.name}" for theta in reduction.state)]
    second = [name for name in reduction.blocks if name.count("_") == 2]
    parts = [
        codegen.constants(exponential, "LOG2_E", "LN2_HIGH", "LN2_LOW", "ROUNDING"),
        codegen.constants(kernels, "SAFE_EXPONENT"),
        codegen.inline(logistic),
        codegen.inline(logistic_loss),
        codegen.tabulate("patch_table", first, reduction),
        codegen.tabulate("curvature_table", [*first, *second], reduction),
        codegen.evaluate("order", list(reduction.order_parameters.values()), reduction),
        codegen.evaluate("reported", list(reduction.observables.values()), reduction),
        codegen.inline(kernels.set_table),
        codegen.inline(exponentials, "exact_kernel"),
        codegen.inline(kernels.multiply),
        codegen.inline(kernels.add),
        codegen.inline(kernels.weigh, "parallel_kernel" if threaded else "kernel"),
        codegen.inline(kernels.contract),
        codegen.inline(kernels.gradient),
        codegen.inline(kernels.hessian),
        codegen.inline(kernels.order_parameters),
        codegen.inline(kernels.summary),
        codegen.inline(advance, "exact_kernel"),
    ]
    title = f"Positional attention, reduced population problem, p = {degree}."
    return codegen.build(title, [s.name for s in reduction.state], parts)
