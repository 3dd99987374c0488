r"""One integral of the spectral expectation: kernels of the nodes at one sum z.

At every node u = kappa + i omega the types are folded into the coefficients of B(u, zeta), B is
taken on the circle of zeta, raised to the number of the other sets, and transformed back; weights
of s, and of s (1 - s), are added up. Equations are those of `spectral`. Complex arrays are pairs
(real part, imaginary part), so that the loops over the circle become vector instructions.
"""

from math import ceil, cos, exp, pi, sin

import numpy as np

FIRST_ORDER = 4
"""Tables of h and its first derivatives."""


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


def fold_types(positions, values, fold):  # type: ignore[no-untyped-def]
    """Coefficients over j of sum over types of values_k zeta^{z_k}.

    Parameters
    ----------
    positions : int array, shape (K,)
        z_k + C.
    values : pair of float arrays, shape (K,)
    fold : pair of float arrays, shape (2 C + 1,)
        Filled.
    """
    fold_r, fold_i = fold
    values_r, values_i = values
    fold_r[:] = 0.0
    fold_i[:] = 0.0
    for k in range(positions.size):
        fold_r[positions[k]] += values_r[k]
        fold_i[positions[k]] += values_i[k]


def turn_phases(values, turn):  # type: ignore[no-untyped-def]
    """Multiply p_k e^{-i omega h_k} by its turn to the next node, in place.

    Parameters
    ----------
    values : pair of float arrays, shape (K,)
        Overwritten.
    turn : pair of float arrays, shape (K,)
    """
    values_r, values_i = values
    turn_r, turn_i = turn
    for k in range(values_r.size):
        real = values_r[k] * turn_r[k] - values_i[k] * turn_i[k]
        values_i[k] = values_r[k] * turn_i[k] + values_i[k] * turn_r[k]
        values_r[k] = real


