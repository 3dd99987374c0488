"""Primitives of traced programs that are no elementwise functions: movements of entries, and rules.

A *movement* only moves entries, whatever the entries are. Where numpy has the operation it is
used; for the others the operation is applied by JAX to the integers ``0 ... size - 1`` and the
result says which entry goes where.

A *rule* takes the arithmetic, the equation and the values of its operands, at least one of which is
not an ordinary array of integers, and returns the result, or the list of results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cmp_to_key, partial, reduce
from itertools import accumulate
from typing import Any

import numpy as np

from theory.tracing.arithmetic import (
    RELATIONS,
    Arithmetic,
    UntracedPrimitive,
    Value,
    array,
    conditions,
    is_number,
    lanes,
    mapped,
    reduced,
)

Params = Mapping[str, Any]


def _positions(value: Value, start: int = 0) -> Value:
    return np.arange(start, start + value.size).reshape(value.shape)


def _pick(entries: Value, where: Any) -> Value:
    positions = np.asarray(where)
    return entries.reshape(-1)[positions.reshape(-1)].reshape(positions.shape)


def _numbers(sequence: Iterable[Any]) -> tuple[int, ...]:
    return tuple(int(k) for k in sequence)


def _broadcast(params: Params, value: Value, *_: Value) -> Value:
    shape = _numbers(params["shape"])
    spread = [1] * len(shape)
    for axis, target in enumerate(params["broadcast_dimensions"]):
        spread[int(target)] = value.shape[axis]
    return np.broadcast_to(value.reshape(spread), shape)


def _reshape(params: Params, value: Value, *_: Value) -> Value:
    if params.get("dimensions") is not None:
        raise UntracedPrimitive("reshape", "with dimensions in another order")
    return value.reshape(_numbers(params["new_sizes"]))


def _slice(params: Params, value: Value) -> Value:
    strides = params["strides"] or (1,) * value.ndim
    bounds = zip(params["start_indices"], params["limit_indices"], strides, strict=True)
    window: tuple[Any, ...] = tuple(slice(int(a), int(b), int(c)) for a, b, c in bounds)
    return value[(*window, ...)]


def _split(params: Params, value: Value) -> list[Value]:
    cuts = np.cumsum(_numbers(params["sizes"]))[:-1]
    return np.split(value, cuts, axis=int(params["axis"]))


def _unstack(params: Params, value: Value) -> list[Value]:
    first = np.moveaxis(value, int(params["axis"]), 0)
    return [first[k, ...] for k in range(len(first))]


def _pad(params: Params, value: Value, filling: Value) -> Value:
    places, kept, sizes = [], [], []
    for n, (low, high, inner) in zip(value.shape, params["padding_config"], strict=True):
        place = int(low) + np.arange(n) * (int(inner) + 1)
        size = int(low) + int(high) + n + max(n - 1, 0) * int(inner)
        inside = (place >= 0) & (place < size)  # negative padding cuts
        places.append(place[inside])
        kept.append(np.flatnonzero(inside))
        sizes.append(size)
    result = np.empty(sizes, dtype=value.dtype)
    result[...] = filling.reshape(())
    result[np.ix_(*places)] = value[np.ix_(*kept)]
    return result


def _dynamic_slice(params: Params, value: Value, *starts: Value) -> Value:
    sizes = _numbers(params["slice_sizes"])
    first = [
        min(max(int(start), 0), n - size)
        for start, n, size in zip(starts, value.shape, sizes, strict=True)
    ]
    window: tuple[Any, ...] = tuple(
        slice(a, a + size) for a, size in zip(first, sizes, strict=True)
    )
    return value[(*window, ...)]


def _dynamic_update_slice(params: Params, value: Value, update: Value, *starts: Value) -> Value:
    from jax import lax

    moved = lax.dynamic_update_slice(_positions(value), _positions(update, value.size), starts)
    return _pick(np.append(value.reshape(-1), update.reshape(-1)), moved)


def gather(params: Params, value: Value, indices: Value, missing: Any) -> Value:
    """The gather primitive; an index out of bounds gives `missing`, as the mode says.

    Parameters
    ----------
    params : mapping
        Of the equation.
    value, indices : numpy arrays
    missing : object
        What an index out of bounds gives.
    """
    from jax import lax

    where = lax.gather(
        _positions(value),
        indices,
        params["dimension_numbers"],
        _numbers(params["slice_sizes"]),
        mode=params["mode"],
        fill_value=value.size,
    )
    extended = np.empty(value.size + 1, dtype=value.dtype)
    extended[:-1] = value.reshape(-1)
    extended[-1] = missing
    return _pick(extended, where)


def destinations(params: Params, value: Value, indices: Value, updates: Value) -> Value:
    """Position in the flat array of each entry of the updates of a scatter; -1 for none.

    Parameters
    ----------
    params : mapping
        Of the equation.
    value, indices, updates : numpy arrays
    """
    from jax import lax

    numbers = params["dimension_numbers"]
    held = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    window = iter(numbers.update_window_dims)
    sizes = [1 if axis in held else updates.shape[next(window)] for axis in range(value.ndim)]
    where = lax.gather(
        _positions(value),
        indices,
        lax.GatherDimensionNumbers(
            offset_dims=numbers.update_window_dims,
            collapsed_slice_dims=numbers.inserted_window_dims,
            start_index_map=numbers.scatter_dims_to_operand_dims,
            operand_batching_dims=numbers.operand_batching_dims,
            start_indices_batching_dims=numbers.scatter_indices_batching_dims,
        ),
        sizes,
        mode=params["mode"],
        fill_value=-1,
    )
    return np.asarray(where)


MOVEMENTS: dict[str, Callable[..., Value | list[Value]]] = {
    "broadcast_in_dim": _broadcast,
    "reshape": _reshape,
    "squeeze": lambda p, v: np.squeeze(v, _numbers(p["dimensions"])),
    "expand_dims": lambda p, v: np.expand_dims(v, _numbers(p["dimensions"])),
    "transpose": lambda p, v: np.transpose(v, _numbers(p["permutation"])),
    "concatenate": lambda p, *v: np.concatenate(v, axis=int(p["dimension"])),
    "tile": lambda p, v: np.tile(v, _numbers(p["reps"])),
    "rev": lambda p, v: np.flip(v, _numbers(p["dimensions"])),
    "slice": _slice,
    "split": _split,
    "pad": _pad,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "stack": lambda p, *v: np.stack(v, axis=int(p["axis"])),
    "unstack": _unstack,
    **dict.fromkeys(("copy", "copy_p", "stop_gradient", "name", "device_put"), lambda p, v: v),
    "optimization_barrier": lambda p, *v: list(v),
}


REDUCTIONS = {
    "reduce_max": ("max", -np.inf),
    "reduce_prod": ("mul", 1.0),
    "reduce_min": ("min", np.inf),
}
"""Primitive -> elementwise function that it repeats, and its value on nothing."""
RUNNING = {"cumsum": "add", "cumprod": "mul", "cummax": "max", "cummin": "min"}
RUNNING |= {"cumlogsumexp": "logaddexp"}
SCATTERS = {
    "scatter": None,
    **{f"scatter-{name}": name for name in ("add", "sub", "mul", "min", "max")},
}


def _function(arithmetic: Arithmetic, name: str) -> Callable[..., Any]:
    function = arithmetic.function(name, {})
    if function is None:
        raise UntracedPrimitive(name)
    return function


def _reduction(arithmetic: Arithmetic, equation: Any, value: Value) -> Value:
    name, empty = REDUCTIONS[equation.primitive.name]
    repeated = partial(reduce, _function(arithmetic, name))
    function = arithmetic.largest if name == "max" else repeated

    def of(row: list[Any]) -> Any:
        return function(row) if row else arithmetic.number(empty)

    return reduced(of, value, equation.params["axes"])


def _all_or_any(arithmetic: Arithmetic, equation: Any, value: Value) -> Value:
    connect = arithmetic.connective(equation.primitive.name.removeprefix("reduce_"))
    return conditions(reduced(lambda row: connect(*row), value, equation.params["axes"]))


def _running(arithmetic: Arithmetic, equation: Any, value: Value) -> Value:
    function = _function(arithmetic, RUNNING[equation.primitive.name])
    axis, step = equation.params["axis"], -1 if equation.params["reverse"] else 1
    rows = np.moveaxis(value, axis, -1)[..., ::step]
    flat = rows.reshape(-1, rows.shape[-1])
    entries = [entry for row in flat for entry in accumulate(row, function)]
    return np.moveaxis(array(entries, rows.shape)[..., ::step], -1, axis)


def _dot_general(arithmetic: Arithmetic, equation: Any, left: Value, right: Value) -> Value:
    (contract_left, contract_right), (batch_left, batch_right) = equation.params[
        "dimension_numbers"
    ]

    def rows(value: Value, contract: Any, batch: Any) -> tuple[Value, tuple[int, ...]]:
        """Axes batch, free, contracted; the free ones flattened, and their sizes."""
        free = [k for k in range(value.ndim) if k not in (*contract, *batch)]
        shape = tuple(value.shape[k] for k in free)
        whole = value.transpose([*batch, *free, *contract])
        sizes = [int(np.prod([value.shape[k] for k in axes], dtype=int)) for axes in (free, batch)]
        length = int(np.prod([value.shape[k] for k in contract], dtype=int))
        return whole.reshape(sizes[1], sizes[0], length), shape

    lefts, free_left = rows(left, contract_left, batch_left)
    rights, free_right = rows(right, contract_right, batch_right)
    entries = [arithmetic.dot(a, b) for k in range(len(lefts)) for a in lefts[k] for b in rights[k]]
    shape = (*(left.shape[k] for k in batch_left), *free_left, *free_right)
    return array(entries, shape)


def _compare(arithmetic: Arithmetic, equation: Any, *values: Value) -> Value:
    name = equation.primitive.name
    if not all(is_number(variable.aval) for variable in equation.invars):
        raise UntracedPrimitive(name, "of conditions with symbols")
    return conditions(mapped(lambda a, b: arithmetic.compare(name, a, b), *values))


def _connect(arithmetic: Arithmetic, equation: Any, *values: Value) -> Value:
    return conditions(mapped(arithmetic.connective(equation.primitive.name), *values))


def _finite(arithmetic: Arithmetic, equation: Any, value: Value) -> Value:
    return conditions(mapped(_function(arithmetic, "is_finite"), value))


def _select(arithmetic: Arithmetic, equation: Any, which: Value, *cases: Value) -> Value:
    aval = equation.outvars[0].aval
    if which.dtype == object and not is_number(aval) and aval.dtype != bool:
        raise UntracedPrimitive("select_n", "of integers by a condition with symbols")
    if which.dtype == object or which.dtype == bool:
        selected = mapped(arithmetic.select, which, *cases)
    else:
        selected = mapped(lambda k, *entries: entries[k], which, *cases)
    return selected if is_number(aval) else conditions(selected)


def _convert(arithmetic: Arithmetic, equation: Any, value: Value) -> Value:
    """Between floating types it is the identity: numbers here are not rounded."""
    source, target = equation.invars[0].aval, equation.outvars[0].aval
    if is_number(source) and is_number(target):
        return value
    if is_number(target) and value.dtype != object:
        return mapped(lambda entry: arithmetic.number(int(entry)), value)
    if is_number(target):
        zero, one = arithmetic.number(0), arithmetic.number(1)
        return mapped(lambda condition: arithmetic.select(condition, zero, one), value)
    if not is_number(source):
        raise UntracedPrimitive("convert_element_type", "a condition with symbols, to an integer")
    if target.dtype == bool:
        zero = arithmetic.number(0)
        return conditions(mapped(lambda entry: arithmetic.compare("ne", entry, zero), value))
    integers = mapped(arithmetic.integer, value)
    if any(entry is None for entry in integers.flat):
        raise UntracedPrimitive("convert_element_type", "an expression with symbols, to an integer")
    return integers.astype(target.dtype)


def _iota(arithmetic: Arithmetic, equation: Any) -> Value:
    shape, dimension = equation.params["shape"], equation.params["dimension"]
    index = np.indices(shape)[dimension]
    return mapped(lambda entry: arithmetic.number(int(entry)), index)


def _empty(arithmetic: Arithmetic, equation: Any) -> Value:
    """A number that nothing reads, of the branch of another kind of machine: 0."""
    return mapped(lambda entry: arithmetic.number(int(entry)), np.zeros((), np.int64))


def _less(arithmetic: Arithmetic, name: str, left: Any, right: Any) -> bool:
    """Comparison of two numbers, or of two integers; refused if symbols decide it."""
    if isinstance(left, np.generic):
        return bool(left < right)
    answer = arithmetic.compare("lt", left, right)
    if not isinstance(answer, bool):
        raise UntracedPrimitive(name, "the order depends on symbols")
    return answer


def _sort(arithmetic: Arithmetic, equation: Any, *values: Value) -> list[Value]:
    dimension, keys = equation.params["dimension"], equation.params["num_keys"]
    rows = [np.moveaxis(value, dimension, -1) for value in values]
    flat = [row.reshape(-1, row.shape[-1]) for row in rows]

    def order(line: int, first: int, second: int) -> int:
        for key in flat[:keys]:
            left, right = key[line, first], key[line, second]
            if _less(arithmetic, "sort", left, right):
                return -1
            if _less(arithmetic, "sort", right, left):
                return 1
        return first - second

    orders = [
        sorted(range(flat[0].shape[1]), key=cmp_to_key(partial(order, line)))
        for line in range(flat[0].shape[0])
    ]
    index = np.asarray(orders, dtype=int).reshape(flat[0].shape)
    return [
        np.moveaxis(np.take_along_axis(value, index, 1).reshape(row.shape), -1, dimension)
        for value, row in zip(flat, rows, strict=True)
    ]


def _index_of_extreme(arithmetic: Arithmetic, equation: Any, value: Value) -> Value:
    name, sign = equation.primitive.name, 1 if equation.primitive.name == "argmax" else -1
    rows = lanes(value, equation.params["axes"])
    flat = rows.reshape(-1, rows.shape[-1])

    def position(row: Value) -> int:
        best = 0
        for k in range(1, len(row)):
            if _less(arithmetic, name, sign * row[best], sign * row[k]):
                best = k
        return best

    positions = [position(row) for row in flat]
    return np.asarray(positions, dtype=equation.params["index_dtype"]).reshape(rows.shape[:-1])


def _gather(arithmetic: Arithmetic, equation: Any, value: Value, indices: Value) -> Value:
    filling = equation.params["fill_value"]
    missing = arithmetic.number(float("nan") if filling is None else filling)
    return gather(equation.params, value, indices, missing)


def _scatter(
    arithmetic: Arithmetic, equation: Any, value: Value, indices: Value, updates: Value
) -> Value:
    name = SCATTERS[equation.primitive.name]
    combine = _function(arithmetic, name) if name else lambda old, new: new
    where = destinations(equation.params, value, indices, updates)
    result = value.reshape(-1).copy()
    for position, update in zip(where.flat, updates.flat, strict=True):
        if position >= 0:
            result[position] = combine(result[position], update)
    return result.reshape(value.shape)


RULES: dict[str, Callable[..., Value | list[Value]]] = {
    "reduce_sum": lambda a, e, v: reduced(a.total, v, e.params["axes"]),
    **dict.fromkeys(REDUCTIONS, _reduction),
    **dict.fromkeys(("reduce_and", "reduce_or", "reduce_xor"), _all_or_any),
    **dict.fromkeys(RUNNING, _running),
    "dot_general": _dot_general,
    **dict.fromkeys(RELATIONS, _compare),
    **dict.fromkeys(("and", "or", "xor", "not"), _connect),
    "is_finite": _finite,
    "select_n": _select,
    "convert_element_type": _convert,
    "iota": _iota,
    "empty2": _empty,
    "sort": _sort,
    **dict.fromkeys(("argmax", "argmin"), _index_of_extreme),
    "gather": _gather,
    **dict.fromkeys(SCATTERS, _scatter),
}
