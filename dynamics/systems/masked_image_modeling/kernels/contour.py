r"""The expectation over masks as a contour integral, of a cost that does not grow with the counts.

:math:`D^{-k} = \int_0^\infty s^{k-1} e^{-sD} ds / \Gamma(k)`, and that M - 1 of the P - 1 other
patches are masked is the coefficient of :math:`x^{M-1}` in

.. math:: e^{-s w_p} \prod_j \Big( E_z \prod_{c \in j} (e^{-s w^+_c} + x e^{-s w^-_c})^{n_c} \Big).

At given (s, x) patches are independent, unmasked with the complex probability
:math:`t = e^{-s w^+} / (e^{-s w^+} + x e^{-s w^-})`, so an area has the moments
:math:`S_1 = \sum n t w^+`, :math:`S_2 = S_1^2 + \sum n t (1-t) (w^+)^2`, and everything that is
wanted is a polynomial in those of single areas.

The radius of the circle makes the mean number of masked patches right at every s (saddle point).
Its nodes stand at half steps: one at :math:`x < 0` would meet zeros of the factors. In s the rule
is double exponential on the left. Sums are divided by the same sum at s = 0.
"""

from math import cos, exp, log, pi, sin, sqrt

import numpy as np

STEP = 0.09
FROM = -3.7
MOST_NODES = 2000
NEGLIGIBLE = 46.0
"""What is below e^-46 of the greatest node is left out."""


def split(above, below):  # type: ignore[no-untyped-def]
    """Unmasked probability where the log odds of masked to unmasked are below - above."""
    gap = below - above
    if gap > 0.0:
        decay = exp(-gap)
        return decay / (1.0 + decay)
    return 1.0 / (1.0 + exp(gap))


def mean_open(s, turn, terms, shape, latents, out):  # type: ignore[no-untyped-def]
    """Mean number of unmasked patches at a real x = e^turn; log of the product in ``out[0]``."""
    opened, closed, number, owner = terms
    many_slots, copies = shape
    values, odds = latents
    nz = values.size
    mean, total, u, units = 0.0, 0.0, 0, number.size
    for k in range(many_slots):
        last = u
        while last < units and owner[last] == k:
            last += 1
        top = -np.inf
        for j in range(nz):
            factor = 0.0
            for c in range(u, last):
                above, below = -s * opened[c, j], -s * closed[c] + turn
                high = max(above, below)
                factor += number[c] * (high + log(exp(above - high) + exp(below - high)))
            out[1 + j] = factor
            top = max(top, factor)
        norm, expected = 0.0, 0.0
        for j in range(nz):
            chance = odds[j] * exp(out[1 + j] - top)
            norm += chance
            for c in range(u, last):
                expected += chance * number[c] * split(-s * opened[c, j], -s * closed[c] + turn)
        mean += copies[k] * expected / norm
        total += copies[k] * (top + log(norm))
        u = last
    out[0] = total
    return mean


