r"""Kernels of the empirical problem: N sampled masked images, every entry of Q free.

In the basis of positions and features a masked query reads its row of Q alone: the score of key q
is :math:`Q_{e_p e_q} + 1\{q \notin M\} z Q_{e_p v}`, and with the attention A_a on the unmasked
patches of each area :math:`-\partial \ell / \partial s_q = u_q (b_q - r)`,
:math:`b_q = z_m^2 1\{q \in m\} - z_a^2 A_a` for unmasked keys and 0 for masked ones. A sample costs
M P exponentials. What is summed beside the gradient is that of `brute_kernels`.
"""

import numpy as np

from dynamics.codegen.kernels.exponential import exponentials

DEEPEST = -700.0


def accumulate(state, basis, images, bounds, work):  # type: ignore[no-untyped-def]
    """Sums over images first, ..., last - 1; see `brute_kernels.accumulate`."""
    positions, features, owner = basis
    cluster, latent, hidden, weight = images
    rows, numbers = work
    size, many = positions.shape[0], features.shape[0]
    rows[:] = 0.0
    numbers[:] = 0.0
    lit = np.empty(size)
    attention, scratch, area = np.empty(size), np.empty(size), np.empty(many)
    for n in range(bounds[0], bounds[1]):
        feature, content, likely = owner[cluster[n]], latent[n], weight[n]
        lit[:] = 1.0
        for m in range(hidden.shape[1]):
            lit[hidden[n, m]] = 0.0
        for m in range(hidden.shape[1]):
            p = hidden[n, m]
            asked, slope = state[p], rows[p]
            top = -np.inf
            for q in range(size):
                attention[q] = asked[q] + lit[q] * content[q] * asked[size + feature[q]]
                top = max(top, attention[q])
            if not abs(top) < np.inf:
                slope[:] = np.nan
                continue
            for q in range(size):
                attention[q] = max(attention[q] - top, DEEPEST)
            exponentials(attention, scratch)
            total = 0.0
            for q in range(size):
                total += attention[q]
            area[:] = 0.0
            mates = 0.0
            for q in range(size):
                attention[q] /= total
                area[feature[q]] += lit[q] * attention[q]
                if feature[q] == feature[p]:
                    mates += lit[q]
            square = content[p] * content[p]
            own = area[feature[p]]
            rest, loss = square * own, 0.5 * square * (1.0 - 2.0 * own)
            for q in range(size):
                along = lit[q] * attention[q] * content[q] * content[q] * area[feature[q]]
                rest -= along
                loss += 0.5 * along
            for q in range(size):
                push = -rest
                if lit[q] > 0.0:
                    push -= content[q] * content[q] * area[feature[q]]
                    if feature[q] == feature[p]:
                        push += square
                push *= likely * attention[q]
                slope[q] -= push
                slope[size + feature[q]] -= lit[q] * content[q] * push
            numbers[p, 0] += likely * loss
            if mates > 0.0:
                numbers[p, 2] += likely * own
                numbers[p, 3] += likely
            else:
                numbers[p, 1] += likely * 0.5 * square
