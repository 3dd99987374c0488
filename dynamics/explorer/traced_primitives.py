"""Primitives of traced programs in JavaScript: elementwise, movements, sums and products.

An elementwise primitive is a `Term`; a movement is a view, or a copy by a table of positions;
reductions and products of arrays are loops. Whole numbers and truth values are doubles, exact below
:math:`2^{53}`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynamics.explorer.loop_nests import Term, Value, View, varies
from dynamics.explorer.traced_arrays import REDUCTIONS, Arrays
from dynamics.explorer.traced_steps import Step
from theory.tracing import UntracedPrimitive
from theory.tracing.primitives import MOVEMENTS

FORMS = {
    **dict.fromkeys(("add", "add_any"), "({0} + {1})"),
    "sub": "({0} - {1})",
    "mul": "({0} * {1})",
    "div": "({0} / {1})",
    "rem": "({0} % {1})",
    "neg": "(-{0})",
    "max": "Math.max({0}, {1})",
    "min": "Math.min({0}, {1})",
    "pow": "Math.pow({0}, {1})",
    "atan2": "Math.atan2({0}, {1})",
    "clamp": "Math.min(Math.max({1}, {0}), {2})",
    **{name: f"Math.{name}({{0}})" for name in ("abs", "exp", "expm1", "log", "log1p", "sqrt")},
    **{name: f"Math.{name}({{0}})" for name in ("sin", "cos", "tan", "asin", "acos", "atan")},
    **{name: f"Math.{name}({{0}})" for name in ("sinh", "cosh", "tanh", "asinh", "acosh")},
    **{name: f"Math.{name}({{0}})" for name in ("atanh", "cbrt", "floor", "ceil", "sign")},
    "exp2": "Math.pow(2, {0})",
    "rsqrt": "(1 / Math.sqrt({0}))",
    "logistic": "(1 / (1 + Math.exp(-{0})))",
    "is_finite": "(Number.isFinite({0}) ? 1 : 0)",
    "erf": "errorFunction({0})",
    "erfc": "complementaryErrorFunction({0})",
    "eq": "({0} === {1} ? 1 : 0)",
    "ne": "({0} !== {1} ? 1 : 0)",
    "lt": "({0} < {1} ? 1 : 0)",
    "le": "({0} <= {1} ? 1 : 0)",
    "gt": "({0} > {1} ? 1 : 0)",
    "ge": "({0} >= {1} ? 1 : 0)",
}
"""Elementwise primitive -> its form."""
LOGICAL = {
    "and": "({0} && {1} ? 1 : 0)",
    "or": "({0} || {1} ? 1 : 0)",
    "xor": "({0} !== {1} ? 1 : 0)",
    "not": "({0} ? 0 : 1)",
}
IDENTITIES = ("copy", "copy_p", "stop_gradient", "name", "device_put", "optimization_barrier")
RUNNING = {
    "cumsum": REDUCTIONS["reduce_sum"],
    "cumprod": REDUCTIONS["reduce_prod"],
    "cummax": REDUCTIONS["reduce_max"],
    "cummin": REDUCTIONS["reduce_min"],
    "cumlogsumexp": ("-Infinity", "logAddExp({0}, {1})"),
}
LARGEST_POWER = 64
"""Whole exponent up to which a power is a product."""


Printed = Value | list[Value]


def whole_power(exponent: int) -> Callable[[str], str]:
    """The form of a power: a product by repeated squaring."""
    size = abs(exponent)

    def form(x: str) -> str:
        if size > LARGEST_POWER or not (x.isidentifier() or x.endswith("]")):
            return f"Math.pow({x}, {exponent})"
        result, square, rest = "", x, size
        while rest:
            if rest & 1:
                result = f"{result} * {square}" if result else square
            rest >>= 1
            square = f"({square} * {square})"
        if exponent < 0:
            return f"(1 / ({result}))"
        return f"({result or 1})" if size != 2 else result

    return form


def _integer_pow(arrays: Arrays, step: Step, value: Value) -> Printed:
    return Term(whole_power(int(step.params["y"])), (value,), value.shape, repeats=True)


def _elementwise(arrays: Arrays, step: Step, *values: Value) -> Printed:
    name = step.primitive
    if name == "div" and step.kinds[0].whole:
        return arrays.elementwise("Math.trunc({0} / {1})", values, step.kinds[0].shape)
    return arrays.elementwise(FORMS[name], values, step.kinds[0].shape)


def _logical(arrays: Arrays, step: Step, *values: Value) -> Printed:
    if any(kind.dtype != bool for kind in step.taken):
        raise UntracedPrimitive(step.primitive, "of the bits of whole numbers")
    return arrays.elementwise(LOGICAL[step.primitive], values, step.kinds[0].shape)


def _square(arrays: Arrays, step: Step, value: Value) -> Printed:
    return Term(whole_power(2), (value,), value.shape, repeats=True)


def _round(arrays: Arrays, step: Step, value: Value) -> Printed:
    even = int(step.params["rounding_method"]) == 1
    form = "roundToEven({0})" if even else "Math.sign({0}) * Math.floor(Math.abs({0}) + 0.5)"
    return arrays.elementwise(form, [value], value.shape, repeats=not even)


def _convert(arrays: Arrays, step: Step, value: Value) -> Printed:
    source, target = step.taken[0], step.kinds[0]
    if target.dtype == bool and source.dtype != bool:
        return arrays.elementwise("({0} !== 0 ? 1 : 0)", [value], value.shape)
    if target.whole and not source.whole:
        return arrays.elementwise("Math.trunc({0})", [value], value.shape)
    return value


def _precision(arrays: Arrays, step: Step, value: Value) -> Printed:
    if (step.params["exponent_bits"], step.params["mantissa_bits"]) != (11, 52):
        raise UntracedPrimitive("reduce_precision", "to fewer bits than a double has")
    return value


def _select(arrays: Arrays, step: Step, which: Value, *cases: Value) -> Printed:
    if len(cases) == 2:
        form = "({0} ? {2} : {1})"
    else:
        form = f"{{{len(cases)}}}"
        for k in range(len(cases) - 1, 0, -1):
            form = f"({{0}} === {k - 1} ? {{{k}}} : {form})"
    repeats = len(cases) > 2
    return arrays.elementwise(form, [which, *cases], step.kinds[0].shape, repeats)


def _movement(arrays: Arrays, step: Step, value: Value, *others: Value) -> Printed:
    where = np.arange(value.size).reshape(value.shape)
    moved = MOVEMENTS[step.primitive](step.params, where)
    if isinstance(moved, list):
        view = arrays.stored(value)
        return [arrays.chosen(view, positions) for positions in moved]
    return arrays.chosen(value, moved)


def _joined(arrays: Arrays, step: Step, *values: Value) -> Printed:
    """Concatenate, stack: every part is written into its place."""
    sizes = np.cumsum([0, *(value.size for value in values)])
    wheres = [
        np.arange(first, first + value.size).reshape(value.shape)
        for first, value in zip(sizes, values, strict=False)
    ]
    order = np.asarray(MOVEMENTS[step.primitive](step.params, *wheres)).reshape(-1)
    place = np.empty(order.size, dtype=np.int64)
    place[order] = np.arange(order.size)
    result = arrays.array(step.kinds[0].shape, varies(*values))
    whole = replace(result, shape=(order.size,), strides=(1,))
    for where, value in zip(wheres, values, strict=True):
        part = whole.moved(place[where])
        assert part is not None
        arrays.assign(part, value)
    return result


def _pad(arrays: Arrays, step: Step, value: Value, filling: Value) -> Printed:
    where = np.arange(value.size).reshape(value.shape)
    moved = np.asarray(MOVEMENTS["pad"](step.params, where, np.array(-1)))
    return _filled(arrays, value, moved, arrays.scalar(filling))


def _filled(arrays: Arrays, value: Value, positions: NDArray[np.int64], fill: View) -> Printed:
    """Entries at positions, and a filling elsewhere, written into a new array."""
    there = np.flatnonzero(positions.reshape(-1) >= 0)
    result = arrays.array(positions.shape, varies(value, fill))
    if there.size < positions.size:
        arrays.assign(result, replace(fill, shape=positions.shape))
    flat = replace(result, shape=(positions.size,), strides=(1,))
    back = np.full(value.size, -1)
    back[positions.reshape(-1)[there]] = there
    kept = np.flatnonzero(back >= 0)
    shape = value.shape if kept.size == value.size else (kept.size,)
    target = flat.moved(back[kept].reshape(shape))
    source = value if kept.size == value.size else arrays.chosen(value, kept)
    if target is None:
        return arrays.chosen(value, positions, fill.name)
    arrays.assign(target, source)
    return result


def _reduce(arrays: Arrays, step: Step, value: Value) -> Printed:
    axes = [int(axis) for axis in step.params["axes"]]
    return arrays.reduction(value, axes, REDUCTIONS[step.primitive]) if axes else value


def _running(arrays: Arrays, step: Step, value: Value) -> Printed:
    axis, (start, form) = int(step.params["axis"]), RUNNING[step.primitive]
    view = arrays.stored(value)
    result = arrays.array(view.shape, view.varies)
    others = [n for k, n in enumerate(view.shape) if k != axis]
    length, total = view.shape[axis], arrays.name("a")
    with arrays.loops(others, view.varies) as index:
        k = arrays.name("k")
        place = [*index[:axis], k, *index[axis:]]
        arrays.write(f"let {total} = {start};")
        back = bool(step.params["reverse"])
        along = f"{k} = {length - 1}; {k} >= 0; {k} -= 1" if back else (
            f"{k} = 0; {k} < {length}; {k} += 1"
        )  # fmt: skip
        with arrays.block(f"for (let {along})"):
            arrays.write(f"{total} = {form.format(total, view.at(place))};")
            arrays.write(f"{result.at(place)} = {total};")
    return result


def _dot(arrays: Arrays, step: Step, left: Value, right: Value) -> Printed:
    return arrays.product(left, right, step.params["dimension_numbers"])


Printer = Callable[..., Printed]
PRIMITIVES: dict[str, Printer] = {
    **dict.fromkeys(FORMS, _elementwise),
    **dict.fromkeys(LOGICAL, _logical),
    **dict.fromkeys(MOVEMENTS, _movement),
    **dict.fromkeys(IDENTITIES, lambda arrays, step, *values: list(values)),
    **dict.fromkeys(("concatenate", "stack"), _joined),
    **dict.fromkeys(REDUCTIONS, _reduce),
    **dict.fromkeys(RUNNING, _running),
    "integer_pow": _integer_pow,
    "square": _square,
    "round": _round,
    "convert_element_type": _convert,
    "reduce_precision": _precision,
    "select_n": _select,
    "pad": _pad,
    "dot_general": _dot,
}
"""Primitive -> what prints it, given the step and its operands."""
