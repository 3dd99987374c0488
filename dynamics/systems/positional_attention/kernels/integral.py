r"""One integral of the spectral expectation: kernels of the nodes at one sum z.

At every node u = kappa + i omega the types are folded into the coefficients of B(u, zeta), B is
taken on the circle of zeta, raised to the number of the other sets, and transformed back; weights
of s, and of s (1 - s), are added up. Equations are those of `spectral`. Complex arrays are pairs
(real part, imaginary part), so that the loops over the circle become vector instructions.
"""

from math import ceil, cos, exp, pi, sin

import numpy as np


def on_circle(fold, waves, base):  # type: ignore[no-untyped-def]
    """B(zeta_m) = sum over j of fold_j zeta_m^j, for j = -C..C, at every point of the circle.

    j and -j share a cosine and a sine.

    Parameters
    ----------
    fold : pair of float arrays, shape (2 C + 1,)
    waves : pair of float arrays, shape (C + 1, M)
        See `waves_of`.
    base : pair of float arrays, shape (M,)
        Filled.
    """
    fold_r, fold_i = fold
    cosine, sine = waves
    base_r, base_i = base
    width, length = cosine.shape[0] - 1, cosine.shape[1]
    for m in range(length):
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
        for m in range(length):
            base_r[m] += plus_r * cosine[j, m] - less_i * sine[j, m]
            base_i[m] += plus_i * cosine[j, m] + less_r * sine[j, m]


def raised(base, power, squared, out):  # type: ignore[no-untyped-def]
    """Multiply ``out`` by the power of ``base``, point by point.

    Parameters
    ----------
    base : pair of float arrays, shape (M,)
    power : int
    squared : pair of float arrays, shape (M,)
        Overwritten.
    out : pair of float arrays, shape (M,)
    """
    base_r, base_i = squared
    out_r, out_i = out
    length = out_r.size
    for m in range(length):
        base_r[m], base_i[m] = base[0][m], base[1][m]
    while power > 0:
        if power % 2 == 1:
            for m in range(length):
                real = out_r[m] * base_r[m] - out_i[m] * base_i[m]
                out_i[m] = out_r[m] * base_i[m] + out_i[m] * base_r[m]
                out_r[m] = real
        power //= 2
        if power > 0:
            for m in range(length):
                real = base_r[m] * base_r[m] - base_i[m] * base_i[m]
                base_i[m] = 2.0 * base_r[m] * base_i[m]
                base_r[m] = real


def from_circle(out, waves, back):  # type: ignore[no-untyped-def]
    """q_j = sum over m of out_m zeta_m^j, for j = -C..C: the adjoint of `on_circle`.

    Parameters
    ----------
    out : pair of float arrays, shape (M,)
        Read only.
    waves : pair of float arrays, shape (C + 1, M)
        See `waves_of`.
    back : pair of float arrays, shape (2 C + 1,)
        Filled.
    """
    out_r, out_i = out
    back_r, back_i = back
    cosine, sine = waves
    width, length = cosine.shape[0] - 1, cosine.shape[1]
    for j in range(width + 1):
        even_r, even_i, odd_r, odd_i = 0.0, 0.0, 0.0, 0.0
        for m in range(length):
            even_r += out_r[m] * cosine[j, m]
            even_i += out_i[m] * cosine[j, m]
            odd_r += out_r[m] * sine[j, m]
            odd_i += out_i[m] * sine[j, m]
        back_r[width + j], back_i[width + j] = even_r - odd_i, even_i + odd_r
        back_r[width - j], back_i[width - j] = even_r + odd_i, even_i - odd_r


def fold_types(sums, values, phases, fold):  # type: ignore[no-untyped-def]
    """Coefficients over j of sum over types of values_k phases_k zeta^{z_k}.

    Parameters
    ----------
    sums : int array, shape (K,)
        z_k.
    values : float array, shape (K,)
    phases : pair of float arrays, shape (K,)
    fold : pair of float arrays, shape (2 C + 1,)
        Filled.
    """
    fold_r, fold_i = fold
    width = fold_r.size // 2
    fold_r[:] = 0.0
    fold_i[:] = 0.0
    for k in range(values.size):
        fold_r[sums[k] + width] += values[k] * phases[0][k]
        fold_i[sums[k] + width] += values[k] * phases[1][k]


