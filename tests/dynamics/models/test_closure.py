"""What models close on: the measured table, and counter-examples that broke simpler rules."""

import itertools
from pathlib import Path

import numpy as np
import pytest

import dynamics
from dynamics.analysis.comparison import explanation
from dynamics.models.engine import problem
from dynamics.validation import InvalidRequest
from theory.program import NoProgram

MODELS = Path(__file__).resolve().parents[2] / "support" / "models"


def system(name):
    file = MODELS / f"{name}.py"
    return dynamics.load_system(file if file.exists() else name)


def own(start, risk=None, **others):
    how = {"eta": 0.02, "steps": 3000} | others
    return dynamics.load_system(dynamics.Model(start=lambda: start, risk=risk, **how))


def compared(made, **how):
    """Reduced beside full training, which nothing tells apart."""
    parameters, model = made.Parameters(), made.model
    reduced, full = made.ReducedPopulation(parameters), made.FullPopulation(parameters)
    result = dynamics.compare(reduced, full, **how or {"eta": model.eta, "steps": model.steps})
    assert result.largest_deviation < (1e-8 if how else 1e-12)
    assert explanation(result, reduced, full) == ""
    return result


TABLE = [
    ("positional", {}, (82, 3, 3), (1, 18, 54), (4374, 54)),
    ("softmax_icl", {}, (9, 2, 1), (3, 6), None),
    ("softmax_icl", {"p1": 0.8, "N": 12}, (9, 5, 3), (1, 2, 2, 2, 2), None),
    ("softmax_icl", {"p1": 0.5, "p2": 0.3}, (9, 9, 6), (1,) * 9, None),
    ("single_location", {}, (8, 2, 2), (1, 1), (1536, 3)),
    ("deep_linear", {}, (32, 32, 3), (1,) * 32, None),
    ("deep_linear", {"aligned": False}, (32, 32, 32), (1,) * 32, None),
]


@pytest.mark.parametrize(("name", "constants", "numbers", "sizes", "samples"), TABLE)
def test_measured_classes(name, constants, numbers, sizes, samples):
    made = system(name)
    closure = made.closure(made.Parameters(**constants))
    assert (closure.entries, closure.scalars, closure.free) == numbers
    assert closure.sizes == sizes
    assert closure.residual < 1e-13
    assert samples in (None, (closure.samples, closure.sample_classes))


def test_ten_quadratic_laws_of_a_deep_network():
    deep = system("deep_linear")
    laws = deep.closure(deep.Parameters(aligned=False)).laws
    assert [(law.degree, law.exact) for law in laws] == [(2, True)] * 10


def woken(theta, xp):
    """Entry b0 looks frozen near the start, and moves later; b1 never does."""
    a, b = theta["a"], theta["b"]
    return xp.sum((a - 8) ** 2) / 2 + 0.05 * xp.relu(a[0] - 4) ** 2 * (b[0] - 1) ** 2


def bump(theta, xp):
    """A law that is kept until a is near 30."""
    a, b = theta["a"][0], theta["b"]
    passing = xp.maximum(0.0, 1 - xp.abs(a - 30.0) / 3.0)
    return -a + (b[0] + 2 * b[1] - 1) ** 2 / 2 + 0.1 * passing * b[0]


def window(theta, xp):
    a = theta["a"]
    mean = (a[0] + a[1]) / 2
    inside = xp.where((mean > 0.01) & (mean < 0.0105), a[0] - a[1], 0.0)
    return xp.sum(-(a**2) / 2 + a**4 / 4) + 1.5 * (a[0] * a[1]) ** 2 + 1e-11 * inside


def scales(theta, xp):
    """Arrays of scales 1e10 apart, which one tolerance for the whole model merged."""
    small = xp.sum((theta["a"] - xp.array([1.0, 1.0, 1.001])) ** 2) / 2
    return 1e-10 * small + xp.sum((theta["b"] - xp.array([1.0, 1.0, 2.0])) ** 2) / 2


DOUBLE = np.array([1.0, 2.0, 3.0])


def arrays(theta, xp):
    """Of double precision, which a risk of single precision cannot be traced with."""
    return xp.sum((theta["a"][0] * DOUBLE - 1) ** 2) + xp.sum((theta["b"] * DOUBLE - 1) ** 2)


