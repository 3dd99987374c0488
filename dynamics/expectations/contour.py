r"""Expected loss of a masked patch over masks and latents, by contour integral or sum over counts.

A *block* is one row type of the matrix Q in one cluster of images; p is a masked patch of this row
type. The other patches form *classes*: a class has n patches of one area with the same correlation
Ups with p. The softmax weight of a patch is :math:`w^- = e^{\Upsilon}` if it is masked, and
:math:`w^+ = e^{\Upsilon + z\Phi}` if it is unmasked and its area has the latent z. With m the area
of p, z_a the latent of area a and A_a the attention on the unmasked patches of area a, the loss is

.. math:: \ell = \tfrac12 z_m^2 - z_m^2 A_m + \tfrac12 \sum_a z_a^2 A_a^2.

The cost of the contour integral (`contour_block`) is independent of the number of configurations.
With D the sum of all weights, :math:`1 / D^k` is the integral of s^{k-1} e^{-sD} / (k-1)! over s >
0. That M - 1 of the P - 1 other patches are masked selects the coefficient of :math:`x^{M-1}` in

.. math:: F = e^{-s w_p} \prod_a \Big( E_z \prod_{c \in a}
    (e^{-s w^+_c} + x e^{-s w^-_c})^{n_c} \Big),

where w_p is the weight of p, c runs over the classes of area a, and E_z is the mean over its
latent. At given s and x, a patch with the weights w^+ and w^- is unmasked with the complex
probability :math:`t = e^{-s w^+} / (e^{-s w^+} + x e^{-s w^-})`, independently of other patches. At
a given latent of an area, the sum of s w^+ over its unmasked patches has the moments

.. math:: S_1 = \sum n t s w^+, \qquad S_2 = S_1^2 + \sum n t (1 - t) (s w^+)^2,

as sums over the classes of the area. Integrals over s and x with the measure F give the expected
loss, and its derivative by a scalar theta of Q:

.. math:: E[\ell] = \tfrac12 E[z_m^2] + \int R, \qquad
    R = \sum_a \tfrac12 z_a^2 S_{2,a} - z_m^2 S_{1,m}, \qquad
    \partial_\theta E[\ell] = \int R\, \partial_\theta \ln F + \partial_\theta R.

For every s, the nodes x lie on the circle with M - 1 masked patches on average (saddle point of F).
They avoid :math:`x < 0`, where factors of F have zeros. Sums over x are divided by the sum at s =
0, which makes the probabilities of all masks add to 1.

`counts_block` sums over the numbers of unmasked patches of every class. If equal areas are merged,
their patches are counted together; the mean sum of their squared attentions, given this count, is a
factor times the square of their total attention.
"""

from math import asinh, atan2, cos, exp, log, log1p, pi, sin, sinh, sqrt
from typing import Any, NamedTuple

import numpy as np

from dynamics.loops.kernels import inlined, kernels

MAX_NODES = 20_000
"""Maximum number of quadrature nodes in s, enough for about thirty keys with widely separated
scores; if more are needed, the expected loss is NaN."""
HEAVIEST = 100.0
"""Upper limit of log(s w) for a key of weight w: e^(-s w) is then 0, and (s w)^4 still finite."""
GONE, REGULAR = 8.0, 5.0
"""A key of weight w has probability 0 if log(s w) exceeds `GONE`. At nodes tau (see `Law`) above
`REGULAR`, log s grows by the step of tau from node to node, up to e^-5."""
NEGLIGIBLE = 46.0
"""Contour nodes whose weight is below e^-46 times the largest weight are skipped."""
ROUGH = 1e-6
"""Maximum relative rounding error of the integrand; above it, the integral is NaN."""
WIDE, FLAT = 1e3, 1e-9
"""In a bracket of `saddle` wider than `WIDE`, relative errors `FLAT` of mean counts are ignored."""
BLOCK = 256
"""Maximum number of configurations in one pass of the inner loops."""
SPREAD = 300.0
"""Maximum difference of scores in a group of configurations, against under- and overflow."""


