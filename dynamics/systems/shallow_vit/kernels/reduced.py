r"""Kernels of training on patterns: weighted count vectors in place of samples of tokens.

For a vector with counts c, label y and weight w, and with :math:`H = W_O V`, :math:`B = K^\top Q`,

.. math::
   P_{ij} = \frac{c_i e^{B_{ij}}}{\sum_k c_k e^{B_{kj}}}, \quad U = H P, \quad
   F = \sum_{ij} \tilde a_{ij} \max(U_{ij}, 0), \quad
   D_{ij} = -y\, 1[y F < \gamma]\, \tilde a_{ij} 1[U_{ij} > 0],

where :math:`\tilde a_{ij} = a_i c_j / L`, or the sum of the weights of neuron i at the positions of
pattern j. Summed with the weights, :math:`E = D P^\top` and, with :math:`\rho = H^\top D`,
:math:`T_{ij} = P_{ij} (\rho_{ij} - \sum_k P_{kj} \rho_{kj})` are the derivatives of the loss by H
and by B, and the gradients are :math:`E V^\top`, :math:`W_O^\top E`, :math:`Q T^\top`,
:math:`K T`.

Neurons are the inner index of everything. Patterns come in fives, the last five filled with zeros:
five rows are read at a time and combined in registers. One sum over neurons and products of
M x M x m make the output; a vector past the margin stops there, others take two more such products.
Of a column of U only :math:`\tilde a` where its gate is open, else 0, is stored.
"""

from math import exp

import numpy as np

from dynamics.codegen.kernels.linear_algebra import copy

FIVE = 5
"""Rows that are combined at a time."""
LEAST = 1e-200
"""Sum of exponentials below which the largest present score is taken out of them anew."""
CHUNK = 512
"""Entries of a state that are compared at a time."""


def score_powers(keys, queries, scores, powers):  # type: ignore[no-untyped-def]
    """B = K^T Q, and exp(B) with the largest entry of every column at 1.

    Parameters
    ----------
    keys, queries : float array, shape (d, M)
        K and Q.
    scores, powers : float array, shape (M, M)
        Filled.
    """
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
    """Attention P of a count vector: keys in rows, queries in columns.

    Parameters
    ----------
    counts : float array, shape (M,)
    scores, powers : float array, shape (M, M)
        See `score_powers`.
    out : float array, shape (M, M)
        Filled.
    """
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
    """Add to out the sum over k of weights[k] rows[k].

    Parameters
    ----------
    rows : float array, shape (at least K, length)
    weights : float array, shape (K,)
        K is a multiple of five.
    out : float array, shape (length,)
    """
    for k in range(0, weights.size, FIVE):
        r0, r1, r2, r3, r4 = rows[k], rows[k + 1], rows[k + 2], rows[k + 3], rows[k + 4]
        w0, w1, w2 = weights[k], weights[k + 1], weights[k + 2]
        w3, w4 = weights[k + 3], weights[k + 4]
        for i in range(out.size):
            out[i] += w0 * r0[i] + w1 * r1[i] + w2 * r2[i] + w3 * r3[i] + w4 * r4[i]


def moments(rows, weights, out):  # type: ignore[no-untyped-def]
    """out[k] = sum over neurons of rows[k] weights.

    Parameters
    ----------
    rows : float array, shape (K, m)
    weights : float array, shape (m,)
    out : float array, shape (K,)
        Filled; K is a multiple of five.
    """
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
            passed = w if u > 0.0 else 0.0
            out[i] = passed
            total += passed * u
        return total
    sums[:] = 0.0
    combine(responses, column[:last], sums)
    for i in range(out.size):
        u = sums[i] + p0 * r0[i] + p1 * r1[i] + p2 * r2[i] + p3 * r3[i] + p4 * r4[i]
        w = weights[i]
        passed = w if u > 0.0 else 0.0
        out[i] = passed
        total += passed * u
    return total


