"""Primitives of traced programs in JavaScript: elementwise, movements, sums and products.

An elementwise primitive is a `Term`; a movement is a view, or a copy by a table of positions;
reductions and products of arrays are loops. Whole numbers and truth values are doubles, exact below
:math:`2^{53}`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate

import numpy as np

from dynamics.explorer.loop_nests import Term, Value, counting, varies
from dynamics.explorer.traced_arrays import REDUCTIONS, Arrays, spread
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
    **{name: f"Math.{name}({{0}})" for name in (
        "abs", "exp", "expm1", "log", "log1p", "sqrt", "cbrt", "floor", "ceil", "sign",
        "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh",
        "atanh",
    )},
    "exp2": "Math.pow(2, {0})",
    "rsqrt": "(1 / Math.sqrt({0}))",
    "logistic": "(1 / (1 + Math.exp(-{0})))",
    "is_finite": "(Number.isFinite({0}) ? 1 : 0)",
    "erf": "errorFunction({0})",
    "erfc": "complementaryErrorFunction({0})",
    **{name: f"({{0}} {sign} {{1}} ? 1 : 0)" for name, sign in {
        "eq": "===", "ne": "!==", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    }.items()},
    "and": "({0} && {1} ? 1 : 0)",
    "or": "({0} || {1} ? 1 : 0)",
    "xor": "({0} !== {1} ? 1 : 0)",
    "not": "({0} ? 0 : 1)",
}  # fmt: skip
"""Elementwise primitive -> its form."""
LOGICAL = ("and", "or", "xor", "not")
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
    bits = f"{abs(exponent):b}"[::-1]

    def form(x: str) -> str:
        if abs(exponent) > LARGEST_POWER or not (x.isidentifier() or x.endswith("]")):
            return f"Math.pow({x}, {exponent})"
        squares = accumulate(bits, lambda square, _: f"({square} * {square})", initial=x)
        product = " * ".join(s for s, bit in zip(squares, bits, strict=False) if bit == "1")
        if exponent == 2:
            return product
        return f"(1 / ({product}))" if exponent < 0 else f"({product or 1})"

    return form


def _whole_power(arrays: Arrays, step: Step, value: Value) -> Printed:
    form = whole_power(int(step.params.get("y", 2)))
    return Term(form, (value,), value.shape, repeats=True)


def _elementwise(arrays: Arrays, step: Step, *values: Value) -> Printed:
    form = FORMS[step.primitive]
    if step.primitive == "div" and step.kinds[0].whole:
        form = "Math.trunc({0} / {1})"
    if step.primitive in LOGICAL and any(kind.dtype != bool for kind in step.operand_kinds):
        raise UntracedPrimitive(step.primitive, "of the bits of whole numbers")
    return arrays.elementwise(form, values, step.kinds[0].shape)


def _round(arrays: Arrays, step: Step, value: Value) -> Printed:
    even = int(step.params["rounding_method"]) == 1
    form = "roundToEven({0})" if even else "Math.sign({0}) * Math.floor(Math.abs({0}) + 0.5)"
    return arrays.elementwise(form, [value], value.shape, repeats=not even)


def _convert(arrays: Arrays, step: Step, value: Value) -> Printed:
    source, target = step.operand_kinds[0], step.kinds[0]
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
    count = len(cases)
    tests = "".join(f"({{0}} === {k - 1} ? {{{k}}} : " for k in range(1, count))
    form = "({0} ? {2} : {1})" if count == 2 else f"{tests}{{{count}}}{')' * (count - 1)}"
    return arrays.elementwise(form, [which, *cases], step.kinds[0].shape, repeats=count > 2)


def _movement(arrays: Arrays, step: Step, value: Value, *others: Value) -> Printed:
    where = np.arange(value.size).reshape(value.shape)
    moved = MOVEMENTS[step.primitive](step.params, where)
    if isinstance(moved, list):
        view = arrays.stored(value)
        return [arrays.entries_at(view, positions) for positions in moved]
    return arrays.entries_at(value, moved)


def _joined(arrays: Arrays, step: Step, *values: Value) -> Printed:
    """Concatenate, stack: each part is written where it belongs in the result."""
    sizes = np.cumsum([0, *(value.size for value in values)])
    wheres = [
        np.arange(first, first + value.size).reshape(value.shape)
        for first, value in zip(sizes, values, strict=False)
    ]
    order = np.asarray(MOVEMENTS[step.primitive](step.params, *wheres)).reshape(-1)
    position = np.argsort(order)
    result = arrays.array(step.kinds[0].shape, varies(*values))
    for where, value in zip(wheres, values, strict=True):
        part = result.flat().moved(position[where])
        assert part is not None
        arrays.assign(part, value)
    return result


def _pad(arrays: Arrays, step: Step, value: Value, filling: Value) -> Printed:
    """The filling everywhere, then the value over a part of it."""
    where = np.arange(value.size).reshape(value.shape)
    positions = np.asarray(MOVEMENTS["pad"](step.params, where, np.array(-1)))
    fill, inside = arrays.scalar(filling), np.flatnonzero(positions.reshape(-1) >= 0)
    if inside.size < value.size or inside.size == positions.size:
        return arrays.entries_at(value, positions, fill.name)
    result = arrays.array(positions.shape, varies(value, fill))
    arrays.assign(result, replace(fill, shape=positions.shape))
    part = result.flat().moved(inside.reshape(value.shape))
    assert part is not None
    arrays.assign(part, value)
    return result


def _reduce(arrays: Arrays, step: Step, value: Value) -> Printed:
    axes = [int(axis) for axis in step.params["axes"]]
    return arrays.reduction(value, axes, REDUCTIONS[step.primitive]) if axes else value


def _running(arrays: Arrays, step: Step, value: Value) -> Printed:
    axis, (start, form) = int(step.params["axis"]), RUNNING[step.primitive]
    view = arrays.stored(value)
    result = arrays.array(view.shape, view.varies)
    others = [n for k, n in enumerate(view.shape) if k != axis]
    total = arrays.name("a")
    with arrays.loops(others, view.varies) as index:
        k = arrays.name("k")
        entry = [*index[:axis], k, *index[axis:]]
        arrays.write(f"let {total} = {start};")
        with arrays.block(counting(k, view.shape[axis], step.params["reverse"])):
            arrays.write(f"{total} = {form.format(total, view.at(entry))};")
            arrays.write(f"{result.at(entry)} = {total};")
    return result


def _dot(arrays: Arrays, step: Step, left: Value, right: Value) -> Printed:
    """Products summed over the contracted axes; a term where there are none."""
    (sum_left, sum_right), (batch_left, batch_right) = step.params["dimension_numbers"]
    one, two = arrays.stored(left), arrays.stored(right)
    free_left = [k for k in range(len(one.shape)) if k not in (*sum_left, *batch_left)]
    free_right = [k for k in range(len(two.shape)) if k not in (*sum_right, *batch_right)]
    axes_left = [*batch_left, *free_left, *[None] * len(free_right), *sum_left]
    axes_right = [*batch_right, *[None] * len(free_left), *free_right, *sum_right]
    shape = tuple(
        one.shape[a] if a is not None else two.shape[b]
        for a, b in zip(axes_left, axes_right, strict=True)
    )
    factors = spread(one, axes_left, shape), spread(two, axes_right, shape)
    term = Term("({0} * {1})".format, factors, shape)
    axes = range(len(shape) - len(sum_left), len(shape))
    return arrays.reduction(term, axes, REDUCTIONS["reduce_sum"]) if axes else term


Printer = Callable[..., Printed]
PRIMITIVES: dict[str, Printer] = {
    **dict.fromkeys(FORMS, _elementwise),
    **dict.fromkeys(MOVEMENTS, _movement),
    **dict.fromkeys(IDENTITIES, lambda arrays, step, *values: list(values)),
    **dict.fromkeys(("concatenate", "stack"), _joined),
    **dict.fromkeys(REDUCTIONS, _reduce),
    **dict.fromkeys(RUNNING, _running),
    **dict.fromkeys(("integer_pow", "square"), _whole_power),
    "round": _round,
    "convert_element_type": _convert,
    "reduce_precision": _precision,
    "select_n": _select,
    "pad": _pad,
    "dot_general": _dot,
}
"""Primitive -> the function that prints a step with its operands."""
