r"""Kernels of the full population problem: tokens without noise, every weight trained.

For a sample X (d, L), with :math:`Z = (W_K X)^\top W_Q X`, S its softmax over keys,
:math:`C = W_V X S` and :math:`U = W_O C`, the output is
:math:`F = \frac1L \sum_{il} a_{il} \max(U_{il}, 0)`. Backwards, with
:math:`D_{il} = -y\, 1[yF < \gamma]\, a_{il} 1[U_{il} > 0] / L` and :math:`R = W_O^\top D`,

.. math:: dW_O = D C^\top, \quad dW_V = R (X S)^\top, \quad dS = (W_V X)^\top R, \quad
   dZ_{kl} = S_{kl} (dS_{kl} - \sum_j S_{jl} dS_{jl}), \\
   dW_K = W_Q X\, dZ^\top X^\top, \quad dW_Q = W_K X\, dZ\, X^\top.

Nothing is merged or skipped: this is the oracle.
"""

from math import exp

import numpy as np


def parts_of(state, sizes):  # type: ignore[no-untyped-def]
    """W_O (m, d), and W_V, W_K, W_Q as one array (3, d, d), of a flat state."""
    many, depth = sizes[0], sizes[1]
    hidden = state[: many * depth].reshape(many, depth)
    return hidden, state[many * depth :].reshape(3, depth, depth)


def forward(state, tokens, a, sizes, work):  # type: ignore[no-untyped-def]
    """F of one sample; leaves W_V X, W_K X, W_Q X, S, X S, C and U in ``work``."""
    hidden, square = parts_of(state, sizes)
    seen, attention, mixed, context, response = work[:5]
    length, depth = tokens.shape
    seen[:] = 0.0
    for w in range(3):
        for e in range(depth):
            for i in range(depth):
                for k in range(length):
                    seen[w, k, e] += square[w, e, i] * tokens[k, i]
    for q in range(length):
        top = -np.inf
        for k in range(length):
            score = 0.0
            for e in range(depth):
                score += seen[1, k, e] * seen[2, q, e]
            attention[k, q] = score
            top = max(top, score)
        total = 0.0
        for k in range(length):
            attention[k, q] = exp(attention[k, q] - top)
            total += attention[k, q]
        for k in range(length):
            attention[k, q] /= total
    mixed[:] = 0.0
    context[:] = 0.0
    for q in range(length):
        for k in range(length):
            for e in range(depth):
                mixed[q, e] += attention[k, q] * tokens[k, e]
                context[q, e] += attention[k, q] * seen[0, k, e]
    output = 0.0
    for i in range(hidden.shape[0]):
        for q in range(length):
            u = 0.0
            for e in range(depth):
                u += hidden[i, e] * context[q, e]
            response[i, q] = u
            output += a[i, q] * max(u, 0.0) / length
    return output


def backward(state, tokens, a, pushed, sizes, work, slope):  # type: ignore[no-untyped-def]
    """Add to ``slope`` the gradient of ``pushed`` times F of the sample of the last forward."""
    hidden, square = parts_of(state, sizes)
    hidden_slope, square_slope = parts_of(slope, sizes)
    seen, attention, mixed, context, response, pulled, score = work
    length, depth = tokens.shape
    pulled[:] = 0.0
    for i in range(hidden.shape[0]):
        for q in range(length):
            if response[i, q] > 0.0:
                d = pushed * a[i, q] / length
                for e in range(depth):
                    hidden_slope[i, e] += d * context[q, e]
                    pulled[q, e] += d * hidden[i, e]
    for q in range(length):
        for e in range(depth):
            for i in range(depth):
                square_slope[0, e, i] += pulled[q, e] * mixed[q, i]
    for q in range(length):
        mean = 0.0
        for k in range(length):
            score[k, q] = 0.0
            for e in range(depth):
                score[k, q] += seen[0, k, e] * pulled[q, e]
            mean += attention[k, q] * score[k, q]
        for k in range(length):
            score[k, q] = attention[k, q] * (score[k, q] - mean)
    for q in range(length):
        for k in range(length):
            for e in range(depth):
                for i in range(depth):
                    square_slope[1, e, i] += seen[2, q, e] * score[k, q] * tokens[k, i]
                    square_slope[2, e, i] += seen[1, k, e] * score[k, q] * tokens[q, i]


