"""The realistic problem beside JAX, and beside what the machine could do: ``make bench``."""

from math import ceil
from time import perf_counter

import numpy as np
import pytest
from numba import njit, prange
from timing import best

pytestmark = pytest.mark.benchmark_run

SIZES = [(16, 16, 2000, 1.3, 200), (64, 64, 1000, 1.3, 20), (196, 196, 500, 1.0, 4)]
ROUNDS = 8
ROOFLINE = 1 / 0.6
ETA = 1e-3


@njit(fastmath=True)
def total(values):
    found = 0.0
    for k in range(values.size):
        found += values[k]
    return found


@njit(parallel=True)
def totals(values, out):
    share = values.size // out.size
    for k in prange(out.size):
        out[k] = total(values[k * share : (k + 1) * share])


def bandwidth(count):
    """Bytes read per second by all cores, from an array of so many numbers."""
    values, out = np.random.default_rng(0).random(count), np.empty(2)
    return values.nbytes / best(lambda: totals(values, out), 5)


def product_rate(size):
    """Floating-point operations per second of numpy's matrix product."""
    one, two = np.random.default_rng(0).random((2, size, size))
    return 2 * size**3 / best(lambda: one @ two, 5)


@pytest.mark.parametrize(("size", "depth", "samples", "limit", "steps"), SIZES)
def test_full_batch_gd_against_jax(size, depth, samples, limit, steps, capsys):
    """Steps of (E) against JAX on both cores, and time per step against the machine's bound."""
    from jax_empirical import descender

    import dynamics

    system = dynamics.load_system("positional_attention")
    problem = system.FullEmpirical(system.Parameters(D=size, C=4, d=depth, q=0.25), samples)
    schedule = np.array([steps])

    def ours():
        return dynamics.descend(problem, ETA, steps, schedule)

    def advance():
        state = problem.initial_state
        buffers = (np.empty((steps, 7)), np.empty(0, int), np.empty((0, state.size)))
        problem.advance(state, np.full(state.size, ETA), 0, steps, buffers)
        return state

    run = descender(problem, ETA, steps)
    start = tuple(problem.layout.part(problem.initial_state, name) for name in ("v", "A"))
    end = np.concatenate([np.asarray(part).ravel() for part in run(start)])
    np.testing.assert_allclose(end, ours().final_state, rtol=1e-9, atol=1e-12)
    read = 8 * samples * size * depth
    work = samples * (4 * size * depth + 6 * size**2)
    # Other users of the machine come and go: ratios are of one moment, their median is judged.
    turns = (
        lambda: best(advance, 4) / steps,
        lambda: best(lambda: run(start)[0].block_until_ready(), 4) / steps,
        lambda: 1 / bandwidth(samples * size * depth),
        lambda: 1 / product_rate(1000),
    )
    rounds = [[measure() for measure in turns] for _ in range(ROUNDS)]
    ours_, theirs, slowness, effort = np.array(rounds).T
    bounds = np.maximum(read * slowness, work * effort)
    seconds, baseline, bound = np.median(ours_), np.median(theirs), np.median(bounds)
    gain, distance = np.median(theirs / ours_), np.median(ours_ / bounds)
    memory, arithmetic = 1 / np.median(slowness), 1 / np.median(effort)
    with capsys.disabled():
        print(f"\nrealistic GD, D={size} d={depth} N={samples}, all cores, {steps} steps")
        print(f"  attdyn {seconds * 1e3:9.3f} ms/step   jax {baseline * 1e3:9.3f} ms/step")
        print(f"  ratio  {gain:9.2f}  (wanted {limit})")
        print(
            f"  bound  {bound * 1e3:9.3f} ms = max({read / 1e6:.1f} MB / {memory / 1e9:.1f} GB/s, "
            f"{work / 1e6:.0f} Mflop / {arithmetic / 1e9:.0f} Gflop/s); time/bound "
            f"{distance:.2f}"
        )
    assert gain >= limit
    if size == SIZES[-1][0]:
        assert distance <= ROOFLINE


