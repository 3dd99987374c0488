r"""The configurations of a sum over counts, and their chances.

Of N - 1 patches other than p, U are unmasked, every set of them with equal chance, so the numbers
h_u in units of n_u patches are multivariate hypergeometric:
:math:`P(h) = \prod_u \binom{n_u}{h_u} / \binom{N-1}{U}`. Units are added one by one, and what has a
marginal chance below `NEGLIGIBLE` is dropped with everything that it would become.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.problem import FloatArray

NEGLIGIBLE = 1e-32
WIDTHS = 24.0
"""Standard deviations that are kept of the count of a unit, both sides together."""


def estimate(sizes: Sequence[int], opened: int) -> float:
    """About how many configurations there are.

    Parameters
    ----------
    sizes : sequence of int
        Patches of every unit.
    opened : int
        U, unmasked patches.
    """
    total = sum(sizes)
    widths = []
    for size in sizes:
        share = opened / total
        spread = sqrt(size * share * (1 - share) * (total - size) / max(1, total - 1))
        widths.append(1.0 + min(size, opened, total - opened, WIDTHS * spread + 2.0))
    return prod(sorted(widths)[:-1]) if len(widths) > 1 else 1.0


def configurations(sizes: Sequence[int], opened: int) -> tuple[FloatArray, FloatArray]:
    """All configurations that matter.

    Parameters
    ----------
    sizes : sequence of int
        Patches of every unit.
    opened : int
        U, unmasked patches.

    Returns
    -------
    counts : float array, shape (units, N)
        Unmasked patches of every unit.
    chances : float array, shape (N,)
    """
    # In long double where there is one: logarithms of thousands cost three digits of a chance.
    logs = np.log(np.arange(1, sum(sizes) + 1, dtype=np.longdouble))
    logs = np.concatenate([np.zeros(1, np.longdouble), np.cumsum(logs)])

    def choose(n: int, k: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
        k = k.astype(np.int64)
        return np.asarray(logs[n] - logs[k] - logs[n - k])

    total = sum(sizes)
    whole = choose(total, np.array([opened]))[0]
    least = np.log(np.longdouble(NEGLIGIBLE))
    order = sorted(range(len(sizes)), key=lambda u: sizes[u])
    counts = np.zeros((len(sizes), 1))
    weight, used, left = np.zeros(1, np.longdouble), np.zeros(1), total
    for unit in order:
        size = sizes[unit]
        left -= size
        alone = np.arange(max(0, opened - total + size), min(size, opened) + 1.0)
        likely = choose(size, alone) + choose(total - size, opened - alone) - whole >= least
        h = alone[likely] if left else np.empty(0)
        # The last unit, the largest, has what is left over.
        after = used[:, None] + h if left else np.full((used.size, 1), float(opened))
        taken = after - used[:, None]
        possible = (taken >= 0) & (taken <= size) & (after <= opened) & (opened - after <= left)
        marginal = weight[:, None] + choose(size, np.clip(taken, 0, size))
        rest = choose(left, np.clip(opened - after, 0, left))
        kept = np.nonzero(possible & (marginal + rest - whole >= least))
        counts = counts[:, kept[0]]
        counts[unit] = taken[kept]
        weight, used = marginal[kept], after[kept]
    chances = np.exp(weight - whole)
    return np.ascontiguousarray(counts), np.asarray(chances / chances.sum(), dtype=np.float64)
