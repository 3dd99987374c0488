r"""The expectation over masks as a sum over counts.

Fix a patch p that is masked, and a cluster. Patches of one *unit* (the patches of one class in one
area) are alike, so a mask enters by the number h_u of unmasked patches of each unit only. With
:math:`w = e^{\Upsilon}` for a masked key and :math:`w = e^{\Upsilon + z\Phi}` for an unmasked one,

.. math::
   D = w_p + \sum_u h_u w_u^+ + (n_u - h_u) w_u^-, \quad
   A_a = \sum_{u \in a} h_u w_u^+ / D, \quad
   r = z_m^2 A_m - \sum_a z_a^2 A_a^2 .

A slot is an area. Of *merged* slots, nu areas alike of one unit each, only the total h is known;
given it the counts of the areas are hypergeometric, and
:math:`E \sum_i A_i^2 = \nu (\bar h^2 + \mathrm{var}) (w^+/D)^2`. Every term is linear in
that sum, so nothing is lost.

Counts are contiguous along configurations, and every inner loop runs over a block of them.
"""

from math import exp

import numpy as np

BLOCK = 256


def latent_of(choice, slot, many):  # type: ignore[no-untyped-def]
    """Digit of a slot in the number of a choice of latents, ``many`` values each."""
    for _ in range(slot):
        choice //= many
    return choice % many


def counts_block(state, block, shape, configurations, latents, room, found):  # type: ignore[no-untyped-def]
    """Add the sums of one row type and one cluster to ``found``.

    Parameters
    ----------
    state : float array, shape (n,)
    block : int array
        See `expectation.blocks.FIELDS`.
    shape : (units, slots)
        All of them; ``block`` says which are its own.
    configurations : (counts, chances)
        Flat: counts of the block unit by unit, and the chance of each configuration.
    latents : (values, odds)
    room : float array, shape (rows, BLOCK)
    found : (push, mass, results)
        Sums of -dl/dstate and of attention by state (n,), and of (loss, own attention) (2,).
    """
    units, slots = shape
    first_unit, last_unit, first_slot, last_slot = block[2], block[3], block[4], block[5]
    me, many = block[6], block[8]
    counts, chances = configurations
    values, odds = latents
    push, mass, results = found
    taken = last_slot - first_slot
    open_weight, closed_weight = np.empty(last_unit - first_unit), np.empty(last_unit - first_unit)
    z = np.empty(taken)
    inverse, rest, both, weight = room[0], room[1], room[2], room[3]
    for choice in range(values.size**taken):
        likely = float(block[10])
        for k in range(taken):
            digit = latent_of(choice, k, values.size)
            z[k] = values[digit]
            likely *= odds[digit]
        shift = state[me]
        for u in range(first_unit, last_unit):
            ups, slot = state[units[u, 1]], units[u, 0] - first_slot
            reached = ups + z[slot] * state[slots[units[u, 0], 0]]
            shift = max(shift, max(ups, reached))
        for u in range(first_unit, last_unit):
            ups, slot = state[units[u, 1]], units[u, 0] - first_slot
            reached = ups + z[slot] * state[slots[units[u, 0], 0]]
            open_weight[u - first_unit] = exp(reached - shift)
            closed_weight[u - first_unit] = exp(ups - shift)
        alone, own = exp(state[me] - shift), z[0] * z[0]
        for start in range(0, many, BLOCK):
            size = min(BLOCK, many - start)
            inverse[:size] = alone
            for k in range(taken):
                room[4 + k, :size] = 0.0
            for u in range(first_unit, last_unit):
                opened, closed = open_weight[u - first_unit], closed_weight[u - first_unit]
                at = block[7] + (u - first_unit) * many + start
                h, n = counts[at : at + size], float(units[u, 2])
                area = room[4 + units[u, 0] - first_slot]
                for c in range(size):
                    part = h[c] * opened
                    area[c] += part
                    inverse[c] += part + (n - h[c]) * closed
            chance = chances[block[9] + start : block[9] + start + size]
            for c in range(size):
                inverse[c] = 1.0 / inverse[c]
                weight[c] = likely * chance[c]
                both[c] = 0.0
            for k in range(taken):
                area, squares = room[4 + k], room[4 + taken + k]
                nu, square = float(slots[first_slot + k, 1]), z[k] * z[k]
                for c in range(size):
                    area[c] *= inverse[c]
                    squares[c] = area[c] * area[c]
                if nu > 1.0:
                    u = slots[first_slot + k, 2]
                    n = float(units[u, 2])
                    each = 1.0 / nu
                    spread = each * (1.0 - each) / (n - 1.0)
                    opened = open_weight[u - first_unit]
                    at = block[7] + (u - first_unit) * many + start
                    h = counts[at : at + size]
                    for c in range(size):
                        second = nu * h[c] * (h[c] * each * each + spread * (n - h[c]))
                        share = opened * inverse[c]
                        squares[c] = second * share * share
                for c in range(size):
                    both[c] += square * squares[c]
            area = room[4]
            loss, attended, lone, lone_push = 0.0, 0.0, 0.0, 0.0
            for c in range(size):
                rest[c] = own * area[c] - both[c]
                loss += weight[c] * (0.5 * own - own * area[c] + 0.5 * both[c])
                attended += weight[c] * area[c]
                part = weight[c] * inverse[c] * alone
                lone += part
                lone_push -= part * rest[c]
            results[0] += loss
            results[1] += attended
            mass[me] += lone
            push[me] += lone_push
            for u in range(first_unit, last_unit):
                opened, closed = open_weight[u - first_unit], closed_weight[u - first_unit]
                at = block[7] + (u - first_unit) * many + start
                h, n = counts[at : at + size], float(units[u, 2])
                k = units[u, 0] - first_slot
                area, squares = room[4 + k], room[4 + taken + k]
                square, whole = z[k] * z[k], float(slots[first_slot + k, 1]) > 1.0
                up, down, seen, hidden = 0.0, 0.0, 0.0, 0.0
                for c in range(size):
                    chance_each = weight[c] * inverse[c]
                    part = h[c] * opened * chance_each
                    dark = (n - h[c]) * closed * chance_each
                    seen += part
                    hidden += dark
                    down -= dark * rest[c]
                    up -= part * rest[c]
                    if k == 0:
                        up += part * square * (1.0 - area[c])
                    elif whole:
                        up -= weight[c] * square * squares[c]
                    else:
                        up -= part * square * area[c]
                phi, ups = slots[units[u, 0], 0], units[u, 1]
                push[phi] += z[k] * up
                push[ups] += up + down
                mass[phi] += seen
                mass[ups] += seen + hidden
