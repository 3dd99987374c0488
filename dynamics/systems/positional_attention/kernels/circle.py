r"""The Fourier transform (2) of the spectral expectation: kernels of the circle of zeta.

Coefficients over the sums j of a set are taken to points of the circle, raised to a power there,
and taken back. Arrays hold `WIDTH` nodes of the integral (1) in every row, as short vectors
(`dynamics.codegen.kernels.vectors`); complex arrays are pairs (real part, imaginary part).
Equations are those of `spectral`.
"""

from math import cos, exp, pi, sin

import numpy as np

from dynamics.codegen.kernels.vectors import any_less, broadcast, load, store

LOG_NOTHING = -41.0
"""Logarithm of what is nothing beside 1: a hundredth of its rounding."""


def powers_of_points(width, length, z):  # type: ignore[no-untyped-def]
    """Powers of the points zeta_m = e^{2 pi i m / M} of the circle.

    Parameters
    ----------
    width, length : int
        C and M, a multiple of 4.
    z : int

    Returns
    -------
    pair of float arrays, shape (M // 2 + 1, C + 1)
        Real and imaginary part of zeta_m^j for m = 0..M/2 and j = 0..C.
    pair of float arrays, shape (M,)
        The same of zeta_m^{-z} / M, of the Fourier transform (2).
    """
    cosine, sine, quarter = np.empty(length), np.empty(length), length // 4
    for m in range(quarter):
        angle = 2.0 * pi * m / length
        real, imag = cos(angle), sin(angle)
        cosine[m], sine[m] = real, imag
        cosine[m + quarter], sine[m + quarter] = -imag, real
        cosine[m + 2 * quarter], sine[m + 2 * quarter] = -real, -imag
        cosine[m + 3 * quarter], sine[m + 3 * quarter] = imag, -real
    half = length // 2 + 1
    waves_r, waves_i = np.empty((half, width + 1)), np.empty((half, width + 1))
    for m in range(half):
        turned = 0
        for j in range(width + 1):
            waves_r[m, j], waves_i[m, j] = cosine[turned], sine[turned]
            turned += m
            if turned >= length:
                turned -= length
    shift_r, shift_i = np.empty(length), np.empty(length)
    turned, stride = 0, z % length
    for m in range(length):
        shift_r[m], shift_i[m] = cosine[turned] / length, -sine[turned] / length
        turned += stride
        if turned >= length:
            turned -= length
    return (waves_r, waves_i), (shift_r, shift_i)


def on_circle(fold, waves, halves, base):  # type: ignore[no-untyped-def]
    """B(zeta_m) = sum over j of fold_j zeta_m^j, for j = -C..C, at every point of the circle.

    j and -j share a cosine and a sine, and so do m and M - m.

    Parameters
    ----------
    fold : float array, shape (2, 2 C + 1, WIDTH)
    waves : pair of float arrays, shape (M // 2 + 1, C + 1)
        See `powers_of_points`.
    halves : float array, shape (4, C + 1, WIDTH)
        Overwritten.
    base : float array, shape (2, M, WIDTH)
        Filled.
    """
    fold_r, fold_i, base_r, base_i = fold[0], fold[1], base[0], base[1]
    plus_r, plus_i, less_r, less_i = halves[0], halves[1], halves[2], halves[3]
    cosine, sine = waves
    width, length = cosine.shape[1] - 1, base_r.shape[0]
    for j in range(1, width + 1):
        above_r, below_r = load(fold_r, width + j), load(fold_r, width - j)
        above_i, below_i = load(fold_i, width + j), load(fold_i, width - j)
        store(plus_r, j, above_r + below_r)
        store(plus_i, j, above_i + below_i)
        store(less_r, j, above_r - below_r)
        store(less_i, j, above_i - below_i)
    middle_r, middle_i, nothing = load(fold_r, width), load(fold_i, width), broadcast(0.0)
    half = length // 2 + 1
    for m in range(0, half, 2):
        # Two points at once share what is read; the last may be one point twice.
        n = min(m + 1, half - 1)
        even_r, even_i, odd_r, odd_i = middle_r, middle_i, nothing, nothing
        next_even_r, next_even_i, next_odd_r, next_odd_i = middle_r, middle_i, nothing, nothing
        for j in range(1, width + 1):
            sum_r, sum_i = load(plus_r, j), load(plus_i, j)
            gap_r, gap_i = load(less_r, j), load(less_i, j)
            even_r += cosine[m, j] * sum_r
            even_i += cosine[m, j] * sum_i
            odd_r += sine[m, j] * gap_r
            odd_i += sine[m, j] * gap_i
            next_even_r += cosine[n, j] * sum_r
            next_even_i += cosine[n, j] * sum_i
            next_odd_r += sine[n, j] * gap_r
            next_odd_i += sine[n, j] * gap_i
        store(base_r, (length - m) % length, even_r + odd_i)
        store(base_i, (length - m) % length, even_i - odd_r)
        store(base_r, m, even_r - odd_i)
        store(base_i, m, even_i + odd_r)
        store(base_r, length - n, next_even_r + next_odd_i)
        store(base_i, length - n, next_even_i - next_odd_r)
        store(base_r, n, next_even_r - next_odd_i)
        store(base_i, n, next_even_i + next_odd_r)


