"""Running JavaScript of the explorer by node, with numbers in and out exactly."""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="there is no node to run JavaScript")

HARNESS = """
const written = (key, value) => {
  if (ArrayBuffer.isView(value)) return Array.from(value, (x) => written(key, x));
  if (typeof value === "number" && !Number.isFinite(value)) return `#${value}`;
  return value;
};
(async () => {
  const given = JSON.parse(require("fs").readFileSync(0));
  if (typeof READY !== "undefined") await READY;
  const result = await (async (given) => { %s })(given);
  process.stdout.write(JSON.stringify(result ?? null, written));
})();
"""


def run_script(script, body, given=None):
    """The value of a function's body, in JavaScript, after a script; ``given`` is its argument."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "script.cjs"
        path.write_text(f"{script}\n{HARNESS % body}", encoding="utf-8")
        ran = subprocess.run(
            [NODE, str(path)], input=json.dumps(given), capture_output=True, text=True, check=False
        )
    assert ran.returncode == 0, ran.stderr[-2000:]
    return _numbers(json.loads(ran.stdout))


PROBLEM = """
  const problem = MODEL.make(given.constants), n = problem.size;
  const slope = new Float64Array(n), derivative = new Float64Array(n * n);
  const row = new Float64Array(problem.order_names.length);
  const observed = new Float64Array(problem.observable_names.length);
  const values = given.states.map((each, k) => {
    const state = Float64Array.from(each);
    problem.gradient(state, slope);
    problem.order_parameters(state, slope, row);
    problem.observables(state, observed);
    if (k < given.jacobians) problem.jacobian(state, derivative);
    const jacobian = k < given.jacobians ? derivative : [];
    return [slope, row, observed, jacobian].map((values) => Array.from(values));
  });
  return { values, start: problem.start, names: problem.observable_names,
    scalars: problem.state_names, check: MODEL.check(given.constants) };
"""


def problem_of(script, constants, states, jacobians=0):
    """The problem of a page: start, names, and of each state (gradient, rates, records, Hessian).

    Hessians are those of the first states.
    """
    given = {"constants": constants, "states": np.asarray(states).tolist(), "jacobians": jacobians}
    found = run_script(script, PROBLEM, given)
    assert found["check"]["ok"], found["check"]
    return found


def _numbers(value):
    if isinstance(value, list):
        return [_numbers(each) for each in value]
    if isinstance(value, dict):
        return {name: _numbers(each) for name, each in value.items()}
    if isinstance(value, str) and value in ("#NaN", "#Infinity", "#-Infinity"):
        return float(value[1:].replace("Infinity", "inf").lower())
    return value
