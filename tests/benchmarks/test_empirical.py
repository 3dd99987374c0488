"""The realistic problem beside plain JAX: ``make bench``."""

import numpy as np
import pytest
from timing import best

import dynamics
from dynamics.loops import Updates

pytestmark = pytest.mark.benchmark_run

SIZES = [(16, 16, 2000, 200), (64, 64, 1000, 20), (196, 196, 500, 4)]
ROUNDS = 8
LIMIT = 1.1
ETA = 1e-3


@pytest.mark.parametrize(("size", "depth", "samples", "steps"), SIZES)
def test_full_batch_gd_against_jax(size, depth, samples, steps, capsys):
    """Steps of (E) with their order parameters, over JAX's scan of the gradient alone."""
    from jax_empirical import descender

    system = dynamics.load_system("positional_attention")
    problem = system.FullEmpirical(system.Parameters(D=size, C=4, d=depth, q=0.25), samples)

    def advance():
        state = problem.initial_state
        buffers = (np.empty((steps, 7)), np.empty(0, int), np.empty((0, state.size)))
        problem.advance(state, Updates(np.full(state.size, ETA)), 0, steps, buffers)
        return state

    run = descender(problem, ETA, steps)
    start = tuple(problem.layout.part(problem.initial_state, name) for name in ("v", "A"))
    end = np.concatenate([np.asarray(part).ravel() for part in run(start)])
    np.testing.assert_allclose(end, advance(), rtol=1e-9, atol=1e-12)
    # Other users of the machine come and go: ratios are of one moment, their median is judged.
    pairs = [
        (best(advance, 3), best(lambda: run(start)[0].block_until_ready(), 3))
        for _ in range(ROUNDS)
    ]
    ours, theirs = np.median(pairs, axis=0) / steps * 1e3
    ratio = np.median([one / other for one, other in pairs])
    with capsys.disabled():
        print(f"\nrealistic GD, D={size} d={depth} N={samples}, {steps} steps")
        print(f"  attdyn {ours:9.3f} ms/step   jax {theirs:9.3f} ms/step")
        print(f"  ratio  {ratio:9.2f}  (at most {LIMIT})")
    assert ratio <= LIMIT