class Tables(NamedTuple):
    """Tables of all blocks; `dynamics.expectations.masks` explains the first three fields.

    For blocks that are summed over counts, `counts` holds the number of unmasked patches of every
    class, `factors` a factor for every area, and `chances` the probability of each configuration.
    """

    blocks: Any
    areas: Any
    classes: Any
    counts: Any
    factors: Any
    chances: Any


class Law(NamedTuple):
    """Law of masks and latents, and nodes of the contour integral over s.

    `others` is P - 1, the number of patches besides p, and `masked` the number of masked ones among
    them. The latent of an area takes the values `z` with probabilities `odds`. The nodes tau =
    `first`, `first` + `step`, ... stand for s = e^(tau - e^-tau) / (bound on the sum of weights).
    """

    others: float
    masked: float
    z: Any
    odds: Any
    first: float
    step: float


class Reading(NamedTuple):
    """Constants that turn sums of blocks into gradients and observables of rows.

    `factor` is gamma / K for K clusters and a share gamma of masked patches. `starts`, shape
    (rows + 1,), holds the state index of the first scalar of every row, then the number of scalars.
    `widths`, shape (n,), holds the difference steps of a Hessian, and `shares`, shape (n,),
    `factor` over the number of entries of each scalar. For each row, `floors` is the unavoidable
    loss of a patch p, `mates` is K times the probability that another patch of p's area is unmasked
    if p is masked, and `patches` is the number of patches. `local`, `far` are the indices of a row
    of a local area and of the global area; `own`, `remote` are the state indices of the local row's
    Phi for its own area and for the global area. A missing index is -1.
    """

    starts: Any
    widths: Any
    shares: Any
    floors: Any
    mates: Any
    patches: Any
    factor: float
    own: int
    remote: int
    local: int
    far: int


class MaskData(NamedTuple):
    """Read-only arguments of the kernels of this module, besides the state."""

    tables: Tables
    law: Law
    reading: Reading


def log_keys(state, block, classes, z):
    """Logs of the keys' weights w^+, w^-, w_p over the largest one, and of a bound on their sum."""
    opened, closed = np.empty((classes.size, z.size)), np.empty(classes.size)
    top = state[block.self_ups]
    for c in range(classes.size):
        closed[c] = state[classes[c].ups]
        top = max(top, closed[c])
        for j in range(z.size):
            opened[c, j] = closed[c] + z[j] * state[classes[c].phi]
            top = max(top, opened[c, j])
    bound = exp(state[block.self_ups] - top)
    for c in range(classes.size):
        most = closed[c]
        for j in range(z.size):
            most = max(most, opened[c, j])
        bound += classes[c].many * exp(most - top)
    return opened - top, closed - top, state[block.self_ups] - top, log(bound)


def idle_steps(log_s, step, opened, closed, own):
    """Number of nodes to skip: there each key (weight w) has probability 0 or s w below e^-46."""
    ahead = np.inf
    if own + log_s < GONE:
        ahead = -NEGLIGIBLE - own - log_s
    for c in range(closed.size):
        if closed[c] + log_s < GONE:
            ahead = min(ahead, -NEGLIGIBLE - closed[c] - log_s)
        for j in range(opened.shape[1]):
            if opened[c, j] + log_s < GONE:
                ahead = min(ahead, -NEGLIGIBLE - opened[c, j] - log_s)
    return int(ahead / step) if 0.0 < ahead < np.inf else 0


