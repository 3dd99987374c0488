r"""The expectation over masks as a sum over the numbers of unmasked patches of every patch class.

See `reduced` for the terms. Weights of keys are over the largest of all of them, so the denominator
of a configuration without that key may be nothing next to it; there, they are over the largest of
the keys that the configuration has.
"""

from math import exp

import numpy as np

BLOCK = 256
"""Configurations of an inner loop."""
LIGHTEST = 1e-150
"""Denominator over the largest key below which keys may be lost, or squares over it overflow."""


def latent_of(choice, area, values):  # type: ignore[no-untyped-def]
    """Digit of an area in the number of a choice of latents, ``values`` of them each.

    Parameters
    ----------
    choice : int
        Number of the choice of latents, from 0.
    area : int
        Which area, from 0.
    values : int
        Number of values of a latent.
    """
    for _ in range(area):
        choice //= values
    return choice % values


def set_weights(state, block, table, z, at, weights):  # type: ignore[no-untyped-def]
    """Set w^+ and w^- of every patch class, over the largest of them, and return w_p.

    Parameters
    ----------
    state : float array, shape (n,)
    block : record
        Row of the blocks.
    table : reduced.Blocks
    z : float array, shape (areas,)
        Latent of every area.
    at : int
        Configuration whose keys alone are set, others being 0; all keys where it is below 0.
    weights : (opened, closed)
        Float arrays, shape (patch classes,), filled.
    """
    opened, closed = weights
    areas, patches, counts = table.areas, table.patches, table.counts
    first, shift = block.first_patch, state[block.self_ups]
    for c in range(first, block.last_patch):
        ups, area = state[patches[c].ups], patches[c].area
        score = ups + z[area - block.first_area] * state[areas[area].phi]
        h, n = 1.0, 2.0
        if at >= 0:
            h = counts[block.counts + (c - first) * block.configurations + at]
            n = float(patches[c].patches)
        opened[c - first], closed[c - first] = -np.inf, -np.inf
        if h > 0.0:
            opened[c - first] = score
            shift = max(shift, score)
        if h < n:
            closed[c - first] = ups
            shift = max(shift, ups)
    for c in range(opened.size):
        opened[c], closed[c] = exp(opened[c] - shift), exp(closed[c] - shift)
    return exp(state[block.self_ups] - shift)


def set_denominators(block, table, start, size, weights, self_weight, room):  # type: ignore[no-untyped-def]
    """Set D in ``room.inverse``, and A_a D in ``room.attention``.

    The least D is returned where it may be below LIGHTEST, and infinity where w_p is not.

    Parameters
    ----------
    block : record
        Row of the blocks.
    table : reduced.Blocks
    start, size : int
        The first of the configurations, and how many.
    weights : (opened, closed)
        See `set_weights`.
    self_weight : float
        w_p.
    room : reduced.Room
    """
    opened_weight, closed_weight = weights
    inverse, attentions, first = room.inverse, room.attention, block.first_patch
    inverse[:size] = self_weight
    for k in range(block.last_area - block.first_area):
        attentions[k, :size] = 0.0
    for c in range(first, block.last_patch):
        opened, closed = opened_weight[c - first], closed_weight[c - first]
        at = block.counts + (c - first) * block.configurations + start
        h, n = table.counts[at : at + size], float(table.patches[c].patches)
        attention = attentions[table.patches[c].area - block.first_area]
        for i in range(size):
            part = h[i] * opened
            attention[i] += part
            inverse[i] += part + (n - h[i]) * closed
    least = np.inf
    if self_weight < LIGHTEST:
        for i in range(size):
            least = min(least, inverse[i])
    return least