FAR = {
    woken: ([0.0, 0.0], [0.0, 0.0], [0, 1, 2, -1]), bump: ([0.0], [0.0, 0.0], [0, 1, 2]),
    window: ([1e-3, 1e-3], [], [0, 1]), scales: ([0.0] * 3, [0.0] * 3, [0, 0, 1, 2, 2, 3]),
    arrays: ([0.1], [0.1] * 3, [0, 1, 2, 3]),
}  # fmt: skip


@pytest.mark.parametrize("risk", FAR)
def test_what_parts_entries_far_from_the_start_is_seen(risk):
    a, b, labels = FAR[risk]
    start = {name: np.array(part) for name, part in (("a", a), ("b", b)) if part}
    made = own(start, risk, **{"eta": 0.01, "steps": 1000} if risk is window else {})
    closure = made.closure()
    assert closure.classes.labels.tolist() == labels
    assert (closure.laws == ()) is (risk is not scales)
    compared(made)


def test_an_entry_that_waits_behind_a_kink_moves_under_a_law_of_draws():
    def loss(theta, sample, xp):
        a, b = theta["a"], theta["b"]
        kink = xp.relu(a - 4.0) ** 2 * (b - 1) ** 2
        return xp.sum((a - sample["y"]) ** 2) / 2 + 0.05 * xp.sum(kink)

    made = own(
        {"a": np.zeros(2), "b": np.zeros(2)}, loss=loss,
        sample=lambda generator: {"y": 8.0 + 0.1 * generator.standard_normal(2)},
        axes={"a": ("k",), "b": ("k",)}, symmetry=lambda: [{"k": np.array([1, 0])}],
    )  # fmt: skip
    run = dynamics.descend(made.ReducedPopulation(made.Parameters()), eta=0.02, steps=1000)
    assert run.layout.names == ("a_0", "b_0")
    assert run.final_state[1] == pytest.approx(1.0, abs=1e-3)


def test_samples_that_part_late_are_apart_from_the_start():
    """They are alike until w passes 5, at time 680 of a flow."""
    samples = [(0.25, {"c": 5.0}), (0.25, {"c": 9.0}), (0.5, {"c": 100.0})]

    def loss(theta, sample, xp):
        w = xp.sum(theta["w"])
        return (w - 10) ** 2 / 800 + xp.relu(w - sample["c"]) ** 2 / 100

    made = own({"w": np.zeros(2)}, law=lambda: samples, loss=loss)
    assert made.closure().sample_classes == 3
    compared(made, time=2000)


def test_a_law_moved_by_1e_6_splits_the_classes_and_the_report_names_them():
    """Positional attention with 1e-6 of one probability given to another sample: 3 -> 10."""
    file = system("positional").model
    plain = list(file.law(D=9, C=3))

    def law(moved=1e-6):
        for k, (probability, sample) in enumerate(plain):
            yield probability + moved * ((k == 0) - (k == 1)), sample

    loss = lambda theta, sample, xp: file.loss(theta, sample, xp, 9)  # noqa: E731
    made = own(file.start(9, 3), law=law, loss=loss)
    assert made.closure(made.Parameters(moved=0.0)).scalars == 3
    split = made.closure()
    assert split.scalars == 10
    assert any("A[" in remark and "separate" in remark for remark in split.remarks)


def test_a_law_that_fills_one_array_again_has_every_sample():
    def law():
        x = np.empty(2)
        for one, two in itertools.product((-1.0, 1.0), repeat=2):
            x[:] = one, two
            yield 0.25, {"x": x, "y": one}

    made = own(
        {"w": np.full(2, 0.5)}, law=law,
        loss=lambda theta, sample, xp: (theta["w"] @ sample["x"] - sample["y"]) ** 2 / 2,
    )  # fmt: skip
    reduced = made.ReducedPopulation(made.Parameters())
    np.testing.assert_allclose(reduced.gradient([0.5, 0.5]), [-0.5, 0.5], rtol=1e-14)


def test_a_reduced_gradient_is_the_class_mean_of_the_full_one():
    for name in ("positional", "softmax_icl", "single_location"):
        made = system(name)
        law = made.Parameters()
        reduced, full = made.ReducedPopulation(law), made.FullPopulation(law)
        scalars = np.random.default_rng(0).standard_normal(reduced.layout.size)
        entries = reduced.lift(scalars)
        expected = reduced.closure.classes.project(full.gradient(entries))
        np.testing.assert_allclose(reduced.gradient(scalars), expected, rtol=1e-12, atol=1e-14)
        assert full.risk(entries) == pytest.approx(reduced.risk(scalars), rel=1e-13)