@inlined
def tilt(turn, opened, closed, classes, areas, odds):
    """Log of F e^(s w_p) at x = e^turn; mean and variance of the number of unmasked patches."""
    total, mean, variance = 0.0, 0.0, 0.0
    for a in range(areas.size):
        top, norm, first, second = -np.inf, 0.0, 0.0, 0.0
        for j in range(odds.size):
            factor, expected, spread = 0.0, 0.0, 0.0
            for c in range(areas[a].first, areas[a].last):
                above, below = -opened[c, j], turn - closed[c]
                small = exp(-abs(above - below))
                t = (small if below > above else 1.0) / (1.0 + small)
                factor += classes[c].patches * (max(above, below) + log1p(small))
                expected += classes[c].patches * t
                spread += classes[c].patches * t * (1.0 - t)
            level = max(top, factor)
            before, now = exp(top - level), odds[j] * exp(factor - level)
            norm = norm * before + now
            first = first * before + now * expected
            second = second * before + now * (spread + expected * expected)
            top = level
        total += areas[a].copies * (top + log(norm))
        mean += areas[a].copies * first / norm
        variance += areas[a].copies * max(0.0, second / norm - (first / norm) ** 2)
    return total, mean, variance


def saddle(turn, unmasked, opened, closed, classes, areas, odds):
    """Log of the radius |x| with `unmasked` unmasked patches on average, and log of F e^(s w_p).

    Newton's method from the guess `turn` is tried before bisection. If one choice of masked patches
    outweighs all others, the mean number is correct to rounding at many radii. The radius nearest
    to 1 is selected, because it has the smallest rounding errors.
    """
    guess = turn
    for _ in range(4):
        total, mean, variance = tilt(guess, opened, closed, classes, areas, odds)
        if abs(mean - unmasked) <= 0.1 * sqrt(variance):
            return guess, total
        if not abs(mean - unmasked) <= 3.0 * variance:
            break
        guess += (mean - unmasked) / variance
    count, low, high = 0.0, np.inf, -np.inf
    for c in range(classes.size):
        count += classes[c].many
        for j in range(odds.size):
            low, high = min(low, closed[c] - opened[c, j]), max(high, closed[c] - opened[c, j])
    level = log(max(count - unmasked, 1e-17) / unmasked)
    low, high = low + level, high + level
    if count - unmasked < 0.5:
        low = min(low, 0.0)  # if no patch is masked, every small radius is correct
    while high - low > 1e-3:
        middle = 0.5 * (low + high)
        if high - low > WIDE:
            middle = sinh(0.5 * (asinh(low) + asinh(high)))
        if not low < middle < high:
            break
        excess = tilt(middle, opened, closed, classes, areas, odds)[1] - unmasked
        if high - low > WIDE and abs(excess) < FLAT * unmasked:
            excess = -middle
        if excess > 0.0:
            low = middle
        else:
            high = middle
    middle = 0.5 * (low + high)
    return middle, tilt(middle, opened, closed, classes, areas, odds)[0]


