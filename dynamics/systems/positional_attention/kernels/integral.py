r"""One integral of the spectral expectation: kernels of the nodes at one sum z.

At every node u = kappa + i omega the types are folded into the coefficients of B(u, zeta), B is
taken on the circle of zeta, raised to the number of the other sets, and transformed back; weights
of s, and of s (1 - s), are added up. Companion of `spectral_kernels`, whose page has the formulas.
"""

from math import ceil, cos, exp, pi, sin

import numpy as np


def on_circle(fold, waves, base):  # type: ignore[no-untyped-def]
    """B(zeta_m) = sum over j of fold_j zeta_m^j, for j = -C..C, at every point of the circle.

    Real and imaginary parts apart, so that the loops over m become vector instructions; j and -j
    share a cosine and a sine.
    """
    fold_r, fold_i = fold
    cosine, sine = waves
    base_r, base_i = base
    width, half = cosine.shape[0] - 1, cosine.shape[1]
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


def raised(base, power, squared, out):  # type: ignore[no-untyped-def]
    """Multiply ``out`` by the power of ``base``, point by point; ``squared`` is scratch."""
    base_r, base_i = squared
    out_r, out_i = out
    half = out_r.size
    for m in range(half):
        base_r[m], base_i[m] = base[0][m], base[1][m]
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


def from_circle(out, waves, back):  # type: ignore[no-untyped-def]
    """q_j = sum over m of out_m zeta_m^j, for j = -C..C: the adjoint of `on_circle`."""
    out_r, out_i = out
    back_r, back_i = back
    cosine, sine = waves
    width, half = cosine.shape[0] - 1, cosine.shape[1]
    for j in range(width + 1):
        even_r, even_i, odd_r, odd_i = 0.0, 0.0, 0.0, 0.0
        for m in range(half):
            even_r += out_r[m] * cosine[j, m]
            even_i += out_i[m] * cosine[j, m]
            odd_r += out_r[m] * sine[j, m]
            odd_i += out_i[m] * sine[j, m]
        back_r[width + j], back_i[width + j] = even_r - odd_i, even_i + odd_r
        back_r[width - j], back_i[width - j] = even_r + odd_i, even_i - odd_r


def folded_into(sums, values, phases, fold):  # type: ignore[no-untyped-def]
    """Coefficients over j of sum over types of values_k phases_k zeta^{z_k}."""
    fold_r, fold_i = fold
    width = fold_r.size // 2
    fold_r[:] = 0.0
    fold_i[:] = 0.0
    for k in range(values.size):
        fold_r[sums[k] + width] += values[k] * phases[0][k]
        fold_i[sums[k] + width] += values[k] * phases[1][k]


def tilted_law(law, share, kappa, lam, tilted):  # type: ignore[no-untyped-def]
    """p_k = P_k exp(-kappa h_k + lambda z_k) / S."""
    probability, sums, count = law
    top, total = -1e300, 0.0
    for k in range(share.size):
        tilted[k] = -kappa * share[k] + lam * sums[k]
        top = max(top, tilted[k])
    for k in range(share.size):
        tilted[k] = probability[k] * exp(tilted[k] - top)
        total += tilted[k]
    for k in range(share.size):
        tilted[k] /= total