def evaluate(state, batch, back, data):  # type: ignore[no-untyped-def]
    """Make the pass over a batch at a state, unless it was the last one.

    It leaves the four order parameters and, with ``back``, the gradient.
    """
    samples, batches, choice, work = data
    tokens, places, labels, a = samples
    bounds, index, share = batches[0], batches[1], batches[2]
    margin, sizes = choice[0][0], choice[1]
    room, slope, numbers, last, done = work
    hinge, attentive, valued = sizes[3] == 1, sizes[4] == 1, sizes[5] == 1
    same = done[0] == batch and (done[1] == 1 or not back)
    for i in range(state.size):
        same = same and state[i] == last[i]
    if same:
        return
    slope[:] = 0.0
    numbers[:] = 0.0
    length = tokens.shape[1]
    for place in range(bounds[batch, 0], bounds[batch, 1]):
        s, weight = index[place], share[place]
        y = labels[s]
        reached = y * forward(state, tokens[s], a, sizes, room)
        below = not reached >= margin
        relevant = 0 if y > 0.0 else 1
        if below or not hinge:
            numbers[0] += weight * ((margin if hinge else 0.0) - reached) / margin
        numbers[1] += weight if below else 0.0
        numbers[2] += 0.0 if reached > 0.0 else weight
        for q in range(length):
            for k in range(length):
                if places[s, k] == relevant:
                    numbers[3] += weight * room[1][k, q] / length
        if back and (below or not hinge):
            backward(state, tokens[s], a, -y * weight, sizes, room, slope)
    square_slope = parts_of(slope, sizes)[1]
    if not valued:
        square_slope[0] = 0.0
    if not attentive:
        square_slope[1:] = 0.0
    for i in range(state.size):
        last[i] = state[i]
    done[0], done[1] = batch, 1 if back else 0


def gradient(state, data, out):  # type: ignore[no-untyped-def]
    """Gradient by every weight of the loss of a batch, the next of ``order``."""
    order, cursor = data[1][3], data[1][4]
    batch = order[cursor[0] % order.size]
    cursor[0] += 1
    evaluate(state, batch, True, data)
    for i in range(out.size):
        out[i] = data[3][1][i]


def order_parameters(state, slope, data, out):  # type: ignore[no-untyped-def]
    """Risk, active, error, relevant of all training samples, whatever the batch."""
    evaluate(state, 0, False, data)
    for k in range(out.size):
        out[k] = data[3][2][k]


def summary(state, data, out):  # type: ignore[no-untyped-def]
    """Risk, and training error."""
    evaluate(state, 0, False, data)
    out[0], out[1] = data[3][2][0], data[3][2][2]


def outputs(state, tokens, labels, a, data, out):  # type: ignore[no-untyped-def]
    """Of samples that need not be those of training, y F."""
    data[3][4][0] = -1
    for s in range(labels.size):
        out[s] = labels[s] * forward(state, tokens[s], a, data[2][1], data[3][0])


def attended(state, data, out):  # type: ignore[no-untyped-def]
    """Of the training samples, attention of every token to relevant and to confusion tokens."""
    tokens, places, labels, a = data[0]
    sizes, room = data[2][1], data[3][0]
    data[3][4][0] = -1
    out[:] = 0.0
    for s in range(labels.size):
        forward(state, tokens[s], a, sizes, room)
        relevant = 0 if labels[s] > 0.0 else 1
        for k in range(tokens.shape[1]):
            for q in range(tokens.shape[1]):
                if places[s, k] == relevant:
                    out[s, 0, q] += room[1][k, q]
                elif places[s, k] == 1 - relevant:
                    out[s, 1, q] += room[1][k, q]