def test_a_linear_space_runs_as_the_classes_do():
    made = system("deep_linear")
    result = compared(made, eta=0.02, steps=300)
    assert result.reduced.layout.names == ("z_1", "z_2", "z_3")
    assert result.full["outside"].max() < 1e-11
    final = made.ReducedPopulation(made.Parameters()).lift(result.reduced.final_state)
    np.testing.assert_allclose(final, result.full.final_state, atol=1e-11)


def test_three_vectors_stay_in_planes():
    D = 5
    rows = np.random.default_rng(1).standard_normal((6, D))

    def risk(theta, xp):
        true = xp.einsum("i,j,k", *rows[:3])
        return xp.mean((true - xp.einsum("i,j,k", theta["a"], theta["b"], theta["c"])) ** 2) / 2

    closure = own(dict(zip("abc", rows[3:], strict=True)), risk).closure()
    assert (closure.scalars, closure.free) == (3 * D, 6)
    assert closure.space.proved


def test_noise_that_only_observe_sees_parts_samples():
    each = itertools.product((-1.0, 1.0), range(200))
    samples = [(1 / 400, {"y": y, "xi": (s + 0.5) / 50}) for y, s in each]
    made = own(
        {"w": np.zeros(1)}, law=lambda: samples, events={"T": "acc >= 0.3701"}, eta=0.01,
        loss=lambda theta, sample, xp: xp.softplus(-sample["y"] * theta["w"][0] * sample["y"]),
        observe=lambda theta, sample, xp: {"acc": xp.where(theta["w"][0] > sample["xi"], 1.0, 0.0)},
    )  # fmt: skip
    assert made.closure().sample_classes == 200
    result = compared(made)
    assert result.reduced.events["T"].step == result.full.events["T"].step
    # Of dw/dt = 1/(1 + exp(w)): t = w + exp(w) - 1, where 75 of 200 are below w = 74.5/50.
    assert result.full.events["T"].time == pytest.approx(1.49 + np.exp(1.49) - 1, abs=0.01)


def test_a_closed_space_that_repels_is_called_unstable():
    made = system("merged_staircase")
    law = made.Parameters(target="leap")
    reduced, full = made.ReducedPopulation(law), made.FullPopulation(law)
    result = dynamics.compare(reduced, full, eta=1.0, steps=500)
    told = explanation(result, reduced, full)
    assert told.startswith("closed, but unstable: a start that is off by 1e-10 leaves the classes")


def test_a_stated_symmetry_that_only_a_far_state_breaks_is_refused():
    def loss(theta, sample, xp):
        z = theta["z"]
        return (sample["x"] * (z[0] + z[1]) - 1) ** 2 + xp.relu(z[0] - 50)

    made = own(
        {"z": np.zeros(2)}, law=lambda: [(1.0, {"x": 1.0})], loss=loss,
        axes={"z": ("k",)}, symmetry=lambda: [{"k": np.array([1, 0])}],
    )  # fmt: skip
    with pytest.raises(InvalidRequest, match="the stated symmetry"):
        made.closure()


def test_a_closure_says_of_what_it_is_proved():
    for scope, risk in (
        ("at these constants alone", lambda theta, xp, a=1.0: theta["z"] ** 4 @ xp.array([1, a])),
        ("for data read to 2^-40", lambda theta, xp: xp.sum((theta["z"] - np.sqrt(2.0)) ** 2)),
    ):
        closure = own({"z": np.full(2, 0.1)}, risk).closure()
        assert (closure.scalars, closure.scope) == (1, scope)
        assert f", {scope}" in closure.proof


def test_a_risk_of_too_many_numbers_runs_on_arrays(monkeypatch):
    def refused(*arguments):
        raise NoProgram("no program: more than 10 distinct numbers")

    monkeypatch.setattr(problem, "reduced_risk", refused)
    made = own({"w": np.full(2, 0.1)}, lambda theta, xp: xp.sum((theta["w"] - 1) ** 2))
    reduced = made.ReducedPopulation(made.Parameters())
    assert reduced.loop_data is None
    np.testing.assert_allclose(reduced.gradient([0.5]), [-1.0], rtol=1e-15)
