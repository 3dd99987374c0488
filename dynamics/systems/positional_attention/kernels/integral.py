r"""One integral of the spectral expectation: kernels of the nodes at one sum z.

At every node u = kappa + i omega the types are folded into the coefficients of B(u, zeta), B is
taken on the circle of zeta, raised to the number of the other sets, and transformed back; weights
of s, and of s (1 - s), are added up. Equations are those of `spectral`. `WIDTH` nodes that follow
one another are one short vector (`dynamics.codegen.kernels.vectors`); complex arrays are pairs
(real part, imaginary part).
"""

from math import ceil, cos, exp, log, pi, sin

import numpy as np

from dynamics.codegen.kernels.vectors import WIDTH, broadcast, horizontal_sum, load, store
from dynamics.systems.positional_attention.kernels.circle import (
    farthest,
    from_circle,
    multiply_by,
    on_circle,
    powers_of_points,
    raised,
)
from dynamics.systems.positional_attention.kernels.saddle_points import exponent_error

FIRST_ORDER = 4
"""Tables of h and its first derivatives."""


def integrate(tables, law, columns, c):  # type: ignore[no-untyped-def]
    """Trapezoidal sum of (1) over omega at one z, by its plan; returns the integral of the risk.

    Adds w_k to ``columns.first``, and makes psi at the contour exact. Where the tables hold second
    derivatives, adds the weights of s (1 - s) too: v_k to ``columns.second``, and to
    ``columns.pairs`` for every two components the sum over two different sets,
    E[ s (1 - s) dh_i(set 1) dh_j(set 2); z ].

    Parameters
    ----------
    tables : float array, shape (4 or 10, K, columns)
        h, then its first derivatives, then second ones.
    law, columns : SumLaw, Columns
    c : int
        Position of z.
    """
    s, second = columns.contour[c], tables.shape[0] > FIRST_ORDER
    step, length, power = columns.step[c], columns.length[c], law.count - 1
    kinds, width, half = tables.shape[1], int(law.sums.max()), length // 2 + 1
    kappa, positions, h = law.kappas[s], law.sums + width, np.ascontiguousarray(tables[0, :, c])
    waves, shift = powers_of_points(width, length, int(law.z[c]))
    # p_k e^{-i omega h_k} at the present nodes, and its turn to the next ones.
    now, turn = (
        (np.empty((kinds, WIDTH)), np.empty((kinds, WIDTH))),
        (np.empty(kinds), np.empty(kinds)),
    )
    lam = columns.lam[c, s]
    log_sum = first_phases(law, h, (kappa, lam, step), now, turn)
    # pi / sin(pi u), and the phase of the signal set, which turns like that of a type.
    fronts, lead, next_lead = np.empty((6, WIDTH)), np.empty((3, WIDTH)), np.empty(3)
    first_front((step, h[kinds - 1]), lead, next_lead)
    rows = 2 * width + 1
    fold, back = np.empty((2, rows, WIDTH)), np.empty((2, rows, WIDTH))
    halves, sides = np.empty((4, width + 1, WIDTH)), np.empty((4, half, WIDTH))
    base, out = np.empty((2, length, WIDTH)), np.empty((2, length, WIDTH))
    weights, singles = np.zeros((kinds, WIDTH)), np.zeros((kinds, WIDTH))
    curved = second and power > 0
    by_component = np.empty((6, length if curved else 1, WIDTH))
    values, pairs = np.empty((2, kinds if curved else 1, WIDTH)), np.zeros((6, WIDTH))
    # The exponent (4) itself: psi, which bounds it, is larger where weights underflow.
    exponent, largest = law.count * log_sum - lam * law.z[c] - kappa * h[kinds - 1], 0.0
    for k in range(kinds):
        if law.probability[k] > 0.0:
            largest = max(largest, abs(h[k]))
    error = exponent_error(law, c, (kappa, lam), (largest, h[kinds - 1], width))
    columns.psi[c, s] = min(columns.psi[c, s], exponent + error)
    risk, scale = broadcast(0.0), exp(exponent) * step / pi
    for block in range(ceil((columns.window[c] / step + 1.0) / WIDTH)):
        fill_fronts(kappa, scale, (step, block * WIDTH), lead, fronts)
        turn_front(lead, next_lead)
        fold_types(positions, now[0], now[1], fold)
        on_circle(fold, waves, halves, base)
        if curved:
            reach = farthest(base, power - 1)
            raised(base, power - 1, shift, reach, out)
            for i in range(3):
                scaled(tables[1 + i, :, c], now, values)
                fold_types(positions, values[0], values[1], back)
                on_circle(back, waves, halves, by_component[2 * i : 2 * i + 2])
            add_pairs(by_component, out, reach, fronts, pairs)
            multiply_by(base, reach, out)
        else:
            reach = farthest(base, power)
            raised(base, power, shift, reach, out)
        from_circle(out, waves, reach, sides, back)
        risk += whole_times(fold, back, load(fronts, 4), load(fronts, 5))
        if second:
            times_front(back, load(fronts, 2), load(fronts, 3), fold)
            add_real_part(positions, now, fold, singles)
        times_front(back, load(fronts, 0), load(fronts, 1), fold)
        add_real_part(positions, now, fold, weights)
        turn_phases(now, turn)
    for k in range(kinds):
        columns.first[c, k] += horizontal_sum(load(weights, k))
    if second:
        for k in range(kinds):
            columns.second[c, k] += horizontal_sum(load(singles, k))
        for entry in range(6):
            columns.pairs[c, entry] += horizontal_sum(load(pairs, entry))
    return horizontal_sum(risk)


