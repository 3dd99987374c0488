r"""Kernels of the spectral expectation: one contour integral and one Fourier transform per sum z.

With n = L-1 random sets, :math:`\varsigma(-F) = 1/(1 + e^F)` and u = kappa + i omega, for
0 < kappa < 1,

.. math::
   \varsigma(-F) = \frac{1}{2\pi} \int e^{-uF} \frac{\pi}{\sin \pi u}\, d\omega, \qquad (1)

so the weights :math:`w_k(z) = E[\varsigma(-F)\, 1\{\text{set 1 has type } k, \text{sum} = z\}]`
need only :math:`E[e^{-uF}; z]`, in which the sets are independent but for their sum; that is fixed
by a discrete Fourier transform on the circle :math:`|\zeta| = e^\lambda`,

.. math::
   E[e^{-uF}; z] = \frac{e^{-u h_s}}{M} \sum_m \zeta_m^{-z} B(u, \zeta_m)^n, \qquad
   B(u, \zeta) = \sum_k P_k e^{-u h_k} \zeta^{z_k}. \qquad (2)

Everything is tilted by (kappa, lambda): with

.. math:: p_k = P_k \exp(-\kappa h_k + \lambda z_k) / S, \qquad (3)

.. math:: \psi = n \log S - \lambda z - \kappa h_s, \qquad (4)

the integrand is e^psi times quantities of size one. Left of 0 the pole there adds its residue,

.. math:: w_k \mathrel{+}= P_k\, pmf_{n-1}(z - z_k), \qquad
   E[\log(1 + e^{-F}); z] \mathrel{-}= E[F; z]. \qquad (5)

For the risk this pole is a double one. Where the error of the rule of step 2 pi/T is bounded beyond
it, the rule has picked up, and what is known is subtracted,

.. math:: \sum_{j \ge 1} e^{-jT|\kappa|}\,(jT\,P(z) \mp E[F; z]), \qquad \kappa \gtrless 0.
   \qquad (8)

Gradient, risk and gross come from one set of weights,

.. math::
   E[\varsigma\, \partial F] = \sum_z \Big( n \sum_k w_k\, \partial h_k
   + \partial h_s \sum_k w_k \Big), \qquad (6)

and with the weights v_k of s (1 - s), and its sums over pairs of sets, so does the Hessian,

.. math::
   \partial_\theta \partial_\phi R = E[s (1-s)\, F_\theta F_\phi] - E[s\, F_{\theta\phi}].
   \qquad (7)

`saddle_points` bounds the integrand from the weights of `grid_weights`, `contour` chooses where to
integrate, `integral` integrates with the Fourier transform of `circle`, and `spectral_weights` sums
over z.
"""

from typing import Any

import numpy as np

from dynamics.systems.positional_attention.kernels.spectral_weights import spectrum

share_table: Any = None  # supplied by the generated file
curvature_table: Any = None  # supplied by the generated file
order: Any = None  # supplied by the generated file

FINEST = 1e-14


def set_table(parts, multiples, sum_index, table):  # type: ignore[no-untyped-def]
    """h(type, Z), or a derivative: the sum over its parts times what the type has of each.

    Parameters
    ----------
    parts : float array, shape (3, 2 C + 1, sums Z)
        By (part, z, Z).
    multiples : float array, shape (K, 3)
    sum_index : uint64 array, shape (K,)
    table : float array, shape (K, sums Z)
        Filled.
    """
    for k in range(sum_index.size):
        m = sum_index[k]
        one, two, three = multiples[k, 0], multiples[k, 1], multiples[k, 2]
        for j in range(table.shape[1]):
            table[k, j] = one * parts[0, m, j] + two * parts[1, m, j] + three * parts[2, m, j]


def first_tables(state, data, tables):  # type: ignore[no-untyped-def]
    """Fill h and its first derivatives by type and z.

    Parameters
    ----------
    state : float array, shape (3,)
    data : SpectralData
    tables : float array, shape (at least 4, K, columns)
        The first four are filled.
    """
    grid = data.parts.shape
    share_table(state, data.constants, data.latents[1:], data.parts.reshape(12, grid[2], grid[3]))
    for k in range(4):
        set_table(data.parts[k], data.multiples, data.sum_index, tables[k])


def evaluate(state, data):  # type: ignore[no-untyped-def]
    """Fill the results at a state, gradient and risk only.

    Parameters
    ----------
    state : float array, shape (3,)
    data : SpectralData
    """
    first_tables(state, data, data.tables)
    spectrum(data.tables, data, data.tolerance)


