r"""What bounds the integrand of (1) in `spectral`: kernels of its saddle points at every sum z.

At kappa + i omega the integrand is at most e^psi(kappa) times tilted means of |dF|. On a grid of
kappa, psi is minimised over lambda by Newton's method, a saddle point of the exponent; `contour`
chooses from what is found. ``law`` and ``columns`` are `SumLaw` and `Columns` of
`dynamics.systems.positional_attention.kernels.spectral_data`.
"""

from math import exp, log

import numpy as np

from dynamics.codegen.kernels import LANES
from dynamics.codegen.kernels.elementary import exponentials

prange = range
LARGEST_TILT = 30.0
TINY = 1e-300
NEGLIGIBLE_SHARE = 1e-4
"""Of what does not matter, up to which not even a few kappa are looked at."""
FAR = 1e-3
"""Share of the largest bound at any z, below which a few kappa may say that a z does not matter."""
LAMBDA_PRECISION = 1e-2
FIRST_GROUP, GROUP_GROWTH = 16, 4
"""Sums of the first group, which are all scanned, and of all groups so far over those before."""
UNKNOWN = 1e300
"""A mean that is no number, or too large."""


def scan_sums(tables, law, columns, allowed):  # type: ignore[no-untyped-def]
    """Fill, at every z: psi, lambda, reach, and an upper bound on E[s |dF|].

    Sums are visited in groups from the likeliest outward. Those that cannot matter beside the
    groups before, by a trivial bound or by that of a few kappa, are not scanned, and that bound
    stays.

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
        for position in range(lane, members.size, LANES):
            scan_sum(tables, law, columns, members[position], (highest, allowed))


def scan_sum(tables, law, columns, c, limits):  # type: ignore[no-untyped-def]
    """`scan_sums` of one sum.

    Parameters
    ----------
    tables, law, columns
        As of `scan_sums`.
    c : int
        Position of z.
    limits : (float array of shape (4,), float)
        Upper bounds where they are largest, of the groups before; what is allowed.
    """
    count, kinds, (highest, allowed) = law.count, law.probability.size, limits
    slopes, signal_slopes = np.empty((4, kinds)), np.empty(4)
    sizes = (slopes, signal_slopes)
    width, pole, last = int(law.sums.max()), law.kappas.size // 2, law.last
    scratch = (np.empty(kinds), np.empty(kinds), np.empty(2 * width + 1))
    every, few = np.arange(law.kappas.size), np.array([(pole + last) // 2, last])
    h, upper = np.ascontiguousarray(tables[0, :, c]), columns.upper[c]
    for i in range(4):
        output = (1 + i) % 4
        signal_slopes[i] = abs(tables[output, kinds - 1, c])
        for k in range(kinds):
            slopes[i, k] = abs(tables[output, k, c])
    # E[s |dF|] <= P(z) (|dh_s| + n max |dh|); the risk is at most P(z) (1 + the same of h).
    for i in range(4):
        steep = 0.0
        for k in range(kinds):
            steep = max(steep, slopes[i, k])
        upper[i] = signal_slopes[i] + count * steep + (1.0 if i == 3 else 0.0)
        upper[i] *= law.chance[c]
    columns.scanned[c] = exceeds(upper, highest, NEGLIGIBLE_SHARE * allowed)
    if columns.scanned[c] and not exceeds(upper, highest, FAR):
        saddle_points(law, columns, c, few, h, sizes, scratch)
        for s in few:
            lower_bound(law, columns, (c, s), upper)
        columns.scanned[c] = exceeds(upper, highest, allowed)
    if columns.scanned[c]:
        saddle_points(law, columns, c, every, h, sizes, scratch)
        for s in range(pole + 1, last + 2):  # kappa = 1 too
            lower_bound(law, columns, (c, s), upper)


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


def lower_bound(law, columns, at, upper):  # type: ignore[no-untyped-def]
    """Lower the bounds on E[s |dF|; z] to e^psi reach at one 0 < kappa <= 1: s <= e^{-kappa F}.

    Parameters
    ----------
    law, columns : SumLaw, Columns
    at : (int, int)
        Positions of z and kappa.
    upper : float array, shape (4,)
    """
    c, s = at
    size, reach = exp(min(columns.psi[c, s], 700.0)), columns.reach[c]
    for i in range(4):
        upper[i] = min(upper[i], size * (reach[i, s] if i < 3 else 1.0 / law.kappas[s]))


def saddle_points(law, columns, c, positions, h, sizes, scratch):  # type: ignore[no-untyped-def]
    """For some kappa at one z: the lambda that minimises psi, psi there, tilted means.

    Parameters
    ----------
    law, columns : SumLaw, Columns
    c : int
        Position of z.
    positions : int array
        Of the kappa, in ascending order; each search begins where those before it point to.
    h : float array, shape (K,)
        h by type; the last is the signal set's.
    sizes : float arrays, shapes (4, K), (4,)
        |dh| and |dh_s|, then |h| and |h_s|: their means go to ``columns.reach``.
    scratch : three float arrays, shapes (K,), (K,), (2 C + 1,)
        Overwritten.
    """
    sums, count, kappas, z = law.sums, law.count, law.kappas, law.z[c]
    psi, lam, reach = columns.psi[c], columns.lam[c], columns.reach[c]
    weights, tilt, folded = scratch
    slopes, signal_slopes = sizes
    kinds, width = h.size, folded.size // 2
    first, second, third, last = slopes[0], slopes[1], slopes[2], slopes[3]
    lowest, highest = 1e300, -1e300
    for k in range(kinds):
        if law.probability[k] > 0.0:
            lowest, highest = min(lowest, h[k]), max(highest, h[k])
    best, move, former_gap = 0.0, 0.0, 1.0
    for t in range(positions.size):
        s = positions[t]
        kappa = kappas[s]
        top = -kappa * (lowest if kappa > 0.0 else highest)
        for k in range(kinds):
            weights[k] = min(max(-kappa * h[k] - top, -700.0), 0.0)
        exponentials(weights, tilt)
        folded[:] = 0.0
        for k in range(kinds):
            weights[k] *= law.probability[k]
            folded[sums[k] + width] += weights[k]
        gap = kappa - kappas[positions[t - 1]] if t > 0 else 1.0
        former, best = best, newton(folded, z / count, best + move * gap / former_gap)
        if t > 0:
            move, former_gap = best - former, gap
        total, peak = tilt_factors(folded, exp(best))
        for k in range(kinds):
            weights[k] /= total
            tilt[k] = folded[sums[k] + width]
        mean_0, mean_1, mean_2, mean_3 = 0.0, 0.0, 0.0, 0.0
        for k in range(kinds):
            tilted = weights[k] * tilt[k]
            mean_0 += tilted * first[k]
            mean_1 += tilted * second[k]
            mean_2 += tilted * third[k]
            mean_3 += tilted * last[k]
        lam[s] = best
        psi[s] = count * (top + log(total) + best * (peak - width))  # (4)
        psi[s] -= best * z + kappa * h[kinds - 1]
        means = (mean_0, mean_1, mean_2, mean_3)
        for i in range(4):
            size = count * means[i] + signal_slopes[i] + TINY
            reach[i, s] = size if size <= UNKNOWN else UNKNOWN


def tilt_factors(folded, step):  # type: ignore[no-untyped-def]
    """Replace weights by step^(j - peak), where the tilted weight at the peak is the largest.

    Relative to it nothing that counts overflows, or underflows; factors of weights of 0 are 0.

    Parameters
    ----------
    folded : float array, shape (2 C + 1,)
        Weight of each sum of a set.
    step : float
        e^lambda.

    Returns
    -------
    (float, int)
        Sum of the weights times their factors, and the peak.
    """
    peak, power = 0, 1.0
    for j in range(1, folded.size):
        power *= step
        if folded[peak] == 0.0 or folded[j] * power > folded[peak]:
            peak, power = j, 1.0
    total, power = folded[peak], 1.0
    folded[peak] = 1.0
    for j in range(peak + 1, folded.size):
        power *= step
        if folded[j] > 0.0:
            total += folded[j] * power
            folded[j] = power
    power = 1.0
    for j in range(peak - 1, -1, -1):
        power /= step
        if folded[j] > 0.0:
            total += folded[j] * power
            folded[j] = power
    return total, peak


def newton(folded, mean, start):  # type: ignore[no-untyped-def]
    """Lambda at which the tilted mean of a set's sum is ``mean``: minimum of a convex function.

    Parameters
    ----------
    folded : float array, shape (2 C + 1,)
        Weight of each sum -C..C of a set, at lambda = 0.
    mean : float
    start : float
        Initial lambda.
    """
    width = (folded.size - 1) // 2
    best = min(max(start, -LARGEST_TILT), LARGEST_TILT)
    low, high = -LARGEST_TILT, LARGEST_TILT
    for _ in range(60):
        step, power, zero, one, two = exp(best), 1.0, 0.0, 0.0, 0.0
        for j in range(2 * width + 1):
            term = folded[j] * power
            zero += term
            one += j * term
            two += j * j * term
            power *= step
        tilted_mean = one / zero
        spread = two / zero - tilted_mean * tilted_mean
        tilted_mean -= width
        if tilted_mean > mean:
            high = best
        else:
            low = best
        move = (mean - tilted_mean) / max(spread, 1e-12)
        nearer = best + move
        if not low < nearer < high:
            nearer = 0.5 * (low + high)
        if abs(nearer - best) < LAMBDA_PRECISION:
            return nearer
        best = nearer
    return best
