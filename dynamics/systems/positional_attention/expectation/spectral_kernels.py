r"""Kernels of the spectral expectation: one contour integral and one Fourier transform per sum z.

With n = L-1 random sets and u = kappa + i omega, for 0 < kappa < 1,

.. math::
   \varsigma(-F) = \frac{1}{2\pi} \int e^{-uF} \frac{\pi}{\sin \pi u}\, d\omega,

so the weights :math:`w_k(z) = E[\varsigma(-F)\, 1\{\text{set 1 has type } k, \text{sum} = z\}]`
need only :math:`E[e^{-uF}; z]`, in which the sets are independent but for their sum; that is fixed
by a discrete Fourier transform on the circle :math:`|\zeta| = e^\lambda`. Left of 0 the pole there
adds :math:`P_k\, pmf_{n-1}(z - z_k)`. Everything is tilted by (kappa, lambda): with

    p_k = P_k exp(-kappa h_k + lambda z_k) / S,    psi = n log S - lambda z - kappa h_s,

the integrand is e^psi times quantities of size one. Gradient, risk and gross come from one set of
weights.
"""

from math import ceil, cos, exp, floor, log, pi, sin
from typing import Any

import numpy as np

from dynamics.kernels.exponential import exponentials
from dynamics.systems.positional_attention.kernels import set_table

patch_table: Any = None  # supplied by the generated file
order: Any = None  # supplied by the generated file

LARGEST_TILT = 30.0
TINY = 1e-300
UNSEEN = 1e-7
LARGEST_TABLE = 1e300
ROUNDING_UNIT = 2.3e-16


def tilt(law, column, kappas, z, scan, scratch):  # type: ignore[no-untyped-def]
    """Scan kappa at one z: the best lambda, psi there, and the tilted means of |dF|.

    ``law`` is (probability, sums, counts); ``column`` is (h, h_s, |dh|, |dh_s|) at this z;
    ``scan`` receives psi, lambda and, for every component, log E|dF| under the tilt.
    """
    probability, sums, count = law
    share, signal, slopes, signal_slopes = column
    psi, lam, reach = scan
    kinds, width = probability.size, int(sums.max())
    weights, scratch_row = scratch
    folded = np.empty(2 * width + 1)
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
        best = newton(folded, z / count, lam[s - 1] if s > 0 else 0.0)
        total = 0.0
        step = exp(best)
        power = 1.0
        for _ in range(width):
            power /= step
        for j in range(2 * width + 1):
            folded[j] = power
            power *= step
        means = np.zeros(slopes.shape[0])
        for k in range(kinds):
            tilted = weights[k] * folded[sums[k] + width]
            total += tilted
            for i in range(means.size):
                means[i] += tilted * slopes[i, k]
        lam[s] = best
        psi[s] = count * (top + log(total + TINY)) - best * z - kappa * signal
        for i in range(means.size):
            reach[i, s] = log(count * means[i] / total + signal_slopes[i] + TINY)


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
        if abs(nearer - best) < 1e-3:
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
        top = -1e300
        for i in range(gross.size):
            top = max(top, reach[i, s] - log(gross[i] + TINY))
        bound[s] = psi[s] + top
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
    return min(longest, 8 * ceil(need / 8.0))