def saddle(s, wanted, terms, shape, latents, out):  # type: ignore[no-untyped-def]
    """Log of the radius at which the mean number of unmasked patches is ``wanted``."""
    opened, closed, number, owner = terms
    count, low, high = 0.0, np.inf, -np.inf
    for c in range(number.size):
        count += number[c] * shape[1][owner[c]]
        for j in range(opened.shape[1]):
            gap = s * (closed[c] - opened[c, j])
            low, high = min(low, gap), max(high, gap)
    level = log(max(count - wanted, 1e-17) / wanted)
    low, high = low + level, high + level
    while high - low > 1e-3:
        middle = 0.5 * (low + high)
        if mean_open(s, middle, terms, shape, latents, out) > wanted:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def contour_block(state, block, shape, circle, latents, found):  # type: ignore[no-untyped-def]
    """Add the sums of one row type and one cluster to ``found``; see `counts_block`.

    Parameters
    ----------
    circle : (others, masked)
        P - 1, and masked patches among them.
    """
    units, slots = shape
    first_unit, first_slot = block[2], block[4]
    me, count, taken = block[6], block[3] - block[2], block[5] - block[4]
    values, odds = latents
    nz = values.size
    push, mass, results = found
    others, masked = circle
    wanted = others - masked

    opened, closed, number = np.empty((count, nz)), np.empty(count), np.empty(count)
    owner, copies = np.empty(count, dtype=np.int64), np.empty(taken)
    ends = np.empty(taken, dtype=np.int64)
    for k in range(taken):
        copies[k] = slots[first_slot + k, 1]
        ends[k] = slots[first_slot + k, 3] - first_unit
    shift = state[me]
    for c in range(count):
        ups, slot = state[units[first_unit + c, 1]], units[first_unit + c, 0]
        owner[c], number[c] = slot - first_slot, units[first_unit + c, 2]
        shift = max(shift, ups)
        for j in range(nz):
            shift = max(shift, ups + values[j] * state[slots[slot, 0]])
    alone = exp(state[me] - shift)
    bound = alone
    for c in range(count):
        ups, slot = state[units[first_unit + c, 1]], units[first_unit + c, 0]
        closed[c] = exp(ups - shift)
        most = closed[c]
        for j in range(nz):
            opened[c, j] = exp(ups + values[j] * state[slots[slot, 0]] - shift)
            most = max(most, opened[c, j])
        bound += number[c] * copies[owner[c]] * most
    if not bound < np.inf:
        push[me] = np.nan
        results[0] = np.nan
        return
    terms, form = (opened, closed, number, owner), (taken, copies)

    share = wanted / others
    around = int(14.0 * sqrt(others * share * (1.0 - share)) + 24.0)
    nodes = int(min(others + 1.0, around))
    nodes += nodes % 2
    scratch = np.empty(1 + nz)
    turn = saddle(0.0, wanted, terms, form, latents, scratch)
    mean_open(0.0, turn, terms, form, latents, scratch)
    reference = scratch[0] - masked * turn
    norm = 0.0
    for n in range(nodes // 2):
        angle = 2.0 * pi * (n + 0.5) / nodes
        radius = exp(turn)
        real, imaginary = 1.0 + radius * cos(angle), radius * sin(angle)
        modulus = 0.5 * others * log(real * real + imaginary * imaginary)
        modulus -= others * log(1.0 + radius)
        if modulus < -NEGLIGIBLE:
            break
        norm += exp(modulus) * cos(others * np.arctan2(imaginary, real) - masked * angle)

    mean_square = 0.0
    for j in range(nz):
        mean_square += odds[j] * values[j] * values[j]
    results[0] += 0.5 * block[10] * mean_square

    t = np.empty((count, nz), dtype=np.complex128)
    chance = np.empty((taken, nz), dtype=np.complex128)
    first, spread = np.empty((taken, nz), np.complex128), np.empty((taken, nz), np.complex128)
    second, exponent = np.empty(taken, np.complex128), np.empty(nz, np.complex128)
    for step in range(MOST_NODES):
        tau = FROM + STEP * step
        s = exp(tau - exp(-tau)) / bound
        width = STEP * s * (1.0 + exp(-tau))
        turn = saddle(s, wanted, terms, form, latents, scratch)
        mean_open(s, turn, terms, form, latents, scratch)
        height = scratch[0] - s * alone - masked * turn - reference
        if tau > 0.0 and height + 3.0 * log(s * bound) < -NEGLIGIBLE:
            break
        peak = 0.0
        for n in range(nodes // 2):
            angle = 2.0 * pi * (n + 0.5) / nodes
            direction = complex(cos(angle), sin(angle))
            total = complex(-s * alone - masked * turn - reference, -masked * angle)
            for k in range(taken):
                top = -np.inf
                for j in range(nz):
                    part, mu, var = 0.0 + 0.0j, 0.0 + 0.0j, 0.0 + 0.0j
                    for c in range(slots[first_slot + k, 2] - first_unit, ends[k]):
                        above, below = -s * opened[c, j], -s * closed[c] + turn
                        high = max(above, below)
                        lit = exp(above - high)
                        term = lit + exp(below - high) * direction
                        part += number[c] * (high + np.log(term))
                        t[c, j] = lit / term
                        mu += number[c] * t[c, j] * opened[c, j]
                        var += number[c] * t[c, j] * (1.0 - t[c, j]) * opened[c, j] ** 2
                    exponent[j], first[k, j], spread[k, j] = part, mu, var
                    top = max(top, part.real)
                whole = 0.0 + 0.0j
                for j in range(nz):
                    chance[k, j] = odds[j] * np.exp(exponent[j] - top)
                    whole += chance[k, j]
                for j in range(nz):
                    chance[k, j] /= whole
                total += copies[k] * (top + np.log(whole))
            value = np.exp(total)
            size = abs(value)
            if n == 0:
                peak = size
            if size < exp(-NEGLIGIBLE) * peak:
                break
            weight = value * (block[10] * width / norm)
            half, both, one, own_mean = 0.5 * s * s, 0.0 + 0.0j, 0.0 + 0.0j, 0.0 + 0.0j
            for k in range(taken):
                second[k] = 0.0
                for j in range(nz):
                    square = values[j] * values[j]
                    second[k] += chance[k, j] * square * (first[k, j] ** 2 + spread[k, j])
                    if k == 0:
                        one += chance[k, j] * square * first[k, j]
                        own_mean += chance[k, j] * first[k, j]
                both += copies[k] * second[k]
            results[0] += (weight * (0.5 * s * both - one)).real
            results[1] += (weight * own_mean).real
            push[me] += (weight * alone * (half * both - s * one)).real
            mass[me] += (weight * alone).real
            for c in range(count):
                k = owner[c]
                elsewhere = half * (both - second[k])
                if k > 0:
                    elsewhere -= s * one
                many = number[c] * copies[k]
                lit, dark, moved = 0.0 + 0.0j, 0.0 + 0.0j, 0.0 + 0.0j
                seen, hidden = 0.0 + 0.0j, 0.0 + 0.0j
                for j in range(nz):
                    square, likely = values[j] * values[j], chance[k, j] * many
                    without = first[k, j] - t[c, j] * opened[c, j]
                    var = spread[k, j] - t[c, j] * (1.0 - t[c, j]) * opened[c, j] ** 2
                    given = without + opened[c, j]
                    inside = half * square * (given * given + var)
                    if k == 0:
                        inside += square - 2.0 * s * square * given
                    else:
                        inside -= s * square * given
                    part = likely * t[c, j] * opened[c, j]
                    seen += part
                    part *= inside + elsewhere
                    lit += part
                    moved += values[j] * part
                    inside = half * square * (without * without + var)
                    if k == 0:
                        inside -= s * square * without
                    part = likely * (1.0 - t[c, j]) * closed[c]
                    hidden += part
                    dark += part * (inside + elsewhere)
                phi, ups = slots[units[first_unit + c, 0], 0], units[first_unit + c, 1]
                push[phi] += (weight * moved).real
                push[ups] += (weight * (lit + dark)).real
                mass[phi] += (weight * seen).real
                mass[ups] += (weight * (seen + hidden)).real
