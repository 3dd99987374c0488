"""Runs on draws: samples in one call, named starts, fresh samples, single precision."""

import numpy as np
import pytest

import dynamics
from dynamics import cli
from dynamics.validation import InvalidRequest
from theory.law import Law, ModelError, leading_axis

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
    def sample(rng, D):
        return {"x": rng.standard_normal(D)}

    def samples(rng, count, D):
        return {"x": rng.standard_normal((count, D))}

    made = {}
    for name, draw in (("sample", sample), ("samples", samples)):
        system = dynamics.Model(
            start=lambda D=3: {"w": np.full(D, 0.5)}, axes={"w": ("i",)},
            symmetry=lambda: [{"i": (1, 0, 2)}, {"i": (1, 2, 0)}],
            loss=lambda theta, sample, xp: xp.exp(theta["w"] @ sample["x"]), **{name: draw},
        )  # fmt: skip
        made[name] = system.FullEmpirical(system.Parameters(), samples=20, seed=4, test_samples=5)
    one, many = made.values()
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


FAULTY = {
    "samples": (
        ("x.prod(axis=1)}", "x.prod()}"),
        "samples, y gives the shape () for 40 samples; it can be (40,) (my.py, line 15)",
    ),
    "raises": (("x.prod(axis=1)}", "x.prod(axis=2)}"), "samples raises AxisError"),
    "start": (
        ('{"b": rng.normal(), "w"', '{"w"'),
        "starts, random gives w (3,); start gives w (3,), b () (my.py, line 28)",
    ),
    "declared": (
        ('{"random":', '{"declared":'),
        "starts: 'declared' is not a valid name of a start",
    ),
    "no function": (('"random": random', '"random": 3'), "starts: random is int, not a function"),
}


@pytest.mark.parametrize("case", FAULTY)
def test_faulty_samples_and_starts_are_one_line(refused, case):
    change, message = FAULTY[case]
    assert FILE.count(change[0]) == 1
    words = ("--full", "empirical", "--samples", "40", "--start", "random")
    refused(FILE.replace(*change), message, *words)


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
    assert start(start="ones").initial_state.tolist() == [1.0] * 4
    assert start(start="ones").settings["start"] == "ones"
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
