"""Identities between values of a program, tested at random inputs in a finite field.

A value is represented by a *triple* of residues (`field`). If entries that training keeps equal get
equal random triples, two results with equal triples are equal for all values of such entries, the
real constants and the weights, also at kinks. Two different values get equal triples with
probability below 1e-9.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from theory.program import field
from theory.program.derivatives import levels, needed_values
from theory.program.field import Triples
from theory.program.numbering import Ids, Values
from theory.program.operations import CODE, OPERATIONS, softmax_triples, triple_of

Part = tuple[str, Ids, Ids, Ids, Ids]
"""Operation, ids of its values, length of each value's row, operands, and coefficients."""


class Identities:
    """Evaluator of the values `roots`, shape (m,), in the finite field, at given inputs."""

    def __init__(self, values: Values, roots: Ids) -> None:
        self.values, self.roots = values, np.asarray(roots)
        needed = needed_values(values, self.roots)
        self._parts = list(self._ordered(needed))
        self._places = self._shares(needed)

    def _ordered(self, needed: NDArray[np.bool_]) -> Iterator[Part]:
        values = self.values
        for level in levels(values):
            level = level[needed[level] & ~values.constant[level]]
            for code in np.unique(values.code[level]):
                some = level[values.code[level] == code]
                yield OPERATIONS[code], some, *values.rows(some)

    def _shares(self, needed: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Position in `values.index` of the logsumexp term of each softmax entry (``share``)."""
        values, places = self.values, np.full(len(self.values), -1)
        for value in np.flatnonzero(needed & (values.code == CODE["share"])):
            member, log_sum = values.row(int(value))[0].tolist()
            row = values.row(log_sum)[0]
            places[value] = values.first[log_sum] + np.flatnonzero(row == member)[0]
        return places

    def at(self, inputs: Ids, triples: Triples) -> Triples:
        """Triples of residues of the values `roots`, shape (m, points, 3), at several points.

        The values `inputs`, shape (n,), get the triples `triples`, shape (n, points, 3). Inputs of
        the table that are not in `inputs` keep their triples.
        """
        values, points = self.values, triples.shape[1]
        found = np.repeat(values.triples[:, None], points, axis=1)
        found[inputs] = triples
        terms = values.index.size if (self._places >= 0).any() else 0
        self._of_rows: Triples = np.zeros((terms, points, 3), dtype=np.uint64)
        for operation, some, sizes, index, coefficient in self._parts:
            found[some] = self._evaluated(operation, some, sizes, index, coefficient, found)
        return found[self.roots]

    def _evaluated(
        self, operation: str, some: Ids, sizes: Ids, index: Ids, coefficient: Ids, found: Triples
    ) -> Triples:
        values, starts = self.values, np.cumsum(sizes) - sizes
        if operation == "sum":
            terms = field.multiply(found[index], found[coefficient])
            return np.add.reduceat(terms, starts, axis=0) % field.PRIMES
        if operation == "stop":
            return found[index]
        if operation == "integer_pow":
            exponents = values.floats[coefficient]
            base, below = found[index], exponents < 0
            base[below] = field.inverse(base[below])
            return field.power(base, np.abs(exponents)[:, None, None])
        if operation == "logsumexp":
            result = np.empty((some.size, *found.shape[1:]), dtype=np.uint64)
            for size in np.unique(sizes):
                rows = np.flatnonzero(sizes == size)
                where = starts[rows][:, None] + np.arange(size)
                triples = found[index[where]], found[coefficient[where]]
                result[rows], shares = softmax_triples(*triples)
                if len(self._of_rows):
                    self._of_rows[values.first[some[rows]][:, None] + np.arange(size)] = shares
            return result
        if operation == "share":
            return self._of_rows[self._places[some]]
        if operation == "largest":
            kinds = np.add.reduceat(field.hashed("row", found[index]), starts, axis=0)
            return field.hashed("largest", kinds % field.PRIMES)
        table = index.reshape(some.size, -1)
        return triple_of(operation, [found[column] for column in table.T])
