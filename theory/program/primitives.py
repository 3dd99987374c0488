"""Rules that apply JAX primitives, and functions known by name, to arrays of ids."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from theory.program import rows
from theory.program.algebra import Algebra
from theory.program.movements import (
    MOVEMENTS,
    destinations,
    dynamic_slice,
    dynamic_update_slice,
    gather,
)
from theory.program.numbering import ONE, ZERO, Ids, Values
from theory.program.operations import ELEMENTWISE

CALLS = {
    "jit", "pjit", "remat", "remat2", "checkpoint", "composite", "closed_call", "core_call",
    "custom_jvp_call", "custom_vjp_call",
}  # fmt: skip
"""Names of the JAX primitives that call a jaxpr."""
MAX_TERMS = 1 << 22
"""Maximum number of ids in a block of matrix products; a larger stack is split into blocks."""


class Walk(Algebra, ABC):
    """Algebra that can also run a jaxpr; every rule gets it as its first argument."""

    @abstractmethod
    def run(self, program: Any, inputs: list[Ids]) -> list[Ids]:
        """Ids of the outputs of a jaxpr (closed or open) at inputs given by ids."""

    def known(self, ids: Ids) -> bool:
        """Whether all ids belong to constants."""
        return bool(self.values.constant[ids].all())

    def floats(self, ids: Ids, aval: Any) -> NDArray[Any]:
        """Numbers of constants, in the dtype of the abstract value `aval`."""
        return self.values.floats[ids].astype(aval.dtype)

    def whole(self, ids: Ids) -> list[int]:
        """Numbers of constants as integers."""
        return [int(n) for n in self.values.floats[ids].reshape(-1)]

    def all_known(self, inputs: list[Ids]) -> bool:
        """Whether all entries of several arrays are constants."""
        return all(self.known(x) for x in inputs)

    def negated(self, condition: Ids) -> Ids:
        """Ids of the logical negation, 1 - condition."""
        return self.linear((1, ONE), (-1, condition))

    def reduced(self, of: Callable[[Values, Ids], Ids], value: Ids, axes: Sequence[int]) -> Ids:
        """Apply a function of rows of ids, (m, k) -> (m,), along some axes of an array of ids."""
        kept = [k for k in range(value.ndim) if k not in axes]
        moved = value.transpose([*kept, *map(int, axes)])
        shape = moved.shape[: len(kept)]
        return of(self.values, moved.reshape(int(np.prod(shape, dtype=int)), -1)).reshape(shape)

    def running(self, of: Callable[[Ids, Ids], Ids], value: Ids, params: Any) -> Ids:
        """Ids of the cumulative results, along an axis, of a function of two arrays."""
        axis, step = int(params["axis"]), -1 if params["reverse"] else 1
        out: list[Ids] = []
        for row in np.moveaxis(value, axis, 0)[::step]:
            out.append(of(out[-1], row) if out else row)
        return np.moveaxis(np.stack(out)[::step], 0, axis) if out else value


def _over_axis(reading: Walk, jaxpr: Any, x: Ids, kind: str) -> Ids:
    """Result of a traced softmax, log_softmax or logsumexp (`kind`), along its own axis."""
    inner = jaxpr
    while inner.eqns[0].primitive.name in CALLS:
        inner = inner.eqns[0].params["jaxpr"].jaxpr
    (axis,) = inner.eqns[0].params["axes"]  # the first equation takes the maximum along the axis
    moved = np.moveaxis(x, axis, -1)
    sums, shares = rows.logsumexp(reading.values, moved.reshape(-1, moved.shape[-1]))
    every_sum = np.broadcast_to(sums.reshape(*moved.shape[:-1], 1), moved.shape)
    found = {
        "softmax": lambda: shares.reshape(moved.shape),
        "log_softmax": lambda: reading.linear((1, moved), (-1, every_sum)),
        "logsumexp": lambda: every_sum,
    }[kind]()
    return np.moveaxis(found, -1, axis).reshape(-1)[
        _places(jaxpr, np.arange(x.size).reshape(x.shape))
    ]


def _places(jaxpr: Any, *inputs: Any) -> Any:
    """Position in the argument of each entry of the result; vmap can move axes of the argument."""
    from jax.extend.core import Literal

    held = dict(zip(jaxpr.invars, inputs, strict=True))
    for equation in jaxpr.eqns:
        params = equation.params
        given = [
            np.zeros(np.shape(v.val), int) if isinstance(v, Literal) else held[v]
            for v in equation.invars
        ]
        places = max(given, key=lambda each: (each.ndim, each.size, each.max(initial=0)))
        if equation.primitive.name in CALLS:
            called = params["jaxpr" if "jaxpr" in params else "call_jaxpr"]
            places = _places(getattr(called, "jaxpr", called), *given)
        elif equation.primitive.name in MOVEMENTS:
            places = MOVEMENTS[equation.primitive.name](params, places)
        elif "axes" in params:
            places = places.min(axis=tuple(map(int, params["axes"])))
        held[equation.outvars[0]] = places
    return held[jaxpr.outvars[0]]


def _logaddexp(reading: Walk, jaxpr: Any, x: Ids, y: Ids) -> Ids:
    return reading.linear((1, y), (1, reading.op("softplus", reading.linear((1, x), (-1, y)))))


def _relu(reading: Walk, jaxpr: Any, x: Ids) -> Ids:
    return reading.op("select", reading.op("lt", ZERO, x), x, ZERO)


NAMED: dict[str, Callable[..., Ids]] = {
    "attdyn_softmax": partial(_over_axis, kind="softmax"),
    "attdyn_logsumexp": partial(_over_axis, kind="logsumexp"),
    "attdyn_log_softmax": partial(_over_axis, kind="log_softmax"),
    "softplus": lambda r, jaxpr, x: r.op("softplus", x),
    "logaddexp": _logaddexp,
    "relu": _relu,
}
"""Rules for functions that become one operation, by their name in `named_function` or in JAX."""


def _power(r: Walk, e: Any, x: Ids, y: Ids) -> Ids:
    if r.known(y) and y.size and (y == y.reshape(-1)[0]).all():
        exponent = float(r.values.floats[y.reshape(-1)[0]])
        if exponent == round(exponent) and abs(exponent) < 2**31:
            return r.power(x, int(exponent))
    return r.op("pow", x, y)


def _opposite(r: Walk, x: Ids) -> Ids:
    return r.linear((-1, x))


def _max(r: Walk, e: Any, x: Ids, y: Ids) -> Ids:
    low = r.number(-np.inf)
    if (x == low).all() or (y == low).all():
        return np.broadcast_to(y if (x == low).all() else x, e.outvars[0].aval.shape)
    return r.op("max", x, y)


def _min(r: Walk, e: Any, x: Ids, y: Ids) -> Ids:
    return _opposite(r, r.op("max", _opposite(r, x), _opposite(r, y)))


def _clamp(r: Walk, e: Any, low: Ids, x: Ids, high: Ids) -> Ids:
    return _min(r, e, _max(r, e, x, low), high)


def _compare(r: Walk, e: Any, x: Ids, y: Ids) -> Ids:
    name = e.primitive.name
    if name == "ne":
        return r.negated(r.op("eq", x, y))
    if name in ("gt", "ge"):
        return r.op("lt" if name == "gt" else "le", y, x)
    return r.op(name, x, y)


def _select(r: Walk, e: Any, which: Ids, *cases: Ids) -> Ids | None:
    if r.known(which):
        number = np.broadcast_to(r.values.floats[which].astype(int), cases[0].shape)
        return np.choose(number, cases) if len(cases) < 30 else None
    if len(cases) != 2:
        return None
    return r.op("select", which, cases[1], cases[0])


def _convert(r: Walk, e: Any, x: Ids) -> Ids | None:
    source, target = e.invars[0].aval.dtype, e.outvars[0].aval.dtype
    if target.kind == "b" and source.kind != "b":
        return r.negated(r.op("eq", x, ZERO))
    if source.kind in "biu" or target == source:
        return x
    if target.kind in "iu":
        return r.op("trunc", x)
    return x if target.itemsize >= source.itemsize else None


def _dot(r: Walk, e: Any, left: Ids, right: Ids) -> Ids:
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
        out[part] = rows.matrix_products(r.values, a[part], b[part])
    return out.reshape(e.outvars[0].aval.shape)


def _scatter(r: Walk, e: Any, value: Ids, indices: Ids, updates: Ids) -> Ids | None:
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


def _gather(r: Walk, e: Any, value: Ids, indices: Ids) -> Ids | None:
    if not r.known(indices):
        return None
    filling = e.params["fill_value"]
    missing = r.number(np.nan if filling is None else float(filling))
    return gather(e.params, value, r.floats(indices, e.invars[1].aval), int(missing))


def _dynamic(r: Walk, e: Any, value: Ids, *others: Ids) -> Ids | None:
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


def _cond(r: Walk, e: Any, which: Ids, *operands: Ids) -> list[Ids] | None:
    if not r.known(which):
        return None
    return r.run(e.params["branches"][r.whole(which)[0]], list(operands))


def _scan(r: Walk, e: Any, *inputs: Ids) -> list[Ids]:
    params = e.params
    program, length = params["jaxpr"], params["length"]
    if "ft_in" in params:  # JAX 0.12 has this parameter
        fixed, carried, _ = map(len, params["ft_in"].unpack())
    else:
        fixed, carried = params["num_consts"], params["num_carry"]
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


def _while(r: Walk, e: Any, *inputs: Ids) -> list[Ids] | None:
    """Ids of the results of a loop, or None if its condition is not a constant."""
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


def _plain(operation: str) -> Callable[..., Ids]:
    return lambda r, e, *x: r.op(operation, *x)


NO_RULE = ("select", "lt", "le", "eq", "share")
"""Elementwise operations without a JAX primitive of the same name."""

RULES: dict[str, Callable[..., Any]] = {
    **{name: _plain(name) for name in ELEMENTWISE if name not in NO_RULE},
    "stop_gradient": _plain("stop"),
    "logistic": _plain("sigmoid"),
    **dict.fromkeys(("add", "add_any"), lambda r, e, x, y: r.linear((1, x), (1, y))),
    "sub": lambda r, e, x, y: r.linear((1, x), (-1, y)),
    "neg": lambda r, e, x: _opposite(r, x),
    "square": lambda r, e, x: r.power(x, 2),
    "integer_pow": lambda r, e, x: r.power(x, e.params["y"]),
    "exp2": lambda r, e, x: r.op("exp", r.linear((np.log(2.0), x))),
    "pow": _power,
    "max": _max,
    "min": _min,
    "clamp": _clamp,
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge"), _compare),
    "and": lambda r, e, x, y: r.mul(x, y),
    "or": lambda r, e, x, y: r.negated(r.mul(r.negated(x), r.negated(y))),
    "xor": lambda r, e, x, y: r.negated(r.op("eq", x, y)),
    "not": lambda r, e, x: r.negated(x),
    "ceil": lambda r, e, x: _opposite(r, r.op("floor", _opposite(r, x))),
    "round": lambda r, e, x: r.op("round", x) if int(e.params["rounding_method"]) else None,
    "select_n": _select,
    "convert_element_type": _convert,
    "iota": lambda r, e: r.number(
        np.indices(e.params["shape"])[e.params["dimension"]] if e.params["shape"] else 0
    ),
    "reduce_sum": lambda r, e, x: r.reduced(rows.total, x, e.params["axes"]),
    "reduce_max": lambda r, e, x: r.reduced(rows.largest, x, e.params["axes"]),
    "reduce_min": lambda r, e, x: _opposite(
        r, r.reduced(rows.largest, _opposite(r, x), e.params["axes"])
    ),
    **dict.fromkeys(
        ("reduce_prod", "reduce_and"),
        lambda r, e, x: r.reduced(rows.product, x, e.params["axes"]),
    ),
    "reduce_or": lambda r, e, x: r.negated(r.reduced(rows.product, r.negated(x), e.params["axes"])),
    "cumsum": lambda r, e, x: r.running(lambda a, b: r.linear((1, a), (1, b)), x, e.params),
    "cumprod": lambda r, e, x: r.running(r.mul, x, e.params),
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
"""Primitives that act differently on integers than on floats."""
OF_PAIRS = {"add", "add_any", "sub", "mul", "div", "rem", "pow", "max", "min", "atan2", "eq", "ne",
            "lt", "le", "gt", "ge", "and", "or", "xor"}  # fmt: skip
"""Primitives that act on pairs of elements, after broadcasting."""
