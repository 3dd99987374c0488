"""Kernels that numba compiles: kept for later processes, never stale, exact in each operation."""

import math
import os
import subprocess
import sys
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

from dynamics import loops
from dynamics.loops import Updates, compiled, compiler
from dynamics.loops.kernels import elementary
from dynamics.loops.kernels import program as kernel
from theory.program.numbering import CODE, OPERATIONS

CALLER = """
from typing import NamedTuple
from dynamics.loops.kernels import kernels
from called import twice

class Data(NamedTuple):
    factor: float

def gradient(state, data, out):
    out[0] = data.factor * twice(state[0])

def order_parameters(state, slope, data, out):
    out[0] = slope[0]

kernels(__name__)
"""
CALLED = """
from dynamics.loops.kernels import kernels

def twice(x):
    return 2.0 * x

kernels(__name__)
"""
PROCESS = """
import sys
from pathlib import Path
import numpy as np
from dynamics import loops
from dynamics.loops import compiler
from dynamics.loops.kernels import kinds
compiler.PACKAGE = Path(sys.argv[1])
sys.path.insert(0, str(compiler.PACKAGE / "expectations"))
from calling import Data
print(loops.gradient(Data(3.0), np.array([0.1]))[0].hex())
stats = loops.compiled(kinds.evaluate, Data(3.0)).__wrapped__.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


def test_a_later_process_compiles_what_was_edited_and_nothing_else(tmp_path):
    """The function that was edited is in another file than the one that numba looks at."""
    folder = tmp_path / "expectations"
    folder.mkdir()
    (folder / "calling.py").write_text(CALLER)
    called = folder / "called.py"
    called.write_text(CALLED)

    def run():
        command = [sys.executable, "-c", PROCESS, str(tmp_path)]
        environment = os.environ | {"ATTDYN_CACHE_DIR": str(tmp_path / "cache")}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.split()

    first, second = run(), run()
    for kind, damage in (("nbi", b""), ("nbc", b"no machine code")):
        for file in (tmp_path / "cache").rglob(f"*.{kind}"):
            file.write_bytes(damage)
        assert run() == first
    called.write_text(CALLED.replace("2.0 * x", "x + x + x"))
    edited = run()
    assert first[1:] == edited[1:] == ["0", "1"]
    assert second == [first[0], "1", "0"]
    assert float.fromhex(first[0]) == 3.0 * (2.0 * 0.1)
    assert float.fromhex(edited[0]) == 3.0 * (0.1 + 0.1 + 0.1)


def test_the_name_of_the_folder_covers_all_kernels():
    covered = {path for pattern in compiler.SOURCES for path in compiler.PACKAGE.glob(pattern)}
    texts = {path: path.read_text(encoding="utf-8") for path in compiler.PACKAGE.rglob("*.py")}
    files = {path for path, text in texts.items() if "kernels(__name__)" in text.splitlines()}
    assert len(files) >= 10
    assert files <= covered


@pytest.fixture
def unkept(monkeypatch):
    """Nothing is kept: the names of folders do not cover this file."""
    monkeypatch.setattr(compiler, "_folder", lambda: "")
    monkeypatch.setattr(compiler, "_dispatcher", cache(compiler._dispatcher.__wrapped__))


class Growth(NamedTuple):
    """The gradient is that of growth where the rate is not 0; else the state falls to 0."""

    rate: float
    calls: Any = np.zeros(1)


def gradient(state, data, out):
    data.calls[0] += 1
    falls = 1.0 if state[0] > 0 else 0.0
    out[0] = -data.rate * state[0] if data.rate != 0.0 else falls


def order_parameters(state, slope, data, out):
    out[0] = state[0]


@pytest.mark.usefixtures("unkept")
def test_advance_sees_infinity_that_reordering_would_hide():
    """Isfinite is folded to True when sums may be reordered; kernels are compiled without that."""
    state, none = np.array([1.0]), np.empty(0, dtype=np.int64)
    buffers = (np.empty((9, 1)), none, np.empty((0, 1)))
    assert loops.advance(Growth(1e200), state, Updates(np.ones(1)), (0, 9), True, buffers) == 1
    assert state[0] == 1e200


@pytest.mark.usefixtures("unkept")
def test_a_step_that_moves_nothing_is_the_last_that_is_computed():
    """The gradient counts its calls; rows and records are those of all steps."""
    due = np.array([1, 4, 7])
    found = []
    for alike in (False, True):
        state, data = np.array([3.0]), Growth(0.0, np.zeros(1))
        rows, records = np.full((9, 1), np.nan), np.full((3, 1), np.nan)
        updates = Updates(np.ones(1))
        assert loops.advance(data, state, updates, (0, 9), alike, (rows, due, records)) == 9
        found.append((state, rows, records))
        assert data.calls[0] == (4 if alike else 9)
    for long, short in zip(*found, strict=True):
        np.testing.assert_array_equal(long, short)


def test_a_state_that_cannot_be_changed_in_place_is_refused():
    buffers = (np.empty((1, 1)), np.empty(0, dtype=np.int64), np.empty((0, 1)))
    with pytest.raises(TypeError, match="contiguous"):
        loops.advance(Growth(1.0), np.array([1]), Updates(np.ones(1)), (0, 1), True, buffers)


INPUTS, GIVEN = 4, 2
BINARY = {"mul", "div", "pow", "max", "lt", "le", "eq", "atan2", "rem", "share"}
LENGTHS = {"sum": range(1, 12), "logsumexp": (1, 3, 6), "largest": (1, 4), "select": (3,)}


def test_compiled_lists_are_those_of_python():
    """Of all operations, and sums of all lengths, on inputs."""
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
    every_operation = kernel.List(np.array([0.3, -0.7]), *arrays, outputs, at)
    states = np.random.default_rng(2).uniform(0.1, 0.9, (8, INPUTS))
    fast, slow = np.empty((2, 8, outputs.size))
    compiled(kernel.rows_of)(states, every_operation, fast)
    with np.errstate(all="ignore"):
        kernel.rows_of(states, every_operation, slow)
    np.testing.assert_allclose(fast, slow, rtol=1e-13)
    assert np.isfinite(fast).mean() > 0.8
    assert len(np.unique(fast)) > 0.6 * fast.shape[1]


def test_logistic_and_its_loss_at_the_ends():
    assert elementary.logistic(0.0) == 0.5
    assert elementary.logistic(40.0) == pytest.approx(1.0, rel=1e-15)
    assert elementary.logistic_loss(800.0) == 0.0
    assert elementary.logistic_loss(-800.0) == 800.0
    assert elementary.logistic_loss(30.0) == pytest.approx(math.exp(-30), rel=1e-12)
    with np.errstate(over="ignore"):
        assert elementary.logistic(np.float64(-700.0)) > 0
