"""Scripts of the page that need no browser: numbers, ticks, addresses, and lists as in numpy."""

import json
import math

import numpy as np
import pytest
from node import needs_node, run_script

from dynamics.explorer.own_programs import document
from dynamics.explorer.printing import asset, script
from dynamics.explorer.tables import Tables
from theory.program import CODE, OPERATIONS, Program, run_floats

pytestmark = needs_node
NAMES = ("numbers", "scales", "contours", "address", "exports")
RUNS = "const as_runs = (text) => [{ text: String(text), level: 0, italic: false }];"


def evaluated(expression):
    """Value of an expression after the scripts."""
    scripts = "\n".join(asset(f"page/{name}.js") for name in NAMES)
    return run_script(f"{RUNS}\n{scripts}", f"return {expression};")


@pytest.mark.parametrize(
    ("value", "uncertainty", "text"),
    [
        (117.45678, 0.021, "117.46 ± 0.03"),  # never less than it is
        (1.5, 2e-5, "1.50000 ± 2×10⁻⁵"),
        (-0.00012345678, 1e-7, "−1.235×10⁻⁴ ± 10⁻⁷"),
        (math.pi, 1e-15, "3.141592654 ± 10⁻¹⁵"),  # ten digits at most
    ],
)
def test_a_number_has_the_digits_that_are_known(value, uncertainty, text):
    assert evaluated(f"measured({value!r}, {uncertainty!r})") == text


def test_exact_numbers_lose_nothing():
    values = [0.1, 1e-3, 16, 1e5, 123456789, 1 / 3, 1e300]
    texts = evaluated(f"{values}.map((value) => exact(value))")
    assert [float(text) for text in texts] == values
    assert texts[2:4] == ["16", "1e5"]


def test_the_zero_line_of_a_circle():
    n, radius = 41, 15.0
    field = [(i - 20) ** 2 + (j - 20) ** 2 - radius**2 for j in range(n) for i in range(n)]
    segments = evaluated(f"zero_lines({field}, {n}, {n})")
    distances = [math.hypot(x - 20, y - 20) for segment in segments for x, y in segment]
    assert max(abs(distance - radius) for distance in distances) < 0.02
    length = sum(math.dist(*segment) for segment in segments)
    assert length == pytest.approx(2 * math.pi * radius, rel=2e-3)


def test_an_address_says_all_and_is_read_again():
    state = {"q": 0.1, "D": 16, "law": "a b&c=d"}
    usual = {"q": 0.5, "D": 9, "law": "mixed"}
    read = evaluated(f"state_of(address_of({json.dumps(state)}), {json.dumps(usual)})")
    assert read == {"state": state, "remarks": []}


def test_a_command_quotes_what_a_shell_would_read():
    text = evaluated("command_line('attdyn run m', {D: 9, law: \"it's $x\"}, {time: 1e5})")
    assert text == "attdyn run m --D 9 --law 'it'\\''s $x' --time 1e5"


OF_TWO = ("mul", "div", "pow", "max", "lt", "le", "eq", "atan2", "rem", "share")
OF_ROWS = ("sum", "logsumexp", "largest", "select")
STATES = [
    [0.3, 0.7, 1.0], [-1.2, 2.5, 0.0], [3.0, -0.5, 1.0], [0.5, 0.5, 2.0], [-2.5, 0.0, 0.25],
    [30.0, 4.0, -3.0], [-800.0, 900.0, 0.1], [1e-9, -7.5, 5.0], [2.0, 1.5, -1.0], [0.0, 0.0, 0.0],
]  # fmt: skip


def every_operation():
    """A list with a result of each operation on the same inputs."""
    names = [name for name in OPERATIONS if name not in ("input", "constant", "stop")]
    lengths = [3 if n in OF_ROWS else 2 if n in OF_TWO else 1 for n in names]
    first = 5 + np.arange(len(names))
    codes = [CODE[name] for name in names]
    counts = {"sum": [2.0, -1.0, 0.5], "logsumexp": [2.0, 1.0, 3.0], "integer_pow": [-3.0]}
    count = [c for n, k in zip(names, lengths, strict=True) for c in counts.get(n, [1.0] * k)]
    index = [j for k in lengths for j in range(k)]
    return names, Program(
        ("x", "y", "z"), np.array([0.25, -4.0]),
        np.stack([codes, first, first + 1, lengths], axis=1),
        np.array(index, dtype=np.int32), np.array(count),
        {"": np.array([*first, 3, 4])},
    )  # fmt: skip


def test_every_operation_gives_what_numpy_gives():
    (names, program), tables = every_operation(), Tables()
    by_row = np.zeros(len(names) + 2, dtype=bool)
    text = script(document(program, by_row, tables))
    parts = (
        f"const OPERATIONS = {script(OPERATIONS)};",
        "const POINTS = [];",
        tables.script(),
        f"const PROGRAMS = [{text}];",
        asset("points.js"),
        asset("lists.js"),
    )
    body = """
      const out = new Float64Array(given.size), run = runOf(listOf(0), [], [], [1]);
      return given.states.map((state) => {
        run(Float64Array.from(state), null, out);
        return Array.from(out);
      });
    """
    given = {"size": len(names) + 2, "states": STATES}
    for state, found in zip(STATES, run_script("\n".join(parts), body, given), strict=True):
        wanted = run_floats(program, state)[program.outputs[""]]
        for name, own, expected in zip([*names, "", ""], found, wanted, strict=True):
            same = np.isclose(own, expected, rtol=1e-14, atol=1e-300, equal_nan=True)
            assert same, (name, state, own, expected)
