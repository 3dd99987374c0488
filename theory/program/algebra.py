"""Elementwise operations on arrays of ids (indices of a table of values), with broadcasting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from theory.program.numbering import Ids, Values

Operand = Ids | int


class Algebra:
    """Operations on arrays of ids that enter their results into the table `values`."""

    def __init__(self, values: Values) -> None:
        self.values = values

    def each(self, of: Callable[..., Ids], *inputs: Operand) -> Ids:
        """Apply a function of flat ids once to each distinct combination of operands."""
        whole = np.broadcast_arrays(*inputs)
        flat = [x.reshape(-1) for x in whole]
        code = flat[0]
        for k, other in enumerate(flat[1:]):
            if k:  # renumber distinct codes from 0: the next product fits in 64 bits
                code = np.unique(code, return_inverse=True)[1].reshape(-1)
            code = code * len(self.values) + other
        _, where, back = np.unique(code, return_index=True, return_inverse=True)
        return of(*(x[where] for x in flat))[back.reshape(-1)].reshape(whole[0].shape)

    def number(self, array: Any) -> Ids:
        """Ids of constants, in the shape of an array of numbers."""
        array = np.asarray(array, dtype=np.float64)
        return self.values.constants(array.reshape(-1)).reshape(array.shape)

    def op(self, operation: str, *inputs: Operand) -> Ids:
        """Apply an operation of `theory.program.operations.ELEMENTWISE`."""
        return self.each(lambda *x: self.values.apply(operation, x), *inputs)

    def mul(self, a: Operand, b: Operand) -> Ids:
        """Ids of elementwise products."""
        return self.op("mul", a, b)

    def power(self, a: Operand, exponent: int) -> Ids:
        """Ids of elementwise integer powers."""
        return self.each(lambda x: self.values.power(x, exponent), a)

    def reciprocal(self, a: Operand) -> Ids:
        """Ids of elementwise reciprocals."""
        return self.op("div", self.number(1.0), a)

    def linear(self, *terms: tuple[float, Operand]) -> Ids:
        """Ids of sums of terms (coefficient, values), elementwise."""
        numbers = self.values.constants(np.array([c for c, _ in terms], dtype=float))

        def of(*x: Ids) -> Ids:
            table = np.stack(x, axis=1)
            sizes = np.full(len(table), len(x))
            return self.values.sums(sizes, table.reshape(-1), np.tile(numbers, len(table)))

        return self.each(of, *(x for _, x in terms))

    def dot(self, coefficients: Any, ids: Ids) -> Ids:
        """Ids of m sums of `coefficients`, shape (m, k), times values, shape (m, k) or (k,)."""
        numbers = self.number(coefficients)
        count, index = numbers.shape[1], np.broadcast_to(ids, numbers.shape)
        sizes = np.full(len(numbers), count)
        return self.values.sums(sizes, index.reshape(-1), numbers.reshape(-1))
