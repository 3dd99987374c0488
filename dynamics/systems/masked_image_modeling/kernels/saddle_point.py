"""The radius of the circle of a contour at which the mean number of masked patches is right.

See `contour` for the integrand; its keys are s w here.
"""

from math import exp, log

import numpy as np

WIDE = 1e3
FLAT = 1e-9
"""Over brackets WIDE and more, a mean within a share FLAT of the right one is right."""


def split(above, below):  # type: ignore[no-untyped-def]
    """Unmasked probability where the log odds of masked to unmasked are below - above.

    Parameters
    ----------
    above, below : float
        Logs of the weights: -s w^+ of an unmasked patch, -s w^- + log x of a masked one.
    """
    gap = below - above
    if gap > 0.0:
        decay = exp(-gap)
        return decay / (1.0 + decay)
    return 1.0 / (1.0 + exp(gap))


def mean_open(turn, weights, law, out):  # type: ignore[no-untyped-def]
    """Mean number of unmasked patches at a real x = e^turn; log of the product in ``out[0]``.

    Parameters
    ----------
    turn : float
    weights : (opened, closed, patches, area, copies)
        s w^+ (patch classes, latents), s w^- (patch classes,), number of patches and area class of
        each patch class, number of areas of each area class.
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
                above, below = -opened[c, j], turn - closed[c]
                high = max(above, below)
                factor += patches[c] * (high + log(exp(above - high) + exp(below - high)))
            out[1 + j] = factor
            top = max(top, factor)
        norm, expected = 0.0, 0.0
        for j in range(latents):
            chance = odds[j] * exp(out[1 + j] - top)
            norm += chance
            for c in range(first, last):
                above, below = -opened[c, j], turn - closed[c]
                expected += chance * patches[c] * split(above, below)
        mean += copies[a] * expected / norm
        total += copies[a] * (top + log(norm))
        first = last
    out[0] = total
    return mean


def saddle(unmasked, weights, law, out):  # type: ignore[no-untyped-def]
    """Log of the radius at which the mean number of unmasked patches is ``unmasked``.

    Where one choice of masked patches outweighs all others, a wide range of radii is right to
    rounding; the one nearest to 1 is taken, as the log of the integrand rounds with that of x.

    Parameters
    ----------
    unmasked : float
    weights : (opened, closed, patches, area, copies)
        See `mean_open`.
    law : reduced.Law
    out : float array, shape (1 + latents,)
        Overwritten.
    """
    opened, closed, patches, area, copies = weights
    count, low, high = 0.0, np.inf, -np.inf
    for c in range(patches.size):
        count += patches[c] * copies[area[c]]
        for j in range(law.z.size):
            gap = closed[c] - opened[c, j]
            low, high = min(low, gap), max(high, gap)
    level = log(max(count - unmasked, 1e-17) / unmasked)
    low, high = low + level, high + level
    if count - unmasked < 0.5:
        low = min(low, 0.0)  # nothing is masked: every small radius is right
    while high - low > 1e-3:
        middle = 0.5 * (low + high)
        if high - low > WIDE:
            middle = np.sinh(0.5 * (np.arcsinh(low) + np.arcsinh(high)))
        if not low < middle < high:
            break
        excess = mean_open(middle, weights, law, out) - unmasked
        if high - low > WIDE and abs(excess) < FLAT * unmasked:
            excess = -middle
        if excess > 0.0:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)