def first_phases(law, h, plan, now, turn):  # type: ignore[no-untyped-def]
    """p_k e^{-i omega h_k} at the first nodes, and what turns it to the next `WIDTH` ones.

    Parameters
    ----------
    law : SumLaw
    h : float array, shape (K,)
        h by type.
    plan : (float, float, float)
        kappa, lambda and the step.
    now : pair of float arrays, shape (K, WIDTH)
        Filled.
    turn : pair of float arrays, shape (K,)
        Filled.

    Returns
    -------
    float
        log S of (3).
    """
    kappa, lam, step = plan
    log_sum = tilted_law(law, h, kappa, lam, turn[0])
    for k in range(h.size):
        real, imag, turn_r, turn_i = turn[0][k], 0.0, cos(step * h[k]), -sin(step * h[k])
        for w in range(WIDTH):
            now[0][k, w], now[1][k, w] = real, imag
            real, imag = real * turn_r - imag * turn_i, real * turn_i + imag * turn_r
        squares = WIDTH
        while squares > 1:
            turn_r, turn_i = turn_r * turn_r - turn_i * turn_i, 2.0 * turn_r * turn_i
            squares //= 2
        turn[0][k], turn[1][k] = turn_r, turn_i
    return log_sum


def tilted_law(law, h, kappa, lam, tilted):  # type: ignore[no-untyped-def]
    """p_k of (3); returns log S.

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
    return top + log(total)


def first_front(at, lead, turn):  # type: ignore[no-untyped-def]
    """e^{-pi omega} and e^{-i omega h_s} at the first nodes, and what takes them to the next ones.

    Parameters
    ----------
    at : (float, float)
        The step, and h of the signal set.
    lead : float array, shape (3, WIDTH)
        Filled: the first, real and imaginary part of the second.
    turn : float array, shape (3,)
        Filled.
    """
    step, signal = at
    for w in range(WIDTH):
        omega = w * step
        lead[0, w], lead[1, w], lead[2, w] = (
            exp(-pi * omega),
            cos(omega * signal),
            -sin(omega * signal),
        )
    omega = WIDTH * step
    turn[0], turn[1], turn[2] = exp(-pi * omega), cos(omega * signal), -sin(omega * signal)


def turn_front(lead, turn):  # type: ignore[no-untyped-def]
    """What `first_front` fills, at the next nodes.

    Parameters
    ----------
    lead : float array, shape (3, WIDTH)
        Overwritten.
    turn : float array, shape (3,)
    """
    real, imag = load(lead, 1), load(lead, 2)
    store(lead, 0, load(lead, 0) * turn[0])
    store(lead, 1, real * turn[1] - imag * turn[2])
    store(lead, 2, real * turn[2] + imag * turn[1])


def fill_fronts(kappa, scale, at, lead, fronts):  # type: ignore[no-untyped-def]
    """What multiplies E[ ... ; z] at some nodes: for s, for s (1 - s), for the risk.

    pi / sin(pi u), the step and the phase of the signal set; times u, the kernel of s (1 - s); over
    u, that of the risk. Nodes at omega and -omega are conjugate.

    Parameters
    ----------
    kappa, scale : float
        The scale is e^psi step / pi.
    at : (float, int)
        The step, and the number of the first node.
    lead : float array, shape (3, WIDTH)
        See `first_front`.
    fronts : float array, shape (6, WIDTH)
        Filled: real and imaginary part of each.
    """
    step, first = at
    for w in range(WIDTH):
        fronts[0, w] = (first + w) * step
    omega, grow = load(fronts, 0), load(lead, 0)
    square = grow * grow
    real, imag = sin(pi * kappa) * (1.0 + square), cos(pi * kappa) * (1.0 - square)
    size = 2.0 * pi * scale * grow / (real * real + imag * imag)
    real, imag = size * real, -1.0 * size * imag
    front_r = real * load(lead, 1) - imag * load(lead, 2)
    front_i = real * load(lead, 2) + imag * load(lead, 1)
    over = 1.0 / (kappa * kappa + omega * omega)
    store(fronts, 0, front_r)
    store(fronts, 1, front_i)
    store(fronts, 2, front_r * kappa - front_i * omega)
    store(fronts, 3, front_r * omega + front_i * kappa)
    store(fronts, 4, (front_r * kappa + front_i * omega) * over)
    store(fronts, 5, (front_i * kappa - front_r * omega) * over)
    if first == 0:
        for part in range(6):
            fronts[part, 0] *= 0.5


def fold_types(positions, values_r, values_i, fold):  # type: ignore[no-untyped-def]
    """Coefficients over j of sum over types of values_k zeta^{z_k}.

    Parameters
    ----------
    positions : int array, shape (K,)
        z_k + C.
    values_r, values_i : float arrays, shape (K, WIDTH)
    fold : float array, shape (2, 2 C + 1, WIDTH)
        Filled.
    """
    fold_r, fold_i, nothing = fold[0], fold[1], broadcast(0.0)
    for j in range(fold_r.shape[0]):
        store(fold_r, j, nothing)
        store(fold_i, j, nothing)
    for k in range(positions.size):
        j = positions[k]
        store(fold_r, j, load(fold_r, j) + load(values_r, k))
        store(fold_i, j, load(fold_i, j) + load(values_i, k))


def whole_times(fold, back, front_r, front_i):  # type: ignore[no-untyped-def]
    """Real part of a front times the sum over j of fold_j back_j, which is E[ ... ; z].

    Parameters
    ----------
    fold, back : float arrays, shape (2, 2 C + 1, WIDTH)
    front_r, front_i : short vectors
    """
    fold_r, fold_i, back_r, back_i = fold[0], fold[1], back[0], back[1]
    real, imag = broadcast(0.0), broadcast(0.0)
    for j in range(fold_r.shape[0]):
        real += load(fold_r, j) * load(back_r, j) - load(fold_i, j) * load(back_i, j)
        imag += load(fold_r, j) * load(back_i, j) + load(fold_i, j) * load(back_r, j)
    return front_r * real - front_i * imag


def times_front(back, front_r, front_i, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` with ``back`` times a front.

    Parameters
    ----------
    back : float array, shape (2, 2 C + 1, WIDTH)
    front_r, front_i : short vectors
    out : float array, shape (2, 2 C + 1, WIDTH)
    """
    back_r, back_i, out_r, out_i = back[0], back[1], out[0], out[1]
    for j in range(back_r.shape[0]):
        real, imag = load(back_r, j), load(back_i, j)
        store(out_r, j, real * front_r - imag * front_i)
        store(out_i, j, real * front_i + imag * front_r)


