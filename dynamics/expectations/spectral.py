r"""Kernels of the spectral sum: a contour integral and a Fourier transform per sum z of the sets.

The margin F is the sum of contributions of the signal set and of n random sets; s = 1 / (1 + e^F).
For points u = kappa + i omega of a contour, with a step 2 pi / T in omega and -1 < kappa < 2,

.. math::

   \frac 1T \sum_j e^{-u_j F} \frac{\pi}{\sin \pi u_j} \approx s - c_0 - c_1 e^{-F}, \qquad
   c_0 = \frac{1}{1 - e^{\kappa T}}, \quad c_1 = \frac{1}{1 - e^{(1 - \kappa) T}}, \qquad (1)

where c_0 and c_1 come from the poles at u = 0 and u = 1; both are small for 0 < kappa < 1. For the
risk, the kernel has a pole of second order at u = 0; the kernel for s (1 - s) has no pole there:

.. math::

   \frac{\pi}{u \sin \pi u}: \; \log(1 + e^{-F}) + c_0 F - c_0 (1 - c_0) T - c_1 e^{-F}, \qquad
   \frac{\pi u}{\sin \pi u}: \; s (1 - s) - c_1 e^{-F}. \qquad (2)

All kernels multiply E[e^{-uF}; z], the part of the mean of e^{-uF} with sum z of the random sets.
A random set has type k, with patches of sum z_k and contribution h_k to F, with probability P_k.
With h_s from the signal set and M points zeta_m on a circle of radius e^lambda,

.. math::

   E[e^{-uF}; z] = \frac{e^{-u h_s}}{M} \sum_m \zeta_m^{-z} B(u, \zeta_m)^n, \quad
   B(u, \zeta) = \sum_k P_k e^{-u h_k} \zeta^{z_k}. \qquad (3)

With tilted probabilities p_k of sum 1, (3) is e^psi times a number of size one:

.. math:: p_k = P_k e^{-\kappa h_k + \lambda z_k} / S, \qquad
   \psi = n \log S - \lambda z - \kappa h_s. \qquad (4)

With one factor B replaced by its term k, (3) gives the weights w_k(z) = E[s; set 1 has type k, sum
= z]. With indices i, j for derivatives by alpha, gamma, rho, the risk R has the derivatives

.. math::

   -R_i = E[s\, F_i] = \sum_z \Big( n \sum_k w_k\, h_{k,i} + h_{s,i} \sum_k w_k \Big), \qquad (5)

.. math:: R_{ij} = E[s (1-s) F_i F_j] - E[s F_{ij}], \qquad (6)

where products h_{k,i} h_{k,j} of one set need weights of s (1 - s). Pairs of different sets add n
(n - 1) times (1/M) sum of zeta^{-z} B^{n-2} B_i B_j, where B_i is B with h_{k,i} in every term.

The error of (1) in E[s F_i] is at most e^{psi(k) - |kappa - k| T} times a tilted mean of |F_i|, for
a real k in [-1, 0] and one in [1, 2]. (7) The T that (7) needs follows from psi on a grid of kappa.
"""

from math import ceil, cos, exp, expm1, floor, log, log1p, pi, sin
from typing import NamedTuple

import numpy as np

from dynamics.expectations.shares import coordinates, entries, size_of_terms, tabulate
from dynamics.loops.kernels import kernels

GRID = 13
"""Number of values in a grid of kappa = Re u in (1). The coarse grid runs from -1 to 2, the fine
grid from 0 to 1. Functions take a grid as (spacing, index of kappa = 0, index of kappa = 1)."""
LONG = 60.0
"""If T of (1) exceeds this value on the coarse grid of kappa, the fine grid is tried as well."""
UNKNOWN, TINY, HUGE = 1e300, 1e-280, 1e300
UNIT = 2.3e-16
SAFETY = 2.0
"""Factor on rounding errors in an error estimate. With factor 1, the error was up to 1.4 times the
estimate in 11 of 5,000 random states, and else below it."""
LARGEST_TILT = 30.0
BLOCK = 32
"""Maximum number of nodes of a contour that are computed together."""
GUESS = 0.02
"""First guess of the gross (sum of absolute terms), relative to its largest bound at one sum z."""
FINEST = 1e-14
"""Lower limit of the tolerance of a Hessian. It is stricter than that of a gradient, since the
weights s (1 - s) of a Hessian can be far below the weights s of a gradient."""
NO_DIGIT = 0.1
"""Maximum error of a component over its sum of absolute terms; above it, no gradient is given."""
TOO_MANY, OVERFLOW, CANCELLED = 1.0, 2.0, 3.0
"""Fault codes of a state without a gradient."""


