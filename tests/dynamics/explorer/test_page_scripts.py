"""Scripts of the page that need no browser: numbers as text, ticks, zero lines, addresses."""

import json
import math

import pytest
from node import needs_node, run_script

from dynamics.explorer.printing import asset

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
