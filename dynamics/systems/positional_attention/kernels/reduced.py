r"""Kernels of the reduced population problem: one pass over the configurations.

A configuration is a multiset of types of the L-1 random sets. With the table h(type, Z) of the
current state,

1. gather: e^-F = product over the signal set and the random sets of e^-h(type),
2. weigh: w = probability * e^-F / (1 + e^-F),
3. scatter w back to the table: W(type, Z) = sum of w over the configurations with that entry,
4. contract: dR/dtheta = - sum W(type, Z) dh(type, Z)/dtheta.

The derivatives enter only in the contraction, so one pass serves all of them. The signal set has
one type, so it is not gathered: its share is spread over the L - 1 random sets, and its W(Z) is
what these have together, over their number. The share of a set of type k is the sum of
``multiples[k, i]`` times part i of three, ``parts[output, i, z, Z]``, so tables are built from
these, and contracted with them.
"""

from typing import Any

import numpy as np

from dynamics.codegen.kernels import exact
from dynamics.codegen.kernels.elementary import exponentials, logistic_losses

prange = range
SAFE_EXPONENT = 700.0
NONE_BELOW = 1e-303
"""e^-F from here on, F > 697, counts as 0."""
TIE = 1e-13
"""Part of the sum of all absolute shares of a margin up to which it counts as 0."""
BLOCK = 512
"""Configurations whose sums are in memory together."""
share_table: Any = None  # supplied by the generated file
order: Any = None  # supplied by the generated file


def set_table(parts, multiples, sum_index, table):  # type: ignore[no-untyped-def]
    """h(type, Z), or a derivative: the sum over its parts times what the type has of each.

    Parameters
    ----------
    parts : float array, shape (3, 2 C + 1, sums Z)
        By (part, z, Z).
    multiples : float array, shape (K, 3)
    sum_index : uint64 array, shape (K,)
    table : float array, shape (K, sums Z)
        Filled.
    """
    for k in range(sum_index.size):
        m = sum_index[k]
        one, two, three = multiples[k, 0], multiples[k, 1], multiples[k, 2]
        for j in range(table.shape[1]):
            table[k, j] = one * parts[0, m, j] + two * parts[1, m, j] + three * parts[2, m, j]


