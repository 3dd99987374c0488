r"""What bounds the integrand of (1) in `spectral`: kernels of its saddle points at every sum z.

At kappa + i omega the integrand is at most e^psi(kappa) times tilted means of |dF|. On a grid of
kappa, psi is minimised over lambda by Newton's method, a saddle point of the exponent; `contour`
chooses from what is found. ``data`` is
`dynamics.systems.positional_attention.kernels.spectral_data.SpectralData`.
"""

from math import exp, log

import numpy as np

from dynamics.codegen.kernels.elementary import exponentials

LARGEST_TILT = 30.0
TINY = 1e-300
NEGLIGIBLE_SHARE = 1e-4
"""Of what does not matter, up to which not even a few kappa are looked at."""
FAR = 1e-3
"""Share of the largest bound at any z, below which a few kappa may say that a z does not matter."""
LAMBDA_PRECISION = 1e-2


def scan_sums(tables, data, allowed):  # type: ignore[no-untyped-def]
    """Fill ``data.scan`` at every z: psi, lambda, reach, and an upper bound on E[s |dF|].

    Sums are visited from the likeliest outward. Those that cannot matter, by a trivial bound or by
    that of a few kappa, are not scanned, and that bound stays.

    Parameters
    ----------
    tables : float array, shape (at least 4, K, columns)
        h, then its derivatives.
    data : SpectralData
    allowed : float
        Bound on E[s |dF|; z], relative to that of the sum where it is largest, up to which a sum
        does not matter.
    """
    scan, count, kinds = data.scan, data.count, data.probability.size
    slopes, signal_slopes = np.empty((4, kinds)), np.empty(4)
    width, highest = int(data.sums.max()), np.zeros(4)
    scratch = (np.empty(kinds), np.empty(kinds), np.empty(2 * width + 1))
    pole, last = data.kappas.size // 2, data.last
    every, few = np.arange(data.kappas.size), np.array([(pole + last) // 2, last])
    for c in data.outward:
        h, upper = np.ascontiguousarray(tables[0, :, c]), scan.upper[c]
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
            upper[i] *= data.chance[c]
        scan.scanned[c] = exceeds(upper, highest, NEGLIGIBLE_SHARE * allowed)
        if scan.scanned[c] and not exceeds(upper, highest, FAR):
            saddle_points(data, c, few, h, slopes, signal_slopes, scratch)
            for s in few:
                lower_bound(data, c, s, upper)
            scan.scanned[c] = exceeds(upper, highest, allowed)
        if not scan.scanned[c]:
            continue
        saddle_points(data, c, every, h, slopes, signal_slopes, scratch)
        for s in range(pole + 1, last + 2):  # kappa = 1 too
            lower_bound(data, c, s, upper)
        for i in range(4):
            highest[i] = max(highest[i], upper[i])


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


def lower_bound(data, c, s, upper):  # type: ignore[no-untyped-def]
    """Lower the bounds on E[s |dF|; z] to e^psi reach at one 0 < kappa <= 1: s <= e^{-kappa F}.

    Parameters
    ----------
    data : SpectralData
    c, s : int
        Positions of z and kappa.
    upper : float array, shape (4,)
    """
    size, reach = exp(min(data.scan.psi[c, s], 700.0)), data.scan.reach[c]
    for i in range(4):
        upper[i] = min(upper[i], size * (reach[i, s] if i < 3 else 1.0 / data.kappas[s]))


def saddle_points(data, c, positions, h, slopes, signal_slopes, scratch):  # type: ignore[no-untyped-def]
    """For some kappa at one z: the lambda that minimises psi, psi there, tilted means.

    Parameters
    ----------
    data : SpectralData
    c : int
        Position of z.
    positions : int array
        Of the kappa, in ascending order; each search begins where those before it point to.
    h : float array, shape (K,)
        h by type; the last is the signal set's.
    slopes, signal_slopes : float arrays, shapes (4, K), (4,)
        |dh| and |dh_s|, then |h| and |h_s|: their means go to ``data.scan.reach``.
    scratch : three float arrays, shapes (K,), (K,), (2 C + 1,)
        Overwritten.
    """
    sums, count, kappas, z = data.sums, data.count, data.kappas, data.z[c]
    psi, lam, reach = data.scan.psi[c], data.scan.lam[c], data.scan.reach[c]
    weights, tilt, folded = scratch
    kinds, width = h.size, folded.size // 2
    first, second, third, last = slopes[0], slopes[1], slopes[2], slopes[3]
    lowest, highest = 1e300, -1e300
    for k in range(kinds):
        if data.probability[k] > 0.0:
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
            weights[k] *= data.probability[k]
            folded[sums[k] + width] += weights[k]
        gap = kappa - kappas[positions[t - 1]] if t > 0 else 1.0
        former, best = best, newton(folded, z / count, best + move * gap / former_gap)
        if t > 0:
            move, former_gap = best - former, gap
        step, power = exp(best), 1.0
        for _ in range(width):
            power /= step
        for j in range(2 * width + 1):
            folded[j] = power
            power *= step
        for k in range(kinds):
            tilt[k] = folded[sums[k] + width]
        total, mean_0, mean_1, mean_2, mean_3 = 0.0, 0.0, 0.0, 0.0, 0.0
        for k in range(kinds):
            tilted = weights[k] * tilt[k]
            total += tilted
            mean_0 += tilted * first[k]
            mean_1 += tilted * second[k]
            mean_2 += tilted * third[k]
            mean_3 += tilted * last[k]
        lam[s] = best
        psi[s] = count * (top + log(total + TINY)) - best * z - kappa * h[kinds - 1]  # (4)
        means = (mean_0, mean_1, mean_2, mean_3)
        for i in range(4):
            reach[i, s] = count * means[i] / total + signal_slopes[i] + TINY


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