def add_real_part(positions, now, factor, out):  # type: ignore[no-untyped-def]
    """Add Re(now_k factor_j) to ``out``, j the position of type k.

    Parameters
    ----------
    positions : int array, shape (K,)
        z_k + C.
    now : pair of float arrays, shape (K, WIDTH)
    factor : float array, shape (2, 2 C + 1, WIDTH)
    out : float array, shape (K, WIDTH)
    """
    now_r, now_i = now
    factor_r, factor_i = factor[0], factor[1]
    for k in range(positions.size):
        j = positions[k]
        real = load(now_r, k) * load(factor_r, j) - load(now_i, k) * load(factor_i, j)
        store(out, k, load(out, k) + real)


def turn_phases(now, turn):  # type: ignore[no-untyped-def]
    """Multiply p_k e^{-i omega h_k} by its turn to the next nodes, in place.

    Parameters
    ----------
    now : pair of float arrays, shape (K, WIDTH)
        Overwritten.
    turn : pair of float arrays, shape (K,)
    """
    now_r, now_i = now
    turn_r, turn_i = turn
    for k in range(turn_r.size):
        real, imag = load(now_r, k), load(now_i, k)
        store(now_r, k, real * turn_r[k] - imag * turn_i[k])
        store(now_i, k, real * turn_i[k] + imag * turn_r[k])


