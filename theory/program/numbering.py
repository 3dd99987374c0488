"""Table of distinct values: each number of a traced program is stored once.

A value is an input, a constant, a sum of terms (coefficient times value), or the result of another
operation on values. Values with equal triples of residues (see `field`) are stored as one entry of
the table. The *id* of a value is the index of its entry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from theory.program import field
from theory.program.field import Triples
from theory.program.operations import CODE, FLOATS, OPERATIONS, triple_of

Ids = NDArray[np.int64]
Rows = tuple[Ids, Ids, Ids]
"""Operands of values: their number for each value, their ids, and ids of their coefficients."""

SAME_FLOAT = 2.0**-44
"""Constants are equal if their relative difference is at most this; see also `cancelled`."""
SIMPLE_DENOMINATOR = 1000
"""Maximum denominator of a fraction that replaces a constant equal to it up to `SAME_FLOAT`."""
ZERO, ONE = 0, 1
MOST_VALUES = 10**7
"""Maximum number of distinct values in a table; above it, `NoProgram` is raised."""


class NoProgram(ValueError):
    """Error raised for a function that cannot become a program; the message states why."""


def cancelled(totals: Any, gross: Any) -> Any:
    """Whether sums are 0 up to `SAME_FLOAT` times `gross`, the sums of the absolute terms."""
    return (np.abs(totals) <= SAME_FLOAT * gross) & (gross < np.inf)


def spans(first: Ids, sizes: Ids) -> Ids:
    """Concatenation of several ranges of integers, given by their first numbers and sizes."""
    return np.arange(int(sizes.sum())) + np.repeat(first - np.cumsum(sizes) + sizes, sizes)


def rows_of(*columns: Ids) -> Callable[[Ids], Rows]:
    """Function from positions to `Rows`, with one operand from each column for every position."""
    table = np.stack(columns, axis=1)

    def rows(chosen: Ids) -> Rows:
        index = table[chosen].reshape(-1)
        return np.full(chosen.size, len(columns)), index, np.full(index.size, ONE)

    return rows


class _Column:
    """Array to which rows can be appended."""

    def __init__(self, dtype: Any, *shape: int) -> None:
        self._room, self.size = np.empty((1024, *shape), dtype), 0

    def append(self, values: Any) -> None:
        size = self.size + len(values)
        if size > len(self._room):
            shape = max(size, 2 * len(self._room)), *self._room.shape[1:]
            room = np.empty(shape, self._room.dtype)
            room[: self.size] = self.view
            self._room = room
        self._room[self.size : size] = values
        self.size = size

    @property
    def view(self) -> Any:
        return self._room[: self.size]


class Values:
    """Table of distinct values.

    The random triples of the inputs are drawn with `seed`; `read` maps a float of the data to a
    fraction; `most` is the maximum number of values. The arrays `triples`, `floats` (the number of
    a constant, else NaN), `constant`, `code` (operation, by `CODE`) and `depth` (length of the
    longest path to an input) have one element for each value. The array `index` lists the ids of
    the operands of a value, from the position that `first` holds for this value. At the positions
    of `index`, `coefficient` holds the ids of the constants that multiply the operands in a sum
    (for ``integer_pow``, of the exponent). `names` holds the name of each input; `simple` tells
    whether all data are fractions with small denominators.
    """

    def __init__(
        self,
        seed: int = 0,
        read: Callable[[float], Fraction] = field.fraction_of,
        most: int = MOST_VALUES,
    ) -> None:
        self._read, self._most, self.simple = read, most, True
        self._generator = np.random.default_rng(seed)
        self._factors = self._generator.integers(1, 2**63, 3, dtype=np.uint64) | np.uint64(1)
        self._known: dict[int, int] = {}
        self._near: dict[int, int] = {}
        self._triples, self._floats = _Column(np.uint64, 3), _Column(np.float64)
        self._constant, self._code = _Column(bool), _Column(np.int16)
        self._depth, self._first = _Column(np.int32), _Column(np.int64)
        self._index, self._coefficient = _Column(np.int64), _Column(np.int64)
        self._first.append([0])
        self.names: dict[int, str] = {}
        self.constants(np.array([0.0, 1.0]))

    triples = property(lambda self: self._triples.view)
    floats = property(lambda self: self._floats.view)
    constant = property(lambda self: self._constant.view)
    code = property(lambda self: self._code.view)
    depth = property(lambda self: self._depth.view)
    first = property(lambda self: self._first.view)
    index = property(lambda self: self._index.view)
    coefficient = property(lambda self: self._coefficient.view)

    def __len__(self) -> int:
        return int(self._triples.size)

    def operation(self, value: int) -> str:
        """Name of the operation of a value."""
        return OPERATIONS[self.code[value]]

    def row(self, value: int) -> tuple[Ids, Ids]:
        """Ids of the operands of a value, and ids of their coefficients."""
        part = slice(self.first[value], self.first[value + 1])
        return self.index[part], self.coefficient[part]

    def rows(self, values: Ids) -> Rows:
        """Rows of several values: their lengths, ids of operands, ids of coefficients."""
        sizes = np.diff(self.first)[values]
        where = spans(self.first[values], sizes)
        return sizes, self.index[where], self.coefficient[where]

    def _keys(self, triples: Triples) -> NDArray[np.uint64]:
        with np.errstate(over="ignore"):
            return (triples * self._factors).sum(axis=-1, dtype=np.uint64)

    def _found(self, keys: NDArray[np.uint64]) -> Ids:
        """Ids of the values with given keys (hashes of triples); -1 for unknown keys."""
        return np.array([self._known.get(key, -1) for key in keys.tolist()], dtype=np.int64)

    def enter(self, code: int, triples: Triples, rows: Callable[[Ids], Rows]) -> Ids:
        """Ids of the values with given triples, shape (n, 3); new values are appended to the table.

        The function `rows` maps some of the positions 0, ..., n - 1 to the operands and
        coefficients of the values there.
        """
        keys, where, back = np.unique(self._keys(triples), return_index=True, return_inverse=True)
        ids = self._found(keys)
        while (ids < 0).any():
            new = np.flatnonzero(ids < 0)
            new = new[np.argsort(where[new])]
            known, made = len(self._known), rows(where[new])
            if len(self._known) > known:
                ids[new] = self._found(keys[new])
            if (ids[new] < 0).all():  # `rows` itself has entered none of these values
                ids[new] = len(self) + np.arange(new.size)
                self._append(code, triples[where[new]], made)
                self._known.update(zip(keys[new].tolist(), ids[new].tolist(), strict=True))
        ids = ids[back]
        if not (self.triples[ids] == triples).all():
            raise ArithmeticError("two triples have one key: number again with another seed")
        return ids

    def _append(self, code: int, triples: Triples, rows: Rows) -> None:
        sizes, index, coefficient = rows
        count = len(triples)
        if len(self) + count > self._most:
            raise NoProgram(f"no program: more than {self._most:,} distinct numbers")
        depth = np.zeros(count, dtype=np.int32)
        if index.size:
            np.maximum.at(depth, np.repeat(np.arange(count), sizes), self.depth[index] + 1)
        self._triples.append(triples)
        self._floats.append(np.full(count, np.nan))
        self._constant.append(np.zeros(count, dtype=bool))
        self._code.append(np.full(count, code))
        self._depth.append(depth)
        self._first.append(self._index.size + np.cumsum(sizes))
        self._index.append(index)
        self._coefficient.append(coefficient)

    def inputs(self, names: Sequence[str]) -> Ids:
        """Enter new inputs with random triples."""
        triples = field.drawn(self._generator, len(names))
        ids = self.enter(CODE["input"], triples, no_rows)
        self.names |= zip(ids.tolist(), names, strict=True)
        return ids

    def constants(self, floats: Any, triples: Triples | None = None) -> Ids:
        """Ids of constants; without `triples`, shape (n, 3), the floats are read as fractions."""
        floats = np.asarray(floats, dtype=np.float64)
        if triples is None:
            distinct, back = np.unique(floats, return_inverse=True)
            return self._constants(distinct, None)[back.reshape(-1)]
        pairs = np.column_stack([floats.view(np.uint64), self._keys(triples)])
        _, where, back = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
        return self._constants(floats[where], triples[where])[back.reshape(-1)]

    def _constants(self, floats: NDArray[np.float64], triples: Triples | None) -> Ids:
        known = self._keys(triples).tolist() if triples is not None else [None] * floats.size
        ids = np.empty(floats.size, dtype=np.int64)
        for k, (number, key) in enumerate(zip(floats.tolist(), known, strict=True)):
            found = None if key is None else self._known.get(key)
            if found is None:
                found = self._near_constant(number)
            if found is None:
                given = None if triples is None else triples[k]
                found = self._new_constant(number, given)
            ids[k] = found
        return ids

    def _near_constant(self, number: float) -> int | None:
        if not np.isfinite(number) or number == 0:
            return None
        cell = int(_cell(number))
        for step in (0, -1, 1, -2, 2):
            found = self._near.get(cell + step)
            if found is not None and abs(self.floats[found] - number) <= SAME_FLOAT * abs(number):
                return found
        return None

    def _new_constant(self, number: float, triple: Triples | None) -> int:
        if np.isfinite(number):
            simple = Fraction(number).limit_denominator(SIMPLE_DENOMINATOR)
            if abs(float(simple) - number) <= SAME_FLOAT * abs(number):
                # Store the simple fraction: 3 - 4e-16 would fail as an exponent, 3 does not.
                triple, number = field.residues(simple), float(simple)
        if triple is None:
            triple = field.data_triples(np.array([number]), self._read)[0]
            if np.isfinite(number) and self._read(number).denominator > field.MAX_DENOMINATOR:
                self.simple = False
        key = int(self._keys(triple))
        new = self._known.setdefault(key, len(self))
        if new == len(self):
            self._append(CODE["constant"], triple[None], no_rows(np.zeros(1, dtype=np.int64)))
        elif self.constant[new]:
            return new
        # The terms of value `new` cancel up to a constant, so it becomes a constant.
        self.code[new], self.depth[new] = CODE["constant"], 0
        self.floats[new], self.constant[new] = number, True
        if np.isfinite(number) and number != 0:
            self._near.setdefault(int(_cell(number)), new)
        return new

    def results(
        self,
        operation: str,
        triples: Triples,
        fixed: NDArray[np.bool_],
        floats: NDArray[np.float64],
        rows: Callable[[Ids], Rows],
    ) -> Ids:
        """Ids of n results of an operation; the mask `fixed` marks results that are constants.

        The array `floats`, shape (n,), holds the constants marked in `fixed`. The function `rows`
        maps positions among 0, ..., n - 1 to operands and coefficients of the results there.
        """
        ids, moving = np.empty(fixed.size, dtype=np.int64), np.flatnonzero(~fixed)
        if moving.size < fixed.size:
            ids[fixed] = self.constants(floats[fixed], triples[fixed])
        ids[moving] = self.enter(CODE[operation], triples[moving], lambda k: rows(moving[k]))
        return ids

    def apply(self, operation: str, operands: Sequence[Ids]) -> Ids:
        """Ids of an elementwise operation of `ELEMENTWISE` on operands, each of shape (n,)."""
        operands = [np.asarray(o, dtype=np.int64) for o in operands]
        if operation == "mul":
            return self._products(*operands)
        triples = triple_of(operation, [self.triples[o] for o in operands])
        fixed = np.logical_and.reduce([self.constant[o] for o in operands])
        with np.errstate(all="ignore"):
            floats = np.asarray(FLOATS[operation](*(self.floats[o] for o in operands)), dtype=float)
        return self.results(operation, triples, fixed, floats, rows_of(*operands))

    def _products(self, a: Ids, b: Ids) -> Ids:
        """Ids of products; a product with a constant is entered as a sum of one term."""
        swap = np.where(self.constant[a] == self.constant[b], a > b, self.constant[b])
        a, b = np.where(swap, b, a), np.where(swap, a, b)
        factor = self.constant[a]
        triples = field.multiply(self.triples[a], self.triples[b])
        with np.errstate(all="ignore"):
            floats = self.floats[a] * self.floats[b]
        ids, (x, y) = np.empty(a.size, dtype=np.int64), (a[factor], b[factor])
        ids[factor] = self.results(
            "sum", triples[factor], self.constant[y], floats[factor],
            lambda k: (np.ones(k.size, dtype=np.int64), y[k], x[k]),
        )  # fmt: skip
        ids[~factor] = self.enter(CODE["mul"], triples[~factor], rows_of(a[~factor], b[~factor]))
        return ids

    def power(self, a: Ids, exponent: int) -> Ids:
        """Ids of integer powers of values."""
        if exponent == 0:
            return np.full(a.size, ONE)
        base = self.triples[a] if exponent > 0 else field.inverse(self.triples[a])
        (number,) = self.constants(np.array([float(exponent)]))
        with np.errstate(all="ignore"):
            floats = self.floats[a] ** float(exponent)
        return self.results(
            "integer_pow", field.power(base, abs(exponent)), self.constant[a], floats,
            lambda k: (np.ones(k.size, dtype=np.int64), a[k], np.full(k.size, number)),
        )  # fmt: skip

    def sums(self, sizes: Ids, index: Ids, coefficient: Ids) -> Ids:
        """Ids of sums of terms (constant times value), with `sizes` terms in each sum."""
        owner = np.repeat(np.arange(sizes.size), sizes)
        moving = np.bincount(owner, ~self.constant[index], minlength=sizes.size) > 0
        terms = field.multiply(self.triples[index], self.triples[coefficient])
        triples = np.zeros((sizes.size, 3), dtype=np.uint64)
        np.add.at(triples, owner, terms)
        begin = np.cumsum(sizes) - sizes

        def rows(chosen: Ids) -> Rows:
            where = spans(begin[chosen], sizes[chosen])
            return self.merged(sizes[chosen], index[where], coefficient[where])

        floats = self.floats[index] * self.floats[coefficient]
        totals: Any = np.bincount(owner, floats, minlength=sizes.size)
        gross: Any = np.bincount(owner, np.abs(floats), minlength=sizes.size)
        return self.totals(triples % field.PRIMES, rows, moving, totals, gross)

    def totals(
        self,
        triples: Triples,
        rows: Callable[[Ids], Rows],
        moving: NDArray[np.bool_],
        floats: NDArray[np.float64],
        gross: NDArray[np.float64],
    ) -> Ids:
        """Ids of n sums with given triples, shape (n, 3); `rows` is called only for new sums.

        The function `rows` maps some of the positions 0, ..., n - 1 to the terms of the sums there.
        The mask `moving` marks the sums with a term that is not constant. For sums of constants,
        `floats` holds the value and `gross` the sum of the absolute terms.
        """
        gone = ~moving & cancelled(floats, gross)
        exact = np.where(gone[:, None], np.uint64(0), triples)
        return self.results("sum", exact, ~moving, np.where(gone, 0.0, floats), rows)

    def merged(self, sizes: Ids, index: Ids, coefficient: Ids) -> Rows:
        """Rows of sums, in which each operand occurs once, with the sum of its coefficients."""
        owner = np.repeat(np.arange(sizes.size), sizes)
        order = np.lexsort((index, owner))
        owner, index, coefficient = owner[order], index[order], coefficient[order]
        if not index.size:
            return sizes, index, coefficient
        begin = np.flatnonzero(np.r_[True, (np.diff(owner) != 0) | (np.diff(index) != 0)])
        if begin.size == index.size:
            kept = self.triples[coefficient].any(axis=1)
        else:
            floats = np.add.reduceat(self.floats[coefficient], begin)
            gross = np.add.reduceat(np.abs(self.floats[coefficient]), begin)
            floats[cancelled(floats, gross)] = 0.0
            triples = np.add.reduceat(self.triples[coefficient], begin, axis=0) % field.PRIMES
            triples[floats == 0] = 0
            alone = np.diff(np.r_[begin, index.size]) == 1
            added = coefficient[begin]
            added[~alone] = self.constants(floats[~alone], triples[~alone])
            owner, index, coefficient = owner[begin], index[begin], added
            kept = coefficient != ZERO
        sizes = np.bincount(owner[kept], minlength=sizes.size)
        return sizes, index[kept], coefficient[kept]


def _cell(number: float) -> np.int64:
    """Cell of a number on a grid with a relative spacing from `SAME_FLOAT` / 2 to `SAME_FLOAT`."""
    return np.float64(number).view(np.int64) >> np.int64(8)


def no_rows(chosen: Ids) -> Rows:
    """Rows without operands, for inputs and constants."""
    nothing = np.zeros(0, dtype=np.int64)
    return np.zeros(chosen.size, dtype=np.int64), nothing, nothing
