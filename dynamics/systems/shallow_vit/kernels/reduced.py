r"""Kernels of training on patterns: weighted count vectors in place of samples of tokens.

For a vector with counts c, label y and weight w, and with :math:`H = W_O V`, :math:`B = K^\top Q`,

.. math::
   P_{ij} = \frac{c_i e^{B_{ij}}}{\sum_k c_k e^{B_{kj}}}, \quad U = H P, \quad
   F = \sum_{ij} \tilde a_{ij} \max(U_{ij}, 0), \quad
   D_{ij} = -y\, 1[y F < \gamma]\, \tilde a_{ij} 1[U_{ij} > 0],

where :math:`\tilde a_{ij} = a_i c_j / L`, or the sum of the weights of neuron i at the places of
pattern j. Summed with the weights, :math:`E = D P^\top` and, with :math:`\rho = H^\top D`,
:math:`T_{ij} = P_{ij} (\rho_{ij} - \sum_k P_{kj} \rho_{kj})` are the derivatives of the loss by H
and by B, and the gradients are :math:`E V^\top`, :math:`W_O^\top E`, :math:`Q T^\top`,
:math:`K T`.

Neurons are the inner index of everything. Patterns come in fives, the last five filled with zeros:
five rows are read at a time and combined in registers. One sum over neurons and products of
M x M x m make the output; a vector past the margin stops there, others take two more such products.
What is kept of a column of U is :math:`\tilde a` where its gate is open, else 0.
"""

from math import exp

import numpy as np

FIVE = 5
"""Rows that are combined at a time."""
LEAST = 1e-200
"""Sum of exponentials below which the largest present score is taken out of them anew."""
CHUNK = 512
"""Entries of a state that are compared at a time."""


def score_powers(keys, queries, scores, powers):  # type: ignore[no-untyped-def]
    """B = K^T Q, and exp(B) with the largest entry of every column at 1."""
    for j in range(scores.shape[1]):
        top = -np.inf
        for i in range(scores.shape[0]):
            total = 0.0
            for e in range(keys.shape[0]):
                total += keys[e, i] * queries[e, j]
            scores[i, j] = total
            top = max(top, total)
        for i in range(scores.shape[0]):
            powers[i, j] = exp(scores[i, j] - top)


def attention_of(counts, scores, powers, out):  # type: ignore[no-untyped-def]
    """Attention P of a count vector: keys in rows, queries in columns."""
    many = scores.shape[0]
    for j in range(many):
        total, top = 0.0, 0.0
        for i in range(many):
            total += counts[i] * powers[i, j]
        rescued = total < LEAST
        if rescued:
            total, top = 0.0, -np.inf
            for i in range(many):
                if counts[i] > 0.0:
                    top = max(top, scores[i, j])
            for i in range(many):
                if counts[i] > 0.0:
                    total += counts[i] * exp(scores[i, j] - top)
        share = 1.0 / total
        for i in range(many):
            power = powers[i, j]
            if rescued:
                power = exp(scores[i, j] - top) if counts[i] > 0.0 else 0.0
            out[i, j] = counts[i] * power * share


def combine(rows, weights, out):  # type: ignore[no-untyped-def]
    """Add to out the sum over k of weights[k] rows[k]; rows and weights come in fives."""
    for k in range(0, weights.size, FIVE):
        r0, r1, r2, r3, r4 = rows[k], rows[k + 1], rows[k + 2], rows[k + 3], rows[k + 4]
        w0, w1, w2 = weights[k], weights[k + 1], weights[k + 2]
        w3, w4 = weights[k + 3], weights[k + 4]
        for i in range(out.size):
            out[i] += w0 * r0[i] + w1 * r1[i] + w2 * r2[i] + w3 * r3[i] + w4 * r4[i]


def moments(rows, weights, out):  # type: ignore[no-untyped-def]
    """out[k] = sum over neurons of rows[k] weights; as many rows as results, in fives."""
    for k in range(0, out.size, FIVE):
        r0, r1, r2, r3, r4 = rows[k], rows[k + 1], rows[k + 2], rows[k + 3], rows[k + 4]
        s0, s1, s2, s3, s4 = 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(weights.size):
            w = weights[i]
            s0 += r0[i] * w
            s1 += r1[i] * w
            s2 += r2[i] * w
            s3 += r3[i] * w
            s4 += r4[i] * w
        out[k], out[k + 1], out[k + 2], out[k + 3], out[k + 4] = s0, s1, s2, s3, s4


