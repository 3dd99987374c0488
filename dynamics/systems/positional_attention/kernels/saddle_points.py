r"""What bounds the integrand of (1) in `spectral`: kernels of its saddle points at every sum z.

At kappa + i omega the integrand is at most e^psi(kappa) times tilted means of |dF|. On a grid of
kappa, psi is minimised over lambda by Newton's method, a saddle point of the exponent; `contour`
chooses from what is found. `WIDTH` kappa that follow one another are one short vector
(`dynamics.codegen.kernels.vectors`), a block. ``law`` and ``columns`` are `SumLaw` and `Columns` of
`dynamics.systems.positional_attention.kernels.spectral_data`.
"""

from math import exp, floor, log

import numpy as np

from dynamics.codegen.kernels import LANES
from dynamics.codegen.kernels.elementary import exponentials
from dynamics.codegen.kernels.vectors import WIDTH, any_less, broadcast, load, store, where_less
from dynamics.systems.positional_attention.kernels.grid_weights import (
    fold_weights,
    tilted_weights,
)

prange = range
LARGEST_TILT = 30.0
TINY = 1e-300
ROUNDING_UNIT = 2.3e-16
NEGLIGIBLE_SHARE = 1e-4
"""Of what does not matter, up to which no kappa is looked at."""
LAMBDA_PRECISION = 1e-2
MOST_SEARCHES = 60
LEAST_TOTAL = 1e-290
"""Of weights with their factors, below which they are lost to underflow."""
FIRST_GROUP, GROUP_GROWTH = 16, 4
"""Sums of the first group, which are all scanned, and of all groups so far over those before."""
UNKNOWN = 1e300
"""A mean that is no number, or too large, or an exponent of which nothing is known."""


def scan_sums(tables, law, columns, allowed):  # type: ignore[no-untyped-def]
    """Fill, at every z: psi, lambda, reach, and an upper bound on E[s |dF|].

    Sums are visited in groups from the likeliest outward. Those that cannot matter beside the
    groups before, by a trivial bound or by that of some kappa, are not scanned any further, and
    that bound stays; psi is `UNKNOWN` at the other kappa.

    Parameters
    ----------
    tables : float array, shape (4 or 10, K, columns)
        h, then its derivatives.
    law, columns : SumLaw, Columns
    allowed : float
        Bound on E[s |dF|; z], relative to that of the sum where it is largest, up to which a sum
        does not matter.
    """
    highest, many = np.zeros(4), law.outward.size
    begin, end = 0, FIRST_GROUP
    while begin < many:
        group = law.outward[begin : min(end, many)]
        scan_group(tables, law, columns, (group, highest, allowed))
        for c in group:
            for i in range(4):
                if columns.scanned[c]:
                    highest[i] = max(highest[i], columns.upper[c, i])
        begin, end = end, GROUP_GROWTH * end


def scan_group(tables, law, columns, group):  # type: ignore[no-untyped-def]
    """`scan_sums` of some sums, in lanes; results do not depend on the number of threads.

    Parameters
    ----------
    tables, law, columns
        As of `scan_sums`.
    group : (int array, float array of shape (4,), float)
        Positions of the sums; upper bounds where they are largest, of the groups before; what is
        allowed.
    """
    members, highest, allowed = group
    for lane in prange(min(LANES, members.size)):
        scan_lane(tables, law, columns, members[lane::LANES], (highest, allowed))