def weigh(table, configurations, scratch, chance):  # type: ignore[no-untyped-def]
    """Steps 1 and 2.

    e^-F is the product of the e^-h of the sets, so the exponential is taken of the table and not
    of every configuration; where a product could overflow, the sum is taken first. The pass is cut
    in lanes fixed by the problem, so results do not depend on the number of threads.

    Parameters
    ----------
    table : float array, shape (K, sums Z)
        h(type, Z), that of the signal set spread; overwritten with e^-h where products are taken,
        else with -h.
    configurations : Configurations
    scratch : float array, shape (K * sums Z,)
        Overwritten.
    chance : float array, shape (n,)
        Filled with w of each configuration.
    """
    index, probability = configurations.index, configurations.probability
    lanes, flat, beyond = configurations.cuts.size - 1, table.reshape(-1), 0
    safe = SAFE_EXPONENT / (index.shape[0] - 1)
    for k in range(flat.size):  # counted, not the largest found: vector instructions
        beyond += abs(flat[k]) >= safe
        flat[k] = -flat[k]
    product = beyond == 0
    if product:
        exponentials(flat, scratch)
    for lane in prange(lanes):
        first = lane * probability.size // lanes
        weight = chance[first : (lane + 1) * probability.size // lanes]
        if product:
            multiply(flat, index, first, weight)
        else:
            add(flat, index, first, weight)
        likely = probability[first : first + weight.size]
        for c in range(weight.size):
            weight[c] = likely[c] * (weight[c] / (1.0 + weight[c]))


def spread_signal(table, configurations):  # type: ignore[no-untyped-def]
    """Add to every entry its part of that of the signal set, so that random sets sum up to F.

    Parameters
    ----------
    table : float array, shape (K, columns)
        By type; a column has the same Z for all.
    configurations : Configurations
    """
    signal, sets = signal_type(configurations), configurations.index.shape[0] - 1
    part = np.empty(table.shape[1])
    for j in range(part.size):
        part[j] = table[signal, j] / sets
    for k in range(table.shape[0]):
        for j in range(part.size):
            table[k, j] += part[j]


def scatter(chance, configurations, total):  # type: ignore[no-untyped-def]
    """Step 3, entry by entry, as a sum over the configurations that hold the entry; in lanes.

    The signal set stands once beside the L - 1 random sets of every configuration.

    Parameters
    ----------
    chance : float array, shape (n,)
        w of each configuration.
    configurations : Configurations
    total : float array, shape (K * sums Z,)
        Filled with W(type, Z).
    """
    entries, starts = configurations.entries, configurations.starts
    members, cuts = configurations.members, configurations.cuts
    total[:] = 0.0
    for lane in prange(cuts.size - 1):
        for k in range(cuts[lane], cuts[lane + 1]):
            total[entries[k]] = sum_at(chance, members, starts[k], starts[k + 1])
    rows = total.reshape(configurations.sum_index.size, configurations.latents[2].size)
    together = np.empty(rows.shape[1])  # not zeros: in threads these are a loop of their own
    for j in range(together.size):
        together[j] = 0.0
    for k in range(rows.shape[0]):
        for j in range(together.size):
            together[j] += rows[k, j]
    signal, sets = signal_type(configurations), configurations.index.shape[0] - 1
    for j in range(together.size):
        rows[signal, j] += together[j] / sets


def signal_type(configurations):  # type: ignore[no-untyped-def]
    """The type of the signal set."""
    return configurations.index[0, 0] // configurations.latents[2].size


@exact
def sum_at(values, places, first, last):  # type: ignore[no-untyped-def]
    """Sum of the values at ``places[first], ..., places[last - 1]``.

    Four sums, none of which waits for another, in an order that is forced: of reordered ones the
    compiler makes vector instructions that gather, which take half as long again. Its loop over a
    range would be slower too, for the few places of most entries.

    Parameters
    ----------
    values : float array, shape (n,)
    places : uint32 array, shape (m,)
    first, last : uint32
    """
    one, two, three, four = 0.0, 0.0, 0.0, 0.0
    m = np.uint64(first)
    while m + np.uint64(3) < last:
        one += values[places[m]]
        two += values[places[m + np.uint64(1)]]
        three += values[places[m + np.uint64(2)]]
        four += values[places[m + np.uint64(3)]]
        m += np.uint64(4)
    while m < last:
        one += values[places[m]]
        m += np.uint64(1)
    return (one + two) + (three + four)


def multiply(flat, index, first, out):  # type: ignore[no-untyped-def]
    """e^-F as the product of the factors e^-h of the random sets, two sets at a time.

    Parameters
    ----------
    flat : float array, shape (K * sums Z,)
        e^-h(type, Z), that of the signal set spread.
    index : uint32 array, shape (L, n)
        See `Configurations`.
    first : int
        First configuration.
    out : float array, shape (configurations of a lane,)
        Filled.
    """
    last, sets = first + out.size, index.shape[0] - 1
    one = index[1, first:last]
    if sets == 1:
        for c in range(out.size):
            out[c] = flat[one[c]]
    elif sets % 2 == 0:
        two = index[2, first:last]
        for c in range(out.size):
            out[c] = flat[one[c]] * flat[two[c]]
    else:
        two, three = index[2, first:last], index[3, first:last]
        for c in range(out.size):
            out[c] = flat[one[c]] * flat[two[c]] * flat[three[c]]
    done = 1 + sets % 2
    for k in range(1, sets // 2):
        one, two = index[2 * k + done, first:last], index[2 * k + done + 1, first:last]
        for c in range(out.size):
            out[c] *= flat[one[c]] * flat[two[c]]


def add(flat, index, first, out):  # type: ignore[no-untyped-def]
    """e^-F from the sum F, cut where e^-F / (1 + e^-F) is 1 to the last digit.

    Parameters
    ----------
    flat : float array, shape (K * sums Z,)
        -h(type, Z), that of the signal set spread.
    index : uint32 array, shape (L, n)
        See `Configurations`.
    first : int
        First configuration.
    out : float array, shape (configurations of a lane,)
        Filled.
    """
    last = first + out.size
    out[:] = 0.0
    for k in range(1, index.shape[0]):
        one = index[k, first:last]
        for c in range(out.size):
            out[c] += flat[one[c]]
    for c in range(out.size):
        out[c] = min(max(out[c], -SAFE_EXPONENT), SAFE_EXPONENT)
    exponentials(out, np.empty(out.size))
    for c in range(out.size):
        if out[c] < NONE_BELOW:
            out[c] = 0.0


def contract(parts, multiples, sum_index, total, weights, share, out):  # type: ignore[no-untyped-def]
    """Step 4, per entry: minus W against the parts of the derivatives.

    Parameters
    ----------
    parts : float array, shape (derivatives, 3, 2 C + 1, sums Z)
    multiples, sum_index : arrays, shapes (K, 3), (K,)
        What a type has of each part, and where its sum is.
    total : float array, shape (K * sums Z,)
        W(type, Z).
    weights : float array, shape (3, 2 C + 1, sums Z)
        Overwritten with W by part.
    share : float array, shape (derivatives,)
        Factor of each result.
    out : float array, shape (derivatives,)
        Filled.
    """
    columns = parts.shape[3]
    weights[:] = 0.0
    rows = total.reshape(sum_index.size, columns)
    for k in range(sum_index.size):
        m = sum_index[k]
        for i in range(3):
            many = multiples[k, i]
            if many == 0.0:
                continue
            for j in range(columns):
                weights[i, m, j] += many * rows[k, j]
    pushed = weights.reshape(-1)
    for theta in range(out.size):
        along = parts[theta].reshape(-1)
        slope = 0.0
        for k in range(pushed.size):
            slope += pushed[k] * along[k]
        out[theta] = -slope * share[theta]


def margin_table(state, data):  # type: ignore[no-untyped-def]
    """Fill the parts and h(type, Z) at a state.

    Parameters
    ----------
    state : float array, shape (3,)
    data : ReducedData
    """
    configurations, work = data.configurations, data.work
    fill_parts(state, data)
    set_table(work.parts[0], configurations.multiples, configurations.sum_index, work.table)


def fill_parts(state, data):  # type: ignore[no-untyped-def]
    """Fill the parts at a state, unless they are there.

    Parameters
    ----------
    state : float array, shape (3,)
    data : ReducedData
    """
    work = data.work
    same = True
    for k in range(state.size):
        same = same and work.parts_at[k] == state[k]
        work.parts_at[k] = state[k]
    if not same:
        share_table(state, data.constants, data.configurations.latents[1:], work.flat_parts)


def gradient(state, data, out):  # type: ignore[no-untyped-def]
    """Per-entry gradient of the population risk at (alpha, gamma, rho).

    Parameters
    ----------
    state : float array, shape (3,)
    data : ReducedData
    out : float array, shape (3,)
        Filled.
    """
    configurations, work = data.configurations, data.work
    margin_table(state, data)
    spread_signal(work.table, configurations)
    weigh(work.table, configurations, work.total, work.chance)
    scatter(work.chance, configurations, work.total)
    multiples, sum_index = configurations.multiples, configurations.sum_index
    contract(work.parts[1:], multiples, sum_index, work.total, work.weights, data.share, out)


def order_parameters(state, slope, data, out):  # type: ignore[no-untyped-def]
    """Order parameters from the state and its gradient.

    Parameters
    ----------
    state, slope : float array, shape (3,)
        State and its gradient.
    data : ReducedData
    out : float array, shape (7,)
        Filled.
    """
    order(state, -slope, data.constants, out)


def summary(state, data, out):  # type: ignore[no-untyped-def]
    """Population risk and error: ``out = (E log(1 + e^-F), P(F <= 0))``.

    A margin below `TIE` of the sum of the absolute contributions is a tie, and counts as an error.

    Parameters
    ----------
    state : float array, shape (3,)
    data : ReducedData
    out : float array, shape (2,)
        Filled.
    """
    index, probability = data.configurations.index, data.configurations.probability
    margin_table(state, data)
    flat, total = data.work.table.reshape(-1), 0.0
    for k in range(flat.size):
        total += abs(flat[k])
    # Above it none is a tie; below, or where there is a share that is no number, sizes are summed.
    tied = TIE * index.shape[0] * total if total < np.inf else np.inf
    margins, losses, scratch = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    risk, error = 0.0, 0.0
    for begin in range(0, probability.size, BLOCK):
        likely = probability[begin : begin + BLOCK]
        count = likely.size
        one, two = index[0, begin : begin + count], index[1, begin : begin + count]
        for c in range(count):
            margins[c] = flat[one[c]] + flat[two[c]]
        for k in range(2, index.shape[0]):
            row = index[k, begin : begin + count]
            for c in range(count):
                margins[c] += flat[row[c]]
        logistic_losses(margins[:count], losses[:count], scratch[:count])
        for c in range(count):
            risk += likely[c] * losses[c]
        for c in range(count):
            if margins[c] <= tied:
                size = 0.0
                for k in range(index.shape[0]):
                    size += abs(flat[index[k, begin + c]])
                if margins[c] <= TIE * size:
                    error += likely[c]
    out[0], out[1] = risk, np.nan if risk != risk else error