def farthest(base, power):  # type: ignore[no-untyped-def]
    """The last m up to M/2 at which, or at M - m, a power of ``base`` counts; at least 0.

    Beyond it is below a hundredth of the rounding of the largest, which is 1.

    Parameters
    ----------
    base : float array, shape (2, M, WIDTH)
    power : int
    """
    base_r, base_i, length = base[0], base[1], base.shape[1]
    last = length // 2
    if power < 1:
        return last
    least = broadcast(exp(2.0 * LOG_NOTHING / power))
    while last > 0:
        mirror = length - last
        here = load(base_r, last) * load(base_r, last) + load(base_i, last) * load(base_i, last)
        there = load(base_r, mirror) * load(base_r, mirror)
        there += load(base_i, mirror) * load(base_i, mirror)
        if any_less(least, here) or any_less(least, there):
            break
        last -= 1
    return last


def raised(base, power, shift, reach, out):  # type: ignore[no-untyped-def]
    """A power of ``base`` times ``shift``, at the points up to ``reach`` and their mirror images.

    Parameters
    ----------
    base : float array, shape (2, M, WIDTH)
    power : int
    shift : pair of float arrays, shape (M,)
        See `powers_of_points`.
    reach : int
        See `farthest`.
    out : float array, shape (2, M, WIDTH)
        Filled at these points.
    """
    base_r, base_i, out_r, out_i = base[0], base[1], out[0], out[1]
    length = base_r.shape[0]
    for point in range(min(2 * reach + 1, length)):
        m = point if point <= reach else length - (point - reach)
        square_r, square_i = load(base_r, m), load(base_i, m)
        real, imag = broadcast(shift[0][m]), broadcast(shift[1][m])
        left = power
        while left > 0:
            if left % 2 == 1:
                turned = real * square_r - imag * square_i
                imag = real * square_i + imag * square_r
                real = turned
            left //= 2
            if left > 0:
                turned = square_r * square_r - square_i * square_i
                square_i = 2.0 * square_r * square_i
                square_r = turned
        store(out_r, m, real)
        store(out_i, m, imag)


def multiply_by(base, reach, out):  # type: ignore[no-untyped-def]
    """Multiply ``out`` by ``base`` at the points that `raised` fills.

    Parameters
    ----------
    base : float array, shape (2, M, WIDTH)
    reach : int
        See `farthest`.
    out : float array, shape (2, M, WIDTH)
        Overwritten.
    """
    base_r, base_i, out_r, out_i = base[0], base[1], out[0], out[1]
    length = base_r.shape[0]
    for point in range(min(2 * reach + 1, length)):
        m = point if point <= reach else length - (point - reach)
        real, imag = load(out_r, m), load(out_i, m)
        store(out_r, m, real * load(base_r, m) - imag * load(base_i, m))
        store(out_i, m, real * load(base_i, m) + imag * load(base_r, m))


def from_circle(out, waves, reach, sides, back):  # type: ignore[no-untyped-def]
    """q_j = sum over m of out_m zeta_m^j, for j = -C..C: the adjoint of `on_circle`.

    Parameters
    ----------
    out : float array, shape (2, M, WIDTH)
        See `raised`.
    waves : pair of float arrays, shape (M // 2 + 1, C + 1)
        See `powers_of_points`.
    reach : int
        See `farthest`.
    sides : float array, shape (4, M // 2 + 1, WIDTH)
        Overwritten.
    back : float array, shape (2, 2 C + 1, WIDTH)
        Filled.
    """
    out_r, out_i, back_r, back_i = out[0], out[1], back[0], back[1]
    sum_r, sum_i, less_r, less_i = sides[0], sides[1], sides[2], sides[3]
    cosine, sine = waves
    width, length = cosine.shape[1] - 1, out_r.shape[0]
    for m in range(reach + 1):
        # 0 and M / 2 are their own mirror images, with a sine of 0.
        alone = m == 0 or 2 * m == length
        mirror = 0.0 if alone else 1.0
        here_r, here_i = load(out_r, m), load(out_i, m)
        there_r, there_i = load(out_r, (length - m) % length), load(out_i, (length - m) % length)
        store(sum_r, m, here_r + mirror * there_r)
        store(sum_i, m, here_i + mirror * there_i)
        store(less_r, m, here_r - there_r)
        store(less_i, m, here_i - there_i)
    for j in range(width + 1):
        even_r, even_i, odd_r, odd_i = (
            broadcast(0.0),
            broadcast(0.0),
            broadcast(0.0),
            broadcast(0.0),
        )
        for m in range(reach + 1):
            even_r += cosine[m, j] * load(sum_r, m)
            even_i += cosine[m, j] * load(sum_i, m)
            odd_r += sine[m, j] * load(less_r, m)
            odd_i += sine[m, j] * load(less_i, m)
        store(back_r, width - j, even_r + odd_i)
        store(back_i, width - j, even_i - odd_r)
        store(back_r, width + j, even_r - odd_i)
        store(back_i, width + j, even_i + odd_r)
