"""Kernels printed as JavaScript do what they do as Python."""

import textwrap

import numpy as np
import pytest
from node import needs_node, run_script

from dynamics.explorer.javascript import Kernels, NotPrinted
from dynamics.explorer.kinds import MATRIX, NUMBER, VECTOR, Array, Tuple
from dynamics.explorer.printing import asset

KERNELS = '''
LIMIT = 3.5
ROOM = 4


def square(x):
    return x * x


def scan(values, new, out):
    """A kernel with most of what kernels are made of."""
    total, largest, count = 0.0, -1e300, 0
    for k in range(values.size - 1, -1, -1):
        if values[k] != values[k]:
            continue
        largest = max(largest, values[k])
        total += square(values[k]) if values[k] > 0.0 else -(values[k] ** 3)
        count += 1
        if total > 1e9:
            break
    while count > ROOM:
        count //= 2
    low, high = min(total, LIMIT), abs(-7.5)
    low, high = high, low
    new[0, 1], new[1, 0] = new[1, 0], new[0, 1]
    for row in range(new.shape[0]):
        line = new[row]
        for k in range(line.size):
            line[k] = line[0] + row
        new[row, new.shape[1] - 1] += 0.25
    part = out[1:3]
    part[0] = total
    part[1] = largest
    out[0] = float(count) if 0 < count <= ROOM and not count == 3 else -2.0
    out[out.size - 1] = low + 10 * high + 3 // 2 + (2.0 / 4) ** 0.5
    return count, largest


def blocks(cube, data, out):
    numbers, fields = data
    for b in range(cube.shape[0]):
        for j in range(cube.shape[2]):
            out[b * 4 + j] += fields.scale * cube[b, 1, j] + numbers[j] + cube[1, b][j]
'''


def run_in_python(source: str, name: str, *arguments):
    names = {}
    exec(source, names)
    return names[name](*arguments)


@needs_node
@pytest.mark.parametrize("seed", range(6))
def test_a_kernel_gives_the_same_numbers(seed):
    generator = np.random.default_rng(seed)
    values, matrix, out = generator.normal(size=9), generator.normal(size=(2, 3)), np.zeros(5)
    values[seed] = np.nan if seed else 1.0
    kernels = Kernels(KERNELS)
    name = kernels.function("scan", [VECTOR, MATRIX, VECTOR])
    body = f"""
      const values = Float64Array.from(given[0], (x) => x ?? NaN), out = new Float64Array(5);
      const matrix = {{ data: Float64Array.from(given[1].flat()), shape: [2, 3] }};
      const result = {name}(values, matrix, out);
      return [result, matrix.data, out];
    """
    given = [[None if x != x else x for x in values.tolist()], matrix.tolist()]
    result, new, written = run_script(asset("arrays.js") + kernels.text(), body, given)
    expected = run_in_python(KERNELS, "scan", values, matrix, out)
    assert tuple(result) == expected
    assert new == matrix.ravel().tolist()
    assert written == out.tolist()


@needs_node
def test_tuples_and_parts_of_arrays():
    generator = np.random.default_rng(5)
    cube, numbers, out = generator.normal(size=(2, 3, 4)), generator.normal(size=4), np.zeros(8)

    class Fields:
        scale = 2.5

    data = Tuple((VECTOR, Tuple((NUMBER,), ("scale",))))
    kernels = Kernels(KERNELS)
    name = kernels.function("blocks", [Array(3), data, VECTOR])
    body = f"""
      const cube = {{ data: Float64Array.from(given.cube), shape: [2, 3, 4] }};
      const out = new Float64Array(8);
      {name}(cube, [Float64Array.from(given.numbers), {{ scale: 2.5 }}], out);
      return out;
    """
    given = {"cube": cube.ravel().tolist(), "numbers": numbers.tolist()}
    written = run_script(asset("arrays.js") + kernels.text(), body, given)
    run_in_python(KERNELS, "blocks", cube, (numbers, Fields), out)
    assert written == out.tolist()


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("out[0] = a[:, 0]", "is not contiguous"),
        ("out[0] = np.median(a)", "is not covered"),
        ("out[0] = unknown(a)", "is unknown"),
        ("out[0] = a.size % 2", "is not covered"),
        ("for x in a:\n    pass", "loops are over range"),
        ("out[0] = 1j", "is no number"),
        ("with a:\n    pass", "is not covered"),
    ],
)
def test_what_has_no_text_is_refused_with_its_line(line, why):
    source = f"def f(a, out):\n{textwrap.indent(line, '    ')}\n"
    with pytest.raises(NotPrinted, match=why) as refusal:
        Kernels(source).function("f", [MATRIX, VECTOR])
    assert line.splitlines()[0].split(" = ")[-1].rstrip(":") in str(refusal.value)


def test_a_function_is_printed_once_for_each_kind_of_its_arguments():
    source = "def size(a):\n    return a.size\n\n\ndef both(a, b):\n    return size(a) + size(b)\n"
    kernels = Kernels(source)
    kernels.function("both", [VECTOR, MATRIX])
    kernels.function("both", [VECTOR, MATRIX])
    assert kernels.text().count("function ") == 3
    assert "function size_2" in kernels.text()
