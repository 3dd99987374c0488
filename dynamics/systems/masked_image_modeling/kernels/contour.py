r"""The expectation over masks as a contour integral, of a cost that does not grow with the counts.

:math:`D^{-k} = \int_0^\infty s^{k-1} e^{-sD} ds / \Gamma(k)`, and that M - 1 of the P - 1 other
patches are masked is the coefficient of :math:`x^{M-1}` in

.. math:: e^{-s w_p} \prod_j \Big( E_z \prod_{c \in j} (e^{-s w^+_c} + x e^{-s w^-_c})^{n_c} \Big).

At given (s, x) patches are independent, unmasked with the complex probability
:math:`t = e^{-s w^+} / (e^{-s w^+} + x e^{-s w^-})`, so an area has the moments
:math:`S_1 = \sum n t w^+`, :math:`S_2 = S_1^2 + \sum n t (1-t) (w^+)^2`, and loss, attention and
gradient are polynomials in those of single areas. With the integrand as the measure,

.. math::
   E[A_m] = \int S_{1,m}, \quad E[A_a^2] = \int s\, S_{2,a}, \quad
   E[\ell] = \tfrac12 E[z_m^2] + \int \tfrac12 s \sum_a z_a^2 S_{2,a} - z_m^2 S_{1,m},

and the increments, one power of 1/D higher, have :math:`\frac12 s^2` and s in their place.

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


def mean_open(s, turn, weights, law, out):  # type: ignore[no-untyped-def]
    """Mean number of unmasked patches at a real x = e^turn; log of the product in ``out[0]``.

    Parameters
    ----------
    s, turn : float
    weights : (opened, closed, patches, area, copies)
        Keys over the largest of them: w^+ (patch classes, latents), w^- (patch classes,), number of
        patches and area class of each patch class, number of areas of each area class.
    law : reduced.Law
    out : float array, shape (1 + latents,)
    """
    opened, closed, patches, area, copies = weights
    odds, latents = law.odds, law.z.size
    mean, total, first = 0.0, 0.0, 0
    for a in range(copies.size):
        last = first
        while last < area.size and area[last] == a:
            last += 1
        # Log of the factor of the area at every latent, in out[1:].
        top = -np.inf
        for j in range(latents):
            factor = 0.0
            for c in range(first, last):
                above, below = -s * opened[c, j], -s * closed[c] + turn
                high = max(above, below)
                factor += patches[c] * (high + log(exp(above - high) + exp(below - high)))
            out[1 + j] = factor
            top = max(top, factor)
        norm, expected = 0.0, 0.0
        for j in range(latents):
            chance = odds[j] * exp(out[1 + j] - top)
            norm += chance
            for c in range(first, last):
                above, below = -s * opened[c, j], -s * closed[c] + turn
                expected += chance * patches[c] * split(above, below)
        mean += copies[a] * expected / norm
        total += copies[a] * (top + log(norm))
        first = last
    out[0] = total
    return mean


def saddle(s, wanted, weights, law, out):  # type: ignore[no-untyped-def]
    """Log of the radius at which the mean number of unmasked patches is ``wanted``."""
    opened, closed, patches, area, copies = weights
    count, low, high = 0.0, np.inf, -np.inf
    for c in range(patches.size):
        count += patches[c] * copies[area[c]]
        for j in range(law.z.size):
            gap = s * (closed[c] - opened[c, j])
            low, high = min(low, gap), max(high, gap)
    level = log(max(count - wanted, 1e-17) / wanted)
    low, high = low + level, high + level
    while high - low > 1e-3:
        middle = 0.5 * (low + high)
        if mean_open(s, middle, weights, law, out) > wanted:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def contour_block(state, index, table, law, sums):  # type: ignore[no-untyped-def]
    """Add the sums of a block to ``sums``; see `reduced.counts_block`.

    Parameters
    ----------
    state : float array, shape (n,)
    index : int
        Which block.
    table : reduced.Blocks
    law : reduced.Law
    sums : reduced.Sums
    """
    block, area_table, patch_table = table.blocks[index], table.areas, table.patches
    first_patch, first_area, self_ups = block.first_patch, block.first_area, block.self_ups
    count, areas = block.last_patch - first_patch, block.last_area - first_area
    values, odds, latents = law.z, law.odds, law.z.size
    push, mass = sums.push, sums.mass
    others, masked = law.others, law.masked
    wanted = others - masked

    # w^+, w^- and w_p over the largest of them; ``bound`` is at least D at every mask.
    opened, closed, number = np.empty((count, latents)), np.empty(count), np.empty(count)
    owner, copies = np.empty(count, dtype=np.int64), np.empty(areas)
    weights = (opened, closed, number, owner, copies)
    begin, end = np.empty(areas, dtype=np.int64), np.empty(areas, dtype=np.int64)
    for a in range(areas):
        copies[a] = area_table[first_area + a].copies
        begin[a] = area_table[first_area + a].first - first_patch
        end[a] = area_table[first_area + a].last - first_patch
    shift = state[self_ups]
    for c in range(count):
        patches = patch_table[first_patch + c]
        ups, phi = state[patches.ups], state[area_table[patches.area].phi]
        owner[c], number[c] = patches.area - first_area, patches.patches
        shift = max(shift, ups)
        for j in range(latents):
            shift = max(shift, ups + values[j] * phi)
    self_weight = exp(state[self_ups] - shift)
    bound = self_weight
    for c in range(count):
        patches = patch_table[first_patch + c]
        ups, phi = state[patches.ups], state[area_table[patches.area].phi]
        closed[c] = exp(ups - shift)
        most = closed[c]
        for j in range(latents):
            opened[c, j] = exp(ups + values[j] * phi - shift)
            most = max(most, opened[c, j])
        bound += number[c] * copies[owner[c]] * most
    if not bound < np.inf:
        push[self_ups] = np.nan
        sums.loss[index] = np.nan
        return

    # The same integral at s = 0, by which all sums are divided: nodes of the circle in x (half of
    # them, as the others are their conjugates), its radius, and the coefficient of x^(M-1).
    share = wanted / others
    around = int(14.0 * sqrt(others * share * (1.0 - share)) + 24.0)
    nodes = int(min(others + 1.0, around))
    nodes += nodes % 2
    scratch = np.empty(1 + latents)
    turn = saddle(0.0, wanted, weights, law, scratch)
    mean_open(0.0, turn, weights, law, scratch)
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

    # The part E[z_m^2] / 2 of the loss does not depend on the state.
    mean_square = 0.0
    for j in range(latents):
        mean_square += odds[j] * values[j] * values[j]
    sums.loss[index] += 0.5 * block.clusters * mean_square

    # t of every patch class, chance of every latent, S_1 and S_2 - S_1^2 of every area.
    t = np.empty((count, latents), dtype=np.complex128)
    chance = np.empty((areas, latents), dtype=np.complex128)
    first = np.empty((areas, latents), np.complex128)
    variance = np.empty((areas, latents), np.complex128)
    second, exponent = np.empty(areas, np.complex128), np.empty(latents, np.complex128)
    for step in range(MOST_NODES):
        # s = e^(tau - e^-tau) / bound, double exponential on the left, and the radius at s.
        tau = FROM + STEP * step
        s = exp(tau - exp(-tau)) / bound
        width = STEP * s * (1.0 + exp(-tau))
        turn = saddle(s, wanted, weights, law, scratch)
        mean_open(s, turn, weights, law, scratch)
        height = scratch[0] - s * self_weight - masked * turn - reference
        if tau > 0.0 and height + 3.0 * log(s * bound) < -NEGLIGIBLE:
            break
        peak = 0.0
        for n in range(nodes // 2):
            # The integrand at x = e^(turn + i angle), and the moments of every area there.
            angle = 2.0 * pi * (n + 0.5) / nodes
            direction = complex(cos(angle), sin(angle))
            total = complex(-s * self_weight - masked * turn - reference, -masked * angle)
            for a in range(areas):
                top = -np.inf
                for j in range(latents):
                    logarithm, moment, var = 0.0 + 0.0j, 0.0 + 0.0j, 0.0 + 0.0j
                    for c in range(begin[a], end[a]):
                        above, below = -s * opened[c, j], -s * closed[c] + turn
                        high = max(above, below)
                        unmasked = exp(above - high)
                        term = unmasked + exp(below - high) * direction
                        logarithm += number[c] * (high + np.log(term))
                        t[c, j] = unmasked / term
                        moment += number[c] * t[c, j] * opened[c, j]
                        var += number[c] * t[c, j] * (1.0 - t[c, j]) * opened[c, j] ** 2
                    exponent[j], first[a, j], variance[a, j] = logarithm, moment, var
                    top = max(top, logarithm.real)
                factor = 0.0 + 0.0j
                for j in range(latents):
                    chance[a, j] = odds[j] * np.exp(exponent[j] - top)
                    factor += chance[a, j]
                for j in range(latents):
                    chance[a, j] /= factor
                total += copies[a] * (top + np.log(factor))
            value = np.exp(total)
            size = abs(value)
            if n == 0:
                peak = size
            if size < exp(-NEGLIGIBLE) * peak:
                break
            weight = value * (block.clusters * width / norm)
            # E[z^2 S_2] of every area and of all, E[z_m^2 S_1] and E[S_1] of that of p.
            half, squares = 0.5 * s * s, 0.0 + 0.0j
            own_square, own_mean = 0.0 + 0.0j, 0.0 + 0.0j
            for a in range(areas):
                second[a] = 0.0
                for j in range(latents):
                    square = values[j] * values[j]
                    second[a] += chance[a, j] * square * (first[a, j] ** 2 + variance[a, j])
                    if a == 0:
                        own_square += chance[a, j] * square * first[a, j]
                        own_mean += chance[a, j] * first[a, j]
                squares += copies[a] * second[a]
            sums.loss[index] += (weight * (0.5 * s * squares - own_square)).real
            sums.own[index] += (weight * own_mean).real
            push[self_ups] += (weight * self_weight * (half * squares - s * own_square)).real
            mass[self_ups] += (weight * self_weight).real
            # -dl/dstate of one patch of every class, unmasked or masked: what its own area has
            # without it (``without``) and with it (``given``), and what the other areas have.
            for c in range(count):
                a = owner[c]
                elsewhere = half * (squares - second[a])
                if a > 0:
                    elsewhere -= s * own_square
                many = number[c] * copies[a]
                open_push, closed_push, phi_push = 0.0 + 0.0j, 0.0 + 0.0j, 0.0 + 0.0j
                open_mass, closed_mass = 0.0 + 0.0j, 0.0 + 0.0j
                for j in range(latents):
                    square, likely = values[j] * values[j], chance[a, j] * many
                    without = first[a, j] - t[c, j] * opened[c, j]
                    var = variance[a, j] - t[c, j] * (1.0 - t[c, j]) * opened[c, j] ** 2
                    given = without + opened[c, j]
                    inside = half * square * (given * given + var)
                    if a == 0:
                        inside += square - 2.0 * s * square * given
                    else:
                        inside -= s * square * given
                    part = likely * t[c, j] * opened[c, j]
                    open_mass += part
                    part *= inside + elsewhere
                    open_push += part
                    phi_push += values[j] * part
                    inside = half * square * (without * without + var)
                    if a == 0:
                        inside -= s * square * without
                    part = likely * (1.0 - t[c, j]) * closed[c]
                    closed_mass += part
                    closed_push += part * (inside + elsewhere)
                patches = patch_table[first_patch + c]
                phi, ups = area_table[patches.area].phi, patches.ups
                push[phi] += (weight * phi_push).real
                push[ups] += (weight * (open_push + closed_push)).real
                mass[phi] += (weight * open_mass).real
                mass[ups] += (weight * (open_mass + closed_mass)).real
