"""Reduced program: arrays of instructions that compute some values in order.

Inputs, constants and results are numbered in one list, in this order. The row of a result lists its
operands, each with a coefficient, its *count*. An instruction computes several results of one
operation whose rows have equal length. In a sum, counts multiply operands; in ``integer_pow``, the
count is the exponent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from theory.program.numbering import Ids, Values, cancelled, spans
from theory.program.operations import CODE, OPERATIONS

SUM, STOP, SELECT = CODE["sum"], CODE["stop"], CODE["select"]


@dataclass(frozen=True)
class Program:
    """Instructions that compute the outputs from inputs and constants.

    A row of `instructions`, shape (m, 4), holds the code of the operation, the number of the first
    result, the number after the last result, and the length of the result's rows. `index` holds the
    numbers of the operands of all rows, and `count` their coefficients. `outputs` maps each name of
    an output to the numbers of its values.
    """

    inputs: tuple[str, ...]
    constants: NDArray[np.float64]
    instructions: NDArray[np.int64]
    index: NDArray[np.int32]
    count: NDArray[np.float64]
    outputs: Mapping[str, Ids]

    @property
    def size(self) -> int:
        """Number of inputs, constants and results."""
        results = self.instructions[:, 2] - self.instructions[:, 1]
        return len(self.inputs) + self.constants.size + int(results.sum())

    @property
    def operations(self) -> int:
        """Number of all terms of sums and maxima, plus number of results of other operations."""
        code, first, last, length = self.instructions.T
        of_rows = np.isin(code, [SUM, CODE["logsumexp"], CODE["largest"]])
        return int(((last - first) * np.where(of_rows, length, 1)).sum())

    def rows(self) -> Iterator[tuple[str, slice, Ids, NDArray[np.float64]]]:
        """Yield the operation, slice of results, operands and counts of each instruction."""
        place = 0
        for code, first, last, length in self.instructions.tolist():
            part = slice(place, place := place + (last - first) * length)
            shape = last - first, length
            index, count = self.index[part].reshape(shape), self.count[part].reshape(shape)
            yield OPERATIONS[code], slice(first, last), index, count

    def document(self) -> dict[str, Any]:
        """Values for JSON that describe the program; numbers that are not finite become strings."""

        def plain(numbers: NDArray[np.float64]) -> list[Any]:
            words = {np.inf: "Infinity", -np.inf: "-Infinity"}
            return [x if np.isfinite(x) else words.get(x, "NaN") for x in numbers.tolist()]

        return {
            "inputs": list(self.inputs),
            "constants": plain(self.constants),
            "operations": list(OPERATIONS),
            "instructions": self.instructions.tolist(),
            "index": self.index.tolist(),
            "count": plain(self.count),
            "outputs": {name: ids.tolist() for name, ids in self.outputs.items()},
        }


class _Rows:
    """Operands and coefficients of all values during simplification, in CSR arrays."""

    def __init__(self, values: Values) -> None:
        self.sizes = np.diff(values.first).astype(np.int64)
        self.index, self.count = values.index.copy(), values.floats[values.coefficient]

    @property
    def owner(self) -> Ids:
        return np.repeat(np.arange(self.sizes.size), self.sizes)


def build(values: Values, inputs: Sequence[int], outputs: Mapping[str, Ids]) -> Program:
    """Program that computes the outputs from the inputs; both are ids of the table `values`."""
    rows, alias = _Rows(values), _aliases(values)
    rows.index = alias[rows.index]
    roots = {name: alias[np.asarray(ids).reshape(-1)] for name, ids in outputs.items()}
    is_output = np.zeros(len(values), dtype=bool)
    for ids in roots.values():
        is_output[ids] = True
    _inline_sums(values, rows, is_output)
    _join_terms(values, rows)
    needed = _reached(values, rows, is_output)
    return _ordered(values, rows, needed, list(inputs), roots)


def _aliases(values: Values) -> Ids:
    """Id that replaces each value; a ``stop`` (stopped gradient) is replaced by its operand."""
    alias = np.arange(len(values))
    for value in np.flatnonzero(values.code == STOP):
        alias[value] = alias[values.index[values.first[value]]]
    return alias


def _reached(values: Values, rows: _Rows, roots: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mask of the values that are needed to compute the roots."""
    needed, owner = roots.copy(), rows.owner
    fresh = needed
    while fresh.any():
        hit = np.zeros_like(needed)
        hit[rows.index[fresh[owner]]] = True
        fresh = hit & ~needed
        needed |= fresh
    return needed


