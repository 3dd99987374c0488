r"""Where to integrate: kernels that choose contour, step, window and transform length for each z.

The integrand of (1) in `spectral` at kappa + i omega is bounded by e^psi(kappa) times tilted means
of |dF|; psi is minimised over lambda by Newton's method (a saddle point of the exponent). From
these bounds on a grid of kappa follow the least step and window that keep the error of the
trapezoidal rule below an allowed size, before any node of the integral is computed. ``data`` is
`dynamics.systems.positional_attention.kernels.spectral_data.SpectralData`.
"""

from math import ceil, exp, floor, log, pi, sin

import numpy as np

from dynamics.codegen.kernels.elementary import exponentials

LARGEST_TILT = 30.0
TINY = 1e-300
NEGLIGIBLE_SHARE = 1e-7
ROUNDING_UNIT = 2.3e-16
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
    folded, gaps, means = np.empty(2 * width + 1), np.zeros(kappas.size), np.empty(4)
    for s in range(1, kappas.size):
        gaps[s] = kappas[s] - kappas[s - 1]
    for s in range(kappas.size):
        kappa = kappas[s]
        top = -1e300
        for k in range(kinds):
            weights[k] = -kappa * h[k]
            if data.probability[k] > 0.0:
                top = max(top, weights[k])
        for k in range(kinds):
            weights[k] = min(max(weights[k] - top, -700.0), 0.0)
        exponentials(weights, scratch)
        folded[:] = 0.0
        for k in range(kinds):
            weights[k] *= data.probability[k]
            folded[sums[k] + width] += weights[k]
        start = lam[s - 1] if s > 0 else 0.0
        if s > 1:
            start += (lam[s - 1] - lam[s - 2]) * gaps[s] / gaps[s - 1]
        best = newton(folded, z / count, start)
        total = 0.0
        step = exp(best)
        power = 1.0
        for _ in range(width):
            power /= step
        for j in range(2 * width + 1):
            folded[j] = power
            power *= step
        means[:] = 0.0
        for k in range(kinds):
            tilted = weights[k] * folded[sums[k] + width]
            total += tilted
            for i in range(means.size):
                means[i] += tilted * slopes[i, k]
        lam[s] = best
        psi[s] = count * (top + log(total + TINY)) - best * z - kappa * h[kinds - 1]  # (4)
        for i in range(means.size):
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


def kernel_mass(kappa):  # type: ignore[no-untyped-def]
    """Bound on the integral of |pi / sin(pi u)| / (2 pi) along u = kappa + i omega."""
    return 0.5 - log(sin(pi * abs(kappa - floor(kappa + 0.5)))) / pi


def plan(data, c, gross, allowed, noise_factor):  # type: ignore[no-untyped-def]
    """Contour, step and window for one z: least work at an error of ``allowed`` times the gross.

    Fills ``data.plans`` but the transform length. Aliasing from a contour at kappa' costs
    e^{-T |kappa' - kappa|}, with T = 2 pi / step; crossing a pole on the way (kappa = -1, 0, 1,
    which the grid holds exactly) costs its residue. A second attempt, where rounding leaves no
    contour, allows that error.

    Parameters
    ----------
    data : SpectralData
    c : int
        Position of z.
    gross : float array, shape (4,)
        An estimate is enough.
    allowed : float
        Error allowed at z, relative to the gross.
    noise_factor : float
        Relative rounding error of the integrand, in rounding units.
    """
    psi, reach, kappas, plans = data.scan.psi[c], data.scan.reach[c], data.kappas, data.plans
    size = kappas.size
    bound = np.empty(size)
    for s in range(size):
        top = 1.0 / (gross[3] + TINY)
        for i in range(3):
            top = max(top, reach[i, s] / (gross[i] + TINY))
        bound[s] = psi[s] + log(top)
        if abs(kappas[s] - floor(kappas[s] + 0.5)) > 1e-12:
            bound[s] += max(0.0, -log(abs(kappas[s])))
            bound[s] += log(kernel_mass(kappas[s]))
    best = 1e300
    quiet = log(allowed)
    for attempt in range(2):
        for s in range(data.first, data.last + 1):
            if abs(kappas[s] - floor(kappas[s] + 0.5)) < 1e-12:
                continue
            noise = ROUNDING_UNIT * noise_factor * exp(min(bound[s], 700.0))
            if noise > allowed and attempt == 0:
                continue
            need = quiet if attempt == 0 else log(max(allowed, noise))
            period, crossed = 0.5, False
            for side in (-1, 1):
                cheapest, toll, beyond, across = 1e300, 0.0, False, False
                t = s + side
                while 0 <= t < size:
                    gap = abs(kappas[t] - kappas[s])
                    cost = max((bound[t] - need) / gap, toll)
                    if abs(kappas[t] - floor(kappas[t] + 0.5)) < 1e-12:
                        toll, beyond = max(toll, (bound[t] - need) / gap), True
                    elif cost < cheapest:
                        cheapest, across = cost, beyond
                    t += side
                period = max(period, cheapest)
                crossed = crossed or (across and side * kappas[s] < 0.0)
            window = max((bound[s] + 1.0 - need) / pi, 0.5)
            work = period * window if attempt == 0 else bound[s] * 1e3 + period * window
            if work < best:
                best, plans.crossed[c] = work, crossed
                plans.contour[c], plans.step[c], plans.window[c] = s, 2.0 * pi / period, window
                plans.log_bound[c], plans.error[c] = bound[s], exp(need) + 2.0 * noise
        if best < 1e300:
            return


def transform_length(data, c, h):  # type: ignore[no-untyped-def]
    """Length M of the Fourier transform at one z: aliases of z + M are below the allowed error.

    Parameters
    ----------
    data : SpectralData
    c : int
        Position of z, with its plan filled by `plan`.
    h : float array, shape (K,)
        h by type.
    """
    sums, count, z, s = data.sums, data.count, data.z[c], data.plans.contour[c]
    kappa, lam = data.kappas[s], data.scan.lam[c, s]
    longest = 8 * ((2 * count * int(sums.max()) + 8) // 8)
    excess = data.plans.log_bound[c] - log(max(data.plans.error[c], TINY))
    base, need = 0.0, 8.0
    top = -1e300
    for k in range(h.size):
        top = max(top, -kappa * h[k] + lam * sums[k])
    for k in range(h.size):
        base += data.probability[k] * exp(-kappa * h[k] + lam * sums[k] - top)
    for side in (-1.0, 1.0):
        cheapest = 1e300
        for step in (0.2, 0.35, 0.6, 1.0, 1.5, 2.2, 3.2):
            total = 0.0
            for k in range(h.size):
                exponent = -kappa * h[k] + (lam + side * step) * sums[k] - top
                total += data.probability[k] * exp(min(exponent, 700.0))
            gap = count * log(total / base) - side * step * z
            cheapest = min(cheapest, (excess + gap) / step)
        need = max(need, cheapest)
    return 8 * ceil(need / 8.0) if need < longest else longest