class SpectralData(NamedTuple):
    """Read-only arguments of the kernels besides the state (alpha, gamma, rho).

    `constants` holds D, C, nu, beta, scale; `share` is one over the number of entries of each
    scalar. The array `moments`, shape (p + 1, K + 1), holds binom(p, k) S_k of each of K types,
    with the signal set last; `sums`, shape (K + 1,), their sums z_k; `probability`, shape (K,), the
    P_k. The sums `z` of all random sets, most probable first, have probabilities `chance`, shape
    (columns,); `others`, shape (columns, K), is the joint probability of z and type k of set 1. `n`
    is the number of random sets and `variance` the variance of the sum of one set. `tolerance` is
    the allowed error over the sum of absolute terms, `budget` the maximum number of nodes.
    """

    constants: np.ndarray
    share: np.ndarray
    moments: np.ndarray
    probability: np.ndarray
    sums: np.ndarray
    z: np.ndarray
    chance: np.ndarray
    others: np.ndarray
    n: int
    variance: float
    tolerance: float
    budget: float


def tilt(folded, target, lam, tilts):  # type: ignore[no-untyped-def]
    """Find the lambda of (4) at which a set's mean sum is `target` = z / n; return lambda, log S.

    ``folded`` holds a set's weights of the sums j = -C to C; ``tilts`` gets e^{lambda j} / S.
    """
    size, low, high = folded.size // 2, -LARGEST_TILT, LARGEST_TILT
    for _ in range(60):
        factor, power, total, first, second = exp(lam), 1.0, 0.0, 0.0, 0.0
        for j in range(folded.size):
            term, place = folded[j] * power, j - size
            total, first, second = total + term, first + place * term, second + place * place * term
            power *= factor
        mean = first / total
        if mean < target:
            low = lam
        else:  # also if a sum overflows
            high = lam
        better = lam + (target - mean) / max(second / total - mean * mean, 1e-12)
        if not low < better < high:
            better = 0.5 * (low + high)
        move, lam = abs(better - lam), better
        if move < 1e-2:
            break
    middle, total = min(max(floor(target + 0.5), -size), size), 0.0
    for side in (-1, 1):
        factor, power, j = exp(lam * side), 1.0, middle + size
        while 0 <= j < folded.size:
            tilts[j] = power
            power *= factor
            j += side
    for j in range(folded.size):
        total += folded[j] * tilts[j]
    for j in range(folded.size):
        tilts[j] /= total
    return lam, log(total) + lam * middle


def untilted(h, data, kappa, lam, out):  # type: ignore[no-untyped-def]
    """Fill p_k S e^{-top} of (4); return top, the largest exponent -kappa h_k + lambda z_k."""
    top = -HUGE
    for k in range(out.size):
        out[k] = lam * data.sums[k] - kappa * h[k]
        top = max(top, out[k])
    for k in range(out.size):
        out[k] = data.probability[k] * exp(max(out[k] - top, -700.0))
    return top


def tilted(h, data, kappa, lam, out):  # type: ignore[no-untyped-def]
    """Fill the tilted probabilities p_k of types in (4); return the log of their norm S."""
    top = untilted(h, data, kappa, lam, out)
    total = out.sum()
    for k in range(out.size):
        out[k] /= total
    return top + log(total)


