r"""Margins of samples, :math:`m = yF`: what a pass leaves of them, and risk and error read from it.

.. math:: R = \sum_n p_n \log(1 + e^{-m_n}), \qquad \text{error} = \sum_{n:\, m_n \le 0} p_n

A pass sums both block by block, while the margins are at hand: no sample is visited again.
"""

from dynamics.codegen.kernels import exact
from dynamics.codegen.kernels.elementary import decays, losses_from_decays


def sum_block(labels, weights, margin, rows, scratch, sums):  # type: ignore[no-untyped-def]
    """Margins of a block of samples, and its parts of risk and error.

    A margin that may be rounding of the sum of its absolute contributions, 1e-13 of it, or 1e-5 in
    single precision, is a tie, and counts as an error.

    Parameters
    ----------
    labels, weights, margin : arrays, shape (samples,)
        y, p_n up to their sum, and F.
    rows : array, shape (3, D, samples)
        As `forward` leaves it.
    scratch : float array, shape (4, samples)
        Receives m = yF and exp(-abs(m)); the rest is overwritten.
    sums : float array, shape (3,)
        Filled: weights times losses, weights of errors, and weights of the others.
    """
    right, decayed, gross, losses = scratch[0], scratch[1], scratch[2], scratch[3]
    attended, slope = rows[1], rows[2]
    gross[:] = 0.0
    for i in range(attended.shape[0]):
        row, steep = attended[i], slope[i]
        for n in range(row.size):
            gross[n] += abs(row[n] * steep[n])
    for n in range(right.size):
        right[n] = labels[n] * margin[n]
    decays(right, decayed, losses)
    losses[:] = decayed
    losses_from_decays(right, losses)
    tie = 1e-13 if margin.itemsize == 8 else 1e-5
    risk, wrong, correct = 0.0, 0.0, 0.0
    for n in range(right.size):
        # A position without a sample has the weight 0, and may have no finite loss.
        risk += weights[n] * losses[n] if weights[n] > 0.0 else 0.0
        wrong += 0.0 if right[n] > tie * gross[n] else weights[n]
        correct += weights[n] if right[n] > tie * gross[n] else 0.0
    sums[0] = risk
    sums[1] = wrong
    sums[2] = correct


def loss_and_error(sums, out):  # type: ignore[no-untyped-def]
    """Risk, and share of samples with yF <= 0, of the last pass.

    Parameters
    ----------
    sums : float array, shape (blocks, 3)
        Of each block, as `sum_block` leaves them.
    out : float array, shape (2,)
        Filled.
    """
    risk, wrong, correct = 0.0, 0.0, 0.0
    for block in range(sums.shape[0]):
        risk += sums[block, 0]
        wrong += sums[block, 1]
        correct += sums[block, 2]
    total = wrong + correct  # so that an error of all samples is exactly 1
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