def scaled(slopes, now, values):  # type: ignore[no-untyped-def]
    """Fill dh_k times p_k e^{-i omega h_k}.

    Parameters
    ----------
    slopes : float array, shape (K,)
        dh by type.
    now : pair of float arrays, shape (K, WIDTH)
    values : float array, shape (2, K, WIDTH)
        Filled.
    """
    now_r, now_i = now
    values_r, values_i = values[0], values[1]
    for k in range(slopes.size):
        store(values_r, k, slopes[k] * load(now_r, k))
        store(values_i, k, slopes[k] * load(now_i, k))


def add_pairs(base, out, reach, fronts, pairs):  # type: ignore[no-untyped-def]
    """Add the sum over m of B^{n-2} B_i B_j zeta^{-z} with its front; B_i has dh_i in every term.

    Parameters
    ----------
    base : float array, shape (6, M, WIDTH)
        Real and imaginary part of each B_i.
    out : float array, shape (2, M, WIDTH)
        B^{n-2} zeta^{-z} on the circle, see `raised`.
    reach : int
        See `farthest`.
    fronts : float array, shape (6, WIDTH)
        See `fill_fronts`.
    pairs : float array, shape (6, WIDTH)
        For i <= j.
    """
    out_r, out_i, entry, length = out[0], out[1], 0, out.shape[1]
    for i in range(3):
        for j in range(i, 3):
            one_r, one_i = base[2 * i], base[2 * i + 1]
            other_r, other_i = base[2 * j], base[2 * j + 1]
            real, imag = broadcast(0.0), broadcast(0.0)
            for point in range(min(2 * reach + 1, length)):
                m = point if point <= reach else length - (point - reach)
                both_r = load(one_r, m) * load(other_r, m) - load(one_i, m) * load(other_i, m)
                both_i = load(one_r, m) * load(other_i, m) + load(one_i, m) * load(other_r, m)
                real += load(out_r, m) * both_r - load(out_i, m) * both_i
                imag += load(out_r, m) * both_i + load(out_i, m) * both_r
            bent = load(fronts, 2) * real - load(fronts, 3) * imag
            store(pairs, entry, load(pairs, entry) + bent)
            entry += 1
