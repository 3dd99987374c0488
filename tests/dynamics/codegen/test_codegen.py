import os
import subprocess
import sys

import pytest

from dynamics import codegen
from dynamics.codegen import loops
from dynamics.validation import InvalidRequest

STEP = """
import sys
import dynamics
system = dynamics.load_system("positional_attention")
problem = system.ReducedPopulation(system.Parameters(q=0.3), "exact")
dynamics.descend(problem, eta=0.02, steps=10)
from dynamics.codegen import loops
functions = [loops._module().advance]
print(sum(sum(f.stats.cache_hits.values()) for f in functions))
print(sum(sum(f.stats.cache_misses.values()) for f in functions))
print(*(entry.cache_hits for entry in problem.addressed.entries.compiled.values()))
state = (0.2, 0.03, -0.015)
print(*(value.hex() for value in problem.gradient(state)))
"""
FLOW = """
print(*(value.hex() for value in dynamics.flow(problem, 100.0, record=2).final_state))
"""


def run(code, **environment):
    environment = os.environ | environment
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(STEP, id="descent"),
        pytest.param(STEP + FLOW, id="flow", marks=pytest.mark.long),
    ],
)
def test_a_second_process_compiles_nothing(tmp_path, code):
    first = run(code, ATTDYN_CACHE_DIR=str(tmp_path))
    assert first[:5] == ["0", "1", "0", "0", "0"]
    second = run(code, ATTDYN_CACHE_DIR=str(tmp_path))
    assert second[:5] == ["1", "0", "1", "1", "1"]
    # What was compiled a moment ago and what comes from the cache round alike, in any order.
    assert first[5:] == second[5:]
    assert not list(tmp_path.glob("*.partial"))


def test_source_is_readable_and_knows_its_state(system):
    problem = system.ReducedPopulation(system.Parameters(), "spectral")
    module = problem.expectation.module
    assert module.state_order == module.STATE_ORDER == ("alpha", "gamma", "rho")
    assert problem.source == module.path.read_text(encoding="utf-8")
    assert "def spectrum(state, data, tables, results, second):" in problem.source
    assert "def gradient_entry(state, size, slope, data, out, count):" in problem.source


def test_the_name_covers_the_whole_text():
    title, order = "A test file.", ("x",)
    square = "@kernel\ndef f(x):\n    return x * x\n"
    cube = "@kernel\ndef f(x):\n    return x * x * x\n"
    first, second = codegen.build(title, order, [square]), codegen.build(title, order, [cube])
    assert first.path != second.path
    assert (first.f(3.0), second.f(3.0)) == (9.0, 27.0)
    assert codegen.build(title, order, [square]).functions is first.functions


def test_advance_sees_infinity_that_reordering_would_hide():
    """Isfinite is folded to True when sums may be reordered; the loop is compiled without that."""
    import numpy as np

    grow = "@kernel\ndef gradient(state, data, out):\n    out[0] = -1e200 * state[0]\n"
    order = "@kernel\ndef order_parameters(state, slope, data, out):\n    out[0] = state[0]\n"
    model = codegen.build("Growth.", ("x",), [grow, order]).addressed(())
    state, none = np.array([1.0]), np.empty(0, dtype=np.int64)
    buffers = (np.empty((9, 1)), none, np.empty((0, 1)))
    assert loops.advance(model, state, np.ones(1), (0, 9), True, buffers) == 1
    assert state[0] == 1e200


def test_a_step_that_moves_nothing_is_the_last_that_is_computed():
    """The gradient counts its calls in the data; rows and records are those of all steps."""
    import numpy as np

    falls = (
        "@kernel\ndef gradient(state, data, out):\n"
        "    data[0] += 1\n    out[0] = 1.0 if state[0] > 0 else 0.0\n"
    )
    order = "@kernel\ndef order_parameters(state, slope, data, out):\n    out[0] = state[0]\n"
    module = codegen.build("Falls to zero.", ("x",), [falls, order])
    due = np.array([1, 4, 7])
    found = []
    for alike in (False, True):
        state, calls = np.array([3.0]), np.zeros(1)
        rows, records = np.full((9, 1), np.nan), np.full((3, 1), np.nan)
        model = module.addressed(calls)
        assert loops.advance(model, state, np.ones(1), (0, 9), alike, (rows, due, records)) == 9
        found.append((state, rows, records))
        assert calls[0] == (4 if alike else 9)
    for long, short in zip(*found, strict=True):
        np.testing.assert_array_equal(long, short)


def test_a_file_that_was_changed_on_disk_is_written_again():
    title, order, part = "A changed file.", ("x",), "@kernel\ndef f(x):\n    return 2.0 * x\n"
    path = codegen.build(title, order, [part]).path
    path.write_text(path.read_text().replace("2.0", "3.0"))
    again = codegen.build(title, order, [part])
    assert again.path.read_text() == again.source


def test_numba_without_its_compiler_is_refused(monkeypatch):
    monkeypatch.setattr("numba.config.DISABLE_JIT", 1)
    with pytest.raises(InvalidRequest, match="NUMBA_DISABLE_JIT=1 turns off the compiler"):
        codegen.build("nothing", (), ())