def multiplied(values, factor, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` with complex numbers times a complex factor.

    Parameters
    ----------
    values : pair of float arrays, shape (2 C + 1,)
    factor : complex
    out : pair of float arrays, shape (2 C + 1,)
    """
    for j in range(values[0].size):
        out[0][j] = values[0][j] * factor.real - values[1][j] * factor.imag
        out[1][j] = values[0][j] * factor.imag + values[1][j] * factor.real


def add_real_part(positions, values, factor, out):  # type: ignore[no-untyped-def]
    """Add Re(values_k factor_j) to ``out``, j the position of type k.

    Parameters
    ----------
    positions : int array, shape (K,)
        z_k + C.
    values : pair of float arrays, shape (K,)
    factor : pair of float arrays, shape (2 C + 1,)
    out : float array, shape (K,)
    """
    values_r, values_i = values
    factor_r, factor_i = factor
    for k in range(positions.size):
        j = positions[k]
        out[k] += values_r[k] * factor_r[j] - values_i[k] * factor_i[j]


def tilted_law(law, h, kappa, lam, tilted):  # type: ignore[no-untyped-def]
    """p_k of (3).

    Parameters
    ----------
    law : SumLaw
    h : float array, shape (K,)
        h by type.
    kappa, lam : float
    tilted : float array, shape (K,)
        Filled.
    """
    top, total = -1e300, 0.0
    for k in range(h.size):
        tilted[k] = -kappa * h[k] + lam * law.sums[k]
        if law.probability[k] > 0.0:
            top = max(top, tilted[k])
    for k in range(h.size):
        tilted[k] = law.probability[k] * exp(min(tilted[k] - top, 0.0))
        total += tilted[k]
    for k in range(h.size):
        tilted[k] /= total


def integrate(tables, law, columns, c):  # type: ignore[no-untyped-def]
    """Trapezoidal sum of (1) over omega at one z, by its plan; returns the integral of the risk.

    Adds w_k to ``columns.first``. Where the tables hold second derivatives, adds the weights of
    s (1 - s) too: v_k to ``columns.second``, and to ``columns.pairs`` for every two components the
    sum over two different sets, E[ s (1 - s) dh_i(set 1) dh_j(set 2); z ].

    Parameters
    ----------
    tables : float array, shape (4 or 10, K, columns)
        h, then its first derivatives, then second ones.
    law, columns : SumLaw, Columns
    c : int
        Position of z.
    """
    s, second = columns.contour[c], tables.shape[0] > FIRST_ORDER
    kappa, lam, psi = law.kappas[s], columns.lam[c, s], columns.psi[c, s]
    step, length, power = columns.step[c], columns.length[c], law.count - 1
    weights, singles, pairs = columns.first[c], columns.second[c], columns.pairs[c]
    h, slopes = np.ascontiguousarray(tables[0, :, c]), np.ascontiguousarray(tables[1:4, :, c])
    kinds, width = h.size, int(law.sums.max())
    roots, positions = roots_of(length), law.sums + width
    waves = waves_of(width, roots)
    shift_r, shift_i = shift_of(int(law.z[c]), roots)
    # p_k e^{-i omega h_k} at the present node, and its turn from node to node.
    now, turn = (np.empty(kinds), np.zeros(kinds)), (np.empty(kinds), np.empty(kinds))
    tilted_law(law, h, kappa, lam, now[0])
    for k in range(kinds):
        turn[0][k], turn[1][k] = cos(step * h[k]), -sin(step * h[k])
    fold = (np.empty(2 * width + 1), np.empty(2 * width + 1))
    back = (np.empty(2 * width + 1), np.empty(2 * width + 1))
    base, squared = (np.empty(length), np.empty(length)), (np.empty(length), np.empty(length))
    out = (np.empty(length), np.empty(length))
    by_component, products = (np.empty((3, length)), np.empty((3, length))), np.empty((6, 2))
    steep = (np.empty((2, kinds)), np.empty((2, 2 * width + 1)))
    scale, risk = exp(psi) * step / (2.0 * pi), 0.0
    sine, cosine, signal = sin(pi * kappa), cos(pi * kappa), h[kinds - 1]
    for node in range(ceil(columns.window[c] / step) + 1):
        omega = node * step
        fold_types(positions, now, fold)
        on_circle(fold, waves, base)
        for m in range(length):
            out[0][m], out[1][m] = shift_r[m], shift_i[m]
        # pi / sin(pi u) and the phase of the signal set; times u, the kernel of s (1 - s). Nodes at
        # omega and -omega are conjugate.
        grow = exp(-pi * omega)
        real, imag = sine * (1.0 + grow * grow), cosine * (1.0 - grow * grow)
        size = (scale if node == 0 else 2.0 * scale) * 2.0 * pi * grow
        size /= real * real + imag * imag
        front = complex(size * real, -size * imag) * complex(
            cos(omega * signal), -sin(omega * signal)
        )
        bent = front * complex(kappa, omega)
        if second and power > 0:
            raised(base, power - 1, squared, out)
            pairs_at(positions, slopes, now, waves, out, steep, by_component, products)
            for i in range(6):
                pairs[i] += bent.real * products[i, 0] - bent.imag * products[i, 1]
            raised(base, 1, squared, out)
        else:
            raised(base, power, squared, out)
        from_circle(out, waves, back)
        # E[ ... ; z] without the kernel, the sum of the weights at this node, is fold times back.
        whole = complex(0.0, 0.0)
        for j in range(2 * width + 1):
            whole += complex(fold[0][j], fold[1][j]) * complex(back[0][j], back[1][j])
        risk += (front * whole / complex(kappa, omega)).real
        if second:
            multiplied(back, bent, fold)
            add_real_part(positions, now, fold, singles)
        multiplied(back, front, fold)
        add_real_part(positions, now, fold, weights)
        turn_phases(now, turn)
    return risk


def pairs_at(positions, slopes, now, waves, out, scratch, base, products):  # type: ignore[no-untyped-def]
    """Sum over m of B^{n-2} B_i B_j zeta^{-z} at one node; B_i is B with dh_i in every term.

    Parameters
    ----------
    positions : int array, shape (K,)
        z_k + C.
    slopes : float array, shape (3, K)
        dh by component and type.
    now : pair of float arrays, shape (K,)
        p_k e^{-i omega h_k}.
    waves : pair of float arrays, shape (C + 1, M)
        See `waves_of`.
    out : pair of float arrays, shape (M,)
        B^{n-2} zeta^{-z} on the circle.
    scratch : (float array, shape (2, K), float array, shape (2, 2 C + 1))
        Overwritten.
    base : pair of float arrays, shape (3, M)
        Overwritten.
    products : float array, shape (6, 2)
        Receives real and imaginary part for i <= j.
    """
    base_r, base_i = base
    values, fold = scratch
    for i in range(3):
        for k in range(positions.size):
            values[0, k], values[1, k] = now[0][k] * slopes[i, k], now[1][k] * slopes[i, k]
        fold_types(positions, (values[0], values[1]), (fold[0], fold[1]))
        on_circle((fold[0], fold[1]), waves, (base_r[i], base_i[i]))
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


def roots_of(length):  # type: ignore[no-untyped-def]
    """Cosine and sine of 2 pi m / M, m = 0..M-1: the points of the circle.

    Parameters
    ----------
    length : int
        M.
    """
    cosine, sine = np.empty(length), np.empty(length)
    for m in range(length):
        angle = 2.0 * pi * m / length
        cosine[m], sine[m] = cos(angle), sin(angle)
    return cosine, sine


def shift_of(z, roots):  # type: ignore[no-untyped-def]
    """Real and imaginary part of zeta_m^{-z} / M of the Fourier transform (2), m = 0..M-1.

    Parameters
    ----------
    z : int
    roots : pair of float arrays, shape (M,)
        See `roots_of`.
    """
    cosine, sine = roots
    length = cosine.size
    shift_r, shift_i = np.empty(length), np.empty(length)
    for m in range(length):
        turned = (m * z) % length
        shift_r[m], shift_i[m] = cosine[turned] / length, -sine[turned] / length
    return shift_r, shift_i


def waves_of(width, roots):  # type: ignore[no-untyped-def]
    """Cosine and sine of 2 pi j m / M for j = 0..C and m = 0..M-1.

    Parameters
    ----------
    width : int
        C.
    roots : pair of float arrays, shape (M,)
        See `roots_of`.
    """
    length = roots[0].size
    cosine, sine = np.empty((width + 1, length)), np.empty((width + 1, length))
    for j in range(width + 1):
        turned, stride = 0, j % length
        for m in range(length):
            cosine[j, m], sine[j, m] = roots[0][turned], roots[1][turned]
            turned += stride
            if turned >= length:
                turned -= length
    return cosine, sine
