"""A traced function read into a table of values: its jaxpr, walked on arrays of ids.

Calls are entered, loops of a known number of turns are unrolled. Operations that only move numbers
make no value. What the table does not know (sorting, linear algebra, ...) is computed by JAX where
nothing but constants enters; on inputs it is an `UnreadPrimitive`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from theory.program import field
from theory.program.movements import (
    MOVEMENTS,
    destinations,
    dynamic_slice,
    dynamic_update_slice,
    gather,
)
from theory.program.numbering import (
    CODE,
    ELEMENTWISE,
    ONE,
    ZERO,
    Ids,
    Rows,
    Values,
    softmax_triples,
)

CALLS = {
    **dict.fromkeys(("jit", "pjit", "remat", "remat2", "checkpoint", "composite"), "jaxpr"),
    **dict.fromkeys(
        ("closed_call", "core_call", "custom_jvp_call", "custom_vjp_call"), "call_jaxpr"
    ),
}
"""Primitive that is a call -> the parameter that holds what is called."""
MAX_TERMS = 1 << 22
"""Terms of matrix products and sums that are held at a time."""


class UnreadPrimitive(ValueError):
    """A primitive that has no program, on inputs; the message names it and the line.

    Attributes
    ----------
    primitive : str
    """

    def __init__(self, primitive: str, source: str = "") -> None:
        self.primitive, self.source = primitive, source
        super().__init__(f"no program: '{primitive}' of numbers that are trained or drawn{source}")


def read(values: Values, closed_jaxpr: Any, inputs: Sequence[Ids]) -> list[Ids]:
    """Ids of the outputs of a traced function.

    Parameters
    ----------
    values : Values
        The table, which gains what the function computes.
    closed_jaxpr : jax.extend.core.ClosedJaxpr
        Traced under ``jax.enable_x64(True)``.
    inputs : sequence of int arrays
        Ids of each argument, in its shape.

    Raises
    ------
    UnreadPrimitive
    """
    import jax

    with jax.enable_x64(True):
        return _Reading(values).run(closed_jaxpr, list(inputs))


def named_function(function: Callable[..., Any], name: str, **options: Any) -> Callable[..., Any]:
    """A jitted function under a name by which `read` knows it: one of `NAMED`.

    Parameters
    ----------
    function : callable
    name : str
    **options
        Of ``jax.jit``.
    """
    import jax

    def named(*arguments: Any, **keywords: Any) -> Any:
        return function(*arguments, **keywords)

    named.__name__ = named.__qualname__ = name
    return jax.jit(named, **options)


class _Reading:
    def __init__(self, values: Values) -> None:
        self.values = values

    # Walking

    def run(self, program: Any, inputs: list[Ids]) -> list[Ids]:
        from jax.extend.core import Literal

        jaxpr, constants = getattr(program, "jaxpr", program), getattr(program, "consts", ())
        held = dict(zip(jaxpr.invars, inputs, strict=True))
        held |= {v: self.number(c) for v, c in zip(jaxpr.constvars, constants, strict=True)}

        def value(variable: Any) -> Ids:
            if isinstance(variable, Literal):
                aval: Any = variable.aval
                return self.number(np.asarray(variable.val, aval.dtype))
            return held[variable]

        for equation in _live(jaxpr):
            results = self.equation(equation, [value(v) for v in equation.invars])
            held |= dict(zip(equation.outvars, results, strict=True))
        return [value(v) for v in jaxpr.outvars]

    def number(self, array: Any) -> Ids:
        """Ids of constants."""
        array = np.asarray(array)
        return self.values.constants(array.reshape(-1).astype(np.float64)).reshape(array.shape)

    def known(self, ids: Ids) -> bool:
        return bool(self.values.constant[ids].all())

    def floats(self, ids: Ids, aval: Any) -> NDArray[Any]:
        """The numbers of constants, in the type of their variable."""
        return self.values.floats[ids].astype(aval.dtype)

    def whole(self, ids: Ids) -> list[int]:
        return [int(n) for n in self.values.floats[ids].reshape(-1)]

    def equation(self, equation: Any, inputs: list[Ids]) -> list[Ids]:
        """The results of one equation."""
        name, params = equation.primitive.name, equation.params
        if name in CALLS:
            called = params[CALLS[name]]
            jaxpr = getattr(called, "jaxpr", called)
            rule = NAMED.get(jaxpr.debug_info.func_name)
            if rule is not None:
                return [rule(self, jaxpr, *inputs)]
            try:
                return self.run(called, inputs)
            except UnreadPrimitive as error:
                raise UnreadPrimitive(error.primitive, error.source or _source(equation)) from None
        if name in MOVEMENTS:
            moved = MOVEMENTS[name](params, *inputs)
            return moved if isinstance(moved, list) else [moved]
        rule = RULES.get(name)
        whole = any(v.aval.dtype.kind in "iu" for v in equation.invars)
        other = name in NOT_WHOLE and whole and not self.all_known(inputs)
        if rule is not None and not other:
            result = rule(self, equation, *inputs)
            if result is not None:
                return result if isinstance(result, list) else [result]
        if self.all_known(inputs):
            numbers = [self.floats(x, v.aval) for x, v in zip(inputs, equation.invars, strict=True)]
            results = equation.primitive.bind(*numbers, **params)
            many = equation.primitive.multiple_results
            return [self.number(r) for r in (results if many else [results])]
        raise UnreadPrimitive(name, _source(equation))

    def all_known(self, inputs: list[Ids]) -> bool:
        return all(self.known(x) for x in inputs)

    # Elementwise operations

    def elementwise(self, of: Callable[..., Ids], *inputs: Ids) -> Ids:
        """A function of flat ids, applied once to each distinct row of operands."""
        shape = np.broadcast_shapes(*(x.shape for x in inputs))
        flat = [np.broadcast_to(x, shape).reshape(-1) for x in inputs]
        code, room = flat[0], len(self.values)
        for other in flat[1:]:
            code = code * room + other
        _, where, back = np.unique(code, return_index=True, return_inverse=True)
        return of(*(x[where] for x in flat))[back.reshape(-1)].reshape(shape)

    def op(self, operation: str, *inputs: Ids) -> Ids:
        return self.elementwise(lambda *x: self.values.apply(operation, x), *inputs)

    def linear(self, coefficients: Sequence[float], *inputs: Ids) -> Ids:
        """A sum of inputs with some coefficients."""
        numbers = self.values.constants(np.array(coefficients, dtype=float))

        def of(*x: Ids) -> Ids:
            table = np.stack(x, axis=1)
            sizes = np.full(len(table), len(x))
            return self.values.sums(sizes, table.reshape(-1), np.tile(numbers, len(table)))

        return self.elementwise(of, *inputs)

    def constant(self, number: float) -> Ids:
        return self.number(np.array(number))

    def negated(self, condition: Ids) -> Ids:
        return self.linear((1, -1), self.constant(1.0), condition)

    # Rules of several entries

    def reduced(self, of: Callable[[Ids], Ids], value: Ids, axes: Sequence[int]) -> Ids:
        """A function of rows, shape (m, k) -> (m,), along some axes."""
        axes = [int(a) for a in axes]
        kept = [k for k in range(value.ndim) if k not in axes]
        moved = value.transpose([*kept, *axes])
        shape = moved.shape[: len(kept)]
        rows = moved.reshape(int(np.prod(shape, dtype=int)), -1)
        return of(rows).reshape(shape)

    def rows_of(self, rows: Ids) -> tuple[Ids, Ids]:
        """Distinct rows, sorted within, and the position of each row among them."""
        order = np.sort(rows, axis=1)
        with np.errstate(over="ignore"):
            weights = np.random.default_rng(0).integers(1, 2**63, rows.shape[1], dtype=np.uint64)
            keys = (order.astype(np.uint64) * weights).sum(axis=1, dtype=np.uint64)
        _, where, back = np.unique(keys, return_index=True, return_inverse=True)
        back = back.reshape(-1)
        if not np.array_equal(order[where][back], order):
            return order, np.arange(len(order))
        return order[where], back

    def total(self, rows: Ids) -> Ids:
        distinct, back = self.rows_of(rows)
        sizes = np.full(len(distinct), rows.shape[1])
        flat = distinct.reshape(-1)
        return self.values.sums(sizes, flat, np.full(flat.size, ONE))[back]

    def largest(self, rows: Ids) -> Ids:
        """Maximum of each row."""
        distinct, back = self.rows_of(rows)
        return np.array([self.largest_of(row) for row in distinct], dtype=np.int64)[back]

    def largest_of(self, row: Ids) -> int:
        values = self.values
        members, counts = np.unique(row, return_counts=True)
        fixed = values.constant[members]
        low = members[fixed][values.floats[members[fixed]] == -np.inf]
        members, counts = members[~np.isin(members, low)], counts[~np.isin(members, low)]
        if members.size <= 1 or values.constant[members].all():
            floats = values.floats[members] if members.size else [-np.inf]
            return int(members[np.argmax(floats)]) if members.size else int(low[0])
        triple = field.hashed("row", values.triples[members]).sum(axis=0) % field.PRIMES
        coefficient = values.constants(counts.astype(float))
        sizes = np.array([members.size])
        return int(
            values.enter(
                CODE["largest"],
                field.hashed("largest", triple[None]),
                lambda k: (sizes, members, coefficient),
            )[0]
        )

    def logsumexp(self, rows: Ids) -> tuple[Ids, Ids]:
        """Logsumexp of each row, and the softmax of its entries; 0 of one at -inf."""
        values = self.values
        distinct, back = self.rows_of(rows)
        new = np.ones(distinct.shape, dtype=bool)
        new[:, 1:] = np.diff(distinct, axis=1) != 0
        starts = np.flatnonzero(new.reshape(-1))
        lengths = np.diff(np.append(starts, distinct.size))
        members, owner = distinct.reshape(-1)[starts], starts // distinct.shape[1]
        kept = ~(values.constant[members] & (values.floats[members] == -np.inf))
        number = np.bincount(owner[kept], minlength=len(distinct))
        sums, shares = np.full(len(distinct), int(self.constant(np.nan))), np.zeros_like(members)
        counts = values.constants(lengths.astype(float))
        for size in np.unique(number[number > 0]):
            some = number == size
            place = np.flatnonzero(kept & some[owner])
            table = members[place].reshape(-1, size), counts[place].reshape(-1, size)
            sums[some], found = softmax_of(values, *table)
            shares[place] = found.reshape(-1)
        # Entries of a row by their place among its sorted ones.
        each = np.repeat(shares, lengths).reshape(distinct.shape)[back]
        order = np.argsort(np.argsort(rows, axis=1, kind="stable"), axis=1, kind="stable")
        return sums[back], np.take_along_axis(each, order, axis=1)

    def product(self, a: Ids, b: Ids) -> Ids:
        return self.op("mul", a, b)

    def running(self, of: Callable[[Ids, Ids], Ids], value: Ids, params: Any) -> Ids:
        axis, step = int(params["axis"]), -1 if params["reverse"] else 1
        rows = np.moveaxis(value, axis, 0)[::step]
        out = list(rows[:1])
        for row in rows[1:]:
            out.append(of(out[-1], row))
        return np.moveaxis(np.stack(out)[::step], 0, axis) if out else value


def _live(jaxpr: Any) -> list[Any]:
    """The equations that the outputs depend on."""
    from jax.extend.core import Literal

    needed = {v for v in jaxpr.outvars if not isinstance(v, Literal)}
    live = []
    for equation in reversed(jaxpr.eqns):
        if any(v in needed for v in equation.outvars):
            live.append(equation)
            needed |= {v for v in equation.invars if not isinstance(v, Literal)}
    return live[::-1]


def _source(equation: Any) -> str:
    """`` (my.py, line 7)``: where the user's file asks for an equation."""
    try:
        from jax._src.source_info_util import user_frame

        frame = user_frame(equation.source_info.traceback)
    except (ImportError, AttributeError, TypeError):
        return ""
    if frame is None:
        return ""
    return f" ({frame.file_name.rsplit('/', 1)[-1]}, line {frame.start_line})"