def open_column(responses, column, weights, sums, out):  # type: ignore[no-untyped-def]
    """One query: out = weights where its gate is open, else 0; returns sum of weights max(U, 0).

    Parameters
    ----------
    responses : float array, shape (patterns, m)
        H, transposed.
    column : float array, shape (patterns,)
        Attention of the query.
    weights : float array, shape (m,)
    sums : float array, shape (m,)
        Overwritten where there are more than five patterns.
    out : float array, shape (m,)
    """
    last = column.size - FIVE
    r0, r1, r2, r3, r4 = (
        responses[last], responses[last + 1], responses[last + 2], responses[last + 3],
        responses[last + 4],
    )  # fmt: skip
    p0, p1, p2, p3, p4 = (
        column[last], column[last + 1], column[last + 2], column[last + 3], column[last + 4],
    )  # fmt: skip
    total = 0.0
    if last == 0:
        for i in range(out.size):
            u = p0 * r0[i] + p1 * r1[i] + p2 * r2[i] + p3 * r3[i] + p4 * r4[i]
            w = weights[i]
            kept = w if u > 0.0 else 0.0
            out[i] = kept
            total += kept * u
        return total
    sums[:] = 0.0
    combine(responses, column[:last], sums)
    for i in range(out.size):
        u = sums[i] + p0 * r0[i] + p1 * r1[i] + p2 * r2[i] + p3 * r3[i] + p4 * r4[i]
        w = weights[i]
        kept = w if u > 0.0 else 0.0
        out[i] = kept
        total += kept * u
    return total


def output(counts, rows, scale, shared, room):  # type: ignore[no-untyped-def]
    """F of one count vector; leaves its attention and its gates in ``room``.

    Parameters
    ----------
    counts : float array, shape (M,)
    rows, scale : int and float array, shape (M,)
        The output weights of pattern j are ``scale[j] table[rows[j]]``.
    shared : (responses, scores, powers, table)
        H transposed, B, its exponentials, and rows of output weights.
    room : (attention, columns, gates, sums, pushed)
        P, P transposed, open output weights of every query, and room.
    """
    responses, scores, powers, table = shared
    attention, columns, gates, sums = room[:4]
    many, total = scores.shape[0], 0.0
    attention_of(counts, scores, powers, attention)
    for j in range(many):
        if scale[j] == 0.0:
            continue
        for k in range(many):
            columns[j, k] = attention[k, j]
        total += scale[j] * open_column(responses, columns[j], table[rows[j]], sums, gates[j])
    return total


def set_responses(state, data):  # type: ignore[no-untyped-def]
    """W_O transposed, H, B and its exponentials at a state."""
    sizes, work = data[3][1], data[4][0]
    many, depth, patterns = sizes[0], sizes[1], sizes[2]
    tall, responses, scores, powers, padded = work[0], work[2], work[3], work[4], work[5]
    hidden = state[: many * depth].reshape(many, depth)
    rest = state[many * depth :].reshape(3, depth, patterns)
    for i in range(many):
        for e in range(depth):
            tall[e, i] = hidden[i, e]
    padded[:] = 0.0
    for k in range(patterns):
        for e in range(depth):
            padded[e] = rest[0, e, k]
        responses[k] = 0.0
        combine(tall, padded, responses[k])
    score_powers(rest[1], rest[2], scores, powers)


def differs(one, two):  # type: ignore[no-untyped-def]
    """Whether two arrays of one length differ."""
    for begin in range(0, one.size, CHUNK):
        left, right = one[begin : begin + CHUNK], two[begin : begin + CHUNK]
        found = 0
        for i in range(left.size):
            found += 1 if left[i] != right[i] else 0
        if found > 0:
            return True
    return False


def count(vector, reached, attention, choice, numbers):  # type: ignore[no-untyped-def]
    """Add a vector to the order parameters; returns whether it is below the margin.

    Parameters
    ----------
    vector : (counts, label, weight)
    reached : float
        y F.
    attention : float array, shape (M, M)
    choice : (settings, sizes)
    numbers : float array, shape (4,)
        Risk, share below the margin, error, attention to relevant tokens.
    """
    counts, label, weight = vector
    margin, length, hinge = choice[0][0], choice[0][1], choice[1][3] == 1
    below = not reached >= margin
    relevant = 0 if label > 0.0 else 1
    if below or not hinge:
        numbers[0] += weight * ((margin if hinge else 0.0) - reached) / margin
    numbers[1] += weight if below else 0.0
    numbers[2] += 0.0 if reached > 0.0 else weight
    for j in range(counts.size):
        numbers[3] += weight * counts[j] / length * attention[relevant, j]
    return below


def pull(pushed, attention, attentive, responses, gates, sums):  # type: ignore[no-untyped-def]
    """Add a vector to E and T.

    Parameters
    ----------
    pushed : float array, shape (M,)
        - y w times the scale of the output weights of every pattern.
    attention : float array, shape (M, M)
    attentive : bool
        Whether T is wanted.
    responses, gates : float arrays, shape (patterns, m)
    sums : (along, by_score, weights, pulled)
        E transposed, T, and room.
    """
    along, by_score, weights, pulled = sums
    many = attention.shape[0]
    for j in range(many):
        for k in range(many):
            weights[k, j] = pushed[j] * attention[k, j]
        if attentive and pushed[j] != 0.0:
            moments(responses, gates[j], pulled)
            mean = 0.0
            for k in range(many):
                mean += attention[k, j] * pulled[k]
            for k in range(many):
                by_score[k, j] += weights[k, j] * (pulled[k] - mean)
    for k in range(many):
        combine(gates, weights[k], along[k])