def tilted_law(data, h, kappa, lam, tilted):  # type: ignore[no-untyped-def]
    """p_k of (3).

    Parameters
    ----------
    data : SpectralData
    h : float array, shape (K,)
        h by type.
    kappa, lam : float
    tilted : float array, shape (K,)
        Filled.
    """
    top, total = -1e300, 0.0
    for k in range(h.size):
        tilted[k] = -kappa * h[k] + lam * data.sums[k]
        if data.probability[k] > 0.0:
            top = max(top, tilted[k])
    for k in range(h.size):
        tilted[k] = data.probability[k] * exp(min(tilted[k] - top, 0.0))
        total += tilted[k]
    for k in range(h.size):
        tilted[k] /= total


def integrate(data, tables, c, second):  # type: ignore[no-untyped-def]
    """Trapezoidal sum of (1) over omega at one z, by its plan; returns the integral of the risk.

    Adds w_k to ``data.weights.first``. With ``second``, adds the weights of s (1 - s) too: v_k to
    ``data.weights.second``, and to ``data.weights.pairs`` for every two components the sum over two
    different sets, E[ s (1 - s) dh_i(set 1) dh_j(set 2); z ].

    Parameters
    ----------
    data : SpectralData
    tables : float array, shape (at least 4, K, columns)
        h, then its derivatives.
    c : int
        Position of z.
    second : bool
        Whether the weights of s (1 - s) are needed.
    """
    plans, sums, s = data.plans, data.sums, data.plans.contour[c]
    kappa, lam, psi = data.kappas[s], data.scan.lam[c, s], data.scan.psi[c, s]
    step, length, power = plans.step[c], plans.length[c], data.count - 1
    weights, singles, pairs = data.weights.first[c], data.weights.second[c], data.weights.pairs[c]
    h, slopes = np.ascontiguousarray(tables[0, :, c]), np.ascontiguousarray(tables[1:4, :, c])
    kinds, width = h.size, int(sums.max())
    signal = h[kinds - 1]
    waves = waves_of(width, length)
    tilted = np.empty(kinds)
    tilted_law(data, h, kappa, lam, tilted)
    # Phases e^{-i omega h_k} at the present node, and their turn from node to node.
    now_r, now_i, turn_r, turn_i = (
        np.ones(kinds),
        np.zeros(kinds),
        np.empty(kinds),
        np.empty(kinds),
    )
    for k in range(kinds):
        turn_r[k], turn_i[k] = cos(step * h[k]), -sin(step * h[k])
    shift_r, shift_i = shift_of(int(data.z[c]), length)
    fold = (np.empty(2 * width + 1), np.empty(2 * width + 1))
    back_r, back_i = np.empty(2 * width + 1), np.empty(2 * width + 1)
    base, squared = (np.empty(length), np.empty(length)), (np.empty(length), np.empty(length))
    out_r, out_i = np.empty(length), np.empty(length)
    by_component, products = (np.empty((3, length)), np.empty((3, length))), np.empty((6, 2))
    scale, risk = exp(psi) * step / (2.0 * pi), 0.0
    for node in range(ceil(plans.window[c] / step) + 1):
        omega = node * step
        fold_types(sums, tilted, (now_r, now_i), fold)
        on_circle(fold, waves, base)
        for m in range(length):
            out_r[m], out_i[m] = shift_r[m], shift_i[m]
        # pi / sin(pi u) and the phase of the signal set; times u, the kernel of s (1 - s).
        grow = exp(-pi * omega)
        real = sin(pi * kappa) * (1.0 + grow * grow)
        imag = cos(pi * kappa) * (1.0 - grow * grow)
        size = 2.0 * pi * grow / (real * real + imag * imag)
        front = complex(size * real, -size * imag) * complex(
            cos(omega * signal), -sin(omega * signal)
        )
        bent = front * complex(kappa, omega)
        # Nodes at omega and -omega are conjugate.
        share = scale if node == 0 else 2.0 * scale
        if second and power > 0:
            raised(base, power - 1, squared, (out_r, out_i))
            phases, out = (now_r, now_i), (out_r, out_i)
            pairs_at(sums, slopes, tilted, phases, waves, out, fold, by_component, products)
            for i in range(6):
                pairs[i] += share * (bent.real * products[i, 0] - bent.imag * products[i, 1])
            raised(base, 1, squared, (out_r, out_i))
        else:
            raised(base, power, squared, (out_r, out_i))
        from_circle((out_r, out_i), waves, (back_r, back_i))
        sum_r, sum_i = 0.0, 0.0
        for k in range(kinds):
            j = sums[k] + width
            real = tilted[k] * (now_r[k] * back_r[j] - now_i[k] * back_i[j])
            imag = tilted[k] * (now_r[k] * back_i[j] + now_i[k] * back_r[j])
            value_r = front.real * real - front.imag * imag
            value_i = front.real * imag + front.imag * real
            weights[k] += share * value_r
            sum_r += value_r
            sum_i += value_i
            if second:
                singles[k] += share * (bent.real * real - bent.imag * imag)
            turned = now_r[k] * turn_r[k] - now_i[k] * turn_i[k]
            now_i[k] = now_r[k] * turn_i[k] + now_i[k] * turn_r[k]
            now_r[k] = turned
        risk += share * (sum_r * kappa + sum_i * omega) / (kappa * kappa + omega * omega)
    return risk


