r"""Kernels of the empirical problem: N samples of noisy tokens, all weights free, one pass over X.

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

from dynamics.codegen.kernels.exponential import exponentials

combine: Any = None  # supplied by the generated file: `unrolled`
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
        chunk, place = i // width, i % width
        for k in range(depth):
            outer[chunk, k, place] = weights[i, k]
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
    attention, mixed, asked, top, total, scratch = room
    keys, queries = attention.shape
    combine(scores, rows, asked)
    combine(tokens, asked, attention)
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


def masses(attention, kinds, along, out):  # type: ignore[no-untyped-def]
    """Add to ``out[kind]`` the attention to relevant keys (kind 0) of each query of that kind."""
    along[:] = 0.0
    for i in range(kinds.size):
        if kinds[i] == 0:
            row = attention[i]
            for n in range(along.size):
                along[n] += row[n]
    for n in range(kinds.size):
        out[kinds[n]] += along[n]


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


def add_samples(model, samples, part, constants, room):  # type: ignore[no-untyped-def]
    """E, T and what is read off on the way, summed over the samples of one lane.

    Parameters
    ----------
    model : (scores, inner, signs)
        B (d, d), W (chunks, d, width), a (chunks, 1 or L, width).
    samples : (tokens, rows, labels, kinds)
        (N, L, d), (N, d, queries), (N,), (N, L); kind 0 is relevant, 1 confusion, 2 another.
    part : (members, learning)
        The samples of the lane, int array; whether slopes are summed.
    constants : float array
        Margin; flags: the loss is linear, slopes are wanted, W_K and W_Q are trained, W_V is.
    room : (by_neuron, by_score, numbers, gates, squares, strips, entering)
        Sums: E (chunks, d, width), T (d, d), and (6,): loss, active, wrong, masses by kind of
        query. Room: D (chunks, L, width), (2, L, queries), (4, d, queries), (L, d).
    """
    scores, inner, signs = model
    every_token, every_row, labels, kinds = samples
    by_neuron, by_score, numbers, gates, squares, strips, entering = room
    margin, linear = constants[0], constants[1] > 0.0
    members, learning = part
    attending = constants[3] > 0.0
    length, depth, chunks = every_token.shape[1], every_token.shape[2], inner.shape[0]
    attention, change = squares[0], squares[1]
    mixed, strip, top, total = strips[0], strips[1], strips[2, 0], strips[3, 0]
    by_neuron[:] = 0.0
    by_score[:] = 0.0
    numbers[:] = 0.0
    for n in members:
        tokens, rows, y = every_token[n], every_row[n], labels[n]
        attend(scores, tokens, rows, (attention, mixed, strip, top, total, change))
        masses(attention, kinds[n], top, numbers[3:])
        for t in range(length):
            for k in range(depth):
                entering[t, k] = mixed[k, t]
        output = 0.0
        for chunk in range(chunks):
            output += activate(inner[chunk], entering, signs[chunk], gates[chunk])
        reached = y * output / length
        active = not reached >= margin
        if not reached > 0.0:
            numbers[2] += 1.0
        if active:
            numbers[1] += 1.0
        if linear:
            numbers[0] -= reached
        elif active:
            numbers[0] += margin - reached
        if not (learning and (active or linear)):
            continue
        slope = -y / length
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


def leave(numbers, seen):  # type: ignore[no-untyped-def]
    """The numbers of all lanes, summed in their order, left in ``seen``."""
    for k in range(seen.size):
        seen[k] = 0.0
        for lane in range(numbers.shape[0]):
            seen[k] += numbers[lane, k]


def finish(state, share, data, out):  # type: ignore[no-untyped-def]
    """Gradient of a batch from the sums E and T of all lanes; ``share`` is 1 / its size.

    Where an output is not finite nothing of the gradient is a number, so that the run ends.
    """
    constants, model, work = data[0], data[3], data[4]
    scores, inner, outer, values = model[:4]
    by_neuron, by_score, numbers = work[:3]
    depth, width = scores.shape[0], inner.shape[2]
    square = depth * depth
    neurons = state.size // depth - 3 * depth
    gather(numbers)
    if not isfinite(numbers[0, 0]):
        out[:] = np.nan
        return
    out[:] = 0.0
    gather(by_neuron)
    gather(by_score)
    first = neurons * depth
    moved, each = out[:first].reshape(neurons, depth), by_neuron[0]
    for chunk in range(inner.shape[0]):
        # W is not needed any more: its room holds the gradient by W_O.
        combine(values, each[chunk], inner[chunk])
        for place in range(min(width, neurons - chunk * width)):
            for k in range(depth):
                moved[chunk * width + place, k] = share * inner[chunk, k, place]
    if constants[4] > 0.0:
        by_value = out[first : first + square].reshape(depth, depth)
        for chunk in range(inner.shape[0]):
            moments(outer[chunk], each[chunk], by_value)
        for j in range(depth):
            for k in range(depth):
                by_value[j, k] *= share
    if constants[3] > 0.0:
        pushed = by_score[0]
        keys = state[first + square : first + 2 * square].reshape(depth, depth)
        queries = state[first + 2 * square :].reshape(depth, depth)
        by_key = out[first + square : first + 2 * square].reshape(depth, depth)
        by_query = out[first + 2 * square :].reshape(depth, depth)
        for j in range(depth):
            for k in range(depth):
                for i in range(depth):
                    by_key[j, k] += share * queries[j, i] * pushed[k, i]
                    by_query[j, k] += share * keys[j, i] * pushed[i, k]


def gradient(state, data, out):  # type: ignore[no-untyped-def]
    """Gradient of the loss of a batch, the next of ``order``; frozen parts have none.

    Batch 0 is all samples. Before another there is a pass without slopes over all of them, for the
    order parameters. Where no slopes are wanted ``out`` is left as it is.
    """
    constants, samples, batches, model, work = data
    scores, inner, outer, values, turned, signs = model
    by_neuron, by_score, numbers, gates, squares, strips, inputs, seen = work
    bounds, shares, index, order, cursor = batches
    lanes, depth, wanted = numbers.shape[0], scores.shape[0], constants[2] > 0.0
    batch = order[cursor[0] % order.size]
    cursor[0] += 1
    neurons = state.size // depth - 3 * depth
    prepare(state, (neurons, depth), (scores, inner, outer, values, turned))
    for turn in range(1 if batch == 0 else 0, 2):
        chosen = batch if turn == 1 else 0
        learning = wanted and turn == 1
        first, many = bounds[chosen, 0], bounds[chosen, 1] - bounds[chosen, 0]
        for lane in prange(lanes):
            begin, end = lane * many // lanes, (lane + 1) * many // lanes
            part = (index[first + begin : first + end], learning)
            sums = (by_neuron[lane], by_score[lane], numbers[lane])
            room = (*sums, gates[lane], squares[lane], strips[lane], inputs[lane])
            add_samples((scores, inner, signs), samples, part, constants, room)
        if chosen == 0:
            leave(numbers, seen)
    if wanted:
        finish(state, shares[batch], data, out)


def order_parameters(state, slope, data, out):  # type: ignore[no-untyped-def]
    """Risk over the margin, share active, share wrong, attention to relevant tokens.

    Of all samples, at the state of the last gradient.
    """
    constants, samples, batches, model, work = data
    seen, share = work[7], batches[1][0]
    out[0] = share * seen[0] / constants[0]
    out[1] = share * seen[1]
    out[2] = share * seen[2]
    out[3] = share * (seen[3] + seen[4] + seen[5]) / samples[3].shape[1]


def attended(state, data, out):  # type: ignore[no-untyped-def]
    """Of the training samples, attention of every token to relevant and to confusion tokens."""
    tokens, rows, labels, kinds = data[1]
    scores, inner, outer, values, turned = data[3][:5]
    squares, strips = data[4][4][0], data[4][5][0]
    room = (squares[0], strips[0], strips[1], strips[2, 0], strips[3, 0], squares[1])
    depth = scores.shape[0]
    prepare(state, (state.size // depth - 3 * depth, depth), (scores, inner, outer, values, turned))
    out[:] = 0.0
    for n in range(labels.size):
        attend(scores, tokens[n], rows[n], room)
        for i in range(kinds.shape[1]):
            if kinds[n, i] < 2:
                for q in range(kinds.shape[1]):
                    out[n, kinds[n, i], q] += squares[0, i, q]