def integrate(law, column, point, waves, weights):  # type: ignore[no-untyped-def]
    """Trapezoidal sum over omega at one z: adds w_k, returns the integral of the risk.

    ``point`` is (kappa, lambda, psi, step, window, z, M); ``waves`` is (cos, sin) of 2 pi j m / M.
    """
    probability, sums, count = law
    share, signal = column[0], column[1]
    kappa, lam, psi, step, window, z, length = point
    cosine, sine = waves
    kinds, width = share.size, cosine.shape[0] - 1
    half = int(length)
    tilted, total = np.empty(kinds), 0.0
    top = -1e300
    for k in range(kinds):
        tilted[k] = -kappa * share[k] + lam * sums[k]
        top = max(top, tilted[k])
    for k in range(kinds):
        tilted[k] = probability[k] * exp(tilted[k] - top)
        total += tilted[k]
    turn_r, turn_i, now_r, now_i = (
        np.empty(kinds),
        np.empty(kinds),
        np.empty(kinds),
        np.empty(kinds),
    )
    for k in range(kinds):
        tilted[k] /= total
        turn_r[k], turn_i[k] = cos(step * share[k]), -sin(step * share[k])
        now_r[k], now_i[k] = 1.0, 0.0
    shift_r, shift_i = np.empty(half), np.empty(half)
    for m in range(half):
        angle = -2.0 * pi * ((m * int(z)) % half) / half
        shift_r[m], shift_i[m] = cos(angle) / half, sin(angle) / half
    fold_r, fold_i = np.empty(2 * width + 1), np.empty(2 * width + 1)
    base_r, base_i = np.empty(half), np.empty(half)
    out_r, out_i = np.empty(half), np.empty(half)
    back_r, back_i = np.empty(2 * width + 1), np.empty(2 * width + 1)
    scale, risk = exp(psi) * step / (2.0 * pi), 0.0
    for node in range(ceil(window / step) + 1):
        omega = node * step
        fold_r[:] = 0.0
        fold_i[:] = 0.0
        for k in range(kinds):
            fold_r[sums[k] + width] += tilted[k] * now_r[k]
            fold_i[sums[k] + width] += tilted[k] * now_i[k]
        for m in range(half):
            base_r[m], base_i[m] = fold_r[width], fold_i[width]
        for j in range(1, width + 1):
            plus_r, plus_i = (
                fold_r[width + j] + fold_r[width - j],
                fold_i[width + j] + fold_i[width - j],
            )
            less_r, less_i = (
                fold_r[width + j] - fold_r[width - j],
                fold_i[width + j] - fold_i[width - j],
            )
            for m in range(half):
                base_r[m] += plus_r * cosine[j, m] - less_i * sine[j, m]
                base_i[m] += plus_i * cosine[j, m] + less_r * sine[j, m]
        for m in range(half):
            out_r[m], out_i[m] = shift_r[m], shift_i[m]
        power = int(count) - 1
        while power > 0:
            if power % 2 == 1:
                for m in range(half):
                    real = out_r[m] * base_r[m] - out_i[m] * base_i[m]
                    out_i[m] = out_r[m] * base_i[m] + out_i[m] * base_r[m]
                    out_r[m] = real
            power //= 2
            if power > 0:
                for m in range(half):
                    real = base_r[m] * base_r[m] - base_i[m] * base_i[m]
                    base_i[m] = 2.0 * base_r[m] * base_i[m]
                    base_r[m] = real
        for j in range(width + 1):
            even_r, even_i, odd_r, odd_i = 0.0, 0.0, 0.0, 0.0
            for m in range(half):
                even_r += out_r[m] * cosine[j, m]
                even_i += out_i[m] * cosine[j, m]
                odd_r += out_r[m] * sine[j, m]
                odd_i += out_i[m] * sine[j, m]
            back_r[width + j], back_i[width + j] = even_r - odd_i, even_i + odd_r
            back_r[width - j], back_i[width - j] = even_r + odd_i, even_i - odd_r
        # pi / sin(pi u) and the phase of the signal set.
        grow = exp(-pi * omega)
        real = sin(pi * kappa) * (1.0 + grow * grow)
        imag = cos(pi * kappa) * (1.0 - grow * grow)
        size = 2.0 * pi * grow / (real * real + imag * imag)
        kernel_r, kernel_i = size * real, -size * imag
        phase_r, phase_i = cos(omega * signal), -sin(omega * signal)
        front_r = kernel_r * phase_r - kernel_i * phase_i
        front_i = kernel_r * phase_i + kernel_i * phase_r
        both = scale if node == 0 else 2.0 * scale
        sum_r, sum_i = 0.0, 0.0
        for k in range(kinds):
            j = sums[k] + width
            real = now_r[k] * back_r[j] - now_i[k] * back_i[j]
            imag = now_r[k] * back_i[j] + now_i[k] * back_r[j]
            value_r = tilted[k] * (front_r * real - front_i * imag)
            value_i = tilted[k] * (front_r * imag + front_i * real)
            weights[k] += both * value_r
            sum_r += value_r
            sum_i += value_i
            turned = now_r[k] * turn_r[k] - now_i[k] * turn_i[k]
            now_i[k] = now_r[k] * turn_i[k] + now_i[k] * turn_r[k]
            now_r[k] = turned
        risk += both * (sum_r * kappa + sum_i * omega) / (kappa * kappa + omega * omega)
    return risk