def pairs_at(sums, slopes, tilted, phases, waves, out, fold, base, products):  # type: ignore[no-untyped-def]
    """Sum over m of B^{n-2} B_i B_j zeta^{-z} at one node; B_i is B with dh_i in every term.

    Parameters
    ----------
    sums : int array, shape (K,)
        z_k.
    slopes : float array, shape (3, K)
        dh by component and type.
    tilted : float array, shape (K,)
        p_k.
    phases : pair of float arrays, shape (K,)
        e^{-i omega h_k}.
    waves : pair of float arrays, shape (C + 1, M)
        See `waves_of`.
    out : pair of float arrays, shape (M,)
        B^{n-2} zeta^{-z} on the circle.
    fold, base : pairs of float arrays, shapes (2 C + 1,), (3, M)
        Overwritten.
    products : float array, shape (6, 2)
        Receives real and imaginary part for i <= j.
    """
    base_r, base_i = base
    for i in range(3):
        fold_types(sums, tilted * slopes[i], phases, fold)
        on_circle(fold, waves, (base_r[i], base_i[i]))
    entry = 0
    for i in range(3):
        for j in range(i, 3):
            total_r, total_i = 0.0, 0.0
            for m in range(out[0].size):
                real = base_r[i, m] * base_r[j, m] - base_i[i, m] * base_i[j, m]
                imag = base_r[i, m] * base_i[j, m] + base_i[i, m] * base_r[j, m]
                total_r += out[0][m] * real - out[1][m] * imag
                total_i += out[0][m] * imag + out[1][m] * real
            products[entry, 0], products[entry, 1] = total_r, total_i
            entry += 1


def shift_of(z, length):  # type: ignore[no-untyped-def]
    """Real and imaginary part of zeta_m^{-z} / M of the Fourier transform (2), m = 0..M-1.

    Parameters
    ----------
    z : int
    length : int
        M.
    """
    shift_r, shift_i = np.empty(length), np.empty(length)
    for m in range(length):
        angle = -2.0 * pi * ((m * z) % length) / length
        shift_r[m], shift_i[m] = cos(angle) / length, sin(angle) / length
    return shift_r, shift_i


def waves_of(width, length):  # type: ignore[no-untyped-def]
    """Cosine and sine of 2 pi j m / M for j = 0..C and m = 0..M-1.

    Parameters
    ----------
    width, length : int
        C and M.
    """
    cosine, sine = np.empty((width + 1, length)), np.empty((width + 1, length))
    for j in range(width + 1):
        for m in range(length):
            angle = 2.0 * pi * ((j * m) % length) / length
            cosine[j, m], sine[j, m] = cos(angle), sin(angle)
    return cosine, sine