def softmax_of(values: Values, members: Ids, counts: Ids) -> tuple[Ids, Ids]:
    """Logsumexp of rows of distinct values with their counts, and the softmax of each.

    Parameters
    ----------
    values : Values
    members, counts : int arrays, shape (m, k)
        The counts are constants.

    Returns
    -------
    int arrays, shapes (m,) and (m, k)
    """
    total, parts = softmax_triples(values.triples[members], values.triples[counts])
    sums, shares = np.empty(len(members), dtype=np.int64), np.empty(members.shape, dtype=np.int64)
    fixed = values.constant[members].all(axis=1)
    if fixed.any():
        floats = values.floats[members[fixed]]
        numbers = np.logaddexp.reduce(floats + np.log(values.floats[counts[fixed]]), axis=1)
        sums[fixed] = values.constants(numbers, total[fixed])
        off = np.exp(floats - numbers[:, None]).reshape(-1)
        shares[fixed] = values.constants(off, parts[fixed].reshape(-1, 3)).reshape(floats.shape)
    moving = np.flatnonzero(~fixed)
    if moving.size:
        members, counts, size = members[moving], counts[moving], members.shape[1]
        sums[moving] = found = values.enter(
            CODE["logsumexp"],
            total[moving],
            lambda k: (np.full(k.size, size), members[k].reshape(-1), counts[k].reshape(-1)),
        )
        pairs = np.column_stack([members.reshape(-1), np.repeat(found, size)])
        shares[moving] = values.enter(
            CODE["share"],
            parts[moving].reshape(-1, 3),
            lambda k: (np.full(k.size, 2), pairs[k].reshape(-1), np.full(2 * k.size, ONE)),
        ).reshape(members.shape)
    return sums, shares


