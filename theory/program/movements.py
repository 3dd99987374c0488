"""JAX primitives that only move, copy or remove entries, applied to arrays of ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Params = Mapping[str, Any]


def _positions(value: Ids) -> Ids:
    return np.arange(value.size).reshape(value.shape)


def _numbers(sequence: Iterable[Any]) -> tuple[int, ...]:
    return tuple(int(k) for k in sequence)


def _broadcast(params: Params, value: Ids, *_: Ids) -> Ids:
    shape = _numbers(params["shape"])
    spread = [1] * len(shape)
    for axis, target in enumerate(params["broadcast_dimensions"]):
        spread[int(target)] = value.shape[axis]
    return np.broadcast_to(value.reshape(spread), shape)


def _reshape(params: Params, value: Ids, *_: Ids) -> Ids:
    order = params.get("dimensions")
    whole = value if order is None else value.transpose(_numbers(order))
    return whole.reshape(_numbers(params["new_sizes"]))


def _slice(params: Params, value: Ids) -> Ids:
    strides = params["strides"] or (1,) * value.ndim
    bounds = zip(params["start_indices"], params["limit_indices"], strides, strict=True)
    return value[tuple(slice(int(a), int(b), int(c)) for a, b, c in bounds)]


def _split(params: Params, value: Ids) -> list[Ids]:
    cuts = np.cumsum(_numbers(params["sizes"]))[:-1]
    return np.split(value, cuts, axis=int(params["axis"]))


def _unstack(params: Params, value: Ids) -> list[Ids]:
    return list(np.moveaxis(value, int(params["axis"]), 0))


def _pad(params: Params, value: Ids, filling: Ids) -> Ids:
    places, kept, sizes = [], [], []
    for n, (low, high, inner) in zip(value.shape, params["padding_config"], strict=True):
        place = int(low) + np.arange(n) * (int(inner) + 1)
        size = int(low) + int(high) + n + max(n - 1, 0) * int(inner)
        inside = (place >= 0) & (place < size)  # Negative padding removes entries.
        places.append(place[inside])
        kept.append(np.flatnonzero(inside))
        sizes.append(size)
    result = np.full(sizes, filling.reshape(()))
    result[np.ix_(*places)] = value[np.ix_(*kept)]
    return result


MOVEMENTS: dict[str, Callable[..., Ids | list[Ids]]] = {
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
    "stack": lambda p, *v: np.stack(v, axis=int(p["axis"])),
    "unstack": _unstack,
    **dict.fromkeys(
        ("copy", "copy_p", "name", "device_put", "sharding_constraint"), lambda p, v: v
    ),
    "optimization_barrier": lambda p, *v: list(v),
}


def dynamic_slice(params: Params, value: Ids, starts: list[int]) -> Ids:
    """Slice from given start positions, clamped as in JAX; `params` holds its sizes."""
    sizes = _numbers(params["slice_sizes"])
    first = [min(max(s, 0), n - k) for s, n, k in zip(starts, value.shape, sizes, strict=True)]
    return value[tuple(slice(a, a + k) for a, k in zip(first, sizes, strict=True))]


def dynamic_update_slice(value: Ids, update: Ids, starts: list[int]) -> Ids:
    """Copy of an array with the slice from given start positions replaced by `update`."""
    pairs = zip(starts, value.shape, update.shape, strict=True)
    first = [min(max(s, 0), n - k) for s, n, k in pairs]
    result = value.copy()
    result[tuple(slice(a, a + k) for a, k in zip(first, update.shape, strict=True))] = update
    return result


def gather(params: Params, value: Ids, indices: Ids, missing: int) -> Ids:
    """Result of the gather primitive; an index out of bounds gives the id `missing`."""
    from jax import lax

    where = lax.gather(
        _positions(value),
        indices,
        params["dimension_numbers"],
        _numbers(params["slice_sizes"]),
        mode=params["mode"],
        fill_value=value.size,
    )
    return np.append(value.reshape(-1), missing)[np.asarray(where)]


def destinations(params: Params, value: Ids, indices: Ids, updates: Ids) -> Ids:
    """Position in the flat `value` that a scatter gives each entry of `updates`; -1 if outside."""
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
