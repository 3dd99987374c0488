"""Data in memory as compiled code reads it, and entries that are called by their addresses."""

from typing import NamedTuple

import numpy as np
import pytest

from dynamics import codegen
from dynamics.codegen import loops
from dynamics.codegen.addresses import packed


class Inner(NamedTuple):
    flag: bool
    other: bool
    factor: float
    table: np.ndarray


class Data(NamedTuple):
    count: int
    small: np.ndarray
    inner: Inner
    empty: tuple
    last: bool
    bits: np.ndarray


GRADIENT = """
@kernel
def gradient(state, data, out):
    inner = data.inner
    total = data.count + 10.0 * inner.flag + 100.0 * inner.other + 1000.0 * data.last
    for i in range(inner.table.shape[0]):
        for j in range(inner.table.shape[1]):
            total += inner.table[i, j] * inner.factor * data.small[i]
    total += data.bits.sum()
    for k in range(state.size):
        out[k] = total + state[k]
"""
ORDER = """
@kernel
def order_parameters(state, slope, data, out):
    out[0] = state[0]
    out[1] = slope[1]
    data.small[0] = -1.0
"""


def data(flag=True, other=False, last=True, order="C"):
    table = np.asarray(np.arange(6.0).reshape(2, 3), order=order)
    small = np.array([2.0, 3.0], dtype=np.float32)
    bits = np.array([True, False, True])
    return Data(7, small, Inner(flag, other, 0.5, table), (), last, bits)


def expected(given):
    inner = given.inner
    total = given.count + 10 * inner.flag + 100 * inner.other + 1000 * given.last
    products = inner.table * inner.factor * given.small[: len(inner.table), None]
    return float(total + products.sum() + given.bits.sum())


@pytest.fixture(scope="module")
def module():
    return codegen.build("Data of many kinds.", ("x", "y"), [GRADIENT, ORDER])


@pytest.mark.parametrize("flags", [(True, False, True), (False, True, False), (True, True, False)])
def test_compiled_code_reads_every_kind_of_field(module, flags):
    given = data(*flags)
    out = loops.gradient(module.addressed(given), np.array([1.0, 2.0]))
    np.testing.assert_allclose(out, expected(given) + np.array([1.0, 2.0]), rtol=1e-14)


def test_other_layouts_are_other_types(module):
    given = data(order="F")
    one, other = module.addressed(data()), module.addressed(given)
    assert one.table("gradient")[0] != other.table("gradient")[0]
    state = np.zeros(2)
    np.testing.assert_allclose(loops.gradient(other, state), expected(given), rtol=1e-14)
    assert module.addressed(data()).table("gradient")[0] == one.table("gradient")[0]


def test_other_data_of_the_same_types_need_no_other_code(module):
    first = module.addressed(data())
    given = data(False)._replace(count=-3)
    second = first.with_data(given)
    assert second.table("gradient")[0] == first.table("gradient")[0]
    np.testing.assert_allclose(loops.gradient(second, np.zeros(2)), expected(given), rtol=1e-14)
    np.testing.assert_allclose(loops.gradient(first, np.zeros(2)), expected(data()), rtol=1e-14)


def test_arrays_are_written_where_they_are(module):
    given = data()
    model = module.addressed(given)
    row = loops.order_parameters(model, np.array([3.0, 4.0]), np.array([5.0, 6.0]), 2)
    np.testing.assert_array_equal(row, [3.0, 6.0])
    assert given.small[0] == -1.0


def test_a_function_that_the_file_has_not_is_refused(module):
    """A loop would call address 0."""
    with pytest.raises(LookupError, match="has no hessian"):
        loops.hessian(module.addressed(data()), np.zeros(2))


def test_what_has_no_layout_is_refused():
    with pytest.raises(TypeError, match="a dict has no layout in memory"):
        packed((1.0, {"a": 1}))


def test_two_flags_and_a_number_lie_as_in_c():
    """One byte each, then the number where 8 divides its address."""
    layout = packed((True, False, 1.5, (True,), 2)).dtype
    assert [layout.fields[name][1] for name in layout.names] == [0, 1, 8, 16, 24]


TOGETHER = """
@kernel
def gradient(state, data, out):
    for k in range(state.size):
        out[k] = data.count * state[k]


@kernel
def derivatives(state, data, out):
    if out.size == state.size:
        gradient(state, data, out)
    elif out.size == 2:
        out[:] = data.count
    else:
        out[:] = 0.0
        for k in range(state.size):
            out[k * state.size + k] = data.count
"""


@pytest.mark.parametrize("first", ["gradient", "hessian", "summary"])
def test_summary_gradient_and_hessian_may_be_one_entry(first):
    module = codegen.build(f"Together, {first} first.", ("a", "b", "c"), [TOGETHER])
    model = module.addressed(data())
    model.table(first)
    state = np.array([1.0, -2.0, 0.0])
    assert loops.gradient(model, state).tolist() == [7.0, -14.0, 0.0]
    assert loops.hessian(model, state).tolist() == np.diag([7.0] * 3).tolist()
    assert loops.summary(model, state).tolist() == [7.0, 7.0]
    assert list(model.entries.compiled) == ["gradient_entry"]
    assert len({*model.table("gradient", "hessian", "summary")[[0, 2, 3]].tolist()}) == 1
