"""The interpreter of a page gives what numpy gives, for every operation of a list."""

import numpy as np
from node import needs_node, run_script

from dynamics.explorer.own_programs import document
from dynamics.explorer.printing import asset, script
from dynamics.explorer.tables import Tables
from theory.program import CODE, OPERATIONS, Program, run_floats

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


@needs_node
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
