r"""Where to integrate: kernels that choose contour, step, window and transform length for each z.

The integrand at kappa + i omega is bounded by e^psi(kappa) times tilted means of |dF|; psi is
minimised over lambda by Newton's method. From these bounds on a grid of kappa follow the least step
and window that keep the error of the trapezoidal rule below a wanted size, before any node of the
integral is computed. Companion of `spectral_kernels`, whose page has the formulas.
"""

from math import ceil, exp, floor, log, pi, sin

import numpy as np

from dynamics.codegen.kernels.exponential import exponentials

LARGEST_TILT = 30.0
TINY = 1e-300
UNSEEN = 1e-7
ROUNDING_UNIT = 2.3e-16
LAMBDA_PRECISION = 1e-2


def survey(tables, problem, tolerance, found):  # type: ignore[no-untyped-def]
    """Scan every z: psi, lambda, reach, and an upper bound on E[s |dF|] there.

    ``found`` is (psi, lam, reach, upper, scanned). Sums are visited from the likeliest outward;
    those whose trivial bound cannot matter are not scanned, and their bound is kept.
    """
    law, window, kappas, ends, budget = problem
    probability, sums, count = law
    sums_z, chance, chance_less, outward = window
    psi, lam, reach, upper, scanned = found
    kinds = probability.size
    slopes, signal_slopes = np.zeros((4, kinds)), np.ones(4)
    scratch = (np.empty(kinds), np.empty(kinds))
    top, highest, size = kinds - 1, np.zeros(4), np.empty(kappas.size)
    for c in outward:
        share = np.ascontiguousarray(tables[0, :, c])
        for i in range(3):
            signal_slopes[i] = abs(tables[1 + i, top, c])
            for k in range(kinds):
                slopes[i, k] = abs(tables[1 + i, k, c])
        needed = False
        for i in range(4):
            steep = 0.0
            for k in range(kinds):
                steep = max(steep, slopes[i, k] if i < 3 else abs(share[k]))
            upper[c, i] = signal_slopes[i] + count * steep + (abs(share[top]) if i == 3 else 0.0)
            upper[c, i] *= chance[c]
            needed = needed or upper[c, i] > UNSEEN * tolerance * highest[i]
        scanned[c] = needed
        if not needed:
            continue
        column = (share, share[top], slopes, signal_slopes)
        tilt(law, column, kappas, sums_z[c], (psi[c], lam[c], reach[c]), scratch)
        for s in range(kappas.size):
            size[s] = exp(min(psi[c, s], 700.0))
        for i in range(4):
            for s in range(kappas.size):
                if 0.0 < kappas[s] <= 1.0:
                    rate = size[s] * reach[c, i, s]
                    upper[c, i] = min(upper[c, i], rate / kappas[s] if i == 3 else rate)
            highest[i] = max(highest[i], upper[c, i])


def tilt(law, column, kappas, z, scan, scratch):  # type: ignore[no-untyped-def]
    """Scan kappa at one z: the best lambda, psi there, and the tilted means of |dF|.

    ``law`` is (probability, sums, counts); ``column`` is (h, h_s, |dh|, |dh_s|) at this z;
    ``scan`` receives psi, lambda and, for every component, E|dF| under the tilt.
    """
    probability, sums, count = law
    share, signal, slopes, signal_slopes = column
    psi, lam, reach = scan
    kinds, width = probability.size, int(sums.max())
    weights, scratch_row = scratch
    folded, gaps, means = np.empty(2 * width + 1), np.zeros(kappas.size), np.empty(4)
    for s in range(1, kappas.size):
        gaps[s] = kappas[s] - kappas[s - 1]
    for s in range(kappas.size):
        kappa = kappas[s]
        top = -kappa * share[0]
        for k in range(kinds):
            weights[k] = -kappa * share[k]
            top = max(top, weights[k])
        for k in range(kinds):
            weights[k] = max(weights[k] - top, -700.0)
        exponentials(weights, scratch_row)
        folded[:] = 0.0
        for k in range(kinds):
            weights[k] *= probability[k]
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
        psi[s] = count * (top + log(total + TINY)) - best * z - kappa * signal
        for i in range(means.size):
            reach[i, s] = count * means[i] / total + signal_slopes[i] + TINY


