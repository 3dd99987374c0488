r"""Where to integrate: kernels that choose contour, step, window and transform length for each z.

From the bounds of `saddle_points` on a grid of kappa follow the least step and window that keep the
error of the trapezoidal rule below an allowed size, before any node of the integral is computed.
``law`` and ``columns`` are `SumLaw` and `Columns` of
`dynamics.systems.positional_attention.kernels.spectral_data`.
"""

from math import ceil, exp, floor, log, pi, sin

import numpy as np

from dynamics.systems.positional_attention.kernels.saddle_points import ROUNDING_UNIT, TINY, UNKNOWN


def kernel_mass(kappa):  # type: ignore[no-untyped-def]
    """Bound on the integral of |pi / sin(pi u)| / (2 pi) along u = kappa + i omega."""
    return 0.5 - log(sin(pi * abs(kappa - floor(kappa + 0.5)))) / pi


def plan(law, columns, c, gross, allowed):  # type: ignore[no-untyped-def]
    """Contour, step and window for one z: least work at an error of ``allowed`` times the gross.

    Fills all of the plan but the transform length. Aliasing from a contour at kappa' costs
    e^{-T |kappa' - kappa|}, with T = 2 pi / step; crossing a pole on the way (kappa = -1, 0, 1,
    which the grid holds exactly) costs its residue. A second attempt, where rounding leaves no
    contour, allows that error. Kappa whose psi is `UNKNOWN` are left out, and none beyond a pole
    whose residue is not known.

    Parameters
    ----------
    law, columns : SumLaw, Columns
    c : int
        Position of z.
    gross : float array, shape (4,)
        An estimate is enough.
    allowed : float
        Error allowed at z, relative to the gross.
    """
    psi, reach, kappas = columns.psi[c], columns.reach[c], law.kappas
    # Of the integrand, in rounding units.
    size, noise_factor = kappas.size, 1.0 + law.count / 10.0
    bound = np.empty(size)
    for s in range(size):
        top = 1.0 / (gross[3] + TINY)
        for i in range(3):
            top = max(top, reach[i, s] / (gross[i] + TINY))
        bound[s] = psi[s] + log(top)
        if abs(kappas[s] - floor(kappas[s] + 0.5)) > 1e-12:
            bound[s] += max(0.0, -log(abs(kappas[s])))
            bound[s] += log(kernel_mass(kappas[s]))
    best = 1e300
    quiet = log(allowed)
    for attempt in range(2):
        for s in range(law.first, law.last + 1):
            if abs(kappas[s] - floor(kappas[s] + 0.5)) < 1e-12 or psi[s] >= UNKNOWN:
                continue
            noise = ROUNDING_UNIT * noise_factor * exp(min(bound[s], 700.0))
            if noise > allowed and attempt == 0:
                continue
            need = quiet if attempt == 0 else log(max(allowed, noise))
            period, crossed = 0.5, False
            for side in (-1, 1):
                cheapest, toll, beyond, across = 1e300, 0.0, False, False
                t = s + side
                while 0 <= t < size and psi[t] < UNKNOWN:
                    gap = abs(kappas[t] - kappas[s])
                    cost = max((bound[t] - need) / gap, toll)
                    if abs(kappas[t] - floor(kappas[t] + 0.5)) < 1e-12:
                        toll, beyond = max(toll, (bound[t] - need) / gap), True
                    elif cost < cheapest:
                        cheapest, across = cost, beyond
                    t += side
                period = max(period, cheapest)
                crossed = crossed or (across and side * kappas[s] < 0.0)
            if period >= UNKNOWN:  # no bound on one side
                continue
            window = max((bound[s] + 1.0 - need) / pi, 0.5)
            work = period * window if attempt == 0 else bound[s] * 1e3 + period * window
            if work < best:
                best, columns.crossed[c] = work, crossed
                columns.contour[c], columns.step[c] = s, 2.0 * pi / period
                columns.window[c], columns.log_bound[c] = window, bound[s]
                columns.error[c] = exp(need) + 2.0 * noise
        if best < 1e300:
            return


def transform_length(law, columns, c, h):  # type: ignore[no-untyped-def]
    """Length M of the Fourier transform at one z: aliases of z + M are below the allowed error.

    Parameters
    ----------
    law, columns : SumLaw, Columns
    c : int
        Position of z, with its plan filled by `plan`.
    h : float array, shape (K,)
        h by type.
    """
    sums, count, z, s = law.sums, law.count, law.z[c], columns.contour[c]
    kappa, lam = law.kappas[s], columns.lam[c, s]
    longest = 4 * ((2 * count * int(sums.max()) + 4) // 4)
    excess = columns.log_bound[c] - log(max(columns.error[c], TINY))
    # By sum j: the weights, then B on the axis is their polynomial in e^lambda.
    width = int(sums.max())
    folded, top, need = np.zeros(2 * width + 1), -1e300, 8.0
    for k in range(h.size):
        top = max(top, -kappa * h[k] + lam * sums[k])
    for k in range(h.size):
        folded[sums[k] + width] += law.probability[k] * exp(-kappa * h[k] + lam * sums[k] - top)
    base = folded.sum()
    for side in (-1.0, 1.0):
        cheapest = 1e300
        for step in (0.2, 0.35, 0.6, 1.0, 1.5, 2.2, 3.2):
            turn, total = exp(side * step), 0.0
            power = exp(-side * step * width)
            for j in range(2 * width + 1):
                total += folded[j] * power
                power *= turn
            gap = count * log(total / base) - side * step * z
            cheapest = min(cheapest, (excess + gap) / step)
        need = max(need, cheapest)
    return 4 * ceil(need / 4.0) if need < longest else longest