def gradient(state, data, out):  # type: ignore[no-untyped-def]
    """Per-entry gradient of the population risk; NaN where the report is a fault.

    Parameters
    ----------
    state : float array, shape (3,)
    data : SpectralData
    out : float array, shape (3,)
        Filled.
    """
    evaluate(state, data)
    for theta in range(3):
        out[theta] = -data.values[theta] * data.share[theta]
        if data.report[1] > 0.0:
            out[theta] = np.nan


def hessian(state, data, out):  # type: ignore[no-untyped-def]
    """Derivative of the per-entry gradient by the state, (7); NaN where the report is a fault.

    w_k, v_k and the pairs come from one pass over the nodes. The tolerance speaks of s; where
    s (1 - s) is much smaller, a second pass is as much finer.

    Parameters
    ----------
    state : float array, shape (3,)
    data : SpectralData
    out : float array, shape (3, 3)
        Filled.
    """
    columns, gross, tolerance = data.columns, data.gross, data.tolerance
    grid = data.parts.shape
    curvature = np.empty((6, grid[1], grid[2], grid[3]))
    curvature_table(state, data.constants, data.latents, curvature)
    tables = np.empty((10, data.tables.shape[1], data.tables.shape[2]))
    first_tables(state, data, tables)
    for k in range(6):
        set_table(curvature[k], data.composition, data.sum_index, tables[4 + k])
    columns.second[:] = 0.0
    columns.pairs[:] = 0.0
    first, second = np.empty((3, 3)), np.empty((3, 3))
    for _ in range(2):
        spectrum(tables, data, tolerance)
        hessian_terms(tables, data, first, second)
        ratio = 1.0
        for i in range(3):
            size = gross[i] * gross[i]
            if size > 0.0:
                ratio = min(ratio, 300.0 * abs(first[i, i]) * columns.first.sum() / size)
        if ratio >= 1.0 or data.report[1] > 0.0:
            break
        tolerance = max(tolerance * ratio, FINEST)
    for i in range(3):
        for j in range(3):
            entry = (first[i, j] - second[i, j]) * data.share[i]
            out[i, j] = entry if data.report[1] == 0.0 else np.nan


def derivatives(state, data, out):  # type: ignore[no-untyped-def]
    """Summary, gradient or Hessian, by the number of its entries.

    Parameters
    ----------
    state : float array, shape (3,)
    data : SpectralData
    out : float array, shape (2,), (3,) or (9,)
        Filled.
    """
    if out.size == 3:
        gradient(state, data, out)
    elif out.size == 9:
        hessian(state, data, out.reshape((3, 3)))
    else:
        summary(state, data, out)


def hessian_terms(tables, data, first, second):  # type: ignore[no-untyped-def]
    """The two terms of (7) from the weights: E[ s (1 - s) F_i F_j ] and E[ s F_ij ].

    Parameters
    ----------
    tables : float array, shape (10, K, columns)
        h, its first and second derivatives.
    data : SpectralData
    first, second : float array, shape (3, 3)
        Filled.
    """
    count, weights = data.law.count, data.columns
    first[:] = 0.0
    second[:] = 0.0
    many, kinds = weights.first.shape
    for c in range(many):
        whole, curved = weights.first[c].sum(), weights.second[c].sum()
        entry = 0
        for i in range(3):
            for j in range(i, 3):
                signal_i, signal_j = tables[1 + i, kinds - 1, c], tables[1 + j, kinds - 1, c]
                outer = curved * signal_i * signal_j
                outer += count * (count - 1.0) * weights.pairs[c, entry]
                inner = whole * tables[4 + entry, kinds - 1, c]
                for k in range(kinds):
                    d_i, d_j = tables[1 + i, k, c], tables[1 + j, k, c]
                    product = d_i * signal_j + d_j * signal_i + d_i * d_j
                    outer += count * weights.second[c, k] * product
                    inner += count * weights.first[c, k] * tables[4 + entry, k, c]
                first[i, j] += outer
                second[i, j] += inner
                entry += 1
    for i in range(3):
        for j in range(i):
            first[i, j], second[i, j] = first[j, i], second[j, i]


def order_parameters(state, slope, data, out):  # type: ignore[no-untyped-def]
    """Order parameters from the state and its gradient.

    Parameters
    ----------
    state, slope : float array, shape (3,)
        State and its gradient.
    data : SpectralData
    out : float array, shape (7,)
        Filled.
    """
    order(state, -slope, data.constants, out)


def summary(state, data, out):  # type: ignore[no-untyped-def]
    """Population risk; the population error is not a smooth function and is left NaN.

    Parameters
    ----------
    state : float array, shape (3,)
    data : SpectralData
    out : float array, shape (2,)
        Filled.
    """
    evaluate(state, data)
    out[0] = data.values[3] if data.report[1] == 0.0 else np.nan
    out[1] = np.nan