def _axis(jaxpr: Any) -> int:
    """The axis along which a softmax is taken, from the maximum that it subtracts."""
    while jaxpr.eqns[0].primitive.name in CALLS:
        jaxpr = jaxpr.eqns[0].params["jaxpr"].jaxpr
    (axis,) = jaxpr.eqns[0].params["axes"]
    return int(axis)


def _softmax(reading: _Reading, jaxpr: Any, x: Ids) -> Ids:
    rows = np.moveaxis(x, _axis(jaxpr), -1)
    shares = reading.logsumexp(rows.reshape(-1, rows.shape[-1]))[1]
    return np.moveaxis(shares.reshape(rows.shape), -1, _axis(jaxpr))


def _logsumexp(reading: _Reading, jaxpr: Any, x: Ids) -> Ids:
    rows = np.moveaxis(x, _axis(jaxpr), -1)
    sums = reading.logsumexp(rows.reshape(-1, rows.shape[-1]))[0]
    return sums.reshape(jaxpr.outvars[0].aval.shape)


def _log_softmax(reading: _Reading, jaxpr: Any, x: Ids) -> Ids:
    rows = np.moveaxis(x, _axis(jaxpr), -1)
    sums = reading.logsumexp(rows.reshape(-1, rows.shape[-1]))[0].reshape(rows.shape[:-1])
    return reading.linear((1, -1), x, np.expand_dims(sums, _axis(jaxpr)))


