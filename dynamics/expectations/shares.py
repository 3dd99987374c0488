r"""Kernels: contribution of a set to the margin of positional attention, and its derivatives.

The formula is that of the model file `dynamics.models.positional_attention`, in central moments.
Lambda, Gamma, Xi are the attention of a patch to itself, to another patch of its set, and to a
patch of another set; D is the number of patches, C that of a set. With state entry alpha, constant
nu, z the sum of a set's patches (each +1, -1 or 0) and Z the sum of z over all sets, the set adds

.. math::
   h = C \nu v + \sum_{k=0}^p \binom pk S_k u^k v^{p-k}, \quad
   u = D \alpha (\Lambda - \Gamma), \quad v = D \alpha (z / C + \Xi (Z - D z / C)), \qquad (1)

where S_k is C times the k-th central moment of the set's patches, so S_0 = C and S_1 = 0.
"""

from math import exp, expm1

import numpy as np

from dynamics.loops.kernels import kernels

SECOND = ((1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (3, 3))
"""Second derivatives in columns 4 to 9, as pairs of 1 (alpha), 2 (gamma) and 3 (rho)."""


def entries(state, constants):  # type: ignore[no-untyped-def]
    """Attention Lambda - Gamma, Gamma, Gamma - Xi, Xi; differences without cancellation."""
    D, C, scale = constants[0], constants[1], constants[4]
    b, g, r = scale * constants[3], scale * state[1], scale * state[2]
    top = max(b, g, r)
    own, mate, other = exp(b - top), exp(g - top), exp(r - top)
    B = own + (C - 1.0) * mate + (D - C) * other
    apart = -own * expm1(g - b) if b > g else mate * expm1(b - g)
    beyond = -mate * expm1(r - g) if g > r else other * expm1(g - r)
    return apart / B, mate / B, beyond / B, other / B


def coordinates(state, constants):  # type: ignore[no-untyped-def]
    """The factor u of (1), and x and y of v = x Z + y z, with their derivatives, shape (3, 10).

    The columns are the value, its derivatives by alpha, gamma, rho and by the pairs `SECOND`.
    `constants` holds D, C, nu, beta, scale.
    """
    D, C, s = constants[0], constants[1], constants[4]
    A, G, E, X = entries(state, constants)
    # g, r are the derivatives by gamma, rho of the log of the softmax's denominator (`entries`).
    g, r, less = s * (C - 1.0) * G, s * (D - C) * X, s * (A + C * G)
    A_g, A_r = -g * A - s * G, -r * A
    G_g, X_g, X_r = G * (s - g), -g * X, X * less
    A_gg, A_gr = -g * (s - g) * A - g * A_g - s * G_g, 2.0 * r * g * A + r * s * G
    A_rr, X_gg = r * (r - less) * A, -g * (s - g) * X - g * X_g
    X_gr, X_rr = X_g * less + r * g * X, X_r * less - r * less * X
    out, a = np.zeros((3, 10)), state[0]
    for row, (value, by_g, by_r, by_gg, by_gr, by_rr) in enumerate(
        ((A, A_g, A_r, A_gg, A_gr, A_rr), (X, X_g, X_r, X_gg, X_gr, X_rr))
    ):
        first = (a * value, value, a * by_g, a * by_r)
        filled = (*first, 0.0, by_g, by_r, a * by_gg, a * by_gr, a * by_rr)
        for place in range(10):
            out[row, place] = D * filled[place]
    for place in range(2, 10):
        out[2, place] = -D / C * out[1, place]
    out[2, 0], out[2, 1] = state[0] * D * (A / C + E), D * (A / C + E)
    return out


def tabulate(at, data, out):  # type: ignore[no-untyped-def]
    """Fill `out`, shape (4 or 10, values of Z, types of a set), with h of (1) and its derivatives.

    `at` is the result of `coordinates`; the first axis of `out` corresponds to the columns of `at`.
    """
    linear = data.constants[1] * data.constants[2]
    expand(at, data.moments, linear, data.sums, data.z + data.sums[-1], out)


def size_of_terms(state, data, out):  # type: ignore[no-untyped-def]
    """Fill sums of absolute terms of h in (1) and its derivatives; return their relative error."""
    at, moments = coordinates(state, data.constants), np.abs(data.moments)
    linear = data.constants[1] * data.constants[2]
    expand(np.abs(at), moments, linear, np.abs(data.sums), np.abs(data.z + data.sums[-1]), out)
    b, g, r = data.constants[3], state[1], state[2]
    spread = data.constants[4] * (max(b, g, r) - min(b, g, r))
    return 4e-16 * (moments.shape[0] + 8.0 + spread)


def expand(at, moments, linear, sums, totals, out):  # type: ignore[no-untyped-def]
    """Fill the contribution h of (1), and its derivatives, for each Z and each type of a set.

    `at` is the result of `coordinates`, and `linear` is C nu. `moments`, shape (p + 1, types),
    holds binom(p, k) S_k of each type, `sums` the z of each type, and `totals` the values of Z.
    """
    many, kinds = moments.shape
    scaled, v, f, f_v = (
        np.zeros((3, many, kinds)),
        np.empty(kinds),
        np.empty(kinds),
        np.empty(kinds),
    )
    f_vv, g, g_v, e = np.empty(kinds), np.empty(kinds), np.empty(kinds), np.empty(kinds)
    power, before, two = 1.0, 0.0, 0.0
    for j in range(many):
        for k in range(kinds):
            scaled[0, j, k] = power * moments[j, k]
            scaled[1, j, k] = j * before * moments[j, k]
            scaled[2, j, k] = j * (j - 1.0) * two * moments[j, k]
        power, before, two = power * at[0, 0], power, before
    for c in range(totals.size):
        for k in range(kinds):
            v[k] = at[1, 0] * totals[c] + at[2, 0] * sums[k]
            f[k], f_v[k], f_vv[k], g[k], g_v[k], e[k] = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(many):
            for k in range(kinds):
                f_v[k], f[k] = f_v[k] * v[k] + f[k], f[k] * v[k] + scaled[0, j, k]
                g[k] = g[k] * v[k] + scaled[1, j, k]
        for k in range(kinds):
            out[0, c, k] = f[k] + linear * v[k]
            for i in range(1, 4):
                v_i = at[1, i] * totals[c] + at[2, i] * sums[k]
                out[i, c, k] = (f_v[k] + linear) * v_i + g[k] * at[0, i]
        if out.shape[0] > 4:
            f[:], f_v[:], g[:] = 0.0, 0.0, 0.0
            for j in range(many):
                for k in range(kinds):
                    f_vv[k], f_v[k] = f_vv[k] * v[k] + 2.0 * f_v[k], f_v[k] * v[k] + f[k]
                    g_v[k], g[k] = g_v[k] * v[k] + g[k], g[k] * v[k] + scaled[1, j, k]
                    f[k] = f[k] * v[k] + scaled[0, j, k]
                    e[k] = e[k] * v[k] + scaled[2, j, k]
            second_derivatives(at, (f_v + linear, f_vv, g, g_v, e), sums, totals[c], out[:, c])


def second_derivatives(at, by, sums, total, out):  # type: ignore[no-untyped-def]
    """Fill second derivatives of h in (1) at one Z, from those `by` v, vv, u, uv and uu."""
    place = 4
    for i in range(1, 4):
        for j in range(i, 4):
            for k in range(sums.size):
                v_i = at[1, i] * total + at[2, i] * sums[k]
                v_j = at[1, j] * total + at[2, j] * sums[k]
                v_ij = at[1, place] * total + at[2, place] * sums[k]
                out[place, k] = (
                    by[1][k] * v_i * v_j
                    + by[3][k] * (v_i * at[0, j] + v_j * at[0, i])
                    + by[4][k] * at[0, i] * at[0, j]
                    + by[0][k] * v_ij
                    + by[2][k] * at[0, place]
                )
            place += 1


kernels(__name__)
