"""What models close on: the measured table, and the counter-examples that broke simpler rules."""

from pathlib import Path

import numpy as np
import pytest

import dynamics
from theory.model import Model

MODELS = Path(__file__).resolve().parents[2] / "support" / "models"


def system(name):
    return dynamics.load_system(MODELS / f"{name}.py")


def two_samples():
    yield 0.5, {"x": 1.0}
    yield 0.5, {"x": -1.0}


def own(start, loss, law=two_samples, eta=0.05, steps=2000, **others):
    return dynamics.load_system(
        Model(start=start, law=law, loss=loss, eta=eta, steps=steps, **others)
    )


def whitened(eigenvalues, rotated):
    """Linear attention with one head on inputs of a covariance: u (beta^T U x)."""
    values = np.array(eigenvalues)
    rotation = np.linalg.qr(np.random.default_rng(3).standard_normal((5, 5)))[0]
    covariance = rotation @ np.diag(values) @ rotation.T if rotated else np.diag(values)
    gamma = (1 + 1 / 31) * covariance + values.sum() / 31 * np.eye(5)

    def start():
        return {"u": np.full(1, 0.3), "U": 0.1 * np.eye(5)}

    def risk(theta, xp):
        M = theta["u"][0] * theta["U"]
        square = covariance @ covariance
        return (
            values.sum()
            - 2 * xp.trace(square @ M)
            + xp.trace(M.T @ covariance @ gamma @ M @ covariance)
        ) / 2

    return dynamics.load_system(Model(start=start, risk=risk, eta=0.05, steps=2000))


TABLE = {
    "positional": ("positional", {}, (82, 3, 3), (1, 18, 54)),
    "linear attention": ("linear_attention", {}, (32, 2, 2), (3, 1)),
    "softmax, balanced": ("softmax_icl", {}, (9, 2, 1), (3, 6)),
    "softmax, one dominant": ("softmax_icl", {"p1": 0.8, "N": 12}, (9, 5, 3), (1, 2, 2, 2, 2)),
    "softmax, distinct": ("softmax_icl", {"p1": 0.5, "p2": 0.3}, (9, 9, 6), (1,) * 9),
    "single location": ("single_location", {}, (8, 2, 2), (1, 1)),
    "deep, aligned": ("deep_linear", {}, (32, 32, 3), (1,) * 32),
    "deep, random": ("deep_linear", {"aligned": False}, (32, 32, 32), (1,) * 32),
}
SAMPLES = {"positional": (4374, 54), "linear attention": (4096, 6), "single location": (1536, 3)}


@pytest.mark.parametrize("name", TABLE)
def test_measured_classes(name):
    """Entries, classes, dimension of the linear space, and sizes of the table."""
    file, constants, numbers, sizes = TABLE[name]
    made = system(file)
    closure = made.closure(made.Parameters(**constants))
    assert (closure.entries, closure.scalars, closure.free) == numbers
    assert closure.sizes == sizes
    assert closure.residual < 1e-13
    if name in SAMPLES:
        assert (closure.samples, closure.sample_classes) == SAMPLES[name]


@pytest.mark.parametrize(("rotated", "numbers"), [(False, (3, 3)), (True, (26, 3))])
def test_eigenvalues_of_a_covariance(rotated, numbers):
    closure = whitened([1.0, 1.0, 0.5, 0.5, 0.5], rotated).closure()
    assert (closure.entries, closure.scalars, closure.free) == (26, *numbers)


def test_a_general_direction_of_the_features():
    """V = alpha w* with a general w*: three classes, one direction."""
    w = np.array([0.6, -0.48, 0.64])

    def law():
        for y in (-1.0, 1.0):
            yield 0.5, {"x": y * w, "y": y}

    def loss(theta, sample, xp):
        return xp.softplus(-sample["y"] * xp.sum(theta["v"] * sample["x"]))

    closure = own(lambda: {"v": np.zeros(3)}, loss, law).closure()
    assert (closure.scalars, closure.free) == (3, 1)


def test_conserved_quantities_are_found():
    balanced = system("softmax_icl").closure()
    assert balanced.conserved == ("Q_0_0 + 2*Q_0_1",)
    attention = system("linear_attention").closure()
    assert attention.conserved == ("3*KQ_0_0**2 - PV_3_3**2",)
    assert [law.degree for law in attention.laws] == [2]
    deep = system("deep_linear")
    random = deep.closure(deep.Parameters(aligned=False))
    assert len(random.laws) == 10
    assert all(law.degree == 2 and law.exact for law in random.laws)


def compared(made, **how):
    parameters = made.Parameters()
    reduced, full = made.ReducedPopulation(parameters), made.FullPopulation(parameters)
    result = dynamics.compare(reduced, full, made.model.eta, made.model.steps)
    return result, max(result.deviation.values())


def test_a_kink_that_only_training_reaches():
    """relu(a0 - 5): one class at small points; held so, it was wrong by 1.8 in training."""

    def loss(theta, sample, xp):
        a = theta["a"]
        return xp.sum((a - 8) ** 2) / 2 + 3 * xp.relu(a[0] - 5)

    made = own(lambda: {"a": np.zeros(2)}, loss)
    closure = made.closure()
    assert (closure.scalars, closure.free, closure.conserved) == (2, 2, ())
    result, deviation = compared(made)
    assert deviation < 1e-13
    assert result.reduced.final_state == pytest.approx([5.0, 8.0], abs=0.2)


