"""Runs on draws: samples in one call, named starts, batches, fresh samples, single precision."""

from pathlib import Path

import numpy as np
import pytest

import dynamics
from dynamics import cli
from dynamics.loops import Updates
from dynamics.validation import InvalidRequest
from theory.law import Law, ModelError, leading_axis

SOFTMAX = Path(__file__).parents[2] / "support/models/softmax_icl.py"
FILE = """
import itertools
import numpy as np


def start(D=3):
    return {"w": np.zeros(D), "b": np.zeros(())}


def law(D):
    for x in itertools.product((-1.0, 1.0), repeat=D):
        yield 0.5**D, {"x": np.array(x), "y": np.prod(x)}


def samples(rng, count, D):
    x = rng.choice([-1.0, 1.0], (count, D))
    return {"x": x, "y": x.prod(axis=1)}


def loss(theta, sample, xp):
    return (theta["w"] @ sample["x"] + theta["b"] - sample["y"]) ** 2 / 2


def observe(theta, sample, xp):
    return {"off": xp.abs(theta["w"] @ sample["x"] + theta["b"] - sample["y"])}


def random(rng, D, spread=0.3):
    return {"b": rng.normal(), "w": spread * rng.standard_normal(D)}


starts = {"random": random, "ones": lambda rng, D: {"w": np.ones(D), "b": np.ones(())}}
"""


@pytest.fixture(scope="module")
def system(tmp_path_factory):
    path = tmp_path_factory.mktemp("drawn") / "my.py"
    path.write_text(FILE, encoding="utf-8")
    return dynamics.load_system(path)


def samples_of(problem):
    return {name: np.asarray(part) for name, part in problem.payload[0].samples.items()}


def test_samples_in_one_call_are_those_drawn_one_by_one():
    def drawn(**how):
        model = dynamics.Model(
            start=lambda D=3: {"w": np.full(D, 0.5)}, axes={"w": ("i",)},
            symmetry=lambda: [{"i": (1, 0, 2)}, {"i": (1, 2, 0)}],
            loss=lambda theta, sample, xp: xp.exp(theta["w"] @ sample["x"]), **how,
        )  # fmt: skip
        return model.FullEmpirical(model.Parameters(), samples=20, seed=4, test_samples=5)

    one = drawn(sample=lambda rng, D: {"x": rng.standard_normal(D)})
    many = drawn(samples=lambda rng, count, D: {"x": rng.standard_normal((count, D))})
    np.testing.assert_array_equal(samples_of(one)["x"], samples_of(many)["x"])
    np.testing.assert_array_equal(one.gradient(one.initial_state), many.gradient(one.initial_state))
    at = one.observables(one.initial_state)
    assert at == many.observables(one.initial_state)
    assert at["test_risk"] != at["risk"]


LIKE = Law(np.full(2, 0.5), {"x": np.zeros((2, 3)), "k": np.zeros(2, int), "z": (np.zeros(2),)})
RIGHT = {"x": np.zeros((5, 3), np.float32), "k": np.zeros(5, int), "z": [np.zeros(5)]}
WRONG = {
    "kind": (np.zeros(5), "samples gives ndarray; a sample has x, k, z"),
    "part": ({**RIGHT, "z": np.zeros(5)}, "samples, z gives ndarray; a sample has part 0"),
    "axis": ({**RIGHT, "x": np.zeros((3, 5))}, r"samples, x gives the shape \(3, 5\) for 5 sampl"),
    "index": ({**RIGHT, "k": np.zeros(5)}, "samples, k gives float64; a sample has int64"),
    "words": ({**RIGHT, "k": np.array(["a"] * 5)}, "samples, k gives <U1; a sample has int64"),
    "nan": ({**RIGHT, "x": np.full((5, 3), np.nan)}, "samples, x gives a number that is not fin"),
}


@pytest.mark.parametrize("case", WRONG)
def test_samples_unlike_those_of_the_law_are_refused(case):
    drawn, message = WRONG[case]
    with pytest.raises(ModelError, match=message):
        leading_axis(drawn, 5, LIKE.samples)


