r"""Margins of samples, :math:`m = yF`: what a pass leaves of them, and risk and error read from it.

.. math:: R = \sum_n p_n \log(1 + e^{-m_n}), \qquad \text{error} = \sum_{n:\, m_n \le 0} p_n
"""

import numpy as np

from dynamics.codegen.kernels import exact
from dynamics.codegen.kernels.elementary import decays, losses_from_decays


def keep_margins(labels, margin, rows, filled, scratch):  # type: ignore[no-untyped-def]
    """What a pass leaves of a block of samples in ``margins`` of `SampleBlocks`.

    Parameters
    ----------
    labels, margin : arrays, shape (samples,)
        y and F.
    rows : array, shape (3, D, samples)
        As `forward` leaves it.
    filled : (right, gross, decayed), float arrays, shape (samples,)
        m = yF, the sum of its absolute contributions, exp(-abs(m)).
    scratch : float array, shape (samples,)
        Overwritten.
    """
    right, gross, decayed = filled
    attended, slope = rows[1], rows[2]
    gross[:] = 0.0
    for i in range(attended.shape[0]):
        row, steep = attended[i], slope[i]
        for n in range(row.size):
            gross[n] += abs(row[n] * steep[n])
    for n in range(right.size):
        right[n] = labels[n] * margin[n]
    decays(right, decayed, scratch)


def loss_and_error(batch, out):  # type: ignore[no-untyped-def]
    """Risk, and share of samples with yF <= 0, from the margins of the last pass.

    A margin that may be rounding of the sum of the absolute contributions, 1e-13 of it, or 1e-5 in
    single precision, is a tie, and counts as an error.

    Parameters
    ----------
    batch : SampleBlocks
    out : float array, shape (2,)
        Filled.
    """
    weights, margins = batch.weights, batch.margins
    losses, tie = np.empty(weights.shape[1]), 1e-13 if batch.patches.itemsize == 8 else 1e-5
    risk, wrong, total = 0.0, 0.0, 0.0
    for block in range(weights.shape[0]):
        weight, right, gross = weights[block], margins[0, block], margins[1, block]
        for n in range(losses.size):
            losses[n] = margins[2, block, n]
        losses_from_decays(right, losses)
        for n in range(losses.size):
            if weight[n] > 0.0:
                total += weight[n]
                risk += weight[n] * losses[n]
                if not right[n] > tie * gross[n]:
                    wrong += weight[n]
    out[0] = quotient(risk, total)
    out[1] = quotient(wrong, total)


@exact
def quotient(part: float, whole: float) -> float:
    """Part over whole, rounded once: not by the reciprocal, so that a share of samples is exact.

    Parameters
    ----------
    part, whole : float
    """
    return part / whole
