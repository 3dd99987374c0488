"""One step of an update rule, by running its program for every entry.

The state holds all entries, then one array of the same length for each number in the memory of the
rule. Plain gradient descent has an empty program.
"""

from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from dynamics.loops.kernels import kernels
from dynamics.loops.kernels.program import forward


class Update(NamedTuple):
    """Loop data of an update rule."""

    program: Any  # program of the rule, empty for plain gradient descent
    weight_decay: float  # multiple of each entry that is added to its gradient
    eta: Any  # learning rate of each entry
    share: Any  # eta divided by the largest eta, the unit of time
    sizes: Any  # number of trained entries that share each scalar
    moves: Any  # mask of trained entries; other entries keep value and memory
    rested: Any  # number of earlier steps in which an entry was not trained
    factors: Any  # factor of the learning rates at each step


def take(state, slope, step, factor, update, after):
    """Fill ``after`` with the next state, and ``slope`` with minus the change per unit of time."""
    size = slope.size
    if update.program.instructions.shape[0] == 0:
        for i in range(size):
            after[i] = state[i] - (update.eta[i] * factor) * slope[i]
        for i in range(size):
            slope[i] *= update.share[i]
        return
    total = 0.0
    for i in range(size):
        slope[i] += update.weight_decay * state[i]
        if update.moves[i]:
            total += update.sizes[i] * slope[i] * slope[i]
    norm, values = sqrt(total), np.empty(update.program.size)
    memory = (state.size - size) // max(1, size)
    for i in range(state.size):
        after[i] = state[i]
    for i in range(size):
        if not update.moves[i]:
            slope[i] = 0.0
            continue
        rate = update.eta[i] * factor
        values[0] = slope[i]
        values[1] = state[i]
        values[2] = step + 1 - update.rested[i]
        values[3] = rate
        values[4] = norm
        for k in range(memory):
            values[5 + k] = state[size * (1 + k) + i]
        forward(update.program, values)
        change = values[update.program.outputs[0]]
        after[i] = state[i] + change
        for k in range(memory):
            after[size * (1 + k) + i] = values[update.program.outputs[1 + k]]
        if rate > 0:
            slope[i] = -change / rate * update.share[i]
        else:
            slope[i] *= update.share[i]


kernels(__name__)