def _softplus(reading: _Reading, jaxpr: Any, x: Ids) -> Ids:
    return reading.op("softplus", x)


def _logaddexp(reading: _Reading, jaxpr: Any, x: Ids, y: Ids) -> Ids:
    off = reading.op("softplus", reading.linear((1, -1), x, y))
    return reading.linear((1, 1), y, off)


def _relu(reading: _Reading, jaxpr: Any, x: Ids) -> Ids:
    zero = np.array(ZERO)
    return reading.op("select", reading.op("lt", zero, x), x, zero)


NAMED: dict[str, Callable[..., Ids]] = {
    "attdyn_softmax": _softmax,
    "attdyn_logsumexp": _logsumexp,
    "attdyn_log_softmax": _log_softmax,
    "softplus": _softplus,
    "logaddexp": _logaddexp,
    "relu": _relu,
}
"""Functions that are operations of their own: by `named_function`, or by JAX's own names."""


def _power(r: _Reading, e: Any, x: Ids, y: Ids) -> Ids:
    if r.known(y) and y.size and (y == y.reshape(-1)[0]).all():
        exponent = float(r.values.floats[y.reshape(-1)[0]])
        if exponent == round(exponent) and abs(exponent) < 2**31:
            return r.elementwise(lambda a: r.values.power(a, int(exponent)), x)
    return r.op("pow", x, y)