def add_configurations(index, start, size, likely, z, table, weights, self_weight, room, sums):  # type: ignore[no-untyped-def]
    """Add configurations whose denominators are set to the sums of a block.

    Parameters
    ----------
    index : int
        Which block.
    start, size : int
        The first of the configurations, and how many.
    likely : float
        Chance of the latents, times the number of clusters alike.
    z : float array, shape (areas,)
        Latent of every area.
    table : reduced.Blocks
    weights : (opened, closed)
        See `set_weights`.
    self_weight : float
        w_p.
    room : reduced.Room
    sums : reduced.Sums
        Added to.
    """
    blocks, areas, patches, counts, chances = table
    push, mass = sums.push, sums.mass
    attentions, square_sums = room.attention, room.squares
    block = blocks[index]
    first, last, first_area = block.first_patch, block.last_patch, block.first_area
    area_count, many = block.last_area - first_area, block.configurations
    open_weight, closed_weight = weights
    inverse, rest, squared, weight = room.inverse, room.rest, room.squared, room.weight
    own = z[0] * z[0]
    chance = chances[block.chances + start : block.chances + start + size]
    for i in range(size):
        inverse[i] = 1.0 / inverse[i]
        weight[i] = likely * chance[i]
        squared[i] = 0.0
    # A_a, A_a^2 (of merged areas its conditional mean), and the sum of z_a^2 A_a^2.
    for k in range(area_count):
        attention, squares = attentions[k], square_sums[k]
        copies, square = float(areas[first_area + k].copies), z[k] * z[k]
        for i in range(size):
            attention[i] *= inverse[i]
            squares[i] = attention[i] * attention[i]
        if copies > 1.0:
            c = areas[first_area + k].first
            n = float(patches[c].patches)
            each = 1.0 / copies
            spread = each * (1.0 - each) / (n - 1.0)
            opened = open_weight[c - first]
            at = block.counts + (c - first) * many + start
            h = counts[at : at + size]
            for i in range(size):
                second = copies * h[i] * (h[i] * each * each + spread * (n - h[i]))
                share = opened * inverse[i]
                squares[i] = second * share * share
        for i in range(size):
            squared[i] += square * squares[i]
    # r, the loss z_m^2 (1/2 - A_m) + (1/2) sum of z_a^2 A_a^2, and the push on p itself.
    attention = attentions[0]
    loss, attended, self_mass, self_push = 0.0, 0.0, 0.0, 0.0
    for i in range(size):
        rest[i] = own * attention[i] - squared[i]
        loss += weight[i] * (0.5 * own - own * attention[i] + 0.5 * squared[i])
        attended += weight[i] * attention[i]
        part = weight[i] * inverse[i] * self_weight
        self_mass += part
        self_push -= part * rest[i]
    sums.loss[index] += loss
    sums.own[index] += attended
    mass[block.self_ups] += self_mass
    push[block.self_ups] += self_push
    # -dl/ds = u (1{a = m} z_m^2 - z_a^2 A_a - r) of unmasked keys, -u r of masked ones.
    for c in range(first, last):
        opened, closed = open_weight[c - first], closed_weight[c - first]
        at = block.counts + (c - first) * many + start
        h, n = counts[at : at + size], float(patches[c].patches)
        area = patches[c].area
        k = area - first_area
        attention, squares = attentions[k], square_sums[k]
        square, merged = z[k] * z[k], float(areas[area].copies) > 1.0
        open_push, closed_push, open_mass, closed_mass = 0.0, 0.0, 0.0, 0.0
        for i in range(size):
            scale = weight[i] * inverse[i]
            part = h[i] * opened * scale
            masked_part = (n - h[i]) * closed * scale
            open_mass += part
            closed_mass += masked_part
            closed_push -= masked_part * rest[i]
            open_push -= part * rest[i]
            if k == 0:
                open_push += part * square * (1.0 - attention[i])
            elif merged:
                open_push -= weight[i] * square * squares[i]
            else:
                open_push -= part * square * attention[i]
        phi, ups = areas[area].phi, patches[c].ups
        push[phi] += z[k] * open_push
        push[ups] += open_push + closed_push
        mass[phi] += open_mass
        mass[ups] += open_mass + closed_mass


def counts_block(state, index, table, law, room, sums):  # type: ignore[no-untyped-def]
    """Add the sums of a block over its counts to ``sums``.

    Counts are contiguous along configurations, and every inner loop runs over BLOCK of them.

    Parameters
    ----------
    state : float array, shape (n,)
    index : int
        Which block.
    table : reduced.Blocks
    law : reduced.Law
    room : reduced.Room
    sums : reduced.Sums
    """
    block, values = table.blocks[index], law.z
    classes, areas = block.last_patch - block.first_patch, block.last_area - block.first_area
    weights, z = (np.empty(classes), np.empty(classes)), np.empty(areas)
    for choice in range(values.size**areas):
        likely = float(block.clusters)
        for k in range(areas):
            digit = latent_of(choice, k, values.size)
            z[k] = values[digit]
            likely *= law.odds[digit]
        every = set_weights(state, block, table, z, -1, weights)
        for start in range(0, block.configurations, BLOCK):
            size = min(BLOCK, block.configurations - start)
            least = set_denominators(block, table, start, size, weights, every, room)
            if not least < LIGHTEST:
                add_configurations(index, start, size, likely, z, table, weights, every, room, sums)
                continue
            for one in range(start, start + size):
                alone = set_weights(state, block, table, z, one, weights)
                set_denominators(block, table, one, 1, weights, alone, room)
                add_configurations(index, one, 1, likely, z, table, weights, alone, room, sums)
            every = set_weights(state, block, table, z, -1, weights)
