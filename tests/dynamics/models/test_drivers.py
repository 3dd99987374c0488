"""Every driver on own models: batches, empirical runs, flows, overlays, stability, groups."""

import itertools
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dynamics
from dynamics import plotting
from dynamics.analysis.phase_portrait import portrait
from dynamics.cli import main
from dynamics.loops import Updates
from dynamics.plotting.style import offset_in_label

MODELS = Path(__file__).parents[2] / "support/models"
TINY = (MODELS / "softmax_icl.py").read_text(encoding="utf-8")
TINY = TINY.replace("N=6", "N=3").replace("K=3", "K=2")
FOUND = """

names = {"own": ("Q", 0, 0)}
events = {"apart": "own >= 0.3", "late": "own >= 0.8 after apart", "never": "own >= 1e9"}


def observe(theta, sample, xp):
    return {"attention": xp.softmax(theta["Q"][sample["query"]])[sample["query"]]}
"""
WELLS = '''
"""Two wells and a saddle between them, in closed form."""

import numpy as np


def start(u_0=0.5, v_0=0.2):
    return {"u": np.array(u_0), "v": np.array(v_0)}


def risk(theta, xp, decay=0.2):
    u, v = theta["u"], theta["v"]
    return (u * v - 1) ** 2 / 2 + decay * (u**2 + v**2) / 2
'''
FACTORS = '''
"""Two factors with learning rates of their own."""

import numpy as np

groups = {"v": "value"}


def start(n=3, nu=0.1):
    return {"A": np.full((n, n), nu), "v": np.full(n, 2 * nu)}


def law(n, q=0.25):
    for k in range(n):
        for y, p in ((1.0, 1 - q), (-1.0, q)):
            yield p / n, {"x": np.eye(n)[k], "y": y}


def loss(theta, sample, xp):
    return xp.softplus(-sample["y"] * theta["v"] @ theta["A"] @ sample["x"])
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("models")
    (made / "tiny.py").write_text(TINY + FOUND, encoding="utf-8")
    (made / "factors.py").write_text(FACTORS, encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def tiny(folder):
    return dynamics.load_system(folder / "tiny.py")


@pytest.fixture(scope="module")
def wells(folder):
    (folder / "wells.py").write_text(WELLS, encoding="utf-8")
    system = dynamics.load_system(folder / "wells.py")
    return system.ReducedPopulation(system.Parameters())


@pytest.fixture(scope="module")
def located():
    """Two scalars of eight entries."""
    system = dynamics.load_system(MODELS / "single_location.py")
    parameters = system.Parameters(L=2)
    return system.ReducedPopulation(parameters), system.FullPopulation(parameters)


@pytest.mark.long
def test_one_batch_of_all_is_no_batch_and_batches_are_dealt_without_gaps(tiny):
    """Mean gradients of the batches of an epoch make the whole; a step takes its own batch."""
    parameters, how = tiny.Parameters(), {"samples": 12, "seed": 5, "omega": 0.0}
    whole = tiny.FullEmpirical(parameters, **how)
    once = tiny.FullEmpirical(parameters, batch=12, **how)
    parts = tiny.FullEmpirical(parameters, batch=4, **how)
    one = dynamics.descend(whole, eta=0.3, steps=30)
    np.testing.assert_array_equal(one.states, dynamics.descend(once, eta=0.3, steps=30).states)
    several = dynamics.descend(parts, eta=0.3, steps=30)
    assert np.abs(several.final_state - one.final_state).max() > 1e-3
    start = whole.initial_state
    slopes = []
    for step in range(3):
        state, records = start.copy(), np.empty((1, start.size))
        wide = np.empty((1, len(parts.order_names)))
        buffers, updates = (wide, np.array([step]), records), Updates(np.ones(start.size))
        assert parts.advance(state, updates, step, step + 1, buffers) == step + 1
        slopes.append(start - state)
    np.testing.assert_allclose(np.mean(slopes, axis=0), whole.gradient(start), atol=1e-15)
    assert np.ptp(slopes, axis=0).max() > 1e-3


def test_a_batch_that_does_not_divide_the_samples(tiny):
    how = {"samples": 10, "seed": 1, "batch": 4}
    run = dynamics.descend(tiny.FullEmpirical(tiny.Parameters(), **how), eta=0.3, steps=50)
    assert np.isfinite(run.states).all()
    assert run.settings["batch"] == 4
    again = dynamics.descend(tiny.FullEmpirical(tiny.Parameters(), **how), eta=0.3, steps=50)
    np.testing.assert_array_equal(run.states, again.states)


@pytest.mark.long
def test_many_samples_come_near_the_population(tiny):
    """Without noise of the start, as N^-1/2: 100 times the samples, a tenth of the distance."""
    exact = dynamics.descend(tiny.FullPopulation(tiny.Parameters()), eta=0.5, steps=60).final_state
    apart = {}
    for count in (100, 10_000):
        finals = [
            dynamics.descend(
                tiny.FullEmpirical(tiny.Parameters(), samples=count, seed=seed, omega=0.0),
                eta=0.5, steps=60,
            ).final_state
            for seed in range(6)
        ]  # fmt: skip
        apart[count] = np.sqrt(np.mean([(final - exact) ** 2 for final in finals]))
    assert 4 < apart[100] / apart[10_000] < 25


def test_empirical_on_the_command_line(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = [str(folder / "tiny.py"), "--full", "empirical", "--samples", "40", "--omega", "0.1"]
    words += ["--eta", "0.5", "--steps", "40", "--out", "x", "--force"]
    assert main(["compare", *words, "--seeds", "3", "--seed", "7"]) == 0
    assert capsys.readouterr().err == ""
    found = dynamics.load("x")
    assert [run.settings["seed"] for run in found.fulls] == [7, 8, 9]
    starts = [run.states[0] for run in found.fulls]
    assert len({tuple(start) for start in starts}) == 3
    assert 0.02 < np.std(starts) < 0.3
    assert main(["run", *words, "--batch", "8", "--seed", "8"]) == 0
    np.testing.assert_array_equal(dynamics.load("x").states[0], starts[1])


def test_flows_and_their_events_are_what_descent_comes_to(tiny):
    """Times of events by gradient descent approach those of the flow as eta."""
    problem = tiny.ReducedPopulation(tiny.Parameters())
    calm = dynamics.flow(problem, time=200.0)
    assert not calm.events["never"]
    late, apart = (calm.events[name].time for name in ("late", "apart"))
    assert 0 < apart < late < 200
    off = []
    for eta in (0.2, 0.1):
        run = dynamics.descend(problem, eta=eta, steps=int(200 / eta))
        assert not run.events["never"]
        off.append(max(abs(run.events[n].time - calm.events[n].time) for n in ("apart", "late")))
        assert abs(run["own"][-1] - calm["own"][-1]) < 0.05 * eta
    assert 0 < off[1] < 0.25
    assert off[0] < 0.5


def test_the_order_of_descent_in_its_learning_rate(tiny):
    problem = tiny.ReducedPopulation(tiny.Parameters())
    found = dynamics.overlay(problem, [0.4, 0.2, 0.1], time=20.0)
    assert found.orders
    assert all(abs(order - 1) < 0.1 for order in found.orders.values())


def test_a_flow_on_the_command_line(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = [str(folder / "tiny.py"), "--time", "20", "--out", "x", "--force"]
    assert main(["compare", *words]) == 0
    assert max(dynamics.load("x").deviation.values()) < 1e-6
    assert main(["run", *words, "--eta", "0.4,0.2"]) == 0
    assert len(dynamics.load("x").etas) == 2
    assert capsys.readouterr().err == ""
    assert main(["run", *words, "--batch", "4", "--full", "empirical"]) == 2


def test_the_stability_limit_is_two_over_the_largest_curvature(located):
    """Of the reduced scalars, by differences; the full Hessian bounds it."""
    for problem in located:
        state = problem.initial_state + 0.3
        by_hand = np.empty((state.size, state.size))
        for k, step in enumerate(1e-5 * np.eye(state.size)):
            by_hand[:, k] = (problem.gradient(state + step) - problem.gradient(state - step)) / 2e-5
        np.testing.assert_allclose(problem.jacobian(state), by_hand, atol=1e-8)
        direction = np.arange(1.0, state.size + 1)
        np.testing.assert_allclose(
            problem.hessian_product(state, direction), by_hand @ direction, atol=1e-7
        )
        largest = np.linalg.eigvals(by_hand).real.max()
        assert dynamics.stability_limit(problem, state) == pytest.approx(2 / largest, rel=1e-6)


def test_period_two_sets_in_where_it_is_predicted(wells):
    """At the bottom of a well, whose largest curvature is 1.6."""
    end = dynamics.flow(wells, time=200.0).final_state
    np.testing.assert_allclose(end, np.sqrt(0.8), rtol=1e-6)
    found = dynamics.onsets(wells, end)
    assert found.limit == pytest.approx(2 / 1.6, rel=1e-5)
    assert found.period_two == pytest.approx(found.limit, rel=0.01)
    for eta, kinds in ((0.6, {"converged", "reached horizon"}), (1.3, {"oscillating"})):
        run = dynamics.descend(wells, eta, 2000, initial=end + 1e-3)
        assert run.outcome.kind in kinds, (eta, run.outcome)


def test_the_phase_plane_of_two_scalars(wells):
    """Two sinks and the saddle between them, by hand."""
    found = portrait(wells, 50.0, box=((-1.5, 1.5), (-1.5, 1.5)), starts=2, grid=12)
    kinds = {tuple(np.round(point.position, 6) + 0.0): point.kind for point in found.fixed_points}
    bottom = round(np.sqrt(0.8), 6)
    assert kinds == {
        (bottom, bottom): "sink", (-bottom, -bottom): "sink", (0.0, 0.0): "saddle",
    }  # fmt: skip
    assert found.plane == ("u", "v")
    plane = plotting.portrait(found)
    assert (plane.get_xlabel(), plane.get_ylabel()) == ("$u$", "$v$")
    plt.close("all")


def test_a_curve_of_fixed_points_is_named_in_the_figure_and_its_picture(tmp_path, capsys):
    """All (u, w) with u w = 1 are minima, and none is isolated."""
    mine = tmp_path / "mine.py"
    mine.write_text(
        "import numpy as np\n\n\n"
        "def start():\n    return {'u': np.array([0.2]), 'w': np.array([0.5])}\n\n\n"
        "def risk(theta, xp):\n    return (theta['u'][0] * theta['w'][0] - 1) ** 2 / 2\n"
    )
    words = ["figure", str(mine), "plane", "--out", str(tmp_path / "plane.png")]
    assert main(words) == 0
    told = capsys.readouterr()
    assert "0 isolated fixed points, and a curve or a region of them" in told.out


def test_where_nothing_moves_there_are_crosses_and_no_warning():
    """Both rates are 0 where x <= 0."""

    def start():
        return {"x": np.array([1.0]), "y": np.array([0.5])}

    def risk(theta, xp):
        return xp.relu(theta["x"][0]) ** 2 * (1 + theta["y"][0] ** 2)

    system = dynamics.Model(start=start, risk=risk)
    problem = system.ReducedPopulation(system.Parameters())
    found = portrait(problem, 5.0, box=((-1.0, 1.0), (-1.0, 1.0)), starts=0, grid=8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        axes = plotting.portrait(found)
    (crosses,) = [line for line in axes.lines if line.get_marker() == "x"]
    assert (crosses.get_xdata() < 0).all()
    assert len(crosses.get_xdata()) == 32
    assert {point.kind for point in found.fixed_points} == {"continuum"}
    plt.close("all")


def test_an_event_of_two_groups_weighs_their_rates():
    """The distance of two that go to 1 stops growing where .1 (.9)^k = .02 (.98)^k, k = 18.9."""

    def risk(theta, xp):
        return ((theta["v"] - 1) ** 2 + (theta["w"] - 1) ** 2) / 2

    system = dynamics.load_system(
        dynamics.Model(
            start=lambda: {"v": 0.0, "w": 0.0},
            risk=risk,
            groups={"v": "fast"},
            observables=lambda theta, xp: {"s": theta["v"] - theta["w"]},
            events={"top": "s stops growing"},
        )
    )
    problem = system.ReducedPopulation(system.Parameters())
    for made in (problem, system.FullPopulation(system.Parameters())):
        run = dynamics.descend(made, (0.1, 0.02), 100)
        assert run.events["top"].step == 19


def test_groups_have_rates_of_their_own(folder, tmp_path, monkeypatch):
    """Reduced is full with two rates; one of them 0-like moves little; rates are by group."""
    monkeypatch.chdir(tmp_path)
    system = dynamics.load_system(folder / "factors.py")
    reduced = system.ReducedPopulation(system.Parameters())
    full = system.FullPopulation(system.Parameters())
    assert reduced.layout.group_names == full.layout.group_names == ("entries", "value")
    result = dynamics.compare(reduced, full, eta=(0.2, 0.05), steps=300)
    assert max(result.deviation.values()) < 1e-13
    same = dynamics.compare(reduced, full, eta=0.2, steps=300)
    assert abs(same.reduced.final_state - result.reduced.final_state).max() > 0.01
    state, slope = full.initial_state, full.gradient(full.initial_state)
    by_hand = state - np.repeat([0.2, 0.05], [9, 3]) * slope
    one = dynamics.descend(full, eta=(0.2, 0.05), steps=1)
    np.testing.assert_allclose(one.final_state, by_hand, rtol=1e-15)
    words = ["compare", str(folder / "factors.py"), "--eta", "0.2,0.05", "--steps", "300"]
    assert main([*words, "--out", "x"]) == 0
    np.testing.assert_array_equal(
        dynamics.load("x").reduced.final_state, result.reduced.final_state
    )


VALUES = st.sampled_from(
    ["0", "1", "2", "3", "-1", "0.3", "1.5", "1e-3", "1e308", "nan", "x", "1/3"]
)


@settings(
    max_examples=25, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(
    chosen=st.dictionaries(st.sampled_from(["K", "N", "p1", "p2", "eta", "steps"]), VALUES),
    command=st.sampled_from(["run", "compare", "derive"]),
)
def test_no_constants_on_the_command_line_give_a_traceback(
    folder, tmp_path, monkeypatch, capsys, chosen, command
):
    monkeypatch.chdir(tmp_path)
    steps = {"steps": chosen.get("steps", "5")}
    out = [] if command == "derive" else ["--out", "x", "--force"]
    words = [word for name, value in (chosen | steps).items() for word in (f"--{name}", value)]
    code = main([command, str(folder / "tiny.py"), *words, *out])
    captured = capsys.readouterr()
    assert code in (0, 1, 2)
    if code == 2:
        assert (captured.out, captured.err.count("\n")) == ("", 1), captured
    assert "Warning" not in captured.err


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([0.5, 0.5 + 1e-8], r"g  ($\times 10^{-8}$+5$\times 10^{-1}$)"),
        ([0.0, 2e-7], r"g  ($\times 10^{-7}$)"),
        ([0.0, 3.0], "g"),
    ],
)
def test_a_curve_that_hardly_moves_is_drawn(values, shown):
    """The axis of an almost constant curve has a power of ten and a value."""
    _, axes = plt.subplots()
    axes.plot([0.0, 1.0], values)
    axes.set_ylabel("g")
    offset_in_label(axes)
    assert axes.get_ylabel() == shown
    plt.close("all")


def test_labels_of_near_events_stand_above_one_another():
    def start(w0=0.1):
        return {"w": np.array(w0)}

    def risk(theta, xp):
        return (theta["w"] - 1) ** 2 / 2

    events = {"T_a": "w >= 1/2", "T_b": "w >= 51/100", "T_c": "w >= 52/100", "T_d": "w >= 99/100"}
    system = dynamics.Model(start=start, risk=risk, events=events)
    run = dynamics.descend(system.ReducedPopulation(system.Parameters()), eta=0.01, steps=1000)
    axes = plotting.training(run)
    axes[0].figure.canvas.draw()
    words = [f"$T_{{{letter}}}$" for letter in "abcd"]
    boxes = [text.get_window_extent() for text in axes[0].texts if text.get_text() in words]
    assert len(boxes) == 4
    for one, two in itertools.combinations(boxes, 2):
        assert not one.overlaps(two)


def test_a_law_that_takes_long_to_enumerate_shows_how_far_it_is(monkeypatch, capsys):
    """A line every half minute; here at every update."""
    monkeypatch.setattr("dynamics.training.progress.EVERY", 0.0)
    monkeypatch.setattr("dynamics.models.engine.realization.SHOWN_EVERY", 100)

    def law(k=8):
        for x in range(2**k):
            yield 1 / 2**k, {"x": float(x % 2)}

    def loss(theta, sample, xp):
        return (theta["w"] - sample["x"]) ** 2

    system = dynamics.load_system(dynamics.Model(start=lambda: {"w": 0.0}, law=law, loss=loss))
    system.ReducedPopulation(system.Parameters())
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("law: ")]
    assert [line.split()[1] for line in lines][-2:] == ["100", "200"]


def test_a_scalar_may_be_called_like_its_array():
    def law(D):
        for x in itertools.product((-1.0, 1.0), repeat=D):
            yield 0.5**D, {"x": np.array(x), "y": sum(x)}

    def loss(theta, sample, xp):
        return (xp.sum(theta["w"] * sample["x"]) - sample["y"]) ** 2 / 2

    model = dynamics.Model(
        start=lambda D=3: {"w": np.zeros(D)}, law=law, loss=loss,
        names={"w": ("w", 0)}, events={"half": "w >= 0.5"},
    )  # fmt: skip
    system = dynamics.load_system(model)
    reduced = system.ReducedPopulation(system.Parameters())
    full = system.FullEmpirical(system.Parameters(), samples=200)
    found = dynamics.compare(reduced, full, eta=0.1, steps=20)
    assert found.full["w"].shape == (len(found.full.steps), 3)
    mean = found.full["w"].mean(axis=1)
    np.testing.assert_allclose(found.full.series("w"), mean, rtol=1e-14)
    distance = np.abs(mean[1:] / found.reduced["w"][1:] - 1)
    np.testing.assert_allclose(found.relative_deviations["w"][0, 1:], distance, rtol=1e-12)
    axes = plotting.comparison(found)
    drawn = {len(line.get_ydata()) for line in axes[0].lines if len(line.get_ydata()) > 2}
    assert drawn == {len(found.reduced.steps) - 1}
    assert found.reduced.layout.size == 1
    assert "1 scalar" in axes[0].figure.legends[0].get_texts()[0].get_text()


@pytest.mark.parametrize("count", [10, 49])
def test_what_is_one_of_every_sample_is_one_of_them_all(count):
    """The weights of a law sum up to 1 but for rounding: ten of .1 to less."""

    def law(n):
        for k in range(n):
            yield 1 / n, {"x": 1.0 + k / n}

    def loss(theta, sample, xp):
        return (theta["w"] - sample["x"]) ** 2

    model = dynamics.Model(
        start=lambda n=count: {"w": 0.0}, law=law, loss=loss,
        observe=lambda theta, sample, xp: {"acc": xp.where(theta["w"] > 0.5, 1.0, 0.0)},
        events={"all": "acc >= 1"},
    )  # fmt: skip
    system = dynamics.load_system(model)
    for problem in (system.ReducedPopulation, system.FullPopulation):
        run = dynamics.descend(problem(system.Parameters()), 0.1, 20)
        assert run.events["all"].step == int(np.argmax(run["w"] > 0.5))
        assert run["acc"][-1] == 1.0