def test_an_entry_that_only_training_wakes():
    """relu(a - 4)^2 (b0 - 1)^2: b0 looks frozen near the start, and moves later; b1 never does."""

    def loss(theta, sample, xp):
        a, b = theta["a"], theta["b"]
        return xp.sum((a - 8) ** 2) / 2 + 0.05 * xp.relu(a[0] - 4) ** 2 * (b[0] - 1) ** 2

    made = own(lambda: {"a": np.zeros(2), "b": np.zeros(2)}, loss)
    closure = made.closure()
    assert closure.classes.labels.tolist() == [0, 1, 2, -1]
    result, deviation = compared(made)
    assert deviation < 1e-13
    assert result.full["b"][-1] == pytest.approx([1.0, 0.0], abs=1e-6)


def test_samples_that_part_behind_a_kink():
    """.3 relu(c a - 1) with c = 1, 3: equal at small points, where both are silent."""

    def law():
        yield 0.5, {"c": 1.0}
        yield 0.5, {"c": 3.0}

    def loss(theta, sample, xp):
        a = theta["a"]
        return xp.sum((a - 2) ** 2) / 2 + 0.3 * xp.relu(sample["c"] * a[0] - 1)

    made = own(lambda: {"a": np.zeros(2)}, loss, law)
    assert made.closure().sample_classes == 2
    assert compared(made)[1] < 1e-13


def test_arrays_of_scales_1e10_apart():
    """One tolerance for the whole model merged an array; one for each class does not."""

    def loss(theta, sample, xp):
        a, b = theta["a"], theta["b"]
        small = xp.sum((a - xp.array([1.0, 1.0, 1.001])) ** 2) / 2
        return 1e-10 * small + xp.sum((b - xp.array([1.0, 1.0, 2.0])) ** 2) / 2

    made = own(lambda: {"a": np.zeros(3), "b": np.zeros(3)}, loss)
    assert made.closure().classes.labels.tolist() == [0, 0, 1, 2, 2, 3]
    assert compared(made)[1] < 1e-13


def test_a_law_moved_by_1e_6_splits_the_classes_and_the_report_names_them():
    """Positional attention with 1e-6 of one probability given to another sample: 3 -> 10."""
    file = system("positional").model
    plain = list(file.law(D=9, C=3))

    def law(D=9, C=3, moved=1e-6):
        for k, (probability, sample) in enumerate(plain):
            yield probability + moved * ((k == 0) - (k == 1)), sample

    def start(D=9, C=3, nu=1e-3):
        return file.start(D, C, nu)

    def loss(theta, sample, xp, D=9, p=3, nu=1e-3, beta=1.0):
        return file.loss(theta, sample, xp, D, p, nu, beta)

    made = dynamics.load_system(Model(start=start, law=law, loss=loss))
    assert made.closure(made.Parameters(moved=0.0)).scalars == 3
    split = made.closure()
    assert split.scalars == 10
    assert any("A[" in remark and "part" in remark for remark in split.remarks)


def test_a_model_without_symmetry_closes_on_all_of_its_entries():
    def start(seed_0=0):
        return {"W": np.random.default_rng(seed_0).standard_normal((3, 3))}

    def loss(theta, sample, xp):
        return xp.sum(xp.tanh(theta["W"]) ** 2) + sample["x"] * theta["W"][0, 0]

    made = own(start, loss, steps=50)
    closure = made.closure()
    assert closure.scalars == closure.entries == 9
    assert closure.summary().startswith("closes on 9 of 9")


def test_closures_do_not_depend_on_the_order_of_the_law():
    made = system("softmax_icl")
    model = made.model

    def law(K=3, N=6, p1=1 / 3, p2=0.0):
        return list(model.law(K, N, p1, p2))[::-1]

    turned = dynamics.load_system(
        Model(start=model.start, law=law, loss=model.loss, eta=1.0, steps=500)
    )
    one, two = made.closure(), turned.closure()
    assert one.classes.labels.tolist() == two.classes.labels.tolist()
    assert one.sample_classes == two.sample_classes


SCALES = np.array([1.0, 2.0, 3.0])
"""Of double precision, which a risk of single precision cannot be traced with."""


@pytest.mark.parametrize(
    ("risk", "summary"),
    [
        (
            lambda theta, xp: xp.sum((theta["w"][0] * SCALES - 1) ** 2),
            "closes on 1 scalar of 3 entries",
        ),
        (lambda theta, xp: xp.sum((theta["w"] * SCALES - 1) ** 2), "closes on 3 of 3"),
        (lambda theta, xp: (SCALES @ theta["w"] ** 2 - 1) ** 2, "closes on 3 of 3"),
    ],
)
def test_a_function_may_close_over_arrays(risk, summary):
    model = Model(start=lambda n=3: {"w": np.full(n, 0.1)}, risk=risk)
    closure = dynamics.load_system(model).closure()
    assert closure.summary().startswith(summary)
    assert closure.residual <= 1e-14
