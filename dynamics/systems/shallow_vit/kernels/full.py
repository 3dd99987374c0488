r"""Kernels of the problems with all weights free: weighted samples of tokens, one pass over X.

For one sample, with :math:`B = W_K^\top W_Q` and :math:`W = W_O W_V` formed once a step,

.. math::
   Z = X^\top B X, \quad S = \mathrm{softmax}(Z), \quad U = W X S, \quad
   F = \frac1L \sum_l a^\top \mathrm{relu}(U_l)

(column l of S is query l). Where :math:`yF < \gamma`, with :math:`D = a \odot 1[U > 0]` and
:math:`g = -y/L`,

.. math::
   E \mathrel{+}= g D (XS)^\top, \quad \bar S = X^\top (g W^\top D), \quad
   \bar Z = S \odot (\bar S - \text{column sums of } S \odot \bar S), \quad
   T \mathrel{+}= X \bar Z X^\top,

and after all samples :math:`\nabla W_O = E W_V^\top`, :math:`\nabla W_V = W_O^\top E`,
:math:`\nabla W_K = W_Q T^\top`, :math:`\nabla W_Q = W_K T`. Three products of 2 L m d operations
are what a sample costs, one where it has no slope.

Neurons are contiguous, in chunks whose weights stay in the first cache; so are the queries of S.
Samples are shared out to lanes, which are fixed by the problem and summed in order.
"""

from math import isfinite
from typing import Any

import numpy as np

from dynamics.codegen.kernels.elementary import exponentials
from dynamics.codegen.kernels.linear_algebra import copy
from dynamics.systems.shallow_vit.kernels.reduced import differs

combine: Any = None  # supplied by the generated file: `dynamics.systems.shallow_vit.kernels`
activate: Any = None
spread: Any = None
moments: Any = None

prange = range
DEEPEST = -700.0


def prepare(state, sizes, model):  # type: ignore[no-untyped-def]
    """B, the chunks of W_O and of W, and W_V with its transpose, of a flat state.

    Parameters
    ----------
    state : float array, shape (n,)
        W_O (m, d), W_V, W_K, W_Q (d, d).
    sizes : (m, d)
    model : (scores, inner, outer, values, turned)
        B (d, d); W and W_O (chunks, d, width); W_V and its transpose (d, d).
    """
    scores, inner, outer, values, turned = model
    neurons, depth = sizes
    width, square, first = outer.shape[2], depth * depth, neurons * depth
    weights = state[:first].reshape(neurons, depth)
    for i in range(neurons):
        chunk, column = i // width, i % width
        for k in range(depth):
            outer[chunk, k, column] = weights[i, k]
    by_value = state[first : first + square].reshape(depth, depth)
    by_key = state[first + square : first + 2 * square].reshape(depth, depth)
    by_query = state[first + 2 * square :].reshape(depth, depth)
    for j in range(depth):
        for k in range(depth):
            values[j, k] = by_value[j, k]
            turned[k, j] = by_value[j, k]
            total = 0.0
            for i in range(depth):
                total += by_key[i, j] * by_query[i, k]
            scores[j, k] = total
    for chunk in range(outer.shape[0]):
        combine(turned, outer[chunk], inner[chunk])


def attend(scores, tokens, rows, room):  # type: ignore[no-untyped-def]
    """S of one sample, keys in rows, and X S.

    Parameters
    ----------
    scores : float array, shape (d, d)
        B.
    tokens, rows : float arrays, shapes (L, d) and (d, queries)
        X, with keys and with queries contiguous; queries beyond L are zero.
    room : (attention, mixed, asked, top, total, scratch)
        S (L, queries) and X S (d, queries) on return; room (d, queries), (queries,) twice, and as
        much as S.
    """
    attention, mixed, query_rows, top, total, scratch = room
    keys, queries = attention.shape
    combine(scores, rows, query_rows)
    combine(tokens, query_rows, attention)
    top[:] = -np.inf
    for i in range(keys):
        row = attention[i]
        for n in range(queries):
            top[n] = row[n] if row[n] > top[n] else top[n]
    for i in range(keys):
        row = attention[i]
        for n in range(queries):
            below = row[n] - top[n]
            row[n] = DEEPEST if below < DEEPEST else below
    exponentials(attention.reshape(attention.size), scratch.reshape(scratch.size))
    total[:] = 0.0
    for i in range(keys):
        row = attention[i]
        for n in range(queries):
            total[n] += row[n]
    for n in range(queries):
        total[n] = 1.0 / total[n]
    for i in range(keys):
        row = attention[i]
        for n in range(queries):
            row[n] *= total[n]
    mixed[:] = 0.0
    spread(attention, tokens, mixed)


