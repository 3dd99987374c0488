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
NEGLIGIBLE_SHARE = 1e-7
LAMBDA_PRECISION = 1e-2


def scan_sums(tables, data, tolerance):  # type: ignore[no-untyped-def]
    """Fill ``data.scan`` at every z: psi, lambda, reach, and an upper bound on E[s |dF|].

    Sums are visited from the likeliest outward; those whose trivial bound cannot matter are not
    scanned, and that bound stays.

    Parameters
    ----------
    tables : float array, shape (at least 4, K, columns)
        h, then its derivatives.
    data : SpectralData
    tolerance : float
        Error allowed, relative to the gross.
    """
    scan, kappas, count, kinds = data.scan, data.kappas, data.count, data.probability.size
    slopes, signal_slopes = np.empty((4, kinds)), np.empty(4)
    weights, scratch = np.empty(kinds), np.empty(kinds)
    top, highest, size = kinds - 1, np.zeros(4), np.empty(kappas.size)
    for c in data.outward:
        h, upper = np.ascontiguousarray(tables[0, :, c]), scan.upper[c]
        for i in range(4):
            output = (1 + i) % 4
            signal_slopes[i] = abs(tables[output, top, c])
            for k in range(kinds):
                slopes[i, k] = abs(tables[output, k, c])
        # E[s |dF|] <= P(z) (|dh_s| + n max |dh|); the risk is at most P(z) (1 + the same of h).
        needed = False
        for i in range(4):
            steep = 0.0
            for k in range(kinds):
                steep = max(steep, slopes[i, k])
            upper[i] = signal_slopes[i] + count * steep + (1.0 if i == 3 else 0.0)
            upper[i] *= data.chance[c]
            needed = needed or upper[i] > NEGLIGIBLE_SHARE * tolerance * highest[i]
        scan.scanned[c] = needed
        if not needed:
            continue
        saddle_point(data, c, h, slopes, signal_slopes, weights, scratch)
        # E[s |dF|] <= e^psi reach at every 0 < kappa <= 1, since s <= e^{-kappa F}.
        for s in range(kappas.size):
            size[s] = exp(min(scan.psi[c, s], 700.0))
        for i in range(4):
            for s in range(kappas.size):
                if 0.0 < kappas[s] <= 1.0:
                    rate = size[s] * (scan.reach[c, i, s] if i < 3 else 1.0 / kappas[s])
                    upper[i] = min(upper[i], rate)
            highest[i] = max(highest[i], upper[i])


def saddle_point(data, c, h, slopes, signal_slopes, weights, scratch):  # type: ignore[no-untyped-def]
    """For every kappa at one z: the lambda that minimises psi, psi there, tilted means.

    Parameters
    ----------
    data : SpectralData
    c : int
        Position of z.
    h : float array, shape (K,)
        h by type; the last is the signal set's.
    slopes, signal_slopes : float arrays, shapes (4, K), (4,)
        |dh| and |dh_s|, then |h| and |h_s|: their means go to ``data.scan.reach``.
    weights, scratch : float arrays, shape (K,)
        Overwritten.
    """
    sums, count, kappas, z = data.sums, data.count, data.kappas, data.z[c]
    psi, lam, reach = data.scan.psi[c], data.scan.lam[c], data.scan.reach[c]
    kinds, width = h.size, int(sums.max())
    folded, gaps = np.empty(2 * width + 1), np.zeros(kappas.size)
    first, second, third, last = slopes[0], slopes[1], slopes[2], slopes[3]
    for s in range(1, kappas.size):
        gaps[s] = kappas[s] - kappas[s - 1]
    lowest, highest = 1e300, -1e300
    for k in range(kinds):
        if data.probability[k] > 0.0:
            lowest, highest = min(lowest, h[k]), max(highest, h[k])
    for s in range(kappas.size):
        kappa = kappas[s]
        top = -kappa * (lowest if kappa > 0.0 else highest)
        for k in range(kinds):
            weights[k] = min(max(-kappa * h[k] - top, -700.0), 0.0)
        exponentials(weights, scratch)
        folded[:] = 0.0
        for k in range(kinds):
            weights[k] *= data.probability[k]
            folded[sums[k] + width] += weights[k]
        start = lam[s - 1] if s > 0 else 0.0
        if s > 1:
            start += (lam[s - 1] - lam[s - 2]) * gaps[s] / gaps[s - 1]
        best = newton(folded, z / count, start)
        step = exp(best)
        power = 1.0
        for _ in range(width):
            power /= step
        for j in range(2 * width + 1):
            folded[j] = power
            power *= step
        for k in range(kinds):
            scratch[k] = folded[sums[k] + width]
        total, mean_0, mean_1, mean_2, mean_3 = 0.0, 0.0, 0.0, 0.0, 0.0
        for k in range(kinds):
            tilted = weights[k] * scratch[k]
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
