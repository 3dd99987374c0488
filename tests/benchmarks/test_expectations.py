"""What the ways to take the expectation cost, and which of them ``auto`` takes: ``make bench``."""

import time
from pathlib import Path

import matplotlib as mpl
import numba
import numpy as np
import pytest

import dynamics
from dynamics import plotting
from dynamics.plotting.style import BLUE, GREEN, RC, VERMILION, new_figure
from dynamics.validation import InvalidRequest

pytestmark = pytest.mark.benchmark_run
SIZES = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
TOLERANCES = (1e-3, 1e-8)
SURE = 5.0
"""Standard errors that are laid beside a bound, which holds always."""
numba.get_num_threads()  # before any test keeps to one core
RESULTS = Path("results/benchmarks")


LOOKS = {
    "exact": (VERMILION, "s"),
    "spectral": (BLUE, "o"),
    "sampled": (GREEN, "v"),
}


def cost(panels):
    """One panel per accuracy; ``auto`` is a broad grey line below the others.

    ``panels``: title -> expectation -> size -> seconds of one gradient.
    """
    with mpl.rc_context(RC):
        figure, grid = new_figure(3.4 * len(panels), 3.3, ncols=len(panels), sharey=True)
        axes = np.atleast_1d(grid)
        for panel, (title, rows) in zip(axes, panels.items(), strict=True):
            for name, points in rows.items():
                colour, marker = LOOKS.get(name, ("#BBBBBB", ""))
                look = {"color": colour, "marker": marker, "ms": 5, "mfc": "white", "label": name}
                if name == "auto":
                    look |= {"lw": 6, "solid_capstyle": "round", "zorder": 1}
                panel.plot(list(points), [1e3 * value for value in points.values()], **look)
            panel.set_xscale("log", base=2)
            panel.set_yscale("log")
            panel.set_title(title, fontsize=9)
            panel.set_xlabel("$D$")
            panel.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes[0].set_ylabel("one gradient, ms")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(labels))
    return axes


@pytest.fixture(scope="module")
def system():
    return dynamics.load_system("positional_attention")


def seconds(problem, state):
    """Best time of one gradient, as a user calls it."""
    if not np.isfinite(problem.gradient(state)).all():
        return None
    times, began = [], time.perf_counter()
    while len(times) < 5 or (time.perf_counter() - began < 0.2 and len(times) < 2000):
        start = time.perf_counter()
        problem.gradient(state)
        times.append(time.perf_counter() - start)
    return min(times)


def sampled(system, parameters, state, tolerance):
    """Seconds of as many draws as put five standard errors below the tolerance.

    Measured up to 20,000 draws; beyond, in proportion to the number of draws.
    """
    pilot = system.ReducedPopulation(parameters, "sampled", samples=2000)
    found = pilot.error_estimate(state)
    ratio = (found["standard_error"][:3] / found["gross"][:3]).max()
    wanted = 2000 * (SURE * ratio / tolerance) ** 2
    drawn = int(min(max(wanted, 2), 20_000))
    problem = system.ReducedPopulation(parameters, "sampled", samples=drawn)
    return seconds(problem, state) * max(1.0, wanted / drawn)


def measured(system, parameters, state, tolerance):
    """Expectation -> seconds of one gradient at this accuracy."""
    found = {}
    for name in ("exact", "spectral", "auto"):
        try:
            problem = system.ReducedPopulation(parameters, name, tolerance=tolerance)
        except InvalidRequest:
            continue
        found[name] = seconds(problem, state)
        if name == "auto":
            found["took"] = problem.settings["expectation"]
    found["sampled"] = sampled(system, parameters, state, tolerance)
    return {name: value for name, value in found.items() if value is not None}


@pytest.mark.parametrize("q", [2, 16])
def test_cost_against_size(system, one_core, q, capsys):
    """D from 16 to 4096, C=4, q = 2/D and 16/D (at most 1/2), half way through Event II."""
    panels = {f"error {t:g} of gross, $q = {q}/D$": {} for t in TOLERANCES}
    worst = 0.0
    for D in SIZES:
        parameters = system.Parameters(D=D, C=4, q=min(0.5, q / D), nu=1e-4)
        state = np.array([0.04, 1.0, -0.3 / D])
        for rows, tolerance in zip(panels.values(), TOLERANCES, strict=True):
            found = measured(system, parameters, state, tolerance)
            took = found.pop("took")
            # A sample has no bound.
            best = min(found[name] for name in ("exact", "spectral") if name in found)
            worst = max(worst, found["auto"] / best)
            for name in ("auto", "exact", "spectral", "sampled"):
                if name in found:
                    rows.setdefault(name, {})[D] = found[name]
            with capsys.disabled():
                row = "  ".join(f"{name} {1e3 * value:9.3g}" for name, value in found.items())
                print(f"\nD={D:<5} q={q}/D tol={tolerance:g} ms: {row}  ({took})", end="")
    RESULTS.mkdir(parents=True, exist_ok=True)
    picture = plotting.write(cost(panels), RESULTS / f"cost_q{q}.png")
    with capsys.disabled():
        print(f"\n  auto over the best: at most {worst:.2f}; picture {picture}")
    assert worst <= 1.5