def newton(folded, mean, start):  # type: ignore[no-untyped-def]
    """Lambda at which the tilted mean of a set's sum is ``mean``: minimum of a convex function."""
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
        found = one / zero
        spread = two / zero - found * found
        found -= width
        if found > mean:
            high = best
        else:
            low = best
        move = (mean - found) / max(spread, 1e-12)
        nearer = best + move
        if not low < nearer < high:
            nearer = 0.5 * (low + high)
        if abs(nearer - best) < LAMBDA_PRECISION:
            return nearer
        best = nearer
    return best


def plan(kappas, ends, scan, gross, allowed, floor_, chosen):  # type: ignore[no-untyped-def]
    """Contour, step and window for one z: least work at an error of ``allowed`` times the gross.

    ``ends`` is (first, last) position of the admissible contours in the grid, which holds the poles
    -1, 0, 1 exactly; ``chosen`` receives (position, step, window, log bound of the integrand,
    allowed error). Aliasing from a contour at kappa' costs e^{-T |kappa' - kappa|}, crossing a pole
    on the way costs its residue.
    """
    psi, lam, reach = scan
    size = kappas.size
    bound = np.empty(size)
    for s in range(size):
        top = 0.0
        for i in range(gross.size):
            top = max(top, reach[i, s] / (gross[i] + TINY))
        bound[s] = psi[s] + log(top)
        distance = abs(kappas[s] - floor(kappas[s] + 0.5))
        if distance > 1e-12:
            bound[s] += max(0.0, -log(abs(kappas[s])))
            bound[s] += log(0.5 - log(sin(pi * distance)) / pi)
    best = 1e300
    quiet = log(allowed)
    for attempt in range(2):
        for s in range(ends[0], ends[1] + 1):
            if abs(kappas[s] - floor(kappas[s] + 0.5)) < 1e-12:
                continue
            noise = ROUNDING_UNIT * floor_ * exp(min(bound[s], 700.0))
            if noise > allowed and attempt == 0:
                continue
            need = quiet if attempt == 0 else log(max(allowed, noise))
            period = 0.5
            for side in (-1, 1):
                cheapest, toll = 1e300, 0.0
                t = s + side
                while 0 <= t < size:
                    gap = abs(kappas[t] - kappas[s])
                    cost = max((bound[t] - need) / gap, toll)
                    if abs(kappas[t] - floor(kappas[t] + 0.5)) < 1e-12:
                        toll = max(toll, (bound[t] - need) / gap)
                    else:
                        cheapest = min(cheapest, cost)
                    t += side
                period = max(period, cheapest)
            window = max((bound[s] + 1.0 - need) / pi, 0.5)
            work = period * window if attempt == 0 else bound[s] * 1e3 + period * window
            if work < best:
                best = work
                chosen[0], chosen[1], chosen[2] = s, 2.0 * pi / period, window
                chosen[3], chosen[4] = bound[s], exp(need) + 2.0 * noise
        if best < 1e300:
            return


def transform_length(law, column, kappa, lam, z, excess, longest):  # type: ignore[no-untyped-def]
    """Length M of the Fourier transform: aliases of z + M are below e^-excess."""
    probability, sums, count = law
    share = column[0]
    base, need = 0.0, 8.0
    top = -1e300
    for k in range(share.size):
        top = max(top, -kappa * share[k] + lam * sums[k])
    for k in range(share.size):
        base += probability[k] * exp(-kappa * share[k] + lam * sums[k] - top)
    for side in (-1.0, 1.0):
        cheapest = 1e300
        for step in (0.2, 0.35, 0.6, 1.0, 1.5, 2.2, 3.2):
            total = 0.0
            for k in range(share.size):
                exponent = -kappa * share[k] + (lam + side * step) * sums[k] - top
                total += probability[k] * exp(min(exponent, 700.0))
            gap = count * log(total / base) - side * step * z
            cheapest = min(cheapest, (excess + gap) / step)
        need = max(need, cheapest)
    return 8 * ceil(need / 8.0) if need < longest else longest
