"""Descent loop: steps of an update rule, with order parameters, records and a check for NaN.

If all steps use the same data, a step without a change ends the loop, and its order parameters and
state are copied to all later steps.
"""

from math import isfinite

from dynamics.loops.kernels import kernels
from dynamics.loops.kernels.kinds import gradient, order_parameters
from dynamics.loops.kernels.update import take


def advance(state, update, first, last, buffers):
    """Take steps ``first, ..., last - 1``, updating ``state``; return the step reached."""
    data, slope, proposal, alike, tracked, record_steps, records = buffers
    record, width = 0, tracked.shape[1]
    entries = state[: slope.size]
    for step in range(first, last):
        while record < record_steps.size and record_steps[record] == step:
            for i in range(state.size):
                records[record, i] = state[i]
            record += 1
        gradient(entries, data, slope)
        take(state, slope, step, update.factors[step - first], update, proposal)
        broken, moved = 0, 0
        for i in range(state.size):  # a count is vectorized, an early exit from the loop is not
            broken += not isfinite(proposal[i])
            moved += proposal[i] != state[i]
        order_parameters(entries, slope, data, tracked[step - first])
        if broken > 0:
            return step
        if alike and moved == 0:
            for later in range(step + 1, last):
                for k in range(width):
                    tracked[later - first, k] = tracked[step - first, k]
            while record < record_steps.size and record_steps[record] < last:
                for i in range(state.size):
                    records[record, i] = state[i]
                record += 1
            return last
        for i in range(state.size):
            state[i] = proposal[i]
    return last


kernels(__name__)