MOMENTS = {"early": 1e2, "middle": 1e6, "late": 1e8}


@pytest.mark.parametrize(
    ("settings", "limit"),
    [({"D": 196, "C": 4, "q": 16 / 196}, 4e-3), ({"D": 4096, "C": 8, "q": 0.008}, 10e-3)],
)
def test_spectral_gradient_at_1e_8(system, one_core, settings, limit, capsys):
    """One gradient, one core: at most 4 ms at D=196, 10 ms at D=4096."""
    parameters = system.Parameters(**settings, nu=1e-4)
    problem = system.ReducedPopulation(parameters, "spectral", 1e-8)
    states = dynamics.flow(problem, 1e8, record=list(MOMENTS.values())).states
    for name, state in zip(MOMENTS, states, strict=True):
        taken = seconds(problem, state)
        with capsys.disabled():
            print(f"\nD={settings['D']} {name:<7} {state}: {1e3 * taken:.2f} ms", end="")
        assert taken <= limit


def test_whole_flows(system, one_core, capsys):
    """To time 1e6 at D=196 in 3 s, to 1e8 at D=4096 in 5 s, one core, all events; compiled.

    T0 and T1 of the paper at D=196 by DOP853 at 1e-12; those at D=4096 are held against a flow at
    a thousandth of the tolerance.
    """
    known = {"T0": (0.0335462, 1e-7), "T1_paper": (14203.5, 0.1)}
    for settings, horizon, rtol, limit in [
        ({"D": 196, "C": 4, "q": 16 / 196}, 1e6, 1e-10, 3.0),
        ({"D": 4096, "C": 8, "q": 0.008}, 1e8, 1e-8, 5.0),
    ]:
        problem = system.ReducedPopulation(system.Parameters(**settings, nu=1e-4))
        dynamics.flow(problem, horizon)
        began = time.perf_counter()
        run = dynamics.flow(problem, horizon, rtol)
        taken = time.perf_counter() - began
        with capsys.disabled():
            at = {name: event.time if event else None for name, event in run.events.items()}
            print(
                f"\nD={settings['D']} to {horizon:g}: {taken:.2f} s (limit {limit} s) {at}", end=""
            )
        assert taken <= limit
        if settings["D"] == 4096:
            finer = dynamics.flow(problem, horizon, 1e-3 * rtol).events
            known = {n: (finer[n].time, 1e-6 * finer[n].time) for n in ("T0", "T1_paper")}
        for name, (time_known, within) in known.items():
            assert abs(at[name] - time_known) <= within


def key(counts):
    """The random sets of a configuration in an order of their own."""
    return tuple(sorted(map(tuple, counts[1:].tolist())))


def test_what_strata_and_antithetic_draws_bring(system, capsys):
    """Variance of a gradient relative to independent draws of the same number."""
    parameters = system.Parameters()
    problem = system.ReducedPopulation(parameters, "exact")
    chosen = problem.expectation.configurations
    weight = chosen.probability
    place = {key(counts): k for k, counts in enumerate(chosen.counts)}
    other = np.array([place[key(counts[:, ::-1])] for counts in chosen.counts])
    for moment, state in {
        "plateau": (0.2, 1e-4, -1e-5), "Event II": (0.15, 0.6, -0.2), "late": (0.083, 4.06, -1.7),
    }.items():  # fmt: skip
        terms, _, _ = problem.expectation.contributions(np.array(state))
        variance = (terms**2 @ weight - (terms @ weight) ** 2)[:3]
        pairs = ((terms * terms[:, other]) @ weight - (terms @ weight) ** 2)[:3]
        values = [
            system.ReducedPopulation(parameters, "sampled", samples=2000, seed=s).gradient(state)
            for s in range(200)
        ]
        strata = np.var(values, axis=0) / (variance / 2000)
        with capsys.disabled():
            shown = np.round(strata, 2), np.round(1 + pairs / variance, 2)
            print(f"\n{moment:<10} strata {shown[0]}  antithetic {shown[1]}", end="")
        assert (strata < 1.1).all()


def test_exact_configurations_per_second(system, one_core, capsys):
    """Exact reduced GD at (32, 8, 0.25): at least 3e7 configurations a second on one core."""
    problem = system.ReducedPopulation(system.Parameters(D=32, C=8, q=0.25), "exact")
    count, steps = problem.expectation.configurations.probability.size, 2000
    dynamics.descend(problem, 0.01, 10)
    began = time.perf_counter()
    dynamics.descend(problem, 1e-3, steps, record=steps)
    rate = count * steps / (time.perf_counter() - began)
    with capsys.disabled():
        print(f"\n{rate:.2e} configurations a second", end="")
    assert rate >= 3e7
