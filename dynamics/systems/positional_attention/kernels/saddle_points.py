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
from dynamics.codegen.kernels.vectors import WIDTH, any_less, load, spread, store, where_less

prange = range
LARGEST_TILT = 30.0
TINY = 1e-300
NEGLIGIBLE_SHARE = 1e-4
"""Of what does not matter, up to which no kappa is looked at."""
LAMBDA_PRECISION = 1e-2
MOST_SEARCHES = 60
LEAST_WEIGHT = 1e-280
"""Of a type, so that no factor makes it nothing; psi and the means of larger ones are bounds."""
LEAST_TOTAL = 1e-290
"""Of weights with their factors, below which they are lost to underflow."""
GRAIN = 0.05
"""Every kappa of the grid is a multiple."""
BELOW = (38, 28, 22, 20, 18, 14, 10, 6, 3, 1)
ABOVE = (1, 3, 6, 8, 10, 12, 14, 16, 18, 20, 22, 28, 38)
"""The multiples: of -kappa, then of kappa; `fill_powers` writes them down too. With 0, all together
fill whole short vectors."""
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


def tilted_weights(law, tables, c, weights):  # type: ignore[no-untyped-def]
    """e^{-kappa h_k - top} at every kappa, where the top is the largest exponent of any type.

    Parameters
    ----------
    law, tables : SumLaw, float array
    c : int
        Position of z.
    weights : float array, shape (blocks of kappa, K, WIDTH)
        Filled.

    Returns
    -------
    (float, float)
        The least and the largest h of a type.
    """
    kinds = weights.shape[1]
    lowest, highest = 1e300, -1e300
    for k in range(kinds):
        if law.probability[k] > 0.0:
            lowest, highest = min(lowest, tables[0, k, c]), max(highest, tables[0, k, c])
    falling, rising, scratch = np.empty(kinds), np.empty(kinds), np.empty(kinds)
    for k in range(kinds):
        falling[k] = min(max(GRAIN * (lowest - tables[0, k, c]), -700.0), 0.0)
        rising[k] = min(max(GRAIN * (tables[0, k, c] - highest), -700.0), 0.0)
    exponentials(falling, scratch)
    exponentials(rising, scratch)
    for k in range(kinds):
        fill_powers(falling[k], rising[k], weights, k)
    return lowest, highest


def fill_powers(falling, rising, weights, k):  # type: ignore[no-untyped-def]
    """Powers |kappa| / `GRAIN` at every kappa: of one number below 0, of the other above.

    Parameters
    ----------
    falling, rising : float
        e^{-GRAIN h} and e^{GRAIN h} of a type, over the largest.
    weights : float array, shape (blocks of kappa, K, WIDTH)
        Those of the type are filled.
    k : int
        The type.
    """
    second, fourth = rising * rising, rising * rising * (rising * rising)
    sixth = second * fourth
    tenth, fourteenth = sixth * fourth, sixth * fourth * fourth
    eighteenth = fourteenth * fourth
    one, two, three = weights[0, k], weights[1, k], weights[2, k]
    one[0], one[1] = tenth * tenth * eighteenth, fourteenth * fourteenth  # -1.9, -1.4
    one[2], one[3] = eighteenth * fourth, tenth * tenth  # -1.1, -1
    one[4], one[5] = eighteenth, fourteenth  # -0.9, -0.7
    one[6], one[7] = tenth, sixth  # -0.5, -0.3
    two[0], two[1], two[2] = second * rising, rising, 1.0  # -0.15, -0.05, 0
    second, fourth = falling * falling, falling * falling * (falling * falling)
    sixth, eighth = second * fourth, fourth * fourth
    tenth, fourteenth = sixth * fourth, sixth * eighth
    eighteenth = tenth * eighth
    two[3], two[4] = falling, second * falling  # 0.05, 0.15
    two[5], two[6], two[7] = sixth, eighth, tenth  # 0.3, 0.4, 0.5
    three[0], three[1] = sixth * sixth, fourteenth  # 0.6, 0.7
    three[2], three[3] = eighth * eighth, eighteenth  # 0.8, 0.9
    three[4], three[5] = tenth * tenth, eighteenth * fourth  # 1, 1.1
    three[6], three[7] = fourteenth * fourteenth, tenth * tenth * eighteenth  # 1.4, 1.9


def fold_weights(law, weights, folded):  # type: ignore[no-untyped-def]
    """Multiply weights by P_k, and sum those of the types with one sum.

    Parameters
    ----------
    law : SumLaw
    weights : float array, shape (K, WIDTH)
        Overwritten; of types that there are, those below `LEAST_WEIGHT` are raised to it.
    folded : float array, shape (2 C + 1, WIDTH)
        Filled.
    """
    rows, nothing, least = folded.shape[0], spread(0.0), spread(LEAST_WEIGHT)
    for j in range(rows):
        store(folded, j, nothing)
    for k in range(weights.shape[0]):
        j, weight = law.sums[k] + rows // 2, load(weights, k) * law.probability[k]
        if law.probability[k] > 0.0:
            weight = where_less(weight, least, least, weight)
        store(weights, k, weight)
        store(folded, j, load(folded, j) + weight)


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
    target, best = spread(law.z[c] / law.count), spread(law.tilt[c])
    low, high = spread(-LARGEST_TILT), spread(LARGEST_TILT)
    half, least, precision = spread(0.5), spread(1e-12), spread(LAMBDA_PRECISION)
    nothing = spread(0.0)
    for _ in range(MOST_SEARCHES):
        store(step, 0, best)
        exponentials(step[0], scratch)
        factor, power = load(step, 0), spread(1.0)
        total, first, second = spread(0.0), spread(0.0), spread(0.0)
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

    Factors are those of the sums beside z / n: where the weights are, nothing that counts
    overflows, or underflows.

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
    store(step, 0, load(lam, block))
    exponentials(step[0], step[1])
    factor = load(step, 0)
    back, power, total = 1.0 / factor, spread(1.0), load(folded, middle)
    store(tilts, middle, power)
    for j in range(middle + 1, rows):
        power *= factor
        store(tilts, j, power)
        total += load(folded, j) * power
    power = spread(1.0)
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
        if not step[0, w] > LEAST_TOTAL:
            psi[s] = UNKNOWN


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
    first, second, third, last = spread(0.0), spread(0.0), spread(0.0), spread(0.0)
    for k in range(by_type.shape[0]):
        tilted = load(by_type, k) * load(tilts, law.sums[k] + width)
        first += slopes[0, k] * tilted
        second += slopes[1, k] * tilted
        third += slopes[2, k] * tilted
        last += slopes[3, k] * tilted
    unknown = spread(UNKNOWN)
    store(reach, block, count * first + spread(signal[0] + TINY))
    store(reach, per_row + block, count * second + spread(signal[1] + TINY))
    store(reach, 2 * per_row + block, count * third + spread(signal[2] + TINY))
    store(reach, 3 * per_row + block, count * last + spread(signal[3] + TINY))
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