def integrate(law, share, point, waves, weights, bends):  # type: ignore[no-untyped-def]
    """Trapezoidal sum over omega at one z: adds w_k, returns the integral of the risk.

    ``point`` is ((kappa, lambda, psi), step, window, z); ``waves`` is (cos, sin) of 2 pi j m / M.
    ``bends`` is (|dh| by type (3, K) or empty, v_k, pairs (6,)): where it is not empty, the weights
    of s (1 - s) are added too: v_k, and for every two components the sum over two different sets,
    E[ s (1 - s) dh_i(set 1) dh_j(set 2); z ].
    """
    probability, sums, count = law
    tilts, step, window, z = point
    kappa, lam, psi = tilts
    slopes, singles, pairs = bends
    kinds, signal = share.size, share[share.size - 1]
    width, half, power = waves[0].shape[0] - 1, waves[0].shape[1], int(count) - 1
    tilted = np.empty(kinds)
    tilted_law(law, share, kappa, lam, tilted)
    turn_r, turn_i, now_r, now_i = (
        np.empty(kinds),
        np.empty(kinds),
        np.ones(kinds),
        np.zeros(kinds),
    )
    for k in range(kinds):
        turn_r[k], turn_i[k] = cos(step * share[k]), -sin(step * share[k])
    shift_r, shift_i = np.empty(half), np.empty(half)
    for m in range(half):
        angle = -2.0 * pi * ((m * int(z)) % half) / half
        shift_r[m], shift_i[m] = cos(angle) / half, sin(angle) / half
    fold = (np.empty(2 * width + 1), np.empty(2 * width + 1))
    back_r, back_i = np.empty(2 * width + 1), np.empty(2 * width + 1)
    base, squared = (np.empty(half), np.empty(half)), (np.empty(half), np.empty(half))
    out_r, out_i = np.empty(half), np.empty(half)
    scratch = (np.empty((3, half)), np.empty((3, half)), np.empty((6, 2)), np.empty(kinds))
    scale, risk = exp(psi) * step / (2.0 * pi), 0.0
    for node in range(ceil(window / step) + 1):
        omega = node * step
        folded_into(sums, tilted, (now_r, now_i), fold)
        on_circle(fold, waves, base)
        for m in range(half):
            out_r[m], out_i[m] = shift_r[m], shift_i[m]
        # pi / sin(pi u) and the phase of the signal set.
        grow = exp(-pi * omega)
        real = sin(pi * kappa) * (1.0 + grow * grow)
        imag = cos(pi * kappa) * (1.0 - grow * grow)
        size = 2.0 * pi * grow / (real * real + imag * imag)
        kernel_r, kernel_i = size * real, -size * imag
        phase_r, phase_i = cos(omega * signal), -sin(omega * signal)
        front_r = kernel_r * phase_r - kernel_i * phase_i
        front_i = kernel_r * phase_i + kernel_i * phase_r
        # u pi / sin(pi u), the kernel of s (1 - s).
        bent_r, bent_i = front_r * kappa - front_i * omega, front_r * omega + front_i * kappa
        both = scale if node == 0 else 2.0 * scale
        if slopes.shape[0] > 0 and power > 0:
            raised(base, power - 1, squared, (out_r, out_i))
            pairs_at(law, slopes, (tilted, now_r, now_i), waves, (out_r, out_i, fold), scratch)
            for i in range(6):
                value = bent_r * scratch[2][i, 0] - bent_i * scratch[2][i, 1]
                pairs[i] += both * value
            raised(base, 1, squared, (out_r, out_i))
        else:
            raised(base, power, squared, (out_r, out_i))
        from_circle((out_r, out_i), waves, (back_r, back_i))
        sum_r, sum_i = 0.0, 0.0
        for k in range(kinds):
            j = sums[k] + width
            real = tilted[k] * (now_r[k] * back_r[j] - now_i[k] * back_i[j])
            imag = tilted[k] * (now_r[k] * back_i[j] + now_i[k] * back_r[j])
            value_r = front_r * real - front_i * imag
            value_i = front_r * imag + front_i * real
            weights[k] += both * value_r
            sum_r += value_r
            sum_i += value_i
            if slopes.shape[0] > 0:
                singles[k] += both * (bent_r * real - bent_i * imag)
            turned = now_r[k] * turn_r[k] - now_i[k] * turn_i[k]
            now_i[k] = now_r[k] * turn_i[k] + now_i[k] * turn_r[k]
            now_r[k] = turned
        risk += both * (sum_r * kappa + sum_i * omega) / (kappa * kappa + omega * omega)
    return risk


def pairs_at(law, slopes, phases, waves, given, scratch):  # type: ignore[no-untyped-def]
    """Sum over m of B^{n-2} B_i B_j zeta^{-z} at one node; B_i is B with dh_i in every term."""
    sums = law[1]
    tilted, now_r, now_i = phases
    out_r, out_i, fold = given
    base_r, base_i, found, values = scratch
    for i in range(3):
        for k in range(tilted.size):
            values[k] = tilted[k] * slopes[i, k]
        folded_into(sums, values, (now_r, now_i), fold)
        on_circle(fold, waves, (base_r[i], base_i[i]))
    place = 0
    for i in range(3):
        for j in range(i, 3):
            total_r, total_i = 0.0, 0.0
            for m in range(out_r.size):
                real = base_r[i, m] * base_r[j, m] - base_i[i, m] * base_i[j, m]
                imag = base_r[i, m] * base_i[j, m] + base_i[i, m] * base_r[j, m]
                total_r += out_r[m] * real - out_i[m] * imag
                total_i += out_r[m] * imag + out_i[m] * real
            found[place, 0], found[place, 1] = total_r, total_i
            place += 1


def waves_of(width, length):  # type: ignore[no-untyped-def]
    """Cosine and sine of 2 pi j m / M for j = 0..C and m = 0..M-1."""
    cosine, sine = np.empty((width + 1, length)), np.empty((width + 1, length))
    for j in range(width + 1):
        for m in range(length):
            angle = 2.0 * pi * ((j * m) % length) / length
            cosine[j, m], sine[j, m] = cos(angle), sin(angle)
    return cosine, sine
