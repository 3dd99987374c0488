"""Derivatives of values by reverse mode (adjoints) and forward mode (tangents).

Derivatives are entered as new values into the table of values (`numbering`). At ties, derivatives
agree with JAX: the derivative of a maximum is 1/2 by each of two equal operands, and that of
``abs`` at 0 is 1. A ``select`` passes its adjoint to the chosen branch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from theory.program.algebra import Algebra
from theory.program.numbering import ONE, ZERO, Ids, Values
from theory.program.operations import CODE, OPERATIONS, ROWS
from theory.program.rows import softmax_of

Terms = tuple[Ids, Ids, Ids]
"""Three arrays of ids: targets, values added to the targets, and factors of these values."""


def _sigmoid(w: Algebra, v: Ids, x: Ids) -> list[Ids]:
    return [w.mul(v, w.op("sigmoid", w.linear((-1, x))))]


def _abs(w: Algebra, v: Ids, x: Ids) -> list[Ids]:
    return [w.op("select", w.op("le", ZERO, x), ONE, w.number(-1.0))]


def _max(w: Algebra, v: Ids, a: Ids, b: Ids) -> list[Ids]:
    half, tie = w.number(0.5), w.op("eq", a, b)
    sides = [w.op("select", w.op("lt", x, y), ZERO, ONE) for x, y in ((a, b), (b, a))]
    return [w.op("select", tie, half, side) for side in sides]


def _div(w: Algebra, v: Ids, a: Ids, b: Ids) -> list[Ids]:
    share = w.reciprocal(b)
    return [share, w.linear((-1, w.mul(share, v)))]


def _pow(w: Algebra, v: Ids, x: Ids, y: Ids) -> list[Ids]:
    slope = w.mul(y, w.op("pow", x, w.linear((1, y), (-1, ONE))))
    positive = w.op("lt", ZERO, x)
    safe = w.op("select", positive, x, ONE)
    return [slope, w.mul(v, w.op("log", safe))]


def _atan2(w: Algebra, v: Ids, y: Ids, x: Ids) -> list[Ids]:
    share = w.reciprocal(w.linear((1, w.power(x, 2)), (1, w.power(y, 2))))
    return [w.mul(x, share), w.linear((-1, w.mul(y, share)))]


def _squared(w: Algebra, x: Ids, sign: float, one: float = 1.0) -> Ids:
    """Sum `one` + `sign` x^2."""
    return w.linear((one, ONE), (sign, w.power(x, 2)))


def _gaussian(w: Algebra, x: Ids, scale: float) -> list[Ids]:
    return [w.linear((scale, w.op("exp", w.linear((-1, w.power(x, 2))))))]


PARTIALS: dict[str, Callable[..., list[Ids]]] = {
    "mul": lambda w, v, a, b: [b, a],
    "div": _div,
    "pow": _pow,
    "max": _max,
    "atan2": _atan2,
    "rem": lambda w, v, a, b: [
        np.full(a.size, ONE), w.linear((-1, w.op("trunc", w.op("div", a, b))))
    ],
    "exp": lambda w, v, x: [v],
    "log": lambda w, v, x: [w.reciprocal(x)],
    "log1p": lambda w, v, x: [w.reciprocal(w.linear((1, ONE), (1, x)))],
    "expm1": lambda w, v, x: [w.op("exp", x)],
    "sqrt": lambda w, v, x: [w.linear((0.5, w.reciprocal(v)))],
    "rsqrt": lambda w, v, x: [w.linear((-0.5, w.mul(v, w.reciprocal(x))))],
    "cbrt": lambda w, v, x: [w.linear((1 / 3, w.mul(v, w.reciprocal(x))))],
    "tanh": lambda w, v, x: [_squared(w, v, -1)],
    "sigmoid": _sigmoid,
    "softplus": lambda w, v, x: [w.op("sigmoid", x)],
    "sin": lambda w, v, x: [w.op("cos", x)],
    "cos": lambda w, v, x: [w.linear((-1, w.op("sin", x)))],
    "tan": lambda w, v, x: [_squared(w, v, 1)],
    "sinh": lambda w, v, x: [w.op("cosh", x)],
    "cosh": lambda w, v, x: [w.op("sinh", x)],
    "asin": lambda w, v, x: [w.op("rsqrt", _squared(w, x, -1))],
    "acos": lambda w, v, x: [w.linear((-1, w.op("rsqrt", _squared(w, x, -1))))],
    "asinh": lambda w, v, x: [w.op("rsqrt", _squared(w, x, 1))],
    "acosh": lambda w, v, x: [w.op("rsqrt", _squared(w, x, 1, -1.0))],
    "atan": lambda w, v, x: [w.reciprocal(_squared(w, x, 1))],
    "atanh": lambda w, v, x: [w.reciprocal(_squared(w, x, -1))],
    "erf": lambda w, v, x: _gaussian(w, x, 2 / np.sqrt(np.pi)),
    "erfc": lambda w, v, x: _gaussian(w, x, -2 / np.sqrt(np.pi)),
    "abs": _abs,
    "share": lambda w, v, x, log_sum: [v, w.linear((-1, v))],
}  # fmt: skip
"""Functions that enter the derivatives of an elementwise operation by each of its operands."""
DIFFERENTIABLE = {*PARTIALS, *ROWS, "select"}


def depends_on(values: Values, inputs: Ids) -> NDArray[np.bool_]:
    """Mask of the values that may have a nonzero derivative by some inputs, shape (count,)."""
    active = np.zeros(len(values), dtype=bool)
    active[inputs] = True
    passes = np.array([operation in DIFFERENTIABLE for operation in OPERATIONS])
    for level in levels(values):
        level = level[passes[values.code[level]]]
        sizes, index, _ = values.rows(level)
        if not index.size:
            continue
        condition = np.zeros(index.size, dtype=bool)
        starts = np.cumsum(sizes) - sizes
        condition[starts[values.code[level] == CODE["select"]]] = True
        hits = active[index] & ~condition
        active[level] |= np.logical_or.reduceat(hits, starts)
    return active


def levels(values: Values) -> Iterator[Ids]:
    """Yield the ids of the values that have operands, in groups of increasing depth."""
    order = np.argsort(values.depth, kind="stable")
    edges = np.flatnonzero(np.diff(values.depth[order])) + 1
    for part in np.split(order, edges):
        part = part[np.diff(values.first)[part] > 0]
        if part.size:
            yield part


def _slopes(w: Algebra, operation: str, level: Ids) -> Terms:
    """Operands of the values in `level`: position of the value, operand, derivative by it."""
    values = w.values
    sizes, index, coefficient = values.rows(level)
    owner = np.repeat(np.arange(level.size), sizes)
    if operation == "sum":
        return owner, index, coefficient
    if operation == "integer_pow":
        exponents = values.floats[coefficient]
        slopes = np.empty(level.size, dtype=np.int64)
        for exponent in np.unique(exponents):
            some = exponents == exponent
            lower = values.power(index[some], int(exponent) - 1)
            slopes[some] = w.linear((exponent, lower))
        return owner, index, slopes
    if operation == "logsumexp":
        shares, width = np.empty_like(index), sizes[owner]
        for size in np.unique(sizes):
            some = width == size
            rows = index[some].reshape(-1, size), coefficient[some].reshape(-1, size)
            shares[some] = softmax_of(values, *rows)[1].reshape(-1)
        return owner, index, w.mul(shares, coefficient)
    if operation == "largest":
        ties = w.op("eq", index, level[owner])
        total = values.sums(sizes, ties, coefficient)
        return owner, index, w.mul(w.op("div", ties, total[owner]), coefficient)
    table = index.reshape(level.size, -1)
    slopes = np.stack(PARTIALS[operation](w, level, *table.T), axis=1)
    return owner, index, slopes.reshape(-1)


def _by_operation(values: Values, level: Ids) -> Iterator[tuple[str, Ids]]:
    for code in np.unique(values.code[level]):
        operation = OPERATIONS[code]
        if operation in DIFFERENTIABLE:
            yield operation, level[values.code[level] == code]


def adjoints(values: Values, seeds: Mapping[int, int], inputs: Ids) -> Ids:
    """Ids of the derivatives of a weighted sum of values by the inputs, shape (n,).

    `seeds` maps the id of each value in the sum to the id of its weight; `inputs` has shape (n,).
    """
    w, active = Algebra(values), depends_on(values, inputs)
    pending: dict[int, list[Terms]] = defaultdict(list)

    def hand(targets: Ids, slopes: Ids, coefficients: Ids) -> None:
        kept = active[targets] & (slopes != ZERO) & (coefficients != ZERO)
        targets, slopes, coefficients = targets[kept], slopes[kept], coefficients[kept]
        depth = values.depth[targets]
        for level in np.unique(depth):
            some = depth == level
            pending[int(level)].append((targets[some], slopes[some], coefficients[some]))

    hand(*(np.array(x, dtype=np.int64) for x in (
        list(seeds), list(seeds.values()), [ONE] * len(seeds)
    )))  # fmt: skip
    result = np.full(inputs.size, ZERO)
    place = {int(v): k for k, v in enumerate(inputs)}
    while pending:
        depth = max(pending)
        targets, slopes, coefficients = map(np.concatenate, zip(*pending.pop(depth), strict=True))
        order = np.argsort(targets, kind="stable")
        level, sizes = np.unique(targets, return_counts=True)
        totals = values.sums(sizes, slopes[order], coefficients[order])
        if depth == 0:
            for value, total in zip(level.tolist(), totals.tolist(), strict=True):
                result[place[value]] = total
            continue
        adjoint = dict(zip(level.tolist(), totals.tolist(), strict=True))
        for operation, some in _by_operation(values, level):
            own = np.array([adjoint[v] for v in some.tolist()], dtype=np.int64)
            if operation == "select":
                _, index, _ = values.rows(some)
                which, a, b = index.reshape(-1, 3).T
                hand(a, w.op("select", which, own, ZERO), np.full(a.size, ONE))
                hand(b, w.op("select", which, ZERO, own), np.full(a.size, ONE))
                continue
            owner, operand, slope = _slopes(w, operation, some)
            kept = active[operand]
            owner, operand, slope = owner[kept], operand[kept], slope[kept]
            if operation == "sum":
                hand(operand, own[owner], slope)
            else:
                hand(operand, w.mul(own[owner], slope), np.full(operand.size, ONE))
    return result


def tangents(values: Values, roots: Ids, directions: Mapping[int, int]) -> Ids:
    """Ids of the derivatives of the values `roots`, shape (n,), along a direction of the inputs.

    `directions` maps the id of an input to the id of the direction's component along this input.
    """
    w = Algebra(values)
    active = depends_on(values, np.array(list(directions), dtype=np.int64))
    along = np.full(len(values), ZERO)
    along[list(directions)] = list(directions.values())
    needed = needed_values(values, roots)
    for level in list(levels(values)):
        level = level[active[level] & needed[level]]
        for operation, some in _by_operation(values, level):
            if operation == "select":
                _, index, _ = values.rows(some)
                which, a, b = index.reshape(-1, 3).T
                along[some] = w.op("select", which, along[a], along[b])
                continue
            owner, operand, slope = _slopes(w, operation, some)
            kept = active[operand]
            owner, moved, slope = owner[kept], along[operand[kept]], slope[kept]
            if operation != "sum":
                moved, slope = w.mul(moved, slope), np.full(moved.size, ONE)
            along[some] = values.sums(np.bincount(owner, minlength=some.size), moved, slope)
    return np.where(active[roots], along[roots], ZERO)


def needed_values(values: Values, roots: Ids) -> NDArray[np.bool_]:
    """Mask of the values that are needed to compute the values `roots`, shape (count,)."""
    needed = np.zeros(len(values), dtype=bool)
    needed[roots] = True
    for level in reversed(list(levels(values))):
        _, index, _ = values.rows(level[needed[level] & ~values.constant[level]])
        needed[index] = True
    return needed
