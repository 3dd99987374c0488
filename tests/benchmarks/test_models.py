"""Models of one's own beside the hand-built system, each a ratio in one run: ``make bench``."""

import itertools
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from timing import best

import dynamics

pytestmark = pytest.mark.benchmark_run

POSITIONAL = Path(__file__).resolve().parents[1] / "support" / "models" / "positional.py"


@pytest.fixture(scope="module")
def problems():
    """Positional attention at D=9: hand-built, and by its program."""
    built_in = dynamics.load_system("positional_attention")
    own = dynamics.load_system(POSITIONAL)
    parameters = own.Parameters()
    return {
        "hand-built": built_in.ReducedPopulation(built_in.Parameters(D=9, C=3, alpha0=1e-3)),
        "program": own.ReducedPopulation(parameters),
    }


def test_reduced_descent_against_the_hand_built_kernel(problems, capsys):
    """At least half of the hand-built kernel's steps per second."""
    steps, speed = 200_000, {}
    for name, problem in problems.items():
        dynamics.descend(problem, eta=0.03, steps=5000)
        seconds = best(lambda problem=problem: dynamics.descend(problem, eta=0.03, steps=steps), 3)
        speed[name] = steps / seconds
    with capsys.disabled():
        print(f"\nreduced positional attention, D=9, {steps} steps")
        for name, rate in speed.items():
            print(f"  {name:<16}{rate:12,.0f} steps/s, ratio {rate / speed['hand-built']:.2f}")
    assert speed["program"] >= 0.5 * speed["hand-built"]


def test_closure_of_ten_thousand_entries_on_ten_thousand_samples(capsys):
    """Under 30 s, from the first probe to the laws."""

    def start(D=100):
        return {"A": np.zeros((D, D))}

    def law(D):
        for i, j in itertools.product(range(D), repeat=2):
            X = np.zeros(D)
            X[i] += 1
            X[j] += 0.5
            yield 1 / D**2, {"X": X}

    def loss(theta, sample, xp):
        o = xp.softmax(theta["A"], axis=-1) @ sample["X"]
        return xp.softplus(1 - 100 * xp.sum(o**3 + 0.1 * o * sample["X"]))

    system = dynamics.Model(start=start, law=law, loss=loss)
    begin = time.perf_counter()
    closure = system.closure()
    seconds = time.perf_counter() - begin
    with capsys.disabled():
        print(f"\n{closure.summary()}: {seconds:.1f} s (limit 30 s)")
    assert (closure.entries, closure.samples, closure.scalars) == (10_000, 10_000, 2)
    assert seconds < 30


def test_compare_of_a_model_file_cold_and_warm(tmp_path, monkeypatch, capsys):
    """The whole command on the file of the README: cold under 20 s, warm under 8 s."""
    monkeypatch.setenv("ATTDYN_CACHE_DIR", str(tmp_path / "cache"))
    seconds = []
    for _ in range(2):
        begin = time.perf_counter()
        command = [sys.executable, "-m", "dynamics", "compare", str(POSITIONAL)]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
        seconds.append(time.perf_counter() - begin)
    with capsys.disabled():
        print(f"\nattdyn compare my.py: cold {seconds[0]:.1f} s (20), warm {seconds[1]:.1f} s (8)")
    assert seconds[0] < 20
    assert seconds[1] < 8