WHOLE = [(*sizes, steps) for steps in (300, 20_000) for *sizes, _, _ in SIZES]
LONG = 5000
"""Steps from which a run is long enough to be timed once, and JAX by a part of it."""
PIECES = {16: 400, 64: 40, 196: 8}
"""D -> steps of a twentieth of a second: memory is at times half as fast as a moment before."""
ROUNDS_OF_SHORT = {16: 60, 64: 15, 196: 5}
"""D -> runs of 300 steps whose median is taken: some ten seconds of them."""


@pytest.mark.parametrize(("size", "depth", "samples", "steps"), WHOLE)
def test_whole_runs_against_jax(size, depth, samples, steps, capsys):
    """`descend` as users call it, with observables and events, beside JAX's scan without them.

    It is compared with steps times a gradient, and with the compiled steps of the same run. Both
    are of the same moments: gradients are made between pieces of its chunks of steps, and their
    time is not that of the run. They are of two states in turn, as in a run no gradient is of the
    state of the last one.
    """
    from jax_empirical import descender

    import dynamics

    system = dynamics.load_system("positional_attention")
    problem = system.FullEmpirical(system.Parameters(D=size, C=4, d=depth, q=0.25), samples)
    state = problem.initial_state
    start = tuple(problem.layout.part(state, name) for name in ("v", "A"))
    part, rounds, every = steps // 20, 1, 50
    if steps < LONG:
        part, rounds, every = steps, ROUNDS_OF_SHORT[size], 2
    run = descender(problem, ETA, part)
    dynamics.descend(problem, ETA, 3)
    inside, made, aside, advance = [], [], [], problem.advance

    def gradients(state, eta, count):
        states = state, state - eta * problem.gradient(state)
        began = perf_counter()
        for k in range(1, count + 1):
            problem.gradient(states[k % 2])
        made.append((perf_counter() - began, count))

    def timed(state, eta, first, last, buffers):
        """The steps in pieces with gradients between them; all but the steps is set aside."""
        began, stepped = perf_counter(), 0.0
        rows, due, records = buffers
        for begin in range(first, last, PIECES[size]):
            end = min(last, begin + PIECES[size])
            own = slice(*np.searchsorted(due, (begin, end)))
            piece = rows[begin - first : end - first], due[own], records[own]
            clock = perf_counter()
            assert advance(state, eta, begin, end, piece) == end
            inside.append((perf_counter() - clock, end - begin))
            stepped += inside[-1][0]
            gradients(state, eta, ceil((end - begin) / every))
        aside.append(perf_counter() - began - stepped)
        return last

    problem.advance = timed

    def whole():
        """Seconds a step of a run, of a gradient, and of the compiled steps."""
        for each in (inside, made, aside):
            each.clear()
        began = perf_counter()
        dynamics.descend(problem, ETA, steps)
        seconds = perf_counter() - began
        (gradient, count), (own, taken) = np.sum(made, axis=0), np.sum(inside, axis=0)
        return (seconds - sum(aside)) / steps, gradient / count, own / taken

    def scanned():
        return best(lambda: run(start)[0].block_until_ready(), 1) / part

    scans = [scanned()]  # one before each run and one after: other users of the machine come and go
    turns = []
    for _ in range(rounds):
        turns.append(whole())
        scans.append(scanned())
    ours, alone, own = np.array(turns).T
    theirs = (np.array(scans[:-1]) + np.array(scans[1:])) / 2
    gain, cost = np.median(theirs / ours), np.median(ours / alone)
    low, high = np.percentile(ours / alone, (25, 75))
    with capsys.disabled():
        print(f"\nwhole runs of descend, D={size} d={depth} N={samples}, {steps} steps")
        print(
            f"  attdyn {np.median(ours) * 1e3:.3f} ms/step, jax {np.median(theirs) * 1e3:.3f}, "
            f"gradient {np.median(alone) * 1e3:.3f}; jax over attdyn {gain:.2f} (1.3 asked), "
            f"attdyn over gradients {cost:.2f} (1.05 asked; quartiles of {rounds} runs {low:.2f} "
            f"and {high:.2f}), over its own steps {np.median(ours / own):.3f}"
        )
    assert gain >= 1.3
    assert cost <= 1.05
