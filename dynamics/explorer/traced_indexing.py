"""Primitives of traced programs that choose entries by computed numbers: gather, scatter, sort.

Where the numbers are known at printing the entries are a view, or a copy by a table of positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dynamics.explorer.loop_nests import Term, Value, View, literal, varies
from dynamics.explorer.traced_arrays import Arrays
from dynamics.explorer.traced_primitives import PRIMITIVES, Printed, Printer
from dynamics.explorer.traced_steps import Step
from theory.tracing import UntracedPrimitive
from theory.tracing.primitives import MOVEMENTS, SCATTERS, destinations, gather

COMBINED = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "min": "Math.min({0}, {1})",
    "max": "Math.max({0}, {1})",
}


def _known(operands: Sequence[Any]) -> bool:
    return all(isinstance(operand, np.ndarray) for operand in operands)


def _fill_or_drop(params: Any) -> bool:
    """Whether an index out of bounds gives a filling, or is left out; else it is clamped."""
    return "FILL" in str(params["mode"]).upper()


def _gather(arrays: Arrays, step: Step, value: Value, indices: Value) -> Printed:
    params = step.params
    filling = params["fill_value"]
    missing = literal(np.nan if filling is None else filling)
    if _known(step.operands[1:]):
        where = np.arange(value.size).reshape(value.shape)
        positions = gather(params, where, np.asarray(step.operands[1]), -1)
        return arrays.chosen(value, positions, missing)
    view, at = arrays.indexed(arrays.stored(value)), arrays.indexed(arrays.stored(indices))
    numbers, shape = params["dimension_numbers"], step.kinds[0].shape
    varying = view.varies or at.varies
    result = arrays.array(shape, varying)
    with arrays.loops(shape, varying) as index:
        batch = [i for k, i in enumerate(index) if k not in numbers.offset_dims]
        window = [index[k] for k in numbers.offset_dims]
        held = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
        of_batch = dict(
            zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)
        )
        sizes = [int(n) for n in params["slice_sizes"]]
        entry, valid = _place(
            arrays, (view, at), (numbers.start_index_map, of_batch, held), (batch, window), sizes,
            _fill_or_drop(params),
        )  # fmt: skip
        text = f"{valid} ? {entry} : {missing}" if valid else entry
        arrays.write(f"{result.at(index)} = {text};")
    return result


def _place(
    arrays: Arrays, views: tuple[View, View], axes: Any, indices: Any, sizes: list[int], drops: bool
) -> tuple[str, str]:
    """The entry of an array that a window at a computed start has, and whether it is inside.

    Parameters
    ----------
    arrays : Arrays
    views : (View, View)
        The array, and the starts: their last axis is over ``mapped``.
    axes : (mapped, of_batch, held)
        Axes of the array that the starts are of; axis of a batch -> that of the starts; axes
        along which there is no window.
    indices : (batch, window)
        Texts.
    sizes : list of int
        Of the window, along every axis.
    drops : bool
        Whether a window that is not inside is left out; else its start is clamped.
    """
    (view, at), (mapped, of_batch, held), (batch, window) = views, axes, indices
    along, place, tests = iter(window), [], []
    for axis, length in enumerate(view.shape):
        parts = []
        if axis in mapped:
            start, last = arrays.name("s"), length - sizes[axis]
            text = at.at([*batch, str(list(mapped).index(axis))])
            if not drops:
                text = f"Math.min(Math.max({text}, 0), {last})"
            arrays.write(f"const {start} = {text};")
            tests += [f"{start} >= 0 && {start} <= {last}"] if drops else []
            parts.append(start)
        if axis in of_batch:
            parts.append(batch[of_batch[axis]])
        if axis not in held:
            parts.append(next(along))
        place.append(f"({' + '.join(parts)})" if len(parts) > 1 else (parts or ["0"])[0])
    return view.at(place), " && ".join(tests)


def _scatter(arrays: Arrays, step: Step, value: Value, indices: Value, updates: Value) -> Printed:
    params, rule = step.params, SCATTERS[step.primitive]
    form = "{1}" if rule is None else COMBINED[rule]
    given = arrays.stored(updates)
    varying = varies(value, indices, given)
    result = arrays.array(step.kinds[0].shape, varying)
    if isinstance(value, View) or value.size:
        arrays.assign(result, value)
    if _known(step.operands[1:2]):
        shape = np.empty(result.shape, dtype=np.int8)
        where = destinations(
            params, shape, np.asarray(step.operands[1]), np.empty(given.shape, np.int8)
        )
        return _scattered(arrays, (result, given), where, form)
    numbers = params["dimension_numbers"]
    at = arrays.indexed(arrays.stored(indices))
    held = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    along = iter(numbers.update_window_dims)
    sizes = [1 if k in held else given.shape[next(along)] for k in range(len(result.shape))]
    of_batch = dict(
        zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True)
    )
    axes = (numbers.scatter_dims_to_operand_dims, of_batch, held)
    with arrays.loops(given.shape, varying) as index:
        batch = [i for k, i in enumerate(index) if k not in numbers.update_window_dims]
        window = [index[k] for k in numbers.update_window_dims]
        entry, valid = _place(
            arrays, (result, at), axes, (batch, window), sizes, _fill_or_drop(params)
        )
        text = f"{entry} = {form.format(entry, given.at(index))};"
        arrays.write(f"if ({valid}) {text}" if valid else text)
    return result


def _scattered(arrays: Arrays, views: tuple[View, View], where: Any, form: str) -> View:
    """Updates combined with the entries at known positions; -1 is nowhere."""
    result, given = views
    flat = replace(result, shape=(result.size,), strides=(1,))
    if where.size and where.min() >= 0 and np.unique(where).size == where.size:
        target = flat.moved(where)
        if target is not None:
            term = Term(form.format, (target, given), given.shape)
            arrays.assign(target, term)
            return result
    table = arrays.constant(where)
    with arrays.loops(given.shape, result.varies) as index:
        place = table.at(index)
        entry = f"{result.name}[{place}]"
        text = f"{entry} = {form.format(entry, given.at(index))};"
        arrays.write(f"if ({place} >= 0) {text}" if where.size and where.min() < 0 else text)
    return result


def _starts(arrays: Arrays, view: View, starts: Sequence[Value], sizes: Sequence[int]) -> str:
    """The offset of a window at computed starts, each of them clamped."""
    parts = [view.moving] if view.moving else []
    for axis, start in enumerate(starts):
        last = view.shape[axis] - sizes[axis]
        place = arrays.scalar(start)
        name, varying = arrays.name("s"), place.varies or view.varies
        arrays.write(f"const {name} = Math.min(Math.max({place.name}, 0), {last});", varying)
        parts.append(f"{(view.strides or ())[axis]}*{name}")
    return " + ".join(parts)


def _dynamic_slice(arrays: Arrays, step: Step, value: Value, *starts: Value) -> Printed:
    sizes = tuple(int(n) for n in step.params["slice_sizes"])
    if _known(step.operands[1:]):
        where = np.arange(value.size).reshape(value.shape)
        known = [np.asarray(start) for start in step.operands[1:]]
        return arrays.chosen(
            value, np.asarray(MOVEMENTS["dynamic_slice"](step.params, where, *known))
        )
    view = arrays.indexed(arrays.stored(value))
    varying = varies(view, *starts)
    moving = _starts(arrays, view, starts, sizes)
    return arrays.copied(replace(view, shape=sizes, moving=moving, varies=varying))


def _dynamic_update_slice(
    arrays: Arrays, step: Step, value: Value, update: Value, *starts: Value
) -> Printed:
    varying = varies(value, update, *starts)
    result = arrays.array(value.shape, varying)
    arrays.assign(result, value)
    moving = _starts(arrays, result, starts, update.shape)
    target = replace(result, shape=update.shape, moving=moving)
    arrays.assign(target, update)
    return result


def _sort(arrays: Arrays, step: Step, *values: Value) -> Printed:
    """By insertion, stable: lines are short."""
    axis, keys = int(step.params["dimension"]), int(step.params["num_keys"])
    views = [arrays.indexed(arrays.stored(value)) for value in values]
    shape, varying = views[0].shape, varies(*views)
    length = shape[axis]
    order = arrays.array((length,), varying)
    results = [arrays.array(shape, varying) for _ in views]
    others = [n for k, n in enumerate(shape) if k != axis]
    with arrays.loops(others, varying) as index:
        j, k, one = (arrays.name(letter) for letter in "jkw")

        def line(view: View, place: str) -> str:
            return view.at([*index[:axis], place, *index[axis:]])

        test = "false"
        for view in views[:keys][::-1]:
            left, right = line(view, one), line(view, f"{order.name}[{k} - 1]")
            test = f"(before({left}, {right}) || (!before({right}, {left}) && {test}))"
        with arrays.block(f"for (let {j} = 0; {j} < {length}; {j} += 1)"):
            arrays.write(f"const {one} = {j};")
            arrays.write(f"let {k} = {j};")
            arrays.write(
                f"for (; {k} > 0 && {test}; {k} -= 1) {order.name}[{k}] = {order.name}[{k} - 1];"
            )
            arrays.write(f"{order.name}[{k}] = {one};")
        with arrays.block(f"for (let {j} = 0; {j} < {length}; {j} += 1)"):
            for result, view in zip(results, views, strict=True):
                arrays.write(f"{line(result, j)} = {line(view, f'{order.name}[{j}]')};")
    return list(results)


def _index_of_extreme(arrays: Arrays, step: Step, value: Value) -> Printed:
    axes = [int(axis) for axis in step.params["axes"]]
    if len(axes) != 1:
        raise UntracedPrimitive(step.primitive, "along several axes")
    (axis,), view = axes, arrays.stored(value)
    sign = ">" if step.primitive == "argmax" else "<"
    result = arrays.array(step.kinds[0].shape, view.varies)
    with arrays.loops(result.shape, view.varies) as index:
        best, k = arrays.name("w"), arrays.name("k")
        here = view.at([*index[:axis], k, *index[axis:]])
        there = view.at([*index[:axis], best, *index[axis:]])
        arrays.write(f"let {best} = 0;")
        arrays.write(
            f"for (let {k} = 1; {k} < {view.shape[axis]}; {k} += 1) if ({here} {sign} {there} || "
            f"({here} !== {here} && {there} === {there})) {best} = {k};"
        )
        arrays.write(f"{result.at(index)} = {best};")
    return result


INDEXING: dict[str, Printer] = {
    "gather": _gather,
    **dict.fromkeys(SCATTERS, _scatter),
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "sort": _sort,
    **dict.fromkeys(("argmax", "argmin"), _index_of_extreme),
}
PRINTERS = {**PRIMITIVES, **INDEXING}
"""Primitive -> what prints it."""
