"""Update rules beside plain descent, and beside optax in JAX's scan: ``make bench``."""

import numpy as np
import pytest
from timing import best

import dynamics
from dynamics.loops import Updates

pytestmark = pytest.mark.benchmark_run

ETA, ROUNDS = 1e-3, 5
LIMIT, LIMIT_OF_FULL = 1.3, 1.5
REDUCED = {
    "positional_attention, D=16 exact": ({"D": 16, "C": 4}, {"expectation": "exact"}, 4000),
    "deep_linear": ({}, {}, 50_000),
    "topic_model": ({}, {}, 10_000),
}


def stepping(problem, rule, steps):
    """A function that takes so many steps from the start."""
    start = problem.initial_state
    rates = np.full(start.size, ETA)
    updates = Updates(rates, rule, problem.multiplicities, problem.moving(start))
    rows = np.empty((steps, len(problem.order_names)))

    def run():
        state = updates.begun(start)
        buffers = rows, np.empty(0, np.int64), np.empty((0, state.size))
        assert problem.advance(state, updates, 0, steps, buffers) == steps
        return state[: start.size]

    return run


def test_reduced_steps_of_adam_beside_descent(one_core, capsys):
    """At most 1.3 times a descent step at positional D=16; small programs are reported."""
    lines, ratios = [], {}
    for title, (law, options, steps) in REDUCED.items():
        system = dynamics.load_system(title.split(",")[0])
        options = options or {"coordinates": "classes"}
        problem = system.ReducedPopulation(system.Parameters(**law), **options)
        runs = [stepping(problem, dynamics.rule(name), steps) for name in ("gd", "adam")]
        pairs = np.array([[best(run, 2) for run in runs] for _ in range(ROUNDS)]) / steps * 1e6
        ratios[title] = float(np.median(pairs[:, 1] / pairs[:, 0]))
        plain, other = np.median(pairs, axis=0)
        size = problem.layout.size
        lines.append(f"  {title:<34}{size:5d}{plain:10.2f}{other:10.2f}{ratios[title]:8.2f}")
    with capsys.disabled():
        print("\nreduced steps, one core")
        print(f"  {'':<34}{'n':>5}{'gd, us':>10}{'adam, us':>10}{'ratio':>8}")
        print("\n".join(lines))
    assert ratios["positional_attention, D=16 exact"] <= LIMIT


def by_optax(problem, steps):
    """As many steps of optax's Adam in JAX's scan, on the same gradient, recording nothing."""
    import jax
    import optax

    functions, payload = problem._functions, problem.payload
    with jax.enable_x64(True):
        adam, start = optax.adam(ETA), jax.numpy.asarray(problem.initial_state)

        def step(carry, _):
            state, memory = carry
            change, memory = adam.update(functions.slope(state, payload), memory, state)
            return (optax.apply_updates(state, change), memory), None

        compiled = jax.jit(lambda s: jax.lax.scan(step, (s, adam.init(s)), None, length=steps)[0])

    def run():
        with jax.enable_x64(True):
            return np.asarray(compiled(start)[0])

    return run


def test_full_steps_of_adam_beside_optax(capsys):
    """Order parameters at every step included; the same states."""
    system, steps = dynamics.load_system("softmax_icl"), 4000
    problem = system.FullPopulation(system.Parameters())
    ours, theirs = stepping(problem, dynamics.rule("adam"), steps), by_optax(problem, steps)
    moving = problem.moving(problem.initial_state)
    np.testing.assert_allclose(ours()[moving], theirs()[moving], rtol=1e-9, atol=1e-12)
    pairs = np.array([[best(run, 2) for run in (ours, theirs)] for _ in range(ROUNDS)])
    one, other = np.median(pairs, axis=0) / steps * 1e6
    ratio = float(np.median(pairs[:, 0] / pairs[:, 1]))
    with capsys.disabled():
        print(f"\nfull Adam, {system.name}, {problem.layout.size} entries, {steps} steps")
        print(f"  attdyn {one:9.1f} us/step   optax {other:9.1f} us/step   ratio {ratio:6.2f}")
    assert ratio <= LIMIT_OF_FULL