def _inline_sums(values: Values, rows: _Rows, is_output: NDArray[np.bool_]) -> None:
    """Merge each sum that is used once or has only one term into the sums that use it."""
    is_sum = values.code == SUM
    while True:
        needed = _reached(values, rows, is_output)
        owner = rows.owner
        live = needed[owner]
        uses = np.bincount(rows.index[live], minlength=is_sum.size) + is_output
        may_go = is_sum & ((uses == 1) & ~is_output | (rows.sizes == 1))
        # In a chain of sums, each pass of the loop merges every second sum.
        inner = live & is_sum[owner] & may_go[rows.index]
        touched = np.zeros_like(is_sum)
        touched[owner[inner]] = True
        inner &= ~touched[rows.index]
        if not inner.any():
            return
        first = np.cumsum(rows.sizes) - rows.sizes
        width = np.where(inner, rows.sizes[rows.index], 1)
        begin = np.where(inner, first[rows.index], np.arange(rows.index.size))
        scale = np.where(inner, rows.count, 1.0)
        where = spans(begin, width)
        rows.index, rows.count = rows.index[where], rows.count[where] * np.repeat(scale, width)
        rows.sizes = np.bincount(np.repeat(owner, width), minlength=is_sum.size)


def _join_terms(values: Values, rows: _Rows) -> None:
    """Join the terms of a sum that have the same operand, and remove terms with coefficient 0."""
    owner, is_sum = rows.owner, values.code == SUM
    of_sum = is_sum[owner]
    place = np.where(of_sum, rows.index, np.arange(rows.index.size))
    order = np.lexsort((place, owner))
    owner, index, count = owner[order], rows.index[order], rows.count[order]
    of_sum = of_sum[order]
    same = np.r_[False, (np.diff(owner) == 0) & (np.diff(index) == 0)] & of_sum
    begin = np.flatnonzero(~same)
    if begin.size:
        gross = np.add.reduceat(np.abs(count), begin)
        count = np.add.reduceat(count, begin)
        owner, index, of_sum = owner[begin], index[begin], of_sum[begin]
        gone = of_sum & cancelled(count, gross)
        owner, index, count = owner[~gone], index[~gone], count[~gone]
    rows.index, rows.count = index, count
    rows.sizes = np.bincount(owner, minlength=is_sum.size)


def _ordered(
    values: Values,
    rows: _Rows,
    needed: NDArray[np.bool_],
    inputs: list[int],
    roots: Mapping[str, Ids],
) -> Program:
    """Program of the needed values, sorted by depth, operation and row length."""
    given = np.zeros(len(values), dtype=bool)
    given[inputs] = True
    constants = np.flatnonzero(values.constant & needed & ~given)
    computed = needed & ~values.constant & ~given
    stray = computed & (values.code == CODE["input"])
    if stray.any():
        raise ValueError(f"an input is missing: {values.names[int(np.flatnonzero(stray)[0])]}")
    sizes, first = rows.sizes, np.cumsum(rows.sizes) - rows.sizes
    results = np.flatnonzero(computed)
    kinds = np.stack([sizes, values.code, _depths(rows, computed)])[:, results]
    order = np.lexsort(kinds)
    results, kinds = results[order], kinds[:, order]
    position, offset = np.full(len(values), -1), len(inputs) + constants.size
    position[constants] = len(inputs) + np.arange(constants.size)
    position[results] = offset + np.arange(results.size)
    position[inputs] = np.arange(len(inputs))
    edges = np.flatnonzero(np.r_[True, (np.diff(kinds) != 0).any(axis=0)])[: results.size]
    ends = np.r_[edges[1:], results.size][: edges.size]
    instructions = np.stack([kinds[1, edges], offset + edges, offset + ends, kinds[0, edges]], 1)
    where = spans(first[results], sizes[results])
    return Program(
        tuple(values.names.get(k, f"x{k}") for k in inputs),
        values.floats[constants].copy(),
        instructions.astype(np.int64),
        position[rows.index[where]].astype(np.int32),
        rows.count[where],
        {name: position[ids] for name, ids in roots.items()},
    )


def _depths(rows: _Rows, computed: NDArray[np.bool_]) -> Ids:
    """Length of the longest path from an input or constant to each computed value; 0 for others."""
    depth = computed.astype(np.int64)
    owner = rows.owner
    live = computed[owner]
    index, sizes = rows.index[live], np.where(computed, rows.sizes, 0)
    members = np.flatnonzero(sizes)
    starts = (np.cumsum(sizes) - sizes)[members]
    while members.size:
        deeper = np.maximum.reduceat(depth[index], starts) + 1
        if (deeper == depth[members]).all():
            break
        depth[members] = deeper
    return depth