def _max(r: _Reading, e: Any, x: Ids, y: Ids) -> Ids:
    low = r.constant(-np.inf)
    if (x == low).all() or (y == low).all():
        return np.broadcast_to(y if (x == low).all() else x, e.outvars[0].aval.shape)
    return r.op("max", x, y)


def _min(r: _Reading, e: Any, x: Ids, y: Ids) -> Ids:
    return r.linear((-1,), r.op("max", r.linear((-1,), x), r.linear((-1,), y)))


def _clamp(r: _Reading, e: Any, low: Ids, x: Ids, high: Ids) -> Ids:
    return _min(r, e, _max(r, e, x, low), high)


def _compare(r: _Reading, e: Any, x: Ids, y: Ids) -> Ids:
    name = e.primitive.name
    if name == "ne":
        return r.negated(r.op("eq", x, y))
    if name in ("gt", "ge"):
        return r.op("lt" if name == "gt" else "le", y, x)
    return r.op(name, x, y)


def _select(r: _Reading, e: Any, which: Ids, *cases: Ids) -> Ids | None:
    if r.known(which):
        number = np.broadcast_to(r.values.floats[which].astype(int), cases[0].shape)
        return np.choose(number, cases) if len(cases) < 30 else None
    if len(cases) != 2:
        return None
    return r.op("select", which, cases[1], cases[0])


def _convert(r: _Reading, e: Any, x: Ids) -> Ids | None:
    source, target = e.invars[0].aval.dtype, e.outvars[0].aval.dtype
    if source.kind in "biu" or target == source:
        return x if target.kind != "b" else r.negated(r.op("eq", x, np.array(ZERO)))
    if target.kind == "b":
        return r.negated(r.op("eq", x, np.array(ZERO)))
    if target.kind in "iu":
        return r.op("trunc", x)
    return x if target.itemsize >= source.itemsize else None


