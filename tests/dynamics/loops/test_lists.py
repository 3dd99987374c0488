"""Lists of distinct numbers, compiled and in Python."""

import numpy as np
import pytest

from dynamics.loops import compiled
from dynamics.loops.kernels import program as kernel
from theory.program.numbering import CODE, OPERATIONS

INPUTS, GIVEN = 4, 2
BINARY = {"mul", "div", "pow", "max", "lt", "le", "eq", "atan2", "rem", "share"}
LENGTHS = {"sum": range(1, 12), "logsumexp": (1, 3, 6), "largest": (1, 4), "select": (3,)}


@pytest.fixture(scope="module")
def every_operation():
    """A list with all operations, and sums of all lengths, on inputs and earlier results."""
    draw = np.random.default_rng(0)
    instructions, index, count, at = [], [], [], INPUTS + GIVEN
    for name in OPERATIONS[2:]:
        for length in LENGTHS.get(name, (2 if name in BINARY else 1,)):
            instructions.append((CODE[name], at, at + 2, length))
            index.extend(draw.integers(0, INPUTS + GIVEN, 2 * length))
            counts = draw.integers(2, 5, 2 * length) if name == "integer_pow" else None
            count.extend(draw.uniform(0.5, 3.0, 2 * length) if counts is None else counts)
            at += 2
    arrays = np.array(instructions), np.array(index, np.uint32), np.array(count, float)
    outputs = np.arange(INPUTS + GIVEN, at)
    return kernel.List(np.array([0.3, -0.7]), *arrays, outputs, at)


def test_compiled_lists_are_those_of_python(every_operation):
    states = np.random.default_rng(2).uniform(0.1, 0.9, (8, INPUTS))
    fast, slow = np.empty((2, 8, every_operation.outputs.size))
    compiled(kernel.rows_of)(states, every_operation, fast)
    with np.errstate(all="ignore"):
        kernel.rows_of(states, every_operation, slow)
    np.testing.assert_allclose(fast, slow, rtol=1e-13)
    assert np.isfinite(fast).mean() > 0.8
    assert len(np.unique(fast)) > 0.6 * fast.shape[1]