FAULTY = [
    ("x.prod(axis=1)}", "x.prod()}",
     "samples, y gives the shape () for 40 samples; it can be (40,) (my.py, line 15)"),
    ("x.prod(axis=1)}", "x.prod(axis=2)}", "samples raises AxisError"),
    ('{"b": rng.normal(), "w"', '{"w"',
     "starts, random gives w (3,); start gives w (3,), b () (my.py, line 28)"),
    ('{"random":', '{"declared":', "starts: 'declared' is not a valid name of a start"),
    ('"random": random', '"random": 3', "starts: random is int, not a function"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message"), FAULTY)
def test_faulty_samples_and_starts_are_one_line(refused, old, new, message):
    assert FILE.count(old) == 1
    words = ("--full", "empirical", "--samples", "40", "--start", "random")
    refused(FILE.replace(old, new), message, *words)


def test_a_start_is_chosen_by_its_name(system):
    def start(**options):
        return system.FullEmpirical(system.Parameters(spread=0.5), seed=3, **options)

    rng = np.random.default_rng([3, 1])
    b, w = rng.normal(), 0.5 * rng.standard_normal(3)
    np.testing.assert_array_equal(start(start="random").initial_state, [*w, b])
    noisy = start(start="random", omega=0.1).initial_state - [*w, b]
    np.testing.assert_allclose(noisy, 0.1 * rng.standard_normal(4), rtol=1e-12)
    noise = np.random.default_rng([3, 1]).standard_normal(4)
    for declared in (start(), start(start="declared")):
        np.testing.assert_array_equal(declared.initial_state, 1e-3 * noise)
        assert "start" not in declared.settings
    with pytest.raises(InvalidRequest, match=r"start='onse' is unknown.* nearest: ones"):
        start(start="onse")


def test_starts_are_flags_of_the_command_line(here):
    (here / "my.py").write_text(FILE, encoding="utf-8")
    words = ["--full", "empirical", "--start", "ones", "--test_samples", "30", "--steps", "5"]
    assert cli.main(["run", "my.py", *words, "--out", "x"]) == 0
    run = dynamics.load(here / "x")
    assert {"start": "ones", "test_samples": 30}.items() <= run.settings.items()
    assert run.states[0].tolist() == [1.0] * 4
    assert {"test_risk", "test_off"} <= set(run.observables)
    assert cli.main(["run", "my.py", "--start", "ones", "--steps", "5"]) == 2


def test_fresh_samples_are_those_of_another_stream(system):
    made = system.FullEmpirical(system.Parameters(), samples=30, seed=2, test_samples=700)
    x = np.random.default_rng([2, 2]).choice([-1.0, 1.0], (700, 3))
    state = np.array([0.3, -0.2, 0.7, 0.1])
    off = [abs(state[:3] @ each + state[3] - each.prod()) for each in x]
    found = made.observables(state)
    assert found["test_risk"] == pytest.approx(np.mean(np.square(off)) / 2, rel=1e-12)
    assert found["test_off"] == pytest.approx(np.mean(off), rel=1e-12)


def test_single_precision_is_near_double_precision(system):
    how = {"samples": 200, "seed": 1, "start": "random", "batch": 64, "test_samples": 50}
    runs = []
    for dtype in ("float64", "float32"):
        made = system.FullEmpirical(system.Parameters(), dtype=dtype, **how)
        assert {part.dtype for part in samples_of(made).values()} == {np.dtype(dtype)}
        runs.append(dynamics.descend(made, eta=0.1, steps=60))
    double, single = runs
    assert single.final_state.dtype == np.float64
    assert 0 < np.abs(single.states - double.states).max() < 1e-4
    for name in ("risk", "off", "test_risk", "test_off"):
        np.testing.assert_allclose(single[name], double[name], atol=1e-4)


def test_one_batch_of_all_is_no_batch_and_batches_are_dealt_without_gaps():
    system = dynamics.load_system(SOFTMAX)
    parameters = system.Parameters(K=2, N=3)
    how, batches = {"samples": 12, "seed": 5, "omega": 0.0}, ({}, {"batch": 12}, {"batch": 4})
    whole, once, parts = (system.FullEmpirical(parameters, **how, **batch) for batch in batches)
    one, same = (dynamics.descend(problem, eta=0.3, steps=30) for problem in (whole, once))
    np.testing.assert_array_equal(one.states, same.states)
    start, slopes = whole.initial_state, []
    for step in range(3):
        state, wide = start.copy(), np.empty((1, len(parts.order_names)))
        buffers = wide, np.array([step]), np.empty((1, start.size))
        assert parts.advance(state, Updates(np.ones(start.size)), step, step + 1, buffers)
        slopes.append(start - state)
    np.testing.assert_allclose(np.mean(slopes, axis=0), whole.gradient(start), atol=1e-15)
    assert np.ptp(slopes, axis=0).max() > 1e-3


def test_empirical_on_the_command_line(here, capsys):
    words = [str(SOFTMAX), "--K", "2", "--N", "3", "--full", "empirical"]
    words += ["--samples", "40", "--omega", "0.1", "--eta", "0.5", "--steps", "40", "--out", "x"]
    assert cli.main(["compare", *words, "--seeds", "3", "--seed", "7"]) == 0
    assert capsys.readouterr().err == ""
    found = dynamics.load("x")
    assert [run.settings["seed"] for run in found.fulls] == [7, 8, 9]
    starts = [run.states[0] for run in found.fulls]
    assert len({tuple(start) for start in starts}) == 3
    assert 0.02 < np.std(starts) < 0.3
    assert cli.main(["run", *words, "--batch", "8", "--seed", "8", "--force"]) == 0
    np.testing.assert_array_equal(dynamics.load("x").states[0], starts[1])
