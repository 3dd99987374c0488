"""Types of operators that are remembered are those that numba finds."""

import itertools
import operator

import numpy as np
import pytest
from numba import njit, types
from numba.core.errors import TypingError
from numba.core.registry import cpu_target

import dynamics.codegen.linked_functions  # noqa: F401 (from here on numba remembers)
from dynamics.codegen import operator_types

VECTOR, MATRIX = (types.Array(types.float64, number, "C") for number in (1, 2))
OPERANDS = (
    types.int64,
    types.uint32,
    types.float64,
    types.boolean,
    types.literal(2),
    VECTOR,
    MATRIX,
    types.UniTuple(types.int64, 2),
    types.slice2_type,
)
OPERATORS = (
    operator.add,
    operator.mul,
    operator.truediv,
    operator.pow,
    operator.lt,
    operator.getitem,
    operator.iadd,
)


def of(function):
    cpu_target.typing_context.refresh()
    return cpu_target.typing_context.resolve_value_type(function)


def answer(ask, function, operands):
    try:
        return ask(function, cpu_target.typing_context, operands, {})
    except (TypingError, AttributeError):  # numba has both for operands that do not fit
        return "refused"


@pytest.mark.parametrize("function", OPERATORS)
def test_signatures_are_those_of_numba_the_first_time_and_the_second(function):
    kind = of(function)
    assert type(kind).get_call_type is operator_types._get_call_type
    for operands in itertools.product(OPERANDS, repeat=2):
        expected = answer(operator_types._find, kind, operands)
        for _ in range(2):
            assert answer(operator_types._get_call_type, kind, operands) == expected


def test_a_refusal_is_not_remembered():
    kind, operands = of(operator.lt), (VECTOR, types.slice2_type)
    assert answer(operator_types._get_call_type, kind, operands) == "refused"
    assert (id(kind), operands) not in operator_types._known


def test_other_functions_are_left_to_numba():
    for function, operands in ((np.empty, (types.int64,)), (len, (VECTOR,)), (max, (VECTOR,))):
        kind = of(function)
        answer(operator_types._get_call_type, kind, operands)
        assert (id(kind), operands) not in operator_types._known


def test_functions_of_others_compile_as_before():
    @njit
    def summed(values, texts):
        total = 0.0
        for k in range(values.size):
            total += values[k] ** 2 - values[-1] * k
        return total, texts[0] + "b"

    assert summed(np.array([1.0, 2.0, 4.0]), ("a", "c")) == (21.0 - 4.0 * 3, "ab")