def scan(c, tables, sizes, data, grid, scanned):  # type: ignore[no-untyped-def]
    """Fill psi of (4), lambda, and tilted means of `sizes` on a grid of kappa, at one z.

    A psi that overflows is `UNKNOWN`. Unless h has a wide range, the weights of types at one kappa
    follow from those at the previous kappa. The last row of means is for the risk, which is at
    most e^{-kappa F} / kappa for 0 < kappa <= 1.
    """
    (grain, zero, _), (psi, lam, means) = grid, scanned
    h, kinds, count = tables[0, c], data.probability.size, data.n
    z, size = data.z[c], data.sums[-1]
    lowest, highest = h[0], h[0]
    for k in range(kinds):
        lowest, highest = min(lowest, h[k]), max(highest, h[k])
    weights, factors, wide = np.empty(kinds), np.empty(kinds), highest - lowest > 100.0
    folded, tilts = np.empty(2 * size + 1), np.empty(2 * size + 1)
    lam[zero] = min(max(z / (count * data.variance), -0.5 * LARGEST_TILT), 0.5 * LARGEST_TILT)
    for side in (1, -1):
        edge, s, present = lowest if side > 0 else highest, zero, lam[zero]
        for k in range(kinds):
            weights[k] = data.probability[k]
            factors[k] = exp(max(-grain * abs(h[k] - edge), -700.0))
        while 0 <= s < GRID:
            kappa, top, begin = grain * (s - zero), -grain * (s - zero) * edge, present
            for _ in range(100):
                if wide:
                    top, begin = untilted(h, data, kappa, present, weights), 0.0
                folded[:] = 0.0
                for k in range(kinds):
                    folded[data.sums[k] + size] += weights[k]
                move, log_sum = tilt(folded, z / count, begin, tilts)
                present = present + move if wide else move
                if not wide or abs(move) < 1.0:
                    break
            exponent = count * (log_sum + top) - present * z - kappa * h[kinds]
            lam[s], psi[s] = present, exponent if exponent < UNKNOWN else UNKNOWN
            for i in range(sizes.shape[0]):
                total = 0.0
                for k in range(kinds):
                    total += weights[k] * tilts[data.sums[k] + size] * sizes[i, c, k]
                means[i, s] = count * total + sizes[i, c, kinds]
            widest = count * max(abs(lowest), abs(highest)) + abs(h[kinds])
            means[sizes.shape[0], s] = 1.0 / abs(kappa) if s != zero else 1.0 + widest
            for k in range(kinds):
                weights[k] = max(weights[k] * factors[k], TINY)
            s += side


def largest_shares(c, tables, data, scanned, out):  # type: ignore[no-untyped-def]
    """Fill bounds on the terms of gradient and risk at one z, from s <= 1 and s <= e^{-kappa F}."""
    psi, _, means = scanned
    kinds = data.probability.size
    for i in range(4):
        steep, place = 0.0, (1 + i) % 4
        for k in range(kinds):
            steep = max(steep, abs(tables[place, c, k]))
        most = abs(tables[place, c, kinds]) + data.n * steep + (1.0 if i == 3 else 0.0)
        out[i] = data.chance[c] * most
        for s in range(5, 9):  # kappa from 1/4 to 1
            if psi[s] < 700.0:
                out[i] = min(out[i], exp(psi[s]) * means[i, s])


def aliases(height, s, grid):  # type: ignore[no-untyped-def]
    """T of (1) that the errors (7) left and right of kappa need; whether terms of poles are needed.

    ``height`` holds the logarithm of (integrand / allowed error) at each kappa of the grid.
    """
    grain, zero, one = grid
    left, right, with_zero, with_one = UNKNOWN, UNKNOWN, s < zero, s > one
    for t in range(GRID):
        if t == s or height[t] >= UNKNOWN:
            continue
        period = height[t] / (grain * abs(t - s))
        if t < s and t <= one and period < left:
            left, with_zero = period, t < zero or s < zero
        if t > s and t >= zero and period < right:
            right, with_one = period, t > one or s > one
    return left, with_zero, right, with_one


def alias(x):  # type: ignore[no-untyped-def]
    """The function 1 / (1 - e^x), which gives c_0 and c_1 in (1)."""
    return -1.0 / expm1(x) if x < 700.0 else 0.0


def rounding(count, kappa, height, zero, one):  # type: ignore[no-untyped-def]
    """Rounding error of the left side of (1), from the logs of its terms and of those of poles."""
    noise = exp(min(height, 700.0)) * (1.0 - log(abs(sin(pi * kappa))) / pi)
    noise += abs(zero[0]) * exp(min(zero[1], 700.0)) + abs(one[0]) * exp(min(one[1], 700.0))
    return UNIT * (2.0 + count / 10.0) * noise


def plan(scanned, grid, gross, need, count):  # type: ignore[no-untyped-def]
    """Choose kappa, T and range of omega in (1) at one z, for least work at error e^need * gross.

    Returns index of kappa (-1 if none is possible), T, range of omega, c_0, c_1, logarithms of
    (integrand / allowed error) on the contour and, times c_1, at the pole at u = 1, work, and
    rounding error.
    """
    (grain, at_zero, at_one), (psi, _, means) = grid, scanned
    height, best, chosen = np.empty(GRID), HUGE, (-1, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, HUGE, HUGE)
    for s in range(GRID):
        top = TINY
        for i in range(4):
            top = max(top, means[i, s] / gross[i])
        height[s] = psi[s] + log(top) - need if psi[s] < UNKNOWN else UNKNOWN
    for s in range(1, GRID - 1):
        if s in (at_zero, at_one) or height[s] >= UNKNOWN:
            continue
        left, with_zero, right, with_one = aliases(height, s, grid)
        period, kappa = max(left, right, 2.0), grain * (s - at_zero)
        if period >= UNKNOWN:
            continue
        zero = alias(kappa * period) if with_zero else 0.0
        one = alias((1.0 - kappa) * period) if with_one else 0.0
        terms = (zero, height[at_zero] + log1p(period)), (one, height[at_one])
        noise = rounding(count, kappa, height[s], terms[0], terms[1])
        window = max((height[s] + 2.0) / pi, 1.0)
        work = period * window * (1e9 * noise if noise > 1.0 else 1.0)
        if work < best:
            best, far = work, height[at_one] + log(abs(one) + TINY)
            chosen = (s, period, window, zero, one, height[s], far, work, noise)
    return chosen


