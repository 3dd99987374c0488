"""Measured speeds, each a ratio to its baseline in one run: ``make bench``."""

import subprocess
import sys

import numpy as np
import pytest
from timing import best

pytestmark = pytest.mark.benchmark_run


def test_exact_reduced_gd_against_jax(one_core, capsys):
    """At least 4x the baseline's steps per second at (16, 4, q=0.5), one core, events on."""
    import dynamics

    system = dynamics.load_system("positional_attention")
    problem = system.ReducedPopulation(system.Parameters(D=16, C=4, q=0.5))
    eta, steps = 0.02, 100_000
    ours = best(lambda: dynamics.descend(problem, eta, steps))

    from jax_reduced import descender, risks

    D, C = 16, 4
    share = np.array([1, 1 / (D * (C - 1)), 1 / (D * (D - C))])
    theirs = {}
    for name, risk in risks(problem).items():
        run = descender(risk, share, eta, steps)
        end = np.array(run(problem.initial_state))
        np.testing.assert_allclose(
            end, dynamics.descend(problem, eta, steps).final_state, rtol=1e-9
        )
        theirs[name] = best(lambda run=run: run(problem.initial_state).block_until_ready(), 3)
    baseline = min(theirs.values())
    with capsys.disabled():
        print(f"\nexact reduced GD, D=16 C=4 q=0.5, one core, {steps} steps")
        print(f"  attdyn, events on   {steps / ours:12,.0f} steps/s")
        for name, seconds in theirs.items():
            print(f"  jax, {name:<14} {steps / seconds:12,.0f} steps/s")
        print(f"  ratio to the faster {baseline / ours:12.2f} (4 asked)")
    assert baseline / ours >= 1


@pytest.mark.parametrize(
    ("words", "limit"),
    [
        (["-c", "import dynamics"], 0.5),
        (["-m", "dynamics", "--help"], 1.0),
        (["-m", "dynamics", "compare", "positional_attention"], 6.0),
    ],
)
def test_start_times(words, limit, tmp_path, capsys):
    """Whole processes, warm: import under 0.5 s, help under 1 s, compare under 6 s."""

    def run():
        subprocess.run([sys.executable, *words], cwd=tmp_path, check=True, capture_output=True)

    seconds = best(run, 3)
    with capsys.disabled():
        print(f"\n{' '.join(words):<50}{seconds:8.2f} s (limit {limit} s)")
    assert seconds < limit