def output(s, vectors, layer, column):  # type: ignore[no-untyped-def]
    """F of a count vector; leaves its attention and its gates in ``column``.

    Parameters
    ----------
    s : int
        Which vector.
    vectors : Vectors
    layer : Layer
    column : Column
    """
    attention, columns, gates, sums, _ = column
    rows, scale = vectors.rows[s], vectors.scale[s]
    many, total = attention.shape[0], 0.0
    attention_of(vectors.counts[s], layer.scores, layer.powers, attention)
    for j in range(many):
        if scale[j] == 0.0:
            continue
        for k in range(many):
            columns[j, k] = attention[k, j]
        weights = vectors.table[rows[j]]
        total += scale[j] * open_column(layer.responses, columns[j], weights, sums, gates[j])
    return total


def set_responses(state, layer):  # type: ignore[no-untyped-def]
    """W_O transposed, H, B and its exponentials at a state.

    Parameters
    ----------
    state : float array, shape (n,)
        W_O (m, d), V, K, Q (d, M).
    layer : Layer
        Filled, but for ``steep`` and ``few``.
    """
    tall, _, responses, scores, powers, padded, _ = layer
    depth, many, patterns = layer.steep.shape[0], tall.shape[1], scores.shape[0]
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
    """Whether two arrays of one length differ.

    Parameters
    ----------
    one, two : float array, shape (n,)
    """
    for begin in range(0, one.size, CHUNK):
        left, right = one[begin : begin + CHUNK], two[begin : begin + CHUNK]
        different = 0
        for i in range(left.size):
            different += 1 if left[i] != right[i] else 0
        if different > 0:
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
    choice : Choice
    numbers : float array, shape (4,)
        Risk, share below the margin, error, attention to relevant tokens.
    """
    counts, label, weight = vector
    margin, length, hinge = choice.margin, choice.length, choice.hinge
    below = not reached >= margin
    relevant = 0 if label > 0.0 else 1
    if below or not hinge:
        numbers[0] += weight * ((margin if hinge else 0.0) - reached) / margin
    numbers[1] += weight if below else 0.0
    numbers[2] += 0.0 if reached > 0.0 else weight
    for j in range(counts.size):
        numbers[3] += weight * counts[j] / length * attention[relevant, j]
    return below


def add_slopes(slopes, attention, attentive, responses, gates, sums):  # type: ignore[no-untyped-def]
    """Add a vector to E and T.

    Parameters
    ----------
    slopes : float array, shape (M,)
        - y w times the scale of the output weights of every pattern.
    attention : float array, shape (M, M)
    attentive : bool
        Whether T is needed.
    responses, gates : float arrays, shape (patterns, m)
    sums : Sums
    """
    by_response, by_score, weights, products = sums
    many = attention.shape[0]
    for j in range(many):
        for k in range(many):
            weights[k, j] = slopes[j] * attention[k, j]
        if attentive and slopes[j] != 0.0:
            moments(responses, gates[j], products)
            mean = 0.0
            for k in range(many):
                mean += attention[k, j] * products[k]
            for k in range(many):
                by_score[k, j] += weights[k, j] * (products[k] - mean)
    for k in range(many):
        combine(gates, weights[k], by_response[k])


def sum_batch(state, batch, learning, data):  # type: ignore[no-untyped-def]
    """Order parameters of a batch at a state, and E and T where it is learning from it.

    Parameters
    ----------
    state : float array, shape (n,)
    batch : Batch
    learning : bool
        Whether E and T are summed.
    data : PatternData
    """
    vectors, choice, layer, column = data.vectors, data.choice, data.layer, data.column
    sums, numbers, slopes = data.sums, data.memory.numbers, data.column.slopes
    set_responses(state, layer)
    numbers[:] = 0.0
    if learning:
        sums.by_response[:] = 0.0
        sums.by_score[:] = 0.0
    for position in range(batch.members.size):
        s, weight = batch.members[position], batch.weights[position]
        y = vectors.labels[s]
        reached = y * output(s, vectors, layer, column)
        vector = (vectors.counts[s], y, weight)
        below = count(vector, reached, column.attention, choice, numbers)
        if learning and (below or not choice.hinge):
            for j in range(slopes.size):
                slopes[j] = -y * weight * vectors.scale[s, j]
            attentive = choice.attention
            add_slopes(slopes, column.attention, attentive, layer.responses, column.gates, sums)
    copy(state, data.memory.state)
    data.memory.number[0] = batch.number


def gradient(state, data, out):  # type: ignore[no-untyped-def]
    """Gradient by W_O, V, K, Q of the loss of the batch.

    Parameters
    ----------
    state : float array, shape (n,)
    data : PatternData
    out : float array, shape (n,)
        Filled.
    """
    learning = state.size == out.size  # no constant: numba would compile each value of one
    sum_batch(state, data.batch, learning, data)
    tall, steep, _, scores, _, padded, few = data.layer
    by_response, by_score = data.sums.by_response, data.sums.by_score
    depth, many, patterns = steep.shape[0], tall.shape[1], scores.shape[0]
    rest = state[many * depth :].reshape(3, depth, patterns)
    hidden = out[: many * depth].reshape(many, depth)
    others = out[many * depth :].reshape(3, depth, patterns)
    others[:] = 0.0
    few[:] = 0.0
    for e in range(depth):
        for k in range(patterns):
            few[k] = rest[0, e, k]
        steep[e] = 0.0
        combine(by_response, few, steep[e])
    for i in range(many):
        for e in range(depth):
            hidden[i, e] = steep[e, i]
    if data.choice.values:
        for k in range(patterns):
            moments(tall, by_response[k], padded)
            for e in range(depth):
                others[0, e, k] = padded[e]
    if data.choice.attention:
        for e in range(depth):
            for i in range(patterns):
                for j in range(patterns):
                    others[1, e, i] += rest[2, e, j] * by_score[i, j]
                    others[2, e, j] += rest[1, e, i] * by_score[i, j]


def order_parameters(state, slope, data, out):  # type: ignore[no-untyped-def]
    """Risk, active, error, relevant of all training samples, whatever the batch.

    Parameters
    ----------
    state : float array, shape (n,)
    slope : float array, shape (n,)
        Not read.
    data : PatternData
    out : float array, shape (4,)
        Filled.
    """
    memory = data.memory
    if memory.number[0] != data.whole.number or differs(state, memory.state):
        learning = state.size == out.size
        sum_batch(state, data.whole, learning, data)
    for k in range(out.size):
        out[k] = memory.numbers[k]


def gradient_or_order_parameters(state, data, out):  # type: ignore[no-untyped-def]
    """The one or the other, by the number of its entries.

    Parameters
    ----------
    state : float array, shape (n,)
    data : PatternData
    out : float array, shape (n,) or (4,)
        Filled.
    """
    if out.size == state.size:
        gradient(state, data, out)
    else:
        order_parameters(state, state, data, out)


def outputs(state, vectors, data, out):  # type: ignore[no-untyped-def]
    """Margins y F of count vectors, which need not be those of training.

    Parameters
    ----------
    state : float array, shape (n,)
    vectors : Vectors
    data : PatternData
    out : float array, shape (S,)
        Filled.
    """
    set_responses(state, data.layer)
    for s in range(vectors.labels.size):
        out[s] = vectors.labels[s] * output(s, vectors, data.layer, data.column)


def attended(state, data, out):  # type: ignore[no-untyped-def]
    """Of the training vectors, attention of every pattern to relevant and to confusion keys.

    Parameters
    ----------
    state : float array, shape (n,)
    data : PatternData
    out : float array, shape (S, 2, M)
        Filled.
    """
    vectors, layer, attention = data.vectors, data.layer, data.column.attention
    set_responses(state, layer)
    for s in range(vectors.labels.size):
        attention_of(vectors.counts[s], layer.scores, layer.powers, attention)
        relevant = 0 if vectors.labels[s] > 0.0 else 1
        for j in range(attention.shape[1]):
            out[s, 0, j] = attention[relevant, j]
            out[s, 1, j] = attention[1 - relevant, j]