def scan_lane(tables, law, columns, members, limits):  # type: ignore[no-untyped-def]
    """`scan_sums` of some sums, one after the other.

    Parameters
    ----------
    tables, law, columns
        As of `scan_sums`.
    members : int array
        Positions of the sums.
    limits : (float array of shape (4,), float)
        Upper bounds where they are largest, of the groups before; what is allowed.
    """
    highest, allowed = limits
    kinds, rows = law.probability.size, 2 * int(law.sums.max()) + 1
    sizes = (np.empty((4, kinds)), np.empty(4))
    weights = np.empty((law.kappas.size // WIDTH, kinds, WIDTH))
    folded, tilts, step = np.empty((rows, WIDTH)), np.empty((rows, WIDTH)), np.empty((2, WIDTH))
    for c in members:
        upper = columns.upper[c]
        absolute_slopes(tables, c, sizes)
        trivial_bounds(law, c, sizes, upper)
        columns.scanned[c] = exceeds(upper, highest, NEGLIGIBLE_SHARE * allowed)
        if columns.scanned[c]:
            ends = tilted_weights(law, tables, c, weights)
            given = (ends[0], ends[1], tables[0, kinds - 1, c])
            columns.psi[c], columns.reach[c], columns.lam[c] = UNKNOWN, 0.0, 0.0
            # The last block, which has kappa = 1, tells of most sums that they do not matter.
            for block in range(weights.shape[0] - 1, -1, -1):
                at = (c, block)
                fold_weights(law, weights[block], folded)
                saddle_points(law, columns, at, folded, step)
                exponents(law, columns, at, given, (folded, tilts, step))
                tilted_means(law, columns, at, (weights[block], tilts), sizes)
                lower_bounds(law, columns, at, upper)
                if not exceeds(upper, highest, allowed):
                    break


def absolute_slopes(tables, c, sizes):  # type: ignore[no-untyped-def]
    """Fill |dh| by type, and of the signal set, then |h| and |h_s|.

    Parameters
    ----------
    tables
        As of `scan_sums`.
    c : int
        Position of z.
    sizes : float arrays, shapes (4, K), (4,)
        Filled.
    """
    slopes, signal = sizes
    kinds = slopes.shape[1]
    for i in range(4):
        output = (1 + i) % 4
        signal[i] = abs(tables[output, kinds - 1, c])
        for k in range(kinds):
            slopes[i, k] = abs(tables[output, k, c])


def trivial_bounds(law, c, sizes, upper):  # type: ignore[no-untyped-def]
    """Fill E[s |dF|] <= P(z) (|dh_s| + n max |dh|); the risk is at most P(z) (1 + the same of h).

    Parameters
    ----------
    law : SumLaw
    c : int
        Position of z.
    sizes : float arrays, shapes (4, K), (4,)
        See `absolute_slopes`.
    upper : float array, shape (4,)
        Filled.
    """
    slopes, signal = sizes
    for i in range(4):
        steep = 0.0
        for k in range(slopes.shape[1]):
            steep = max(steep, slopes[i, k])
        upper[i] = signal[i] + law.count * steep + (1.0 if i == 3 else 0.0)
        upper[i] *= law.chance[c]


def exceeds(values, limits, share):  # type: ignore[no-untyped-def]
    """Whether one of the values is above a share of its limit.

    Parameters
    ----------
    values, limits : float arrays, shape (4,)
    share : float
    """
    above = False
    for i in range(4):
        above = above or values[i] > share * limits[i]
    return above


def saddle_points(law, columns, at, folded, step):  # type: ignore[no-untyped-def]
    """The lambda that minimise psi: Newton's method on a convex function, and bisection.

    At lambda the tilted mean of a set's sum is z / n.

    Parameters
    ----------
    law, columns : SumLaw, Columns
    at : (int, int)
        Position of z, and block of kappa.
    folded : float array, shape (2 C + 1, WIDTH)
        Weights of the sums.
    step : float array, shape (2, WIDTH)
        Overwritten.
    """
    c, block = at
    width = folded.shape[0] // 2
    lam, scratch = columns.lam[c].reshape(-1, WIDTH), step[1]
    target, best = broadcast(law.z[c] / law.count), broadcast(law.tilt[c])
    low, high = broadcast(-LARGEST_TILT), broadcast(LARGEST_TILT)
    half, least, precision = broadcast(0.5), broadcast(1e-12), broadcast(LAMBDA_PRECISION)
    nothing = broadcast(0.0)
    for _ in range(MOST_SEARCHES):
        store(step, 0, best)
        exponentials(step[0], scratch)
        factor, power = load(step, 0), broadcast(1.0)
        total, first, second = broadcast(0.0), broadcast(0.0), broadcast(0.0)
        for j in range(folded.shape[0]):
            term = load(folded, j) * power
            place = float(j - width)
            total += term
            first += place * term
            second += place * place * term
            power *= factor
        mean = first / total
        variance = second / total - mean * mean
        # What overflows lies above.
        low, high = where_less(mean, target, best, low), where_less(mean, target, high, best)
        nearer = best + (target - mean) / where_less(variance, least, least, variance)
        middle = half * (low + high)
        nearer = where_less(low, nearer, where_less(nearer, high, nearer, middle), middle)
        move = nearer - best
        best = nearer
        if not any_less(precision, where_less(move, nothing, -1.0 * move, move)):
            break
    store(lam, block, best)


def exponents(law, columns, at, given, room):  # type: ignore[no-untyped-def]
    """The exponents (4) at the saddle points, and the factors of the tilted law.

    An exponent is a bound: what rounding may hide of it is added. Factors are those of the sums
    beside z / n: where the weights are, nothing that counts overflows, or underflows.

    Parameters
    ----------
    law, columns : SumLaw, Columns
    at : (int, int)
        Position of z, and block of kappa.
    given : (float, float, float)
        The least and the largest h of a type; h of the signal set.
    room : three float arrays, shapes (2 C + 1, WIDTH), (2 C + 1, WIDTH), (2, WIDTH)
        The weights of the sums; the second receives e^{lambda j} over the sum of all weights times
        theirs; the last is overwritten.
    """
    (c, block), (lowest, highest, signal), (folded, tilts, step) = at, given, room
    rows, z = folded.shape[0], law.z[c]
    lam, psi = columns.lam[c].reshape(-1, WIDTH), columns.psi[c]
    middle = min(max(floor(z / law.count + 0.5) + rows // 2, 0), rows - 1)
    largest = max(abs(lowest), abs(highest))
    store(step, 0, load(lam, block))
    exponentials(step[0], step[1])
    factor = load(step, 0)
    back, power, total = 1.0 / factor, broadcast(1.0), load(folded, middle)
    store(tilts, middle, power)
    for j in range(middle + 1, rows):
        power *= factor
        store(tilts, j, power)
        total += load(folded, j) * power
    power = broadcast(1.0)
    for j in range(middle - 1, -1, -1):
        power *= back
        store(tilts, j, power)
        total += load(folded, j) * power
    store(step, 0, total)
    over = 1.0 / total
    for j in range(rows):
        store(tilts, j, load(tilts, j) * over)
    for w in range(WIDTH):
        s = block * WIDTH + w
        kappa, tilt = law.kappas[s], columns.lam[c, s]
        top = -kappa * (lowest if kappa > 0.0 else highest)
        psi[s] = law.count * (top + log(step[0, w]) + tilt * (middle - rows // 2))
        psi[s] -= tilt * z + kappa * signal
        psi[s] += exponent_error(law, c, (kappa, tilt), (largest, signal, rows // 2))
        if not step[0, w] > LEAST_TOTAL:
            psi[s] = UNKNOWN


def exponent_error(law, c, tilts, sizes):  # type: ignore[no-untyped-def]
    """What rounding may change in the exponent (4), whose terms cancel.

    Parameters
    ----------
    law : SumLaw
    c : int
        Position of z.
    tilts : (float, float)
        kappa and lambda.
    sizes : (float, float, int)
        The largest |h| of a type, h of the signal set, and the largest sum of a set.
    """
    (kappa, lam), (largest, signal, width) = tilts, sizes
    terms = law.count * (abs(kappa) * largest + abs(lam) * width)
    return 4.0 * ROUNDING_UNIT * (terms + abs(lam * law.z[c]) + abs(kappa * signal))


def tilted_means(law, columns, at, weights, sizes):  # type: ignore[no-untyped-def]
    """Fill ``columns.reach``: tilted means of the sum over all sets of |dh|, and of |h|.

    Parameters
    ----------
    law, columns : SumLaw, Columns
    at : (int, int)
        Position of z, and block of kappa.
    weights : float arrays, shapes (K, WIDTH), (2 C + 1, WIDTH)
        Those of the types, and factors of their sums.
    sizes : float arrays, shapes (4, K), (4,)
        See `absolute_slopes`.
    """
    (c, block), (by_type, tilts), (slopes, signal) = at, weights, sizes
    width, count = tilts.shape[0] // 2, float(law.count)
    reach = columns.reach[c].reshape(-1, WIDTH)
    per_row = reach.shape[0] // 4
    first, second, third, last = broadcast(0.0), broadcast(0.0), broadcast(0.0), broadcast(0.0)
    for k in range(by_type.shape[0]):
        tilted = load(by_type, k) * load(tilts, law.sums[k] + width)
        first += slopes[0, k] * tilted
        second += slopes[1, k] * tilted
        third += slopes[2, k] * tilted
        last += slopes[3, k] * tilted
    unknown = broadcast(UNKNOWN)
    store(reach, block, count * first + broadcast(signal[0] + TINY))
    store(reach, per_row + block, count * second + broadcast(signal[1] + TINY))
    store(reach, 2 * per_row + block, count * third + broadcast(signal[2] + TINY))
    store(reach, 3 * per_row + block, count * last + broadcast(signal[3] + TINY))
    for i in range(4):
        size = load(reach, i * per_row + block)
        store(reach, i * per_row + block, where_less(size, unknown, size, unknown))


def lower_bounds(law, columns, at, upper):  # type: ignore[no-untyped-def]
    """Lower the bounds on E[s |dF|; z] to e^psi reach at 0 < kappa <= 1: s <= e^{-kappa F}.

    Parameters
    ----------
    law, columns : SumLaw, Columns
    at : (int, int)
        Position of z, and block of kappa.
    upper : float array, shape (4,)
    """
    c, block = at
    reach = columns.reach[c]
    for s in range(block * WIDTH, (block + 1) * WIDTH):
        if 0.0 < law.kappas[s] <= 1.0:
            size = exp(min(columns.psi[c, s], 700.0))
            for i in range(4):
                upper[i] = min(upper[i], size * (reach[i, s] if i < 3 else 1.0 / law.kappas[s]))
