"""Short vectors: as numpy, and as the instructions of compiled code."""

import inspect

import numpy as np
import pytest

from dynamics import codegen
from dynamics.codegen.kernels import vectors
from dynamics.codegen.kernels.vectors import WIDTH, load, store


def combined(rows, out):
    """All operators, of vectors and of numbers, in rows that a test compares."""
    one, other = load(rows, 0), load(rows, 1)
    store(out, 0, one + other * 2.0 - 0.5 * one)
    store(out, 1, one / other + 1.0 / one)
    total = 0.25 + one
    total -= other
    total *= one
    total /= 3
    store(out, 2, total)


@pytest.fixture
def rows():
    values = np.random.default_rng(0).normal(size=(2, WIDTH))
    values[1, 0], values[1, 1] = values[0, 0], np.nan
    return values


def both_ways(rows):
    out = np.zeros((2, 3, WIDTH))
    combined(rows, out[0])
    module = codegen.build("Short vectors.", ("x",), [codegen.kernel_source(combined)])
    module.combined(rows, out[1])
    return out


def test_instructions_are_what_the_functions_say(rows):
    python, compiled = both_ways(rows)
    np.testing.assert_allclose(compiled, python, rtol=1e-14, atol=1e-15)
    one, other = rows
    np.testing.assert_allclose(python[2], (0.25 + one - other) * one / 3.0)


def test_rows_of_a_part_of_an_array_are_those_of_the_part(rows):
    """A part of a larger array has its rows at other addresses."""
    wide = np.random.default_rng(1).normal(size=(3, 2, WIDTH))
    wide[1] = rows
    np.testing.assert_array_equal(both_ways(wide[1])[1], both_ways(rows)[1])


def test_every_function_has_an_instruction():
    from dynamics.codegen import vector_instructions

    marked = {
        name
        for name, each in inspect.getmembers(vectors, inspect.isfunction)
        if getattr(each, "instruction", False)
    }
    assert marked == {"load", "store"}
    assert all(hasattr(vector_instructions, name) for name in marked)


def test_a_generated_file_takes_instructions_and_no_copy_of_the_functions():
    source = codegen.kernel_source(combined)
    assert "from dynamics.codegen.vector_instructions import load, store" in source
    assert "def load" not in source
