"""Primitives that only move entries, whatever the entries are.

Where numpy has the operation it is used. For the others the operation is applied by JAX to the
integers ``0 ... size - 1`` and the result says which entry goes where.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from theory.tracing.arithmetic import UntracedPrimitive, Value

Params = Mapping[str, Any]


def _positions(value: Value, start: int = 0) -> Value:
    return np.arange(start, start + value.size).reshape(value.shape)


def _pick(entries: Value, where: Any) -> Value:
    places = np.asarray(where)
    return entries.reshape(-1)[places.reshape(-1)].reshape(places.shape)


def _numbers(sequence: Sequence[Any]) -> list[int]:
    return [int(k) for k in sequence]


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
    from jax import lax

    config = [(int(low), int(high), int(inner)) for low, high, inner in params["padding_config"]]
    where = np.asarray(lax.pad(_positions(value), np.int64(value.size), config))
    return _pick(np.append(value.reshape(-1), filling.reshape(1)), where)


def _dynamic_slice(params: Params, value: Value, *starts: Value) -> Value:
    from jax import lax

    sizes = _numbers(params["slice_sizes"])
    return _pick(value, lax.dynamic_slice(_positions(value), starts, sizes))


def _dynamic_update_slice(params: Params, value: Value, update: Value, *starts: Value) -> Value:
    from jax import lax

    moved = lax.dynamic_update_slice(_positions(value), _positions(update, value.size), starts)
    return _pick(np.append(value.reshape(-1), update.reshape(-1)), moved)


def gather(params: Params, value: Value, indices: Value, missing: Any) -> Value:
    """The gather primitive; an index out of bounds gives `missing`, as the mode says."""
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
    """Where each entry of the updates of a scatter goes, in the flat array; -1 is nowhere."""
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


def _same(params: Params, value: Value) -> Value:
    return value


MOVEMENTS: dict[str, Callable[..., Value | list[Value]]] = {
    "broadcast_in_dim": _broadcast,
    "reshape": _reshape,
    "squeeze": lambda p, v: np.squeeze(v, tuple(_numbers(p["dimensions"]))),
    "expand_dims": lambda p, v: np.expand_dims(v, tuple(_numbers(p["dimensions"]))),
    "transpose": lambda p, v: np.transpose(v, _numbers(p["permutation"])),
    "concatenate": lambda p, *v: np.concatenate(v, axis=int(p["dimension"])),
    "tile": lambda p, v: np.tile(v, _numbers(p["reps"])),
    "rev": lambda p, v: np.flip(v, tuple(_numbers(p["dimensions"]))),
    "slice": _slice,
    "split": _split,
    "pad": _pad,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "stack": lambda p, *v: np.stack(v, axis=int(p["axis"])),
    "unstack": _unstack,
    **dict.fromkeys(("copy", "copy_p", "stop_gradient", "name", "device_put"), _same),
    "optimization_barrier": lambda p, *v: list(v),
}
