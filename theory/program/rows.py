"""Operations on rows of values: sums, maxima, softmax, matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from theory.program import field
from theory.program.numbering import ONE, ZERO, Ids, Rows, Values, rows_of
from theory.program.operations import CODE, softmax_triples


def _distinct(rows: Ids) -> tuple[Ids, Ids]:
    """Distinct rows, each sorted, and the index of every row among the distinct rows."""
    order = np.sort(rows, axis=1)
    with np.errstate(over="ignore"):
        weights = np.random.default_rng(0).integers(1, 2**63, rows.shape[1], dtype=np.uint64)
        keys = (order.astype(np.uint64) * weights).sum(axis=1, dtype=np.uint64)
    _, where, back = np.unique(keys, return_index=True, return_inverse=True)
    back = back.reshape(-1)
    if not np.array_equal(order[where][back], order):
        return order, np.arange(len(order))
    return order[where], back


def total(values: Values, rows: Ids) -> Ids:
    """Ids of the sum of each row of ids, shapes (m, k) -> (m,)."""
    distinct, back = _distinct(rows)
    flat, sizes = distinct.reshape(-1), np.full(len(distinct), rows.shape[1])
    return values.sums(sizes, flat, np.full(flat.size, ONE))[back]


def product(values: Values, rows: Ids) -> Ids:
    """Ids of the product of each row of ids, shapes (m, k) -> (m,)."""
    out = np.full(len(rows), ONE)
    for column in rows.T:
        out = values.apply("mul", (out, column))
    return out


def largest(values: Values, rows: Ids) -> Ids:
    """Ids of the maximum of each row of ids, shapes (m, k) -> (m,)."""
    distinct, back = _distinct(rows)
    return np.array([_largest_of(values, row) for row in distinct], dtype=np.int64)[back]


def _largest_of(values: Values, row: Ids) -> int:
    members, counts = np.unique(row, return_counts=True)
    low = values.constant[members] & (values.floats[members] == -np.inf)
    if low.all():
        return int(members[0])
    members, counts = members[~low], counts[~low]
    if values.constant[members].all() or members.size == 1:
        return int(members[np.argmax(values.floats[members])])
    triple = field.hashed("row", values.triples[members]).sum(axis=0) % field.PRIMES
    terms = np.array([members.size]), members, values.constants(counts.astype(float))
    hashed = field.hashed("largest", triple[None])
    return int(values.enter(CODE["largest"], hashed, lambda _: terms)[0])


def logsumexp(values: Values, rows: Ids) -> tuple[Ids, Ids]:
    """Logsumexp of each row, shape (m,), and its softmax, shape (m, k), which is 0 at -inf."""
    distinct, back = _distinct(rows)
    new = np.ones(distinct.shape, dtype=bool)
    new[:, 1:] = np.diff(distinct, axis=1) != 0
    starts = np.flatnonzero(new.reshape(-1))
    lengths = np.diff(np.append(starts, distinct.size))
    members, owner = distinct.reshape(-1)[starts], starts // distinct.shape[1]
    kept = ~(values.constant[members] & (values.floats[members] == -np.inf))
    number = np.bincount(owner[kept], minlength=len(distinct))
    (empty,) = values.constants(np.array([np.nan]))
    sums, shares = np.full(len(distinct), empty), np.zeros_like(members)
    counts = values.constants(lengths.astype(float))
    for size in np.unique(number[number > 0]):
        some = number == size
        place = np.flatnonzero(kept & some[owner])
        table = members[place].reshape(-1, size), counts[place].reshape(-1, size)
        sums[some], found = softmax_of(values, *table)
        shares[place] = found.reshape(-1)
    # Softmax entries are known in the order of the sorted row; each goes to the entry of its rank.
    each = np.repeat(shares, lengths).reshape(distinct.shape)[back]
    order = np.argsort(np.argsort(rows, axis=1, kind="stable"), axis=1, kind="stable")
    return sums[back], np.take_along_axis(each, order, axis=1)


def softmax_of(values: Values, members: Ids, counts: Ids) -> tuple[Ids, Ids]:
    """Logsumexp of rows of `members`, each repeated `counts` times, and softmax of the members."""
    totals, parts = softmax_triples(values.triples[members], values.triples[counts])
    size, fixed = members.shape[1], values.constant[members].all(axis=1)
    floats = values.floats[members]
    with np.errstate(all="ignore"):
        numbers = np.logaddexp.reduce(floats + np.log(values.floats[counts]), axis=1)
    sums = values.results(
        "logsumexp", totals, fixed, numbers,
        lambda k: (np.full(k.size, size), members[k].reshape(-1), counts[k].reshape(-1)),
    )  # fmt: skip
    shares = values.results(
        "share", parts.reshape(-1, 3), np.repeat(fixed, size),
        np.exp(floats - numbers[:, None]).reshape(-1),
        rows_of(members.reshape(-1), np.repeat(sums, size)),
    )  # fmt: skip
    return sums, shares.reshape(members.shape)


def matrix_products(values: Values, a: Ids, b: Ids) -> Ids:
    """Ids of matrix products, (B, M, K) and (B, K, N) -> (B, M, N)."""
    triples = field.matrix_product(values.triples[a], values.triples[b])

    def parts(x: Ids) -> tuple[Any, Any, Any]:
        constant = values.constant[x]
        floats = np.where(constant, values.floats[x], 0.0)
        return floats, (x != ZERO).astype(float), (~constant).astype(float)

    (fa, na, va), (fb, nb, vb) = parts(a), parts(b)
    moving = (va @ nb + na @ vb) > 0
    shape, length = moving.shape, a.shape[2]

    def rows(chosen: Ids) -> Rows:
        k, m, n = np.unravel_index(chosen, shape)
        x, y = a[k, m, :].reshape(-1), b[k, :, n].reshape(-1)
        there = (x != ZERO) & (y != ZERO)
        sizes = there.reshape(-1, length).sum(axis=1)
        x, y = x[there], y[there]
        swap = values.constant[y]
        x, y = np.where(swap, y, x), np.where(swap, x, y)  # a constant factor comes first
        factor = values.constant[x]
        index, coefficient = np.where(factor, y, 0), np.where(factor, x, ONE)
        pairs = np.stack([x[~factor], y[~factor]], axis=1)
        pairs, back = np.unique(pairs, axis=0, return_inverse=True)
        if len(pairs):
            index[~factor] = values.apply("mul", (pairs[:, 0], pairs[:, 1]))[back.reshape(-1)]
        return values.merged(sizes, index, coefficient)

    return values.totals(
        triples.reshape(-1, 3), rows, moving.reshape(-1), (fa @ fb).reshape(-1),
        (np.abs(fa) @ np.abs(fb)).reshape(-1),
    ).reshape(shape)  # fmt: skip