def transform_length(p, data, z, excess):  # type: ignore[no-untyped-def]
    """Length M in (3) with negligible aliases at sums z + M, z - M; log of aliases / e^psi."""
    size, need, most = data.sums[-1], 8.0, -HUGE
    longest = 4 * ((2 * data.n * size + 4) // 4)
    folded, gaps = np.zeros(2 * size + 1), np.empty((2, 7))
    for k in range(p.size):
        folded[data.sums[k] + size] += p[k]
    for side in range(2):
        cheapest = UNKNOWN
        for t in range(7):
            step = 0.2 * 1.6**t * (1.0 - 2.0 * side)
            factor, power, total = exp(step), exp(-step * size), 0.0
            for j in range(folded.size):
                total += folded[j] * power
                power *= factor
            gaps[side, t] = data.n * log(total) - step * z
            cheapest = min(cheapest, (excess + gaps[side, t]) / abs(step))
        need = max(need, cheapest)
    if need >= longest:
        return longest, -HUGE
    length = 4 * ceil(need / 4.0)
    for side in range(2):
        least = 0.0
        for t in range(7):
            least = min(least, gaps[side, t] - 0.2 * 1.6**t * length)
        most = max(most, least)
    return length, most


def on_circle(folded, cosines, sines, out):  # type: ignore[no-untyped-def]
    """Fill `out` with polynomials of coefficients `folded` at M points zeta of the unit circle.

    ``folded`` has shape (2 C + 1, nodes), ``cosines`` and ``sines`` (C + 1, M / 2 + 1), ``out`` (M,
    nodes).
    """
    size, length, wide = cosines.shape[0] - 1, out.shape[0], out.shape[1]
    plus = np.empty((size + 1, wide), np.complex128)
    minus = np.empty_like(plus)
    for j in range(1, size + 1):
        for w in range(wide):
            a, b = folded[size + j, w], folded[size - j, w]
            plus[j, w], minus[j, w] = a + b, complex(b.imag - a.imag, a.real - b.real)
    even, odd = np.empty(wide, np.complex128), np.empty(wide, np.complex128)
    for m in range(length // 2 + 1):
        for w in range(wide):
            even[w], odd[w] = folded[size, w], 0.0
        for j in range(1, size + 1):
            c, s = cosines[j, m], sines[j, m]
            for w in range(wide):
                even[w] += complex(c * plus[j, w].real, c * plus[j, w].imag)
                odd[w] += complex(s * minus[j, w].real, s * minus[j, w].imag)
        for w in range(wide):
            out[m, w] = even[w] + odd[w]
            if 0 < m < length - m:
                out[length - m, w] = even[w] - odd[w]


def from_circle(values, cosines, sines, out):  # type: ignore[no-untyped-def]
    """Fill means over M points zeta of values * zeta^j, j from -C to C; transposed `on_circle`."""
    size, length, wide = cosines.shape[0] - 1, values.shape[0], values.shape[1]
    even = np.zeros((size + 1, wide), np.complex128)
    odd = np.zeros_like(even)
    plus, minus = np.empty(wide, np.complex128), np.empty(wide, np.complex128)
    for m in range(length // 2 + 1):
        alone = m == 0 or 2 * m == length
        half = (0.5 if alone else 1.0) / length
        for w in range(wide):
            a = values[m, w]
            b = values[m if alone else length - m, w]
            plus[w], minus[w] = a + b, complex(b.imag - a.imag, a.real - b.real)
        for j in range(size + 1):
            c, s = cosines[j, m] * half, sines[j, m] * half
            for w in range(wide):
                even[j, w] += complex(c * plus[w].real, c * plus[w].imag)
                odd[j, w] += complex(s * minus[w].real, s * minus[w].imag)
    for j in range(size + 1):
        for w in range(wide):
            out[size + j, w] = even[j, w] + odd[j, w]
            out[size - j, w] = even[j, w] - odd[j, w]


def raised(base, power, shift, out):  # type: ignore[no-untyped-def]
    """Fill `out`, shape (M, nodes), with base^power times `shift`, shape (M,), of each zeta."""
    square, flat, wide = base.copy().reshape(-1), out.reshape(-1), base.shape[1]
    for m in range(flat.size):
        flat[m] = shift[m // wide]
    while power > 0:
        if power % 2:
            for m in range(flat.size):
                flat[m] *= square[m]
        power //= 2
        if power > 0:
            for m in range(flat.size):
                square[m] *= square[m]


def fold(now, slopes, sums, out):  # type: ignore[no-untyped-def]
    """Fill coefficients of zeta^-C to zeta^C in the sum over types k of slopes_k now_k zeta^z_k."""
    out[:] = 0.0
    for k in range(now.shape[0]):
        j, slope = sums[k] + out.shape[0] // 2, slopes[k]
        for w in range(now.shape[1]):
            out[j, w] += complex(slope * now[k, w].real, slope * now[k, w].imag)


def front_at(u, step, psi, signal):  # type: ignore[no-untyped-def]
    """Kernel of (1) at u times e^psi e^{-i omega h_s}; doubled for omega > 0, to include -omega."""
    kappa, omega = u.real, u.imag
    decay = exp(-2.0 * pi * omega)
    below = complex(sin(pi * kappa) * (1.0 + decay), sin(pi * (kappa + 0.5)) * (1.0 - decay))
    size = exp(psi - pi * omega) * step * (2.0 if omega > 0.0 else 1.0)
    return size * complex(cos(omega * signal), -sin(omega * signal)) / below


def add_nodes(c, tables, data, at, weights, pairs):  # type: ignore[no-untyped-def]
    """Add the terms of a contour, or of the pole at 1, at one z, to weights and pairs.

    ``at`` holds kappa, lambda, M, the step in omega, the number of nodes, and c_1 (0 on a contour).
    The rows of ``weights``, shape (2, K), are w_k(z) of (5) for s and for s (1 - s); ``pairs`` gets
    E[s (1 - s) h_i h_j; z] with derivatives of the contributions of two random sets. Returns the
    contribution to the risk, and the largest |E[e^{-uF}; z]| / e^psi in the last block of nodes.
    """
    kappa, lam, length, step, many, pole = at
    h, kinds, size, second = tables[0, c], data.probability.size, data.sums[-1], len(tables) > 4
    wide = (many + (many - 1) // BLOCK) // ((many - 1) // BLOCK + 1)
    p, ones, power, risk, last = np.empty(kinds), np.ones(kinds), data.n - 1, 0.0, 0.0
    psi = data.n * tilted(h, data, kappa, lam, p) - lam * data.z[c] - kappa * h[kinds]
    angle, half = 2.0 * pi / length, length // 2 + 1
    cosines, sines = np.empty((size + 1, half)), np.empty((size + 1, half))
    for j in range(size + 1):
        for m in range(half):
            cosines[j, m], sines[j, m] = cos(j * m * angle), sin(j * m * angle)
    shift = np.empty(length, np.complex128)
    for m in range(length):
        shift[m] = complex(cos(data.z[c] * m * angle), -sin(data.z[c] * m * angle))
    now, turn = np.empty((kinds, wide), np.complex128), np.empty(kinds, np.complex128)
    for k in range(kinds):
        now[k, 0], one = p[k], complex(cos(step * h[k]), -sin(step * h[k]))
        for w in range(1, wide):
            now[k, w] = now[k, w - 1] * one
        turn[k] = complex(cos(wide * step * h[k]), -sin(wide * step * h[k]))
    folded = np.empty((2 * size + 1, wide), np.complex128)
    back, base = np.empty_like(folded), np.empty((length, wide), np.complex128)
    out, by = np.empty_like(base), np.empty((3, length if second else 0, wide), np.complex128)
    front, bent = np.empty(wide, np.complex128), np.empty(wide, np.complex128)
    for first in range(0, many, wide):
        last = 0.0
        fold(now, ones, data.sums, folded)
        on_circle(folded, cosines, sines, base)
        raised(base, power - 1 if second and power > 0 else power, shift, out)
        for w in range(wide):
            u = complex(kappa, (first + w) * step)
            front[w] = pole * exp(psi) if pole != 0.0 else front_at(u, step, psi, h[kinds])
            bent[w] = front[w] * u
        if second and power > 0:
            for i in range(3):
                fold(now, tables[1 + i, c], data.sums, back)
                on_circle(back, cosines, sines, by[i])
            place = 0
            for i in range(3):
                for j in range(i, 3):
                    for m in range(length):
                        for w in range(wide):
                            product = out[m, w] * by[i, m, w] * (by[j, m, w] * bent[w])
                            pairs[place] += product.real / length
                    place += 1
            for m in range(length):
                for w in range(wide):
                    out[m, w] *= base[m, w]
        from_circle(out, cosines, sines, back)
        for w in range(wide):
            whole = complex(0.0, 0.0)
            for j in range(2 * size + 1):
                whole += folded[j, w] * back[j, w]
            risk += (front[w] * whole / complex(kappa, (first + w) * step)).real
            last = max(last, abs(whole))
        for k in range(kinds):
            j = data.sums[k] + size
            for w in range(wide):
                term = now[k, w] * back[j, w]
                weights[0, k] += (term * front[w]).real
                if second:
                    weights[1, k] += (term * bent[w]).real
                now[k, w] *= turn[k]
    return risk, last


def add_sum(c, tables, sizes, data, scanned, gross, most, need, results, second):  # type: ignore[no-untyped-def]
    """Add the terms of one z to the rows of `results` (see `spectrum`), and to the Hessian.

    ``need`` is the logarithm of (allowed error / `gross`), and ``most`` a bound of the terms of z
    over the allowed error. Returns the number of nodes; if it exceeds the budget, no node is
    computed. Returns -1 if the contour's rounding error exceeds ``most`` times the allowed error.
    """
    kinds, count, grid = data.probability.size, data.n, (0.25, 4, 8)
    p = np.empty(kinds)
    chosen = plan(scanned, grid, gross, need, count)
    if chosen[1] > LONG or chosen[0] < 0:
        fine, thin = (1.0 / 12.0, 0, 12), (np.empty(GRID), np.empty(GRID), np.empty((4, GRID)))
        scan(c, tables, sizes, data, fine, thin)
        other = plan(thin, fine, gross, need, count)
        if other[7] < chosen[7]:
            scanned, grid, chosen = thin, fine, other
    s, period, window, zero, one, near, far, _, noise = chosen
    if s < 0 or noise > most:
        return -1.0
    h, lam, kappa = tables[0, c], scanned[1], grid[0] * (s - grid[1])
    tilted(h, data, kappa, lam[s], p)
    length, missed = transform_length(p, data, data.z[c], near)
    many = ceil(min(window * period / (2.0 * pi), 1e15)) + 1
    nodes = float(many) * length
    if not nodes < data.budget:
        return nodes
    weights, pairs = np.zeros((2, kinds)), np.zeros(6)
    at = (kappa, lam[s], length, 2.0 * pi / period, many, 0.0)
    risk, last = add_nodes(c, tables, data, at, weights, pairs)
    last = max(missed, log(last + TINY) - 2.0 * pi * pi * (many - 1) / period)
    if one != 0.0:
        tilted(h, data, 1.0, lam[grid[2]], p)
        length, missed = transform_length(p, data, data.z[c], far)
        at = (1.0, lam[grid[2]], length, 0.0, 1, one)
        risk += add_nodes(c, tables, data, at, weights, pairs)[0]
        last = max(last, missed + far - near)
    margin = data.chance[c] * h[kinds]
    for k in range(kinds):
        weights[0, k] += zero * data.others[c, k]
        margin += count * data.others[c, k] * h[k]
    risk += zero * ((1.0 - zero) * period * data.chance[c] - margin)
    whole = weights[0].sum()
    for i in range(4):
        value = risk if i == 3 else whole * tables[1 + i, c, kinds]
        size = abs(value)
        if i < 3:
            for k in range(kinds):
                term = count * weights[0, k] * tables[1 + i, c, k]
                value, size = value + term, size + abs(term)
        results[0, i] += value
        results[1, i] += size
        results[2, i] += missing(i, scanned, grid, (s, period, zero, one, last), count)
    if len(tables) > 4:
        add_hessian(c, tables, data, weights, pairs, second)
    return nodes


def missing(i, scanned, grid, chosen, count):  # type: ignore[no-untyped-def]
    """Error of gradient component i (3: risk) at one z: aliases (7), omitted terms and rounding.

    ``chosen`` holds the index of kappa, T, c_0, c_1, and the logarithm of omitted terms over e^psi.
    """
    (psi, _, means), (grain, at_zero, at_one), (s, period, zero, one, last) = scanned, grid, chosen
    left, right, height = UNKNOWN, UNKNOWN, np.empty(GRID)
    for t in range(GRID):
        height[t] = psi[t] + log(means[i, t] + TINY) if psi[t] < UNKNOWN else UNKNOWN
        size = height[t] - grain * abs(s - t) * period
        if i == 3 and t == at_zero:  # the risk has a double pole: its error grows like T
            size += log1p(period)
        if t < s and t <= at_one and (t >= at_zero or zero != 0.0):
            left = min(left, size)
        if t > s and t >= at_zero and (t <= at_one or one != 0.0):
            right = min(right, size)
    terms = (zero, height[at_zero] + log1p(period)), (one, height[at_one])
    noise = SAFETY * rounding(count, grain * (s - at_zero), height[s], terms[0], terms[1])
    noise += 2.0 * exp(min(height[s] + last, 700.0))
    return noise + 2.0 * (exp(min(left, 700.0)) + exp(min(right, 700.0)))


def add_hessian(c, tables, data, weights, pairs, second):  # type: ignore[no-untyped-def]
    """Add the terms of the Hessian (6) at one sum z of the random sets."""
    kinds, count, place = data.probability.size, data.n, 0
    whole, curved = weights[0].sum(), weights[1].sum()
    for i in range(3):
        for j in range(i, 3):
            own_i, own_j = tables[1 + i, c, kinds], tables[1 + j, c, kinds]
            entry = curved * own_i * own_j - whole * tables[4 + place, c, kinds]
            entry += count * (count - 1.0) * pairs[place]
            for k in range(kinds):
                h_i, h_j = tables[1 + i, c, k], tables[1 + j, c, k]
                entry += count * weights[1, k] * (h_i * own_j + h_j * own_i + h_i * h_j)
                entry -= count * weights[0, k] * tables[4 + place, c, k]
            second[i, j] += entry
            if i < j:
                second[j, i] += entry
            place += 1


def exceeds(values, limits, share):  # type: ignore[no-untyped-def]
    """Whether one of four values exceeds its limit times `share`."""
    above = False
    for i in range(4):
        above = above or values[i] > share * limits[i]
    return above


def add_table_errors(state, data, tables, scanned, results):  # type: ignore[no-untyped-def]
    """Add the errors caused by rounding of the tables to the errors in `results`.

    For the derivative F_i of the margin, these are the means of s (1 - s) |F_i| times the error of
    F, and of s times the error of F_i. Tilted means (`scan`) bound both by means of e^{-kappa F}.
    """
    sizes = np.empty(tables.shape)
    unit = size_of_terms(state, data, sizes)
    found = (np.empty(GRID), np.empty(GRID), np.empty((5, GRID)))
    for c in range(data.z.size):
        psi, means = scanned[0][c], scanned[2][c]
        if psi[0] == HUGE and psi[5] == HUGE:
            continue
        scan(c, tables, sizes, data, (0.25, 4, 8), found)
        for i in range(4):
            turned, slope = HUGE, HUGE
            for s in range(9):
                moved = unit * found[2][0, s]  # rounding error of F
                if psi[s] + moved < 700.0:
                    height = exp(psi[s] + 0.25 * abs(s - 4) * moved)
                    if s > 3:
                        slope = min(slope, height * unit * found[2][(1 + i) % 4, s])
                    if i < 3:
                        turned = min(turned, height * moved * means[i, s])
            if i < 3:  # s <= 1
                slope = min(slope + turned, exp(psi[4]) * means[i, 4])
            results[2, i] += SAFETY * slope


def spectrum(state, data, tables, results, second):  # type: ignore[no-untyped-def]
    """Fill the tables of contributions h and derivatives, the results and the Hessian (6).

    The rows of `results`, shape (4, 4), are: minus the gradient by alpha, gamma, rho, and the risk;
    their sums of absolute terms (`gross`); their errors; number of nodes and fault code (0: none).
    """
    columns, kinds = data.z.size, data.sums.size
    tabulate(coordinates(state, data.constants), data, tables)
    sizes, bounds, total = np.empty((3, columns, kinds)), np.empty((columns, 4)), 0.0
    for i in range(len(tables)):
        for c in range(columns):
            for k in range(kinds):
                total += abs(tables[i, c, k])
                if 0 < i < 4:
                    sizes[i - 1, c, k] = abs(tables[i, c, k])
    psi, means = np.empty((columns, GRID)), np.empty((columns, 4, GRID))
    psi[:], results[:], second[:] = HUGE, 0.0, 0.0
    scanned = (psi, np.empty_like(psi), means)
    lam = scanned[1]
    if not total < HUGE:
        results[3, 1] = OVERFLOW
        return scanned
    highest, guess, gross = np.zeros(4), np.empty(4), np.empty(4)
    tolerance = data.tolerance if len(tables) == 4 else max(1e-5 * data.tolerance, FINEST)
    share = tolerance / (8.0 * columns)
    for c in range(columns):
        here = (psi[c], lam[c], means[c])
        largest_shares(c, tables, data, here, bounds[c])
        if exceeds(bounds[c], highest, 1e-5 * tolerance):
            scan(c, tables, sizes, data, (0.25, 4, 8), here)
            largest_shares(c, tables, data, here, bounds[c])
            for i in range(4):
                highest[i] = max(highest[i], bounds[c, i])
    for i in range(4):
        guess[i] = GUESS * highest[i] + TINY
    nodes, again = 0.0, 4
    while again > 0:
        again -= 1
        results[:], second[:] = 0.0, 0.0
        for c in range(columns):
            done = -1.0
            for i in range(4):
                gross[i] = max(guess[i], results[1, i])
            if exceeds(bounds[c], gross, share):
                here, most, need = (psi[c], lam[c], means[c]), 0.0, log(share)
                for i in range(4):
                    most = max(most, bounds[c, i] / gross[i] / share)
                done = add_sum(c, tables, sizes, data, here, gross, most, need, results, second)
            if done < 0.0:
                for i in range(4):
                    results[2, i] += bounds[c, i]
            nodes += max(done, 0.0)
            if not nodes < data.budget:
                results[3, 0], results[3, 1] = nodes, TOO_MANY
                return scanned
        for i in range(4):
            gross[i] = max(results[1, i], TINY)
        if not exceeds(guess, gross, 1.5):
            break
        for i in range(4):
            guess[i] = max(min(guess[i], 0.7 * gross[i]), TINY)
    results[3, 0] = nodes
    for i in range(4):
        if not results[1, i] < HUGE:
            results[3, 1] = OVERFLOW
        elif not results[2, i] <= max(NO_DIGIT * results[1, i], TINY):
            results[3, 1] = max(results[3, 1], CANCELLED)
    return scanned


def gradient(state, data, out):  # type: ignore[no-untyped-def]
    """Fill `out` with the gradient per entry, its Jacobian, the risk, or `results` of `spectrum`.

    The size of `out`, 3, 9, 2 or 16, selects between these. An unknown value is NaN.
    """
    results, second = np.empty((4, 4)), np.empty((3, 3))
    tables = np.empty((10 if out.size == 9 else 4, data.z.size, data.sums.size))
    scanned = spectrum(state, data, tables, results, second)
    out[:] = np.nan
    if out.size == 16:
        if results[3, 1] == 0.0:
            add_table_errors(state, data, tables, scanned, results)
        for i in range(16):
            out[i] = results[i // 4, i % 4]
    elif results[3, 1] > 0.0:
        return
    elif out.size == 2:
        out[0] = results[0, 3]
    elif out.size == 3:
        for i in range(3):
            out[i] = -results[0, i] * data.share[i]
    else:
        for i in range(9):
            out[i] = second[i // 3, i % 3] * data.share[i // 3]


def hessian(state, data, out):  # type: ignore[no-untyped-def]
    """Jacobian of `gradient`, shape (3, 3)."""
    gradient(state, data, out.reshape(9))


def summary(state, data, out):  # type: ignore[no-untyped-def]
    """Fill `out` of size 2 with the risk and NaN, or of size 16 with `results` of `spectrum`."""
    gradient(state, data, out)


def order_parameters(state, slope, data, out):  # type: ignore[no-untyped-def]
    """Order parameters: alpha, gamma, rho, G, rates of alpha and G, margin of patch association."""
    D, C, scale = data.constants[0], data.constants[1], data.constants[4]
    apart, mate, _, other = entries(state, data.constants)
    out[0], out[1], out[2], out[4] = state[0], state[1], state[2], -slope[0]
    out[3] = D * (apart + C * mate)
    # By the attention entries of `shares`: dXi/drho = scale Xi (Lambda + (C - 1) Gamma).
    turned = (apart + C * mate) * slope[2] - (C - 1.0) * mate * slope[1]
    out[5] = D * (D - C) * scale * other * turned
    out[6] = min(data.constants[3], state[1]) - state[2]


kernels(__name__)