def add_masses(attention, kinds, weight, along, out):  # type: ignore[no-untyped-def]
    """Add to ``out[kind]`` the attention to relevant keys (kind 0) of each query of that kind.

    Parameters
    ----------
    attention : float array, shape (L, queries)
        S.
    kinds : int array, shape (L,)
        See `data.Samples`.
    weight : float
        Of the sample.
    along : float array, shape (queries,)
        Overwritten.
    out : float array, shape (3,)
    """
    along[:] = 0.0
    for i in range(kinds.size):
        if kinds[i] == 0:
            row = attention[i]
            for n in range(along.size):
                along[n] += row[n]
    for n in range(kinds.size):
        out[kinds[n]] += weight * along[n]


def attend_back(tokens, rows, room, out):  # type: ignore[no-untyped-def]
    """Add X dZ X^T to ``out``, from R = g W^T D.

    Parameters
    ----------
    tokens, rows : float arrays, shapes (L, d) and (d, queries)
    room : (attention, pushed, turned, along, change)
        S, R (d, queries); room (d, queries), (queries,) and as much as S.
    out : float array, shape (d, d)
    """
    attention, pushed, turned, along, change = room
    combine(tokens, pushed, change)
    along[:] = 0.0
    for i in range(attention.shape[0]):
        row, moved = attention[i], change[i]
        for n in range(along.size):
            moved[n] *= row[n]
            along[n] += moved[n]
    for i in range(attention.shape[0]):
        row, moved = attention[i], change[i]
        for n in range(along.size):
            moved[n] -= row[n] * along[n]
    turned[:] = 0.0
    spread(change, tokens, turned)
    moments(turned, rows, out)


def add_samples(model, samples, part, choice, room):  # type: ignore[no-untyped-def]
    """E, T and what is read off on the way, summed over the samples of one lane.

    Parameters
    ----------
    model : (scores, inner, signs)
    samples : (tokens, rows, labels, kinds)
        See `data.Samples`.
    part : (members, weights, learning)
        The samples of the lane; whether slopes are summed.
    choice : (margin, hinge, attention)
    room : (by_neuron, by_score, numbers, gates, squares, strips, entering)
        Of the lane.
    """
    scores, inner, signs = model
    by_neuron, by_score, numbers, gates, squares, strips, entering = room
    margin, hinge, attending = choice
    members, weights, learning = part
    every_token, every_row, labels, kinds = samples
    length, depth, chunks = entering.shape[0], entering.shape[1], inner.shape[0]
    attention, change = squares[0], squares[1]
    mixed, strip, top, total = strips[0], strips[1], strips[2, 0], strips[3, 0]
    by_neuron[:] = 0.0
    by_score[:] = 0.0
    numbers[:] = 0.0
    for column in range(members.size):
        n, weight = members[column], weights[column]
        tokens, rows, y = every_token[n], every_row[n], labels[n]
        attend(scores, tokens, rows, (attention, mixed, strip, top, total, change))
        add_masses(attention, kinds[n], weight, top, numbers[3:])
        for t in range(length):
            for k in range(depth):
                entering[t, k] = mixed[k, t]
        output = 0.0
        for chunk in range(chunks):
            output += activate(inner[chunk], entering, signs[chunk], gates[chunk])
        reached = y * output / length
        active = not reached >= margin
        if not reached > 0.0:
            numbers[2] += weight
        if active:
            numbers[1] += weight
        if not hinge:
            numbers[0] -= weight * reached
        elif active:
            numbers[0] += weight * (margin - reached)
        if not (learning and (active or not hinge)):
            continue
        slope = -y * weight / length
        for t in range(length):
            for k in range(depth):
                entering[t, k] *= slope
        for chunk in range(chunks):
            spread(gates[chunk], entering, by_neuron[chunk])
        if attending:
            mixed[:] = 0.0
            for chunk in range(chunks):
                moments(inner[chunk], gates[chunk], mixed)
            for k in range(depth):
                for t in range(length):
                    mixed[k, t] *= slope
            attend_back(tokens, rows, (attention, mixed, strip, top, change), by_score)