def circle(law):
    """Angles of the nodes x; at s = 0: log |x|, log of F / x^(M - 1) at angle 0, sum over it."""
    # The variance is computed from exact integers, so it cannot round to a negative number.
    variance = law.masked * (law.others - law.masked) / law.others
    nodes = int(min(law.others + 1.0, 14.0 * sqrt(variance) + 24.0))
    angles = (np.arange((nodes + 1) // 2) + 0.5) * (2.0 * pi / (nodes + nodes % 2))
    turn = log(max(law.masked, 1e-17) / (law.others - law.masked))
    height, norm = law.others * log1p(exp(turn)), 0.0
    for n in range(angles.size):
        real, imaginary = 1.0 + exp(turn) * cos(angles[n]), exp(turn) * sin(angles[n])
        modulus = 0.5 * law.others * log(real * real + imaginary * imaginary) - height
        if modulus < -NEGLIGIBLE:
            break
        phase = law.others * atan2(imaginary, real) - law.masked * angles[n]
        norm += exp(modulus) * cos(phase)
    return angles, turn, height - law.masked * turn, norm


def factors_at(turn, opened, closed):
    """Terms e^(-s w^+), x e^(-s w^-) of factors of F at x = e^turn over the larger one; its log."""
    factors = np.empty((*opened.shape, 3))
    for c in range(closed.size):
        for j in range(opened.shape[1]):
            above, below = -opened[c, j], turn - closed[c]
            high = max(above, below)
            factors[c, j, 0], factors[c, j, 1] = exp(above - high), exp(below - high)
            factors[c, j, 2] = high
    return factors


@inlined
def set_moments(x, factors, opened, classes, areas, odds, place):
    """Fill probabilities t of classes, and S_1, S_2 - S_1^2 and probability of areas' latents.

    Return log of F e^(s w_p), whose argument is the point `x` of the unit circle times the radius.
    """
    t, mean, variance, chance = place
    total = 0.0 + 0.0j
    for a in range(areas.size):
        norm, top, logarithm = 0.0 + 0.0j, -np.inf, 0.0 + 0.0j
        for j in range(odds.size):
            logarithm, first, second = 0.0 + 0.0j, 0.0 + 0.0j, 0.0 + 0.0j
            for c in range(areas[a].first, areas[a].last):
                shown, hidden, high = factors[c, j]
                real, imaginary = shown + hidden * x.real, hidden * x.imag
                square = real * real + imaginary * imaginary
                turned = complex(high + 0.5 * log(square), atan2(imaginary, real))
                logarithm += classes[c].patches * turned
                t[c, j] = complex(real, -imaginary) * (shown / square)
                part = classes[c].patches * t[c, j] * opened[c, j]
                first += part
                second += part * (1.0 - t[c, j]) * opened[c, j]
            chance[a, j], mean[a, j], variance[a, j] = logarithm, first, second
            top = max(top, logarithm.real)
        if odds.size == 1:
            chance[a, 0] = 1.0
            total += areas[a].copies * logarithm
            continue
        for j in range(odds.size):
            chance[a, j] = odds[j] * np.exp(chance[a, j] - top)
            norm += chance[a, j]
        for j in range(odds.size):
            chance[a, j] /= norm
        total += areas[a].copies * (top + np.log(norm))
    return total


@inlined
def response(classes, areas, z, place, parts):
    """Integrand R of the expected loss; fill ``parts`` with the term of each area and latent."""
    _, mean, variance, chance = place
    whole = 0.0 + 0.0j
    for a in range(areas.size):
        for j in range(z.size):
            own = 2.0 * mean[a, j] if a == 0 else 0.0 + 0.0j
            square = 0.5 * z[j] * z[j]
            parts[a, j] = square * (mean[a, j] * mean[a, j] + variance[a, j] - own)
            whole += areas[a].copies * chance[a, j] * parts[a, j]
    return whole


@inlined
def add_node(weight, own, opened, closed, block, classes, areas, z, place, parts, sums):
    """Add a node (s, x) to the sums; ``weight`` is F times its width, ``own`` is s w_p."""
    t, mean, variance, chance = place
    loss, seen, slope, mass = sums
    whole = response(classes, areas, z, place, parts)
    loss[block.row] += (weight * whole).real
    for j in range(z.size):
        seen[block.row] += (weight * chance[0, j] * mean[0, j]).real
    slope[block.self_ups] -= (weight * own * whole).real
    mass[block.self_ups] += (weight * own).real
    for c in range(classes.size):
        a, ups, phi = classes[c].area, classes[c].ups, classes[c].phi
        rest, at_one = whole, 1.0 if a == 0 else 0.0
        for j in range(z.size):
            rest -= chance[a, j] * parts[a, j]
        for j in range(z.size):
            share = weight * (classes[c].many * chance[a, j])
            square = z[j] * z[j]
            # Derivatives of the integrand by the logs of the class's weights w^+ and w^-.
            hidden, shift = 1.0 - t[c, j], 1.0 - 2.0 * t[c, j]
            part, turned = t[c, j] * opened[c, j], hidden * closed[c]
            spread = part * hidden * opened[c, j]
            lever = mean[a, j] - at_one
            level = rest + parts[a, j]
            by_open = square * (
                lever * (part - spread) + 0.5 * spread * (2.0 - shift * opened[c, j])
            )
            by_closed = square * (lever * part * turned + 0.5 * spread * shift * closed[c])
            by_open = (share * (by_open - part * level)).real
            by_closed = (share * (by_closed - turned * level)).real
            slope[ups] += by_open + by_closed
            slope[phi] += z[j] * by_open
            mass[phi] += (share * part).real
            mass[ups] += (share * (part + turned)).real


def scaled(logs, log_s):
    """Products s w from the logs of weights w and of s, limited to e^`HEAVIEST`."""
    return np.exp(np.minimum(logs + log_s, HEAVIEST))


def contour_block(state, block, tables, law, sums):
    """Add a block to the sums by a contour integral; if this fails, the loss of the row is NaN."""
    classes = tables.classes[block.first_class : block.last_class]
    areas = tables.areas[block.first_area : block.last_area]
    z, odds = law.z, law.odds
    log_open, log_closed, log_own, bound = log_keys(state, block, classes, z)
    angles, turn, reference, norm = circle(law)
    directions = np.cos(angles) + 1j * np.sin(angles)
    of_areas = (areas.size, z.size)
    place = (
        np.empty((classes.size, z.size), np.complex128),
        np.empty(of_areas, np.complex128),
        np.empty(of_areas, np.complex128),
        np.empty(of_areas, np.complex128),
    )
    parts, step = np.empty(of_areas, np.complex128), -1
    sums[0][block.row] += 0.5 * block.clusters * (odds * z * z).sum()
    for _ in range(MAX_NODES):
        step += 1
        tau = law.first + law.step * step
        if tau > REGULAR:
            step += idle_steps(tau - bound, law.step, log_open, log_closed, log_own)
        tau = law.first + law.step * step
        log_s = tau - exp(-tau) - bound
        opened, closed = scaled(log_open, log_s), scaled(log_closed, log_s)
        own = exp(min(log_own + log_s, HEAVIEST))
        unmasked = law.others - law.masked
        turn, total = saddle(turn, unmasked, opened, closed, classes, areas, odds)
        height = total - own - law.masked * turn
        rounding = 1e-16 * (law.others * abs(turn) + tau)
        if tau > 0.0 and height - reference + 3.0 * (log_s + bound) < -NEGLIGIBLE - rounding:
            return
        if not rounding < ROUGH or np.isnan(sums[0][block.row]):
            break
        factors, peak = factors_at(turn, opened, closed), 0.0
        width = block.clusters * law.step * (1.0 + exp(-tau)) / norm
        for n in range(angles.size):
            phase = complex(-own - law.masked * turn - reference, -law.masked * angles[n])
            phase += set_moments(directions[n], factors, opened, classes, areas, odds, place)
            weight = width * np.exp(phase)
            peak = max(peak, abs(weight))
            if abs(weight) < exp(-NEGLIGIBLE) * peak:
                break
            add_node(weight, own, opened, closed, block, classes, areas, z, place, parts, sums)
    sums[0][block.row], sums[2][block.self_ups] = np.nan, np.nan


def counts_block(state, block, tables, law, sums):
    """Add a block to the sums by its configurations, in groups of at most ``BLOCK``.

    If scores differ by more than `SPREAD`, configurations are added one by one: a key that is
    absent from a configuration could outweigh all keys in it.
    """
    classes = tables.classes[block.first_class : block.last_class]
    areas = block.last_area - block.first_area
    many, z, scores = block.configurations, np.empty(areas), np.empty((2, classes.size))
    for choice in range(law.z.size**areas):
        likely = float(block.clusters)
        for a in range(areas):
            digit = choice // law.z.size**a % law.z.size
            z[a] = law.z[digit]
            likely *= law.odds[digit]
        least = most = state[block.self_ups]
        for c in range(classes.size):
            scores[1, c] = state[classes[c].ups]
            scores[0, c] = scores[1, c] + z[classes[c].area] * state[classes[c].phi]
            least = min(least, scores[0, c], scores[1, c])
            most = max(most, scores[0, c], scores[1, c])
        size = 1 if most - least > SPREAD else min(many, BLOCK)
        room = np.empty((areas + 3, size))
        for first in range(0, many, size):
            last = min(first + size, many)
            add_counts(state, block, classes, tables, first, last, scores, z, likely, room, sums)


def key_weights(state, block, classes, tables, first, last, scores, weights):
    """Fill the classes' weights, return p's; all are over the largest in these configurations."""
    top = state[block.self_ups]
    for c in range(classes.size):
        h = tables.counts[block.counts + c * block.configurations + first]
        for k in range(2):
            there = last > first + 1 or (h > 0.0 if k == 0 else h < classes[c].many)
            weights[k, c] = scores[k, c] if there else -np.inf
            top = max(top, weights[k, c])
    for c in range(classes.size):
        weights[0, c], weights[1, c] = exp(weights[0, c] - top), exp(weights[1, c] - top)
    return exp(state[block.self_ups] - top)


def add_counts(state, block, classes, tables, first, last, scores, z, likely, room, sums):
    """Add configurations first, ..., last - 1, at areas' latents z of probability `likely`."""
    weights, many, size = np.empty(scores.shape), block.configurations, last - first
    own = key_weights(state, block, classes, tables, first, last, scores, weights)
    inverse, rest, weight, attention = room[0], room[1], room[2], room[3:]
    inverse[:] = own
    attention[:] = 0.0
    for c in range(classes.size):
        at, n, part = block.counts + c * many + first, classes[c].many, attention[classes[c].area]
        h, shown, hidden = tables.counts[at : at + size], weights[0, c], weights[1, c]
        for i in range(size):
            part[i] += h[i] * shown
            inverse[i] += h[i] * shown + (n - h[i]) * hidden
    loss, seen, square = 0.0, 0.0, z[0] * z[0]
    for i in range(size):
        inverse[i] = 1.0 / inverse[i]
        weight[i] = likely * tables.chances[block.chances + first + i]
        rest[i] = square * attention[0, i] * inverse[i]
        seen += weight[i] * attention[0, i] * inverse[i]
        loss += weight[i] * (0.5 * square - rest[i])
    # `part` becomes minus the derivative of the loss by the attention A_a on area a.
    # `rest` becomes the sum of A_a times `part` over all areas a; D is the sum of all weights.
    # The derivatives of the loss are rest / D by a weight w^-, (rest - part) / D by a weight w^+.
    for a in range(z.size):
        at, part, square = block.factors + a * many + first, attention[a], z[a] * z[a]
        factor, plain = tables.factors[at : at + size], square if a == 0 else 0.0
        for i in range(size):
            pull = square * factor[i] * part[i] * inverse[i]
            rest[i] -= pull * part[i] * inverse[i]
            loss += 0.5 * weight[i] * pull * part[i] * inverse[i]
            part[i] = plain - pull
    sums[0][block.row] += loss
    sums[1][block.row] += seen
    slope, mass = sums[2:]
    pull, hidden = 0.0, 0.0
    for i in range(size):
        weight[i] *= inverse[i]
        hidden += own * weight[i]
        pull += own * weight[i] * rest[i]
    slope[block.self_ups] += pull
    mass[block.self_ups] += hidden
    for c in range(classes.size):
        at, n, part = block.counts + c * many + first, classes[c].many, attention[classes[c].area]
        h, ups, phi = tables.counts[at : at + size], classes[c].ups, classes[c].phi
        push, pull, shown, hidden = 0.0, 0.0, 0.0, 0.0
        for i in range(size):
            on, off = h[i] * weight[i], (n - h[i]) * weight[i]
            shown += on
            hidden += off
            push += on * (part[i] - rest[i])
            pull += off * rest[i]
        slope[ups] += weights[1, c] * pull - weights[0, c] * push
        slope[phi] -= z[classes[c].area] * weights[0, c] * push
        mass[ups] += weights[0, c] * shown + weights[1, c] * hidden
        mass[phi] += weights[0, c] * shown


def sums_at(state, data, watched):
    """Loss and own area's attention of each row, gradient and attention of each scalar.

    All are means over masks that contain p, summed over clusters. A correlation Ups has the
    attention on its class of patches, masked or not; a Phi that on the unmasked patches of its
    areas. With ``watched``, only the rows `Reading.local` and `Reading.far` are computed.
    """
    tables, law, reading = data
    rows = reading.floors.size
    sums = (np.zeros(rows), np.zeros(rows), np.zeros(state.size), np.zeros(state.size))
    for b in range(tables.blocks.size):
        block = tables.blocks[b]
        if watched and block.row != reading.local and block.row != reading.far:
            continue
        if block.configurations > 0:
            counts_block(state, block, tables, law, sums)
        else:
            contour_block(state, block, tables, law, sums)
    return sums


def gradient(state, data, out):
    """Gradient of the population risk, divided by the number of entries of Q of each scalar."""
    out[:] = data.reading.shares * sums_at(state, data, False)[2]


def hessian(state, data, out):
    """Jacobian of the gradient; every central difference moves one scalar of each row at once."""
    starts, widths = data.reading.starts, data.reading.widths
    moved, high, low = np.empty(state.size), np.empty(state.size), np.empty(state.size)
    out[:] = 0.0
    for k in range((starts[1:] - starts[:-1]).max()):
        for side, slope in ((1.0, high), (-1.0, low)):
            moved[:] = state
            for row in range(starts.size - 1):
                if starts[row] + k < starts[row + 1]:
                    moved[starts[row] + k] += side * widths[starts[row] + k]
            gradient(moved, data, slope)
        for row in range(starts.size - 1):
            j = starts[row] + k
            if j < starts[row + 1]:
                for i in range(starts[row], starts[row + 1]):
                    out[i, j] = (high[i] - low[i]) / (2.0 * widths[j])


def row_numbers(sums, reading):
    """Loss above the unavoidable loss, and attention on the own area, of a patch p of every row."""
    # Attention: mean over masks with another patch of p's area unmasked; 0/0 = NaN without any.
    return reading.factor * sums[0] - reading.floors, sums[1] / reading.mates


def order_parameters(state, slope, data, out):
    """Order parameters of the rows `Reading.local` (NaN if it is missing) and `Reading.far`."""
    reading = data.reading
    gaps, attentions = row_numbers(sums_at(state, data, True), reading)
    out[:] = np.nan
    out[7], out[8] = attentions[reading.far], gaps[reading.far]
    if reading.local < 0:
        return
    if slope[reading.own] != 0.0:
        out[0] = abs(slope[reading.remote]) / abs(slope[reading.own])
    out[1], out[2] = -slope[reading.own], -slope[reading.remote]
    out[3], out[4] = state[reading.own], state[reading.remote]
    out[5], out[6] = attentions[reading.local], gaps[reading.local]


def summary(state, data, out):
    """Population risk, and its excess over the unavoidable loss."""
    reading = data.reading
    gaps, _ = row_numbers(sums_at(state, data, False), reading)
    out[0] = (reading.patches * (gaps + reading.floors)).sum()
    out[1] = (reading.patches * gaps).sum()


def everything(state, data, slope, mass, rows):
    """Fill gradient and attention of each scalar (see `sums_at`), and `row_numbers` of each row."""
    sums = sums_at(state, data, False)
    slope[:] = data.reading.shares * sums[2]
    mass[:] = sums[3]
    gaps, attentions = row_numbers(sums, data.reading)
    for row in range(gaps.size):
        rows[row, 0], rows[row, 1] = gaps[row], attentions[row]


kernels(__name__)
