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

and the increments, one power of 1/D higher, have :math:`\frac12 s^2` and s in their place. Weights
are s w, so that s stands nowhere alone and keys may differ by more than a double holds.

The radius of the circle makes the mean number of masked patches right at every s (saddle point).
Its nodes stand at half steps: one at :math:`x < 0` would meet zeros of the factors. In s the rule
is double exponential on the left. Sums are divided by the same sum at s = 0.
"""

from math import cos, exp, log, pi, sin, sqrt

import numpy as np

from dynamics.systems.masked_image_modeling.kernels.saddle_point import mean_open, saddle

STEP = 0.09
FROM = -3.7
MOST_NODES = 20_000
"""Thirty keys, each far from all others, take as many."""
HEAVIEST = 300.0
"""Log of the largest s w: a key of more has no chance, and the square of this is a double."""
GONE, REGULAR = 8.0, 5.0
"""Log of an s w of no chance. From this tau on ln s grows with it, up to e^-5 in all."""
NEGLIGIBLE = 46.0
"""What is below e^-46 of the greatest node is left out."""
ROUGH = 1e-6
"""Rounding of the log of the integrand, or of s, from which on the integral is not a number."""


def set_keys(state, block, table, law, weights, ends):  # type: ignore[no-untyped-def]
    """Set logs of w^+ and w^- of the patch classes of a block, over the largest of them.

    Parameters
    ----------
    state : float array, shape (n,)
    block : record
        Row of the blocks.
    table : reduced.Blocks
    law : reduced.Law
    weights : (opened, closed, patches, area, copies)
        See `saddle_point.mean_open`.
    ends : (begin, end)
        First patch class of every area and the one after its last.

    Returns
    -------
    self_key, bound : float
        Log of w_p, and what is at least D at every mask.
    """
    opened, closed, number, owner, copies = weights
    begin, end = ends
    area_table, patch_table, values = table.areas, table.patches, law.z
    first_patch, first_area, self_ups = block.first_patch, block.first_area, block.self_ups
    for a in range(copies.size):
        copies[a] = area_table[first_area + a].copies
        begin[a] = area_table[first_area + a].first - first_patch
        end[a] = area_table[first_area + a].last - first_patch
    shift = state[self_ups]
    for c in range(number.size):
        patches = patch_table[first_patch + c]
        ups, phi = state[patches.ups], state[area_table[patches.area].phi]
        owner[c], number[c] = patches.area - first_area, patches.patches
        shift = max(shift, ups)
        for j in range(values.size):
            shift = max(shift, ups + values[j] * phi)
    bound = exp(state[self_ups] - shift)
    for c in range(number.size):
        patches = patch_table[first_patch + c]
        ups, phi = state[patches.ups], state[area_table[patches.area].phi]
        closed[c] = ups - shift
        most = closed[c]
        for j in range(values.size):
            opened[c, j] = ups + values[j] * phi - shift
            most = max(most, opened[c, j])
        bound += number[c] * copies[owner[c]] * exp(most)
    return state[self_ups] - shift, bound


def scaled(log_s, keys, weights):  # type: ignore[no-untyped-def]
    """Set s w^+ and s w^- of ``weights``, by the logs of w^+ and w^- in ``keys``.

    Parameters
    ----------
    log_s : float
    keys, weights : (opened, closed, patches, area, copies)
        See `saddle_point.mean_open`.
    """
    for c in range(keys[1].size):
        weights[1][c] = exp(min(keys[1][c] + log_s, HEAVIEST))
        for j in range(keys[0].shape[1]):
            weights[0][c, j] = exp(min(keys[0][c, j] + log_s, HEAVIEST))


def idle_steps(log_s, self_key, keys):  # type: ignore[no-untyped-def]
    """Steps from s on in which no key matters: it has no chance, or s w is below e^-46.

    Parameters
    ----------
    log_s, self_key : float
        The latter log of w_p.
    keys : (opened, closed, patches, area, copies)
        Logs of w^+ and w^-; see `saddle_point.mean_open`.
    """
    ahead = np.inf
    if self_key + log_s < GONE:
        ahead = -NEGLIGIBLE - self_key - log_s
    for c in range(keys[1].size):
        if keys[1][c] + log_s < GONE:
            ahead = min(ahead, -NEGLIGIBLE - keys[1][c] - log_s)
        for j in range(keys[0].shape[1]):
            if keys[0][c, j] + log_s < GONE:
                ahead = min(ahead, -NEGLIGIBLE - keys[0][c, j] - log_s)
    return int(ahead / STEP) if 0.0 < ahead < np.inf else 0


def circle_nodes(law):  # type: ignore[no-untyped-def]
    """Number of nodes of the circle in x, even: half of them are the conjugates of the others."""
    # A product of what is exact: a share of 1 that rounds above it has no root of 1 - share.
    variance = law.masked * (law.others - law.masked) / law.others
    around = int(14.0 * sqrt(variance) + 24.0)
    nodes = int(min(law.others + 1.0, around))
    return nodes + nodes % 2


def sum_at_zero(turn, nodes, law):  # type: ignore[no-untyped-def]
    """The integral over the circle at s = 0, by which all sums are divided.

    Parameters
    ----------
    turn : float
        Log of the radius.
    nodes : int
        Nodes of the circle, even.
    law : reduced.Law
    """
    others, norm = law.others, 0.0
    for n in range(nodes // 2):
        angle = 2.0 * pi * (n + 0.5) / nodes
        radius = exp(turn)
        real, imaginary = 1.0 + radius * cos(angle), radius * sin(angle)
        modulus = 0.5 * others * log(real * real + imaginary * imaginary)
        modulus -= others * log(1.0 + radius)
        if modulus < -NEGLIGIBLE:
            break
        norm += exp(modulus) * cos(others * np.arctan2(imaginary, real) - law.masked * angle)
    return norm


def mean_square(law):  # type: ignore[no-untyped-def]
    """E[z_m^2]: half of it is the part of the loss that does not depend on the state."""
    total = 0.0
    for j in range(law.z.size):
        total += law.odds[j] * law.z[j] * law.z[j]
    return total


def room_for_keys(count, areas, latents):  # type: ignore[no-untyped-def]
    """Scratch arrays (weights, ends) of `set_keys`.

    Parameters
    ----------
    count, areas, latents : int
        Numbers of patch classes, area classes and values of a latent.
    """
    opened, closed, number = np.empty((count, latents)), np.empty(count), np.empty(count)
    weights = (opened, closed, number, np.empty(count, dtype=np.int64), np.empty(areas))
    return weights, (np.empty(areas, dtype=np.int64), np.empty(areas, dtype=np.int64))


def room_for_moments(count, areas, latents):  # type: ignore[no-untyped-def]
    """Scratch arrays (t, chance, first, variance, exponent) of a node.

    t of every patch class (count, latents); of every area class (areas, latents) the probability of
    each latent, S_1 and S_2 - S_1^2; a vector (latents,).

    Parameters
    ----------
    count, areas, latents : int
        Numbers of patch classes, area classes and values of a latent.
    """
    return (
        np.empty((count, latents), dtype=np.complex128),
        np.empty((areas, latents), dtype=np.complex128),
        np.empty((areas, latents), dtype=np.complex128),
        np.empty((areas, latents), dtype=np.complex128),
        np.empty(latents, dtype=np.complex128),
    )


def area_means(values, copies, moments, second):  # type: ignore[no-untyped-def]
    """E[z^2 S_2] of every area in ``second`` and of all, E[z_m^2 S_1] and E[S_1] of that of p.

    Parameters
    ----------
    values : float array, shape (latents,)
        Values of a latent.
    copies : float array, shape (areas,)
        Number of areas of each area class.
    moments : (t, chance, first, variance, exponent)
        See `room_for_moments`.
    second : complex array, shape (areas,)
        Filled.
    """
    _, chance, first, variance, _ = moments
    squares, own_square, own_mean = 0.0 + 0.0j, 0.0 + 0.0j, 0.0 + 0.0j
    for a in range(copies.size):
        second[a] = 0.0
        for j in range(values.size):
            square = values[j] * values[j]
            second[a] += chance[a, j] * square * (first[a, j] ** 2 + variance[a, j])
            if a == 0:
                own_square += chance[a, j] * square * first[a, j]
                own_mean += chance[a, j] * first[a, j]
        squares += copies[a] * second[a]
    return squares, own_square, own_mean


def add_node(index, weight, self_weight, table, law, sums, weights, moments, second):  # type: ignore[no-untyped-def]
    """Add a node of the integral, of value times width ``weight``, to the sums of a block.

    Parameters
    ----------
    index : int
        Which block.
    weight : complex
        Integrand times the width of the step in ln s.
    self_weight : float
        s w_p.
    table : reduced.Blocks
    law : reduced.Law
    sums : reduced.Sums
        Added to.
    weights : (opened, closed, patches, area, copies)
        See `saddle_point.mean_open`.
    moments : (t, chance, first, variance, exponent)
        See `room_for_moments`.
    second : complex array, shape (areas,)
        Overwritten.
    """
    block, values, patch_table, area_table = table.blocks[index], law.z, table.patches, table.areas
    push, mass = sums.push, sums.mass
    opened, closed, number, owner, copies = weights
    t, chance, first, variance, _ = moments
    squares, own_square, own_mean = area_means(values, copies, moments, second)
    sums.loss[index] += (weight * (0.5 * squares - own_square)).real
    sums.own[index] += (weight * own_mean).real
    push[block.self_ups] += (weight * self_weight * (0.5 * squares - own_square)).real
    mass[block.self_ups] += (weight * self_weight).real
    # -dl/dstate of one patch of every class, unmasked or masked: what its own area has without it
    # (``without``) and with it (``within``), and what the other areas have.
    for c in range(owner.size):
        a = owner[c]
        elsewhere = 0.5 * (squares - second[a])
        if a > 0:
            elsewhere -= own_square
        many = number[c] * copies[a]
        open_push, closed_push, phi_push = 0.0 + 0.0j, 0.0 + 0.0j, 0.0 + 0.0j
        open_mass, closed_mass = 0.0 + 0.0j, 0.0 + 0.0j
        for j in range(values.size):
            square, likely = values[j] * values[j], chance[a, j] * many
            without = first[a, j] - t[c, j] * opened[c, j]
            var = variance[a, j] - t[c, j] * (1.0 - t[c, j]) * opened[c, j] ** 2
            within = without + opened[c, j]
            inside = 0.5 * square * (within * within + var)
            if a == 0:
                inside += square - 2.0 * square * within
            else:
                inside -= square * within
            part = likely * t[c, j] * opened[c, j]
            open_mass += part
            part *= inside + elsewhere
            open_push += part
            phi_push += values[j] * part
            inside = 0.5 * square * (without * without + var)
            if a == 0:
                inside -= square * without
            part = likely * (1.0 - t[c, j]) * closed[c]
            closed_mass += part
            closed_push += part * (inside + elsewhere)
        patches = patch_table[block.first_patch + c]
        phi, ups = area_table[patches.area].phi, patches.ups
        push[phi] += (weight * phi_push).real
        push[ups] += (weight * (open_push + closed_push)).real
        mass[phi] += (weight * open_mass).real
        mass[ups] += (weight * (open_mass + closed_mass)).real


def contour_block(state, index, table, law, sums):  # type: ignore[no-untyped-def]
    """Add the sums of a block to ``sums``; see `counts.counts_block`.

    Parameters
    ----------
    state : float array, shape (n,)
    index : int
        Which block.
    table : reduced.Blocks
    law : reduced.Law
    sums : reduced.Sums
    """
    block, latents = table.blocks[index], law.z.size
    count, areas = block.last_patch - block.first_patch, block.last_area - block.first_area
    masked, unmasked_count = law.masked, law.others - law.masked
    weights, ends = room_for_keys(count, areas, latents)
    keys = (weights[0].copy(), weights[1].copy(), *weights[2:])
    self_key, bound = set_keys(state, block, table, law, keys, ends)
    if not bound < np.inf:
        sums.push[block.self_ups] = np.nan
        sums.loss[index] = np.nan
        return
    nodes, scratch = circle_nodes(law), np.empty(1 + latents)
    scaled(-np.inf, keys, weights)
    turn = saddle(unmasked_count, weights, law, scratch)
    mean_open(turn, weights, law, scratch)
    reference, norm = scratch[0] - masked * turn, sum_at_zero(turn, nodes, law)
    sums.loss[index] += 0.5 * block.clusters * mean_square(law)
    moments = room_for_moments(count, areas, latents)
    second = np.empty(areas, dtype=np.complex128)
    opened, closed, number, owner, copies = weights
    begin, end = ends
    t, chance, first, variance, exponent = moments
    odds = law.odds
    complete, step = False, -1
    for _ in range(MOST_NODES):
        step += 1
        tau = FROM + STEP * step
        if tau > REGULAR:
            step += idle_steps(tau - log(bound), self_key, keys)
        # s = e^(tau - e^-tau) / bound, double exponential on the left, and the radius at s.
        tau = FROM + STEP * step
        log_s = tau - exp(-tau) - log(bound)
        width = STEP * (1.0 + exp(-tau))
        scaled(log_s, keys, weights)
        self_weight = exp(min(self_key + log_s, HEAVIEST))
        turn = saddle(unmasked_count, weights, law, scratch)
        mean_open(turn, weights, law, scratch)
        height = scratch[0] - self_weight - masked * turn - reference
        rounding = 1e-16 * (law.others * abs(turn) + tau)
        if tau > 0.0 and height + 3.0 * (log_s + log(bound)) < -NEGLIGIBLE - rounding:
            complete = True
            break
        if not rounding < ROUGH or np.isnan(sums.loss[index]):
            break
        peak = 0.0
        for n in range(nodes // 2):
            # The integrand at x = e^(turn + i angle), and the moments of every area there.
            angle = 2.0 * pi * (n + 0.5) / nodes
            direction = complex(cos(angle), sin(angle))
            total = complex(-self_weight - masked * turn - reference, -masked * angle)
            for a in range(areas):
                top = -np.inf
                for j in range(latents):
                    logarithm, moment, var = 0.0 + 0.0j, 0.0 + 0.0j, 0.0 + 0.0j
                    for c in range(begin[a], end[a]):
                        above, below = -opened[c, j], turn - closed[c]
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
            add_node(index, weight, self_weight, table, law, sums, weights, moments, second)
    if not complete:
        sums.push[block.self_ups] = np.nan
        sums.loss[index] = np.nan