def gather(parts):  # type: ignore[no-untyped-def]
    """Sum the lanes, in their order, into the first."""
    flat = parts.reshape(parts.shape[0], parts.size // parts.shape[0])
    first = flat[0]
    for lane in range(1, flat.shape[0]):
        row = flat[lane]
        for k in range(first.size):
            first[k] += row[k]


def share_of(batch):  # type: ignore[no-untyped-def]
    """1 / the sum of the weights of a batch."""
    total = 0.0
    for column in range(batch.weights.size):
        total += batch.weights[column]
    return 1.0 / total


def finish(state, share, data, out):  # type: ignore[no-untyped-def]
    """Gradient of a batch from the sums E and T of all lanes.

    Where an output is not finite nothing of the gradient is a number, so that the run ends.

    Parameters
    ----------
    state : float array, shape (n,)
    share : float
        1 / the sum of the weights.
    data : TokenData
    out : float array, shape (n,)
        Filled.
    """
    choice, room = data.choice, data.room
    inner, outer, values = data.model.inner, data.model.outer, data.model.values
    depth, width = values.shape[0], inner.shape[2]
    square = depth * depth
    neurons = state.size // depth - 3 * depth
    gather(room.numbers)
    if not isfinite(room.numbers[0, 0]):
        out[:] = np.nan
        return
    out[:] = 0.0
    gather(room.by_neuron)
    gather(room.by_score)
    first = neurons * depth
    moved, each = out[:first].reshape(neurons, depth), room.by_neuron[0]
    for chunk in range(inner.shape[0]):
        # W is not needed any more: its room holds the gradient by W_O.
        combine(values, each[chunk], inner[chunk])
        for column in range(min(width, neurons - chunk * width)):
            for k in range(depth):
                moved[chunk * width + column, k] = share * inner[chunk, k, column]
    if choice.values:
        by_value = out[first : first + square].reshape(depth, depth)
        for chunk in range(inner.shape[0]):
            moments(outer[chunk], each[chunk], by_value)
        for j in range(depth):
            for k in range(depth):
                by_value[j, k] *= share
    if choice.attention:
        by_product = room.by_score[0]
        keys = state[first + square : first + 2 * square].reshape(depth, depth)
        queries = state[first + 2 * square :].reshape(depth, depth)
        by_key = out[first + square : first + 2 * square].reshape(depth, depth)
        by_query = out[first + 2 * square :].reshape(depth, depth)
        for j in range(depth):
            for k in range(depth):
                for i in range(depth):
                    by_key[j, k] += share * queries[j, i] * by_product[k, i]
                    by_query[j, k] += share * keys[j, i] * by_product[i, k]


def sum_batch(state, batch, learning, data):  # type: ignore[no-untyped-def]
    """Sums of every lane over a batch at a state, with slopes where it is learning from it.

    Parameters
    ----------
    state : float array, shape (n,)
    batch : Batch
    learning : bool
        Whether E and T are summed.
    data : TokenData
    """
    room, every = data.room, data.samples
    samples = (every.tokens, every.rows, every.labels, every.kinds)
    scores, inner, outer, values, turned, signs = data.model
    by_neuron, by_score, numbers, gates = room.by_neuron, room.by_score, room.numbers, room.gates
    squares, strips, entering = room.squares, room.strips, room.entering
    members, weights = batch.members, batch.weights
    choice = (data.choice.margin, data.choice.hinge, data.choice.attention)
    lanes, depth, many = numbers.shape[0], scores.shape[0], members.size
    neurons = state.size // depth - 3 * depth
    prepare(state, (neurons, depth), (scores, inner, outer, values, turned))
    for lane in prange(lanes):
        begin, end = lane * many // lanes, (lane + 1) * many // lanes
        part = (members[begin:end], weights[begin:end], learning)
        sums = (by_neuron[lane], by_score[lane], numbers[lane])
        own = (*sums, gates[lane], squares[lane], strips[lane], entering[lane])
        add_samples((scores, inner, signs), samples, part, choice, own)


def keep_totals(state, batch, room):  # type: ignore[no-untyped-def]
    """Store the numbers of all lanes, summed in their order, with their state and batch.

    Parameters
    ----------
    state : float array, shape (n,)
    batch : Batch
    room : Room
    """
    for k in range(room.totals.size):
        room.totals[k] = 0.0
        for lane in range(room.numbers.shape[0]):
            room.totals[k] += room.numbers[lane, k]
    copy(state, room.state)
    room.number[0] = batch.number


def gradient(state, data, out):  # type: ignore[no-untyped-def]
    """Gradient of the loss of the batch; frozen parts have none.

    Parameters
    ----------
    state : float array, shape (n,)
    data : TokenData
    out : float array, shape (n,)
        Filled.
    """
    learning = state.size == out.size  # no constant: numba would compile each value of one
    sum_batch(state, data.batch, learning, data)
    if data.batch.number == data.whole.number:
        keep_totals(state, data.batch, data.room)
    finish(state, share_of(data.batch), data, out)


def order_parameters(state, slope, data, out):  # type: ignore[no-untyped-def]
    """Risk over the margin, share active, share wrong, attention to relevant tokens.

    Of the whole set, whatever the batch; from the pass of the gradient where that was over it.

    Parameters
    ----------
    state : float array, shape (n,)
    slope : float array, shape (n,)
        Not read.
    data : TokenData
    out : float array, shape (4,)
        Filled.
    """
    room, whole = data.room, data.whole
    if room.number[0] != whole.number or differs(state, room.state):
        learning = state.size == out.size
        sum_batch(state, whole, learning, data)
        keep_totals(state, whole, room)
    totals, share = room.totals, share_of(whole)
    out[0] = share * totals[0] / data.choice.margin
    out[1] = share * totals[1]
    out[2] = share * totals[2]
    out[3] = share * (totals[3] + totals[4] + totals[5]) / data.samples.kinds.shape[1]


def gradient_or_order_parameters(state, data, out):  # type: ignore[no-untyped-def]
    """The one or the other, by the number of its entries.

    Parameters
    ----------
    state : float array, shape (n,)
    data : TokenData
    out : float array, shape (n,) or (4,)
        Filled.
    """
    if out.size == state.size:
        gradient(state, data, out)
    else:
        order_parameters(state, state, data, out)


def attended(state, data, out):  # type: ignore[no-untyped-def]
    """Of the training samples, attention of every token to relevant and to confusion tokens.

    Parameters
    ----------
    state : float array, shape (n,)
    data : TokenData
    out : float array, shape (N, 2, L)
        Filled.
    """
    samples, kinds = data.samples, data.samples.kinds
    scores, inner, outer, values, turned, _ = data.model
    squares, strips = data.room.squares[0], data.room.strips[0]
    room = (squares[0], strips[0], strips[1], strips[2, 0], strips[3, 0], squares[1])
    depth = scores.shape[0]
    prepare(state, (state.size // depth - 3 * depth, depth), (scores, inner, outer, values, turned))
    out[:] = 0.0
    for n in range(kinds.shape[0]):
        attend(scores, samples.tokens[n], samples.rows[n], room)
        for i in range(kinds.shape[1]):
            if kinds[n, i] < 2:
                for q in range(kinds.shape[1]):
                    out[n, kinds[n, i], q] += squares[0, i, q]
