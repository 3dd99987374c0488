"""Primitives of traced programs that choose entries by computed numbers: gather, scatter, sort.

Where the numbers are constants the entries are a view, or a copy by a table of positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dynamics.explorer.loop_nests import Term, Value, View, counting, literal, varies
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


def _constant(operands: Sequence[Any]) -> bool:
    return all(isinstance(operand, np.ndarray) for operand in operands)


def _gather(arrays: Arrays, step: Step, value: Value, indices: Value) -> Printed:
    params = step.params
    filling = params["fill_value"]
    missing = literal(np.nan if filling is None else filling)
    if _constant(step.operands[1:]):
        where = np.arange(value.size).reshape(value.shape)
        positions = gather(params, where, np.asarray(step.operands[1]), -1)
        return arrays.entries_at(value, positions, missing)
    view, at = arrays.indexed(value), arrays.indexed(indices)
    shape, varying = step.kinds[0].shape, view.varies or at.varies
    result = arrays.array(shape, varying)
    with arrays.loops(shape, varying) as index:
        entry, inside = _entry(arrays, params, (view, at), index, params["slice_sizes"])
        text = f"{inside} ? {entry} : {missing}" if inside else entry
        arrays.write(f"{result.at(index)} = {text};")
    return result


def _entry(
    arrays: Arrays, params: Any, views: tuple[View, View], index: list[str], sizes: Sequence[int]
) -> tuple[str, str]:
    """The entry of an array in a window at a computed start, and the test that it is inside.

    Parameters
    ----------
    arrays : Arrays
    params : mapping
        Of a gather or a scatter, whose dimension numbers have the same order.
    views : (View, View)
        The array, and the starts of the windows.
    index : list of str
        Of the array of all windows: the result of a gather, the updates of a scatter.
    sizes : sequence of int
        Of a window, along every axis of the array.

    Returns
    -------
    entry, test : str
        The test is empty where a start out of bounds is clamped.
    """
    view, at = views
    along_window, missing, mapped, batched, of_starts = params["dimension_numbers"]
    batch = [i for k, i in enumerate(index) if k not in along_window]
    window, position, tests = (index[k] for k in along_window), [], []
    drops = "FILL" in str(params["mode"]).upper()
    for axis, length in enumerate(view.shape):
        parts = []
        if axis in mapped:
            start, last = arrays.name("s"), length - sizes[axis]
            text = at.at([*batch, str(list(mapped).index(axis))])
            if drops:
                tests.append(f"{start} >= 0 && {start} <= {last}")
            else:
                text = f"Math.min(Math.max({text}, 0), {last})"
            arrays.write(f"const {start} = {text};")
            parts.append(start)
        if axis in batched:
            parts.append(batch[of_starts[batched.index(axis)]])
        if axis not in (*missing, *batched):
            parts.append(next(window))
        position.append(f"({' + '.join(parts)})" if len(parts) > 1 else (parts or ["0"])[0])
    return view.at(position), " && ".join(tests)


def _scatter(arrays: Arrays, step: Step, value: Value, indices: Value, updates: Value) -> Printed:
    params, rule = step.params, SCATTERS[step.primitive]
    form = "{1}" if rule is None else COMBINED[rule]
    update = arrays.stored(updates)
    varying = varies(value, indices, update)
    result = arrays.array(step.kinds[0].shape, varying)
    arrays.assign(result, value)
    if constant := _constant(step.operands[1:2]):
        like = [np.empty(shape, np.int8) for shape in (result.shape, update.shape)]
        where = destinations(params, like[0], np.asarray(step.operands[1]), like[1])
        if where.size and where.min() >= 0 and np.unique(where).size == where.size:
            target = result.flat().moved(where)
            if target is not None:
                arrays.assign(target, Term(form.format, (target, update), update.shape))
                return result
        at = arrays.constant(where)
    else:
        at = arrays.indexed(indices)
        along_window, missing, _, batched, _ = params["dimension_numbers"]
        window = iter(along_window)
        sizes = [
            1 if axis in (*missing, *batched) else update.shape[next(window)]
            for axis in range(len(result.shape))
        ]
    with arrays.loops(update.shape, varying) as index:
        if constant:
            entry = f"{result.name}[{at.at(index)}]"
            inside = f"{at.at(index)} >= 0" if (where < 0).any() else ""
        else:
            entry, inside = _entry(arrays, params, (result, at), index, sizes)
        text = f"{entry} = {form.format(entry, update.at(index))};"
        arrays.write(f"if ({inside}) {text}" if inside else text)
    return result


def _starts(arrays: Arrays, view: View, starts: Sequence[Value], sizes: Sequence[int]) -> str:
    """The offset of a window at computed starts, each of them clamped."""
    parts = [view.moving] if view.moving else []
    for axis, start in enumerate(starts):
        last = view.shape[axis] - sizes[axis]
        number, name = arrays.scalar(start), arrays.name("s")
        varying = number.varies or view.varies
        arrays.write(f"const {name} = Math.min(Math.max({number.name}, 0), {last});", varying)
        parts.append(f"{(view.strides or ())[axis]}*{name}")
    return " + ".join(parts)


def _dynamic_slice(arrays: Arrays, step: Step, value: Value, *starts: Value) -> Printed:
    sizes = tuple(int(n) for n in step.params["slice_sizes"])
    if _constant(step.operands[1:]):
        where = np.arange(value.size).reshape(value.shape)
        positions = MOVEMENTS["dynamic_slice"](step.params, where, *step.operands[1:])
        return arrays.entries_at(value, np.asarray(positions))
    view = arrays.indexed(value)
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
    views = [arrays.indexed(value) for value in values]
    shape, varying = views[0].shape, varies(*views)
    length = shape[axis]
    order = arrays.array((length,), varying)
    results = [arrays.array(shape, varying) for _ in views]
    others = [n for k, n in enumerate(shape) if k != axis]
    with arrays.loops(others, varying) as index:
        j, k, one = (arrays.name(letter) for letter in "jkw")

        def line(view: View, along: str) -> str:
            return view.at([*index[:axis], along, *index[axis:]])

        test = "false"
        for view in views[:keys][::-1]:
            left, right = line(view, one), line(view, f"{order.name}[{k} - 1]")
            test = f"(before({left}, {right}) || (!before({right}, {left}) && {test}))"
        with arrays.block(counting(j, length)):
            arrays.write(f"const {one} = {j};")
            arrays.write(f"let {k} = {j};")
            arrays.write(
                f"for (; {k} > 0 && {test}; {k} -= 1) {order.name}[{k}] = {order.name}[{k} - 1];"
            )
            arrays.write(f"{order.name}[{k}] = {one};")
        with arrays.block(counting(j, length)):
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
            f"{counting(k, view.shape[axis])} if ({here} {sign} {there} || "
            f"({here} !== {here} && {there} === {there})) {best} = {k};"
        )
        arrays.write(f"{result.at(index)} = {best};")
    return result


PRINTERS: dict[str, Printer] = {
    **PRIMITIVES,
    "gather": _gather,
    **dict.fromkeys(SCATTERS, _scatter),
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "sort": _sort,
    **dict.fromkeys(("argmax", "argmin"), _index_of_extreme),
}
"""Primitive -> what prints it."""