def _dot(r: _Reading, e: Any, left: Ids, right: Ids) -> Ids:
    (contract_left, contract_right), (batch_left, batch_right) = e.params["dimension_numbers"]

    def stacked(x: Ids, contract: Any, batch: Any, last: bool) -> Ids:
        free = [k for k in range(x.ndim) if k not in (*contract, *batch)]
        sizes = [int(np.prod([x.shape[k] for k in a], dtype=int)) for a in (batch, free, contract)]
        whole = x.transpose([*batch, *free, *contract]).reshape(sizes)
        return whole if last else whole.transpose(0, 2, 1)

    a = stacked(left, contract_left, batch_left, True)
    b = stacked(right, contract_right, batch_right, False)
    out = np.empty((a.shape[0], a.shape[1], b.shape[2]), dtype=np.int64)
    block = max(1, MAX_TERMS // max(1, a[0].size + b[0].size + out[0].size))
    for first in range(0, len(a), block):
        part = slice(first, first + block)
        out[part] = _matrix_products(r.values, a[part], b[part])
    return out.reshape(e.outvars[0].aval.shape)


def _matrix_products(values: Values, a: Ids, b: Ids) -> Ids:
    """Products of stacks of matrices of ids, shapes (B, M, K) and (B, K, N)."""
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
        pairs, back = np.unique(
            np.stack([x[~factor], y[~factor]], axis=1), axis=0, return_inverse=True
        )
        if len(pairs):
            index[~factor] = values.apply("mul", (pairs[:, 0], pairs[:, 1]))[back.reshape(-1)]
        return values.merged(sizes, index, coefficient)

    return values.totals(
        triples.reshape(-1, 3), rows, moving.reshape(-1), (fa @ fb).reshape(-1),
        (np.abs(fa) @ np.abs(fb)).reshape(-1),
    ).reshape(shape)  # fmt: skip


def _scatter(r: _Reading, e: Any, value: Ids, indices: Ids, updates: Ids) -> Ids | None:
    if not r.known(indices):
        return None
    numbers = r.floats(indices, e.invars[1].aval)
    where = destinations(e.params, value, numbers, updates).reshape(-1)
    flat, new = value.reshape(-1).copy(), updates.reshape(-1)
    inside = where >= 0
    where, new = where[inside], new[inside]
    name = e.primitive.name
    if name == "scatter":
        flat[where] = new
    elif name in ("scatter-add", "scatter_add"):
        touched = np.unique(where)
        owner = np.r_[np.arange(touched.size), np.searchsorted(touched, where)]
        order = np.argsort(owner, kind="stable")
        terms = np.r_[flat[touched], new][order]
        sizes = np.bincount(owner, minlength=touched.size)
        flat[touched] = r.values.sums(sizes, terms, np.full(terms.size, ONE))
    else:
        return None
    return flat.reshape(value.shape)


def _gather(r: _Reading, e: Any, value: Ids, indices: Ids) -> Ids | None:
    if not r.known(indices):
        return None
    filling = e.params["fill_value"]
    missing = r.constant(np.nan if filling is None else float(filling))
    return gather(e.params, value, r.floats(indices, e.invars[1].aval), int(missing))


def _dynamic(r: _Reading, e: Any, value: Ids, *others: Ids) -> Ids | None:
    updates = e.primitive.name == "dynamic_update_slice"
    starts = others[1:] if updates else others
    if not all(r.known(s) for s in starts):
        return None
    first = [r.whole(s)[0] for s in starts]
    return (
        dynamic_update_slice(value, others[0], first)
        if updates
        else dynamic_slice(e.params, value, first)
    )


def _cond(r: _Reading, e: Any, which: Ids, *operands: Ids) -> list[Ids] | None:
    if not r.known(which):
        return None
    return r.run(e.params["branches"][r.whole(which)[0]], list(operands))


def _scan(r: _Reading, e: Any, *inputs: Ids) -> list[Ids]:
    params = e.params
    program, length, carried, fixed = (
        params[k] for k in ("jaxpr", "length", "num_carry", "num_consts")
    )
    constants, state = list(inputs[:fixed]), list(inputs[fixed : fixed + carried])
    turns = []
    for k in range(length)[:: -1 if params["reverse"] else 1]:
        row = [x[k] for x in inputs[fixed + carried :]]
        results = r.run(program, [*constants, *state, *row])
        state = results[:carried]
        turns.append(results[carried:])
    if params["reverse"]:
        turns.reverse()
    if not turns:
        shapes = [v.aval.shape for v in program.jaxpr.outvars[carried:]]
        return state + [np.zeros((0, *shape), dtype=np.int64) for shape in shapes]
    return state + [np.stack(column) for column in zip(*turns, strict=True)]


def _while(r: _Reading, e: Any, *inputs: Ids) -> list[Ids] | None:
    """A loop for as long as its condition, of constants, holds."""
    of_test, of_body = e.params["cond_nconsts"], e.params["body_nconsts"]
    test, body = list(inputs[:of_test]), list(inputs[of_test : of_test + of_body])
    state = list(inputs[of_test + of_body :])
    while True:
        (goes_on,) = r.run(e.params["cond_jaxpr"], [*test, *state])
        if not r.known(goes_on):
            return None
        if not r.values.floats[goes_on]:
            return state
        state = r.run(e.params["body_jaxpr"], [*body, *state])


def _any(r: _Reading, rows: Ids) -> Ids:
    return r.negated(_all(r, r.negated(rows)))


def _all(r: _Reading, rows: Ids) -> Ids:
    out = np.full(len(rows), ONE)
    for k in range(rows.shape[1]):
        out = r.product(out, rows[:, k])
    return out


def _plain(operation: str) -> Callable[..., Ids]:
    return lambda r, e, *x: r.op(operation, *x)


NO_RULE = ("select", "lt", "le", "eq", "share")
"""Operations that are not primitives of one name."""

RULES: dict[str, Callable[..., Any]] = {
    **{name: _plain(name) for name in ELEMENTWISE if name not in NO_RULE},
    "stop_gradient": _plain("stop"),
    "logistic": _plain("sigmoid"),
    "add": lambda r, e, x, y: r.linear((1, 1), x, y),
    "add_any": lambda r, e, x, y: r.linear((1, 1), x, y),
    "sub": lambda r, e, x, y: r.linear((1, -1), x, y),
    "neg": lambda r, e, x: r.linear((-1,), x),
    "square": lambda r, e, x: r.elementwise(lambda a: r.values.power(a, 2), x),
    "integer_pow": lambda r, e, x: r.elementwise(lambda a: r.values.power(a, e.params["y"]), x),
    "exp2": lambda r, e, x: r.op("exp", r.linear((np.log(2.0),), x)),
    "pow": _power,
    "max": _max,
    "min": _min,
    "clamp": _clamp,
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge"), _compare),
    "and": lambda r, e, x, y: r.product(x, y),
    "or": lambda r, e, x, y: r.negated(r.product(r.negated(x), r.negated(y))),
    "xor": lambda r, e, x, y: r.negated(r.op("eq", x, y)),
    "not": lambda r, e, x: r.negated(x),
    "ceil": lambda r, e, x: r.linear((-1,), r.op("floor", r.linear((-1,), x))),
    "round": lambda r, e, x: r.op("round", x) if int(e.params["rounding_method"]) else None,
    "select_n": _select,
    "convert_element_type": _convert,
    "iota": lambda r, e: r.number(
        np.indices(e.params["shape"])[e.params["dimension"]] if e.params["shape"] else 0
    ),
    "reduce_sum": lambda r, e, x: r.reduced(r.total, x, e.params["axes"]),
    "reduce_max": lambda r, e, x: r.reduced(r.largest, x, e.params["axes"]),
    "reduce_min": lambda r, e, x: r.linear(
        (-1,), r.reduced(r.largest, r.linear((-1,), x), e.params["axes"])
    ),
    "reduce_prod": lambda r, e, x: r.reduced(lambda rows: _all(r, rows), x, e.params["axes"]),
    "reduce_and": lambda r, e, x: r.reduced(lambda rows: _all(r, rows), x, e.params["axes"]),
    "reduce_or": lambda r, e, x: r.reduced(lambda rows: _any(r, rows), x, e.params["axes"]),
    "cumsum": lambda r, e, x: r.running(lambda a, b: r.linear((1, 1), a, b), x, e.params),
    "cumprod": lambda r, e, x: r.running(r.product, x, e.params),
    "cummax": lambda r, e, x: r.running(lambda a, b: r.op("max", a, b), x, e.params),
    "cummin": lambda r, e, x: r.running(lambda a, b: _min(r, e, a, b), x, e.params),
    "dot_general": _dot,
    "gather": _gather,
    "scatter": _scatter,
    "scatter-add": _scatter,
    "dynamic_slice": _dynamic,
    "dynamic_update_slice": _dynamic,
    "cond": _cond,
    "scan": _scan,
    "while": _while,
}
NOT_WHOLE = {"div", "rem", "pow", "and", "or", "xor", "not"}
"""Operations that mean another thing on whole numbers."""