def evaluate(state, batch, data):  # type: ignore[no-untyped-def]
    """E, T and the order parameters of a batch at a state, unless the last pass was that."""
    vectors, batches, table, choice, work = data
    counts, labels, rows, scale = vectors
    bounds, index, share = batches[0], batches[1], batches[2]
    hinge, attentive = choice[1][3] == 1, choice[1][4] == 1
    responses, scores, powers = work[0][2], work[0][3], work[0][4]
    attention, gates, pushed = work[1][0], work[1][2], work[1][4]
    numbers, last, done = work[3]
    if done[0] == batch and not differs(state, last):
        return
    set_responses(state, data)
    numbers[:] = 0.0
    work[2][0][:] = 0.0
    work[2][1][:] = 0.0
    for place in range(bounds[batch, 0], bounds[batch, 1]):
        s, weight = index[place], share[place]
        y, c = labels[s], counts[s]
        reached = y * output(c, rows[s], scale[s], (responses, scores, powers, table), work[1])
        below = count((c, y, weight), reached, attention, choice, numbers)
        if below or not hinge:
            for j in range(pushed.size):
                pushed[j] = -y * weight * scale[s, j]
            pull(pushed, attention, attentive, responses, gates, work[2])
    for i in range(state.size):
        last[i] = state[i]
    done[0] = batch


def survey(state, data):  # type: ignore[no-untyped-def]
    """Only the order parameters, of all vectors at a state, unless the last pass knows them."""
    vectors, batches, table, choice, work = data
    counts, labels, rows, scale = vectors
    bounds, index, share = batches[0], batches[1], batches[2]
    responses, scores, powers = work[0][2], work[0][3], work[0][4]
    numbers, last, done = work[3]
    if done[0] == 0 and not differs(state, last):
        return
    set_responses(state, data)
    numbers[:] = 0.0
    done[0] = -1
    for place in range(bounds[0, 0], bounds[0, 1]):
        s = index[place]
        y, c = labels[s], counts[s]
        reached = y * output(c, rows[s], scale[s], (responses, scores, powers, table), work[1])
        count((c, y, share[place]), reached, work[1][0], choice, numbers)


def gradient(state, data, out):  # type: ignore[no-untyped-def]
    """Gradient by W_O, V, K, Q of the loss of a batch, the next of ``order``."""
    order, cursor = data[1][3], data[1][4]
    batch = order[cursor[0] % order.size]
    cursor[0] += 1
    evaluate(state, batch, data)
    sizes, work = data[3][1], data[4]
    many, depth, patterns = sizes[0], sizes[1], sizes[2]
    attentive, valued = sizes[4] == 1, sizes[5] == 1
    tall, steep, padded, few = work[0][0], work[0][1], work[0][5], work[0][6]
    along, by_score = work[2][0], work[2][1]
    rest = state[many * depth :].reshape(3, depth, patterns)
    hidden = out[: many * depth].reshape(many, depth)
    others = out[many * depth :].reshape(3, depth, patterns)
    others[:] = 0.0
    few[:] = 0.0
    for e in range(depth):
        for k in range(patterns):
            few[k] = rest[0, e, k]
        steep[e] = 0.0
        combine(along, few, steep[e])
    for i in range(many):
        for e in range(depth):
            hidden[i, e] = steep[e, i]
    if valued:
        for k in range(patterns):
            moments(tall, along[k], padded)
            for e in range(depth):
                others[0, e, k] = padded[e]
    if attentive:
        for e in range(depth):
            for i in range(patterns):
                for j in range(patterns):
                    others[1, e, i] += rest[2, e, j] * by_score[i, j]
                    others[2, e, j] += rest[1, e, i] * by_score[i, j]


def order_parameters(state, slope, data, out):  # type: ignore[no-untyped-def]
    """Risk, active, error, relevant of all training samples, whatever the batch."""
    survey(state, data)
    numbers = data[4][3][0]
    for k in range(out.size):
        out[k] = numbers[k]


def summary(state, data, out):  # type: ignore[no-untyped-def]
    """Risk, and training error."""
    survey(state, data)
    numbers = data[4][3][0]
    out[0], out[1] = numbers[0], numbers[2]


def outputs(state, vectors, table, data, out):  # type: ignore[no-untyped-def]
    """Of count vectors that need not be those of training, y F."""
    counts, labels, rows, scale = vectors
    work = data[4]
    work[3][2][0] = -1
    set_responses(state, data)
    shared = (work[0][2], work[0][3], work[0][4], table)
    for s in range(labels.size):
        out[s] = labels[s] * output(counts[s], rows[s], scale[s], shared, work[1])


def attended(state, data, out):  # type: ignore[no-untyped-def]
    """Of the training vectors, attention of every pattern to relevant and to confusion keys."""
    counts, labels = data[0][0], data[0][1]
    work = data[4]
    work[3][2][0] = -1
    set_responses(state, data)
    scores, powers, attention = work[0][3], work[0][4], work[1][0]
    for s in range(labels.size):
        attention_of(counts[s], scores, powers, attention)
        relevant = 0 if labels[s] > 0.0 else 1
        for j in range(scores.shape[1]):
            out[s, 0, j] = attention[relevant, j]
            out[s, 1, j] = attention[1 - relevant, j]
