r"""The loop of gradient descent.

:math:`\theta^{(t+1)} = \theta^{(t)} - \eta\, g(\theta^{(t)})`. ``gradient`` and
``order_parameters`` are those of the kind of problem (`dynamics.loops.kernels.kinds`); this loop
adds what must happen at every step: the order parameters for the events, the records, and the check
that the next state is finite. Where every step is alike, one that moves nothing is the last that is
computed: all later ones repeat it.
"""

from math import isfinite

from dynamics.loops.kernels import kernels
from dynamics.loops.kernels.kinds import gradient, order_parameters


def advance(state, eta, first, last, buffers):
    """Take the steps ``first, ..., last - 1``, updating ``state`` in place.

    Parameters
    ----------
    state : float array, shape (n,)
        At step ``first`` on entry; at the returned step on exit.
    eta : float array, shape (n,)
        Learning rate of each entry.
    first, last : int
        Steps; the state at ``last`` is not yet tracked nor recorded.
    buffers : tuple
        ``data`` (what the gradient needs), ``slope`` and ``proposal`` (n,), ``unit`` (n, the
        learning rate in which the time of each entry is counted), ``alike`` (whether every step
        has the same data), ``tracked`` (at least last - first, order parameters),
        ``record_steps`` (ascending), ``records`` (as many rows, n).

    Returns
    -------
    int
        ``last``, or the step whose successor is not finite; the state is then the last finite one.
    """
    data, slope, proposal, unit, alike, tracked, record_steps, records = buffers
    record, width = 0, tracked.shape[1]
    uneven = 0
    for i in range(state.size):
        uneven += eta[i] != unit[i]
    for step in range(first, last):
        while record < record_steps.size and record_steps[record] == step:
            for i in range(state.size):
                records[record, i] = state[i]
            record += 1
        gradient(state, data, slope)
        broken, moved = 0, 0
        for i in range(state.size):  # counted, not asked one by one: vector instructions
            proposal[i] = state[i] - eta[i] * slope[i]
            broken += not isfinite(proposal[i])
            moved += proposal[i] != state[i]
        if uneven > 0:  # rates are per unit of time, which is the largest eta times steps
            for i in range(state.size):
                slope[i] *= eta[i] / unit[i]
        order_parameters(state, slope, data, tracked[step - first])
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