def spectrum(tables, problem, tolerance, out):  # type: ignore[no-untyped-def]
    """Gradient sums, risk, gross and error bound from the tables of h and its derivatives.

    ``out`` receives (4,) values: E[s dF_theta] for three theta and the risk; their gross; their
    bounds; and (nodes, status). Status 1: the predicted work exceeds the budget.
    """
    law, window, kappas, ends, budget = problem
    probability, sums, count = law
    sums_z, chance, chance_less, outward = window
    values, gross, bounds, report = out
    kinds, columns, width = probability.size, sums_z.size, int(sums.max())
    size = 0.0
    for i in range(4):
        for k in range(kinds):
            for c in range(columns):
                size += abs(tables[i, k, c])
    if not size < LARGEST_TABLE:
        # Not a number, or so large that exponents overflow: no finite answer, whatever the budget.
        values[:] = np.nan
        gross[:] = np.nan
        bounds[:] = np.nan
        return
    scale = kappas.size
    psi, lam = np.empty((columns, scale)), np.empty((columns, scale))
    reach = np.empty((columns, 4, scale))
    slopes, signal_slopes = np.ones((4, kinds)), np.ones(4)
    upper, scanned = np.empty((columns, 4)), np.zeros(columns, dtype=np.bool_)
    scratch = (np.empty(kinds), np.empty(kinds))
    top, highest = kinds - 1, np.zeros(4)
    for c in outward:
        share = tables[0, :, c]
        for i in range(3):
            signal_slopes[i] = abs(tables[1 + i, top, c])
            for k in range(kinds):
                slopes[i, k] = abs(tables[1 + i, k, c])
        slopes[3, :] = 0.0
        signal_slopes[3] = 1.0
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
        column = (np.ascontiguousarray(share), share[top], slopes, signal_slopes)
        tilt(law, column, kappas, sums_z[c], (psi[c], lam[c], reach[c]), scratch)
        for i in range(4):
            least = 700.0
            for s in range(scale):
                if 0.0 < kappas[s] <= 1.0:
                    rate = psi[c, s] + reach[c, i, s]
                    if i == 3:
                        rate -= log(kappas[s])
                    least = min(least, rate)
            upper[c, i] = min(upper[c, i], exp(least))
            highest[i] = max(highest[i], upper[c, i])
    weights, done = np.zeros((columns, kinds)), np.zeros(columns)
    risks, errors = np.zeros(columns), np.zeros(columns)
    guess = np.empty(4)
    for i in range(4):
        guess[i] = 0.02 * upper[:, i].max() + TINY
    chosen = np.empty(5)
    for _ in range(4):
        allowed = tolerance / (4.0 * columns)
        nodes = 0.0
        for c in range(columns):
            largest = 0.0
            for i in range(4):
                largest = max(largest, upper[c, i] / guess[i])
            if largest <= allowed or not scanned[c]:
                if done[c] == 0.0:
                    errors[c] = 0.0
                continue
            if done[c] > 0.0 and errors[c] <= 1.5 * allowed * 4.0:
                continue
            floor_ = 1.0 + count / 10.0
            plan(kappas, ends, (psi[c], lam[c], reach[c]), guess, allowed, floor_, chosen)
            s = int(chosen[0])
            share = np.ascontiguousarray(tables[0, :, c])
            column = (share, share[top], slopes, signal_slopes)
            longest = 8 * ((2 * int(count) * width + 8) // 8)
            excess = chosen[3] - log(max(chosen[4], TINY))
            length = transform_length(law, column, kappas[s], lam[c, s], sums_z[c], excess, longest)
            nodes += (chosen[2] / chosen[1] + 1.0) * length
            if nodes > budget:
                report[0], report[1] = nodes, 1.0
                return
            cosine, sine = np.empty((width + 1, length)), np.empty((width + 1, length))
            for j in range(width + 1):
                for m in range(length):
                    angle = 2.0 * pi * ((j * m) % length) / length
                    cosine[j, m], sine[j, m] = cos(angle), sin(angle)
            weights[c, :] = 0.0
            place, tilts = float(sums_z[c]), (kappas[s], lam[c, s], psi[c, s])
            point = (tilts[0], tilts[1], tilts[2], chosen[1], chosen[2], place, float(length))
            risks[c] = integrate(law, column, point, (cosine, sine), weights[c])
            if kappas[s] < 0.0:
                mean = chance[c] * share[top]
                for k in range(kinds):
                    weights[c, k] += chance_less[c, k]
                    mean += count * chance_less[c, k] * share[k]
                risks[c] -= mean
            errors[c] = 4.0 * chosen[4]
            done[c] = 1.0
        values[:] = 0.0
        gross[:] = 0.0
        for c in range(columns):
            if done[c] > 0.0:
                whole = 0.0
                for k in range(kinds):
                    whole += weights[c, k]
                    for i in range(3):
                        values[i] += count * weights[c, k] * tables[1 + i, k, c]
                        gross[i] += count * abs(weights[c, k] * tables[1 + i, k, c])
                for i in range(3):
                    values[i] += whole * tables[1 + i, top, c]
                    gross[i] += abs(whole * tables[1 + i, top, c])
                values[3] += risks[c]
                gross[3] += abs(risks[c])
        settled = True
        for i in range(4):
            if gross[i] < guess[i] / 1.5 and gross[i] > 0.0:
                settled = False
        if settled:
            break
        for c in range(columns):
            shrink = 1.0
            for i in range(4):
                if gross[i] > 0.0:
                    shrink = max(shrink, guess[i] / gross[i])
            errors[c] *= shrink
        for i in range(4):
            if gross[i] > 0.0:
                guess[i] = min(guess[i], 0.7 * gross[i])
    for i in range(4):
        bounds[i] = 0.0
        for c in range(columns):
            bounds[i] += errors[c] * guess[i] if done[c] > 0.0 else upper[c, i]
        bounds[i] += ROUNDING_UNIT * 8.0 * gross[i]
    report[0], report[1] = nodes, 0.0


def tables_at(state, data):  # type: ignore[no-untyped-def]
    """Fill and return h and its three derivatives by type and z."""
    constants, share, latents, types, problem, work = data
    patch, tables = work[:2]
    patch_table(state, constants, latents, patch)
    for k in range(4):
        set_table(patch[k], types, tables[k])
    return tables


def gradient(state, data, out):  # type: ignore[no-untyped-def]
    """Per-entry gradient of the population risk; NaN where the work exceeds the budget."""
    constants, share, latents, types, problem, work = data
    results, tolerance = work[2:6], work[6][0]
    spectrum(tables_at(state, data), problem, tolerance, results)
    for theta in range(3):
        out[theta] = -results[0][theta] * share[theta]
        if results[3][1] > 0.0:
            out[theta] = np.nan


def order_parameters(state, slope, data, out):  # type: ignore[no-untyped-def]
    """Order parameters from the state and its gradient."""
    order(state, -slope, data[0], out)


def summary(state, data, out):  # type: ignore[no-untyped-def]
    """Population risk; the population error is not a smooth function and is left NaN."""
    work = data[5]
    results, tolerance = work[2:6], work[6][0]
    spectrum(tables_at(state, data), data[4], tolerance, results)
    out[0] = results[0][3] if results[3][1] == 0.0 else np.nan
    out[1] = np.nan
