"""Published models outside the library: what their closures are, and the runs on them."""

import itertools

import numpy as np
import pytest

import dynamics
from dynamics.analysis.comparison import explanation


def system_of(start, risk=None, **others):
    return dynamics.load_system(dynamics.Model(start=lambda: start, risk=risk, **others))


def compared(system, **how):
    parameters = system.Parameters()
    reduced, full = system.ReducedPopulation(parameters), system.FullPopulation(parameters)
    result = dynamics.compare(reduced, full, **how)
    return result, explanation(result, reduced, full)


def committee(d, n=2, k=2):
    V = np.sqrt(d) * np.eye(d)[:k]
    a = np.concatenate([np.full(n, 1 / n), np.full(k, -1 / k)])

    def risk(theta, xp):
        rows = xp.concatenate([theta["W"], V])
        C = rows @ rows.T / d
        q = 1 + xp.diag(C)
        return a @ (2 / np.pi * xp.arcsin(C / xp.sqrt(q[:, None] * q[None, :]))) @ a / 2

    return system_of({"W": 0.5 * np.random.default_rng(0).standard_normal((n, d))}, risk, eta=1.0)


@pytest.mark.parametrize("d", [6, 12, 30])
def test_a_committee_stays_in_the_span_of_its_rows_and_the_teachers(d):
    system = committee(d)
    closure = system.closure()
    assert (closure.scalars, closure.free, closure.grade) == (2 * d, 8, "proved")
    if d == 12:
        assert compared(system, eta=1.0, steps=200)[0].largest_deviation < 1e-12


@pytest.mark.parametrize("D", [3, 5, 6, pytest.param(20, marks=pytest.mark.long)])
def test_three_vectors_stay_in_planes(D):
    rows = np.random.default_rng(1).standard_normal((6, D))

    def risk(theta, xp):
        true = xp.einsum("i,j,k", *rows[:3])
        return xp.mean((true - xp.einsum("i,j,k", theta["a"], theta["b"], theta["c"])) ** 2) / 2

    closure = system_of(dict(zip("abc", rows[3:], strict=True)), risk, eta=1.0).closure()
    assert (closure.scalars, closure.free) == (3 * D, 6)
    assert closure.space.proved


def modular(U, other, V, p):
    pairs = list(itertools.product(range(p), repeat=2))
    targets = np.array([(n + m) % p for n, m in pairs])[:, None] == np.arange(p)
    n, m = np.array(pairs).T
    count = len(U)

    def risk(theta, xp):
        hidden = (theta["U"][:, n] + theta["P"][:, m]) ** 2
        return xp.mean(xp.sum((hidden.T @ theta["V"] / count - targets) ** 2, axis=1)) / 2

    return system_of({"U": U, "P": other, "V": V}, risk, eta=1.0)


def test_modular_addition_from_random_weights_keeps_a_sum_for_each_neuron():
    draws = 0.5 * np.random.default_rng(0).standard_normal((3, 8, 5))
    closure = modular(*draws, 5).closure()
    assert (closure.entries, closure.scalars, closure.free) == (120, 120, 112)
    assert [law.degree for law in closure.laws] == [1] * 8
    assert all(len(law.terms) == 10 and set(map(abs, law.fractions)) == {1} for law in closure.laws)


def test_laws_of_modular_addition_from_waves_hold():
    p, neurons, rng = 5, 2, np.random.default_rng(0)
    a, b = rng.uniform(0, 2 * np.pi, (2, neurons, 1))
    waves = 2 * np.pi * (1 + np.arange(neurons)[:, None] % 2) * np.arange(p) / p
    weights = [0.5 * np.cos(waves + phase) for phase in (a, b, a + b)]
    system = modular(*weights, p)
    closure = system.closure()
    assert closure.scalars == 30
    assert all(len(law.terms) < 160 for law in closure.laws)
    run = dynamics.flow(system.ReducedPopulation(system.Parameters()), time=500.0, rtol=1e-11)
    for law in closure.laws:
        assert np.ptp(law.at(run.states)) < 1e-11


def test_a_diagonal_network_keeps_the_products_of_its_layers():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((10, 5))
    y = x[:, 0] + x[:, 1]

    def risk(theta, xp):
        return xp.mean((x @ (theta["u"] ** 2 - theta["v"] ** 2) - y) ** 2) / 2

    closure = system_of({"u": np.full(5, 0.1), "v": np.full(5, 0.1)}, risk).closure()
    kept = tuple(f"u_{k}*v_{k}" for k in range(5))
    assert closure.conserved == kept
    assert closure.scope == "for data read to 2^-40"


def test_a_product_in_one_array_is_kept():
    def risk(theta, xp):
        z = theta["z"]
        return (z[0] ** 2 - z[1] ** 2 - 1) ** 2 / 4

    closure = system_of({"z": np.array([0.9, 0.4])}, risk).closure()
    assert closure.conserved == ("z_0*z_1",)


def parity(D, k=3):
    cube = np.array(list(itertools.product((-1.0, 1.0), repeat=D)))
    biases = np.tile(np.linspace(-D, D, 6) / D, 2)
    start = {"W": np.full((12, D), 1 / D), "a": np.repeat([0.5, -0.5], 6), "b": biases}

    def law():
        for x in cube:
            yield 2.0**-D, {"x": x}

    def loss(theta, sample, xp):
        hidden = xp.relu(theta["W"] @ sample["x"] + theta["b"])
        return (theta["a"] @ hidden - xp.prod(sample["x"][:k])) ** 2 / 2

    return system_of(start, law=law, loss=loss, eta=0.2, steps=1500)


@pytest.mark.parametrize(("D", "risk"), [(8, 7.812385e-06), (12, 3.429176e-05)])
def test_sparse_parity_has_48_scalars_of_which_some_rest_in_a_run(D, risk):
    system = parity(D)
    closure = system.closure()
    assert (closure.scalars, closure.grade) == (48, "proved")
    run = dynamics.descend(system.ReducedPopulation(system.Parameters()), 0.2, 1500)
    assert run.observables["risk"][-1] == pytest.approx(risk, rel=1e-6)
    assert (np.ptp(run.states, axis=0) == 0).sum() == 8


def test_thresholds_are_400_losses():
    def law():
        for s in range(400):
            yield 1 / 400, {"t": 4 + 2 * (s + 0.5) / 400}

    def loss(theta, sample, xp):
        w = theta["w"][0]
        return 0.05 * (w - 10) ** 2 + 3 * xp.relu(w - sample["t"])

    system = system_of({"w": np.full(1, 0.1)}, law=law, loss=loss)
    assert system.closure().sample_classes == 400
    run = dynamics.descend(system.ReducedPopulation(system.Parameters()), 0.02, 1200)
    assert run.final_state == pytest.approx([4.37452], abs=5e-6)
    assert run.observables["risk"][-1] == pytest.approx(1.68750, abs=5e-6)


def test_noise_that_only_observe_sees_parts_samples():
    def law():
        for y, s in itertools.product((-1.0, 1.0), range(200)):
            yield 1 / 400, {"y": y, "xi": (s + 0.5) / 50}

    def loss(theta, sample, xp):
        return xp.softplus(-sample["y"] * theta["w"][0] * sample["y"])

    def observe(theta, sample, xp):
        return {"acc": xp.where(theta["w"][0] > sample["xi"], 1.0, 0.0)}

    system = system_of(
        {"w": np.zeros(1)}, law=law, loss=loss, observe=observe, events={"T": "acc >= 0.3701"}
    )
    assert system.closure().sample_classes == 200
    parameters = system.Parameters()
    runs = [dynamics.descend(kind(parameters), 0.01, 1000)
            for kind in (system.ReducedPopulation, system.FullPopulation)]  # fmt: skip
    assert runs[0].events["T"].step == runs[1].events["T"].step
    # Of dw/dt = 1/(1 + exp(w)): t = w + exp(w) - 1, where 75 of 200 are below w = 74.5/50.
    assert runs[0].events["T"].time == pytest.approx(1.49 + np.exp(1.49) - 1, abs=0.01)


@pytest.mark.parametrize("size", [1e-11, 1e-3, 1.0])
def test_a_window_parts_two_entries(size):
    def risk(theta, xp):
        w = theta["w"]
        mean = (w[0] + w[1]) / 2
        window = xp.where((mean > 0.01) & (mean < 0.0105), w[0] - w[1], 0.0)
        return xp.sum(-(w**2) / 2 + w**4 / 4) + 1.5 * (w[0] * w[1]) ** 2 + size * window

    system = system_of({"w": np.full(2, 1e-3)}, risk)
    assert (system.closure().scalars, system.closure().free) == (2, 2)
    assert compared(system, eta=0.01, steps=1000)[0].largest_deviation < 1e-12


def test_an_entry_with_a_small_gradient_moves():
    def risk(theta, xp):
        c, b = np.array([1e-16, 1e-3]), theta["b"][0]
        return 1e11 * theta["a"][0] ** 2 + xp.sum(c * xp.log(1 + xp.exp(100 * b))) / 100

    closure = system_of({"a": np.full(1, 1e-3), "b": np.ones(1)}, risk).closure()
    assert (closure.scalars, closure.frozen) == (2, 0)


def test_a_closed_space_that_repels_is_called_unstable():
    library = dynamics.load_system("merged_staircase")
    parameters = library.Parameters(target="leap")
    reduced, full = library.ReducedPopulation(parameters), library.FullPopulation(parameters)
    result = dynamics.compare(reduced, full, eta=1.0, steps=500)
    told = explanation(result, reduced, full)
    assert told.startswith("closed, but unstable: a start that is off by 1e-10 leaves the classes")


def test_a_model_without_a_program_is_checked_and_says_so():
    def risk(theta, xp):
        w = xp.sort(theta["w"])
        return xp.sum((w - 1) ** 2 * xp.array([1.0, 1.0, 2.0]))

    closure = system_of({"w": np.full(3, 0.1)}, risk).closure()
    assert closure.grade == "checked at 60 states"
    assert "not proved" in closure.proof
    assert any("sort" in remark for remark in closure.remarks)


def test_a_stated_symmetry_that_only_a_far_state_breaks_is_refused():
    def law():
        yield 1.0, {"x": 1.0}

    def loss(theta, sample, xp):
        z = theta["z"]
        return (sample["x"] * (z[0] + z[1]) - 1) ** 2 + xp.relu(z[0] - 50)

    system = system_of(
        {"z": np.zeros(2)}, law=law, loss=loss, axes={"z": ("k",)},
        symmetry=lambda: [{"k": np.array([1, 0])}],
    )  # fmt: skip
    with pytest.raises(dynamics.validation.InvalidRequest, match="the symmetry that is stated"):
        system.closure()


def test_what_holds_at_one_value_of_a_constant_is_said_of_that_alone():
    def risk(theta, xp, a=1.0):
        return theta["z"][0] ** 4 + a * theta["z"][1] ** 4

    closure = system_of({"z": np.full(2, 0.1)}, risk).closure()
    assert closure.scalars == 1
    assert closure.scope == "at these constants alone"
    assert "one gradient in the class, at these constants alone" in closure.proof


LIBRARY = {
    # Classes, entries that never move: the table of what was proved.
    "linear_icl": (2, 12),
    "deep_linear": (4, 24),
    "softmax_icl": (2, 0),
    "single_location": (2, 6),
    "topic_model": (8, 0),
    "markov_attention": (2, 0),
    "memory_spikes": (2, 0),
    "attention_sink": (3, 0),
    "reversal_curse": (7, 94),
    "scan_and_snap": (3, 40),
    "merged_staircase": (60, 24),
    "induction_head": (17, 1656),
}


@pytest.mark.parametrize("name", LIBRARY)
def test_classes_of_the_library_are_proved(name):
    closure = dynamics.load_system(name).closure()
    assert (closure.scalars, closure.frozen, closure.grade) == (*LIBRARY[name], "proved")
    assert closure.scope.startswith("for any law") or closure.samples == 0


def test_data_that_are_no_simple_fractions_are_said_to_be_read_on_a_grid():
    def risk(theta, xp):
        return xp.sum((theta["w"] - np.sqrt(2.0)) ** 2)

    closure = system_of({"w": np.full(2, 0.1)}, risk).closure()
    assert closure.proof.endswith(
        ", for data read to 2^-40 (modulo three primes; error probability below 1e-9)"
    )


def test_a_risk_of_too_many_numbers_runs_on_arrays(monkeypatch):
    from dynamics.models.engine import problem
    from theory.program import NoProgram

    def refused(*arguments):
        raise NoProgram("no program: more than 10 distinct numbers")

    def risk(theta, xp):
        return xp.sum((theta["w"] - 1) ** 2)

    monkeypatch.setattr(problem, "reduced_risk", refused)
    system = system_of({"w": np.full(2, 0.1)}, risk)
    reduced = system.ReducedPopulation(system.Parameters())
    assert reduced.loop_data is None
    np.testing.assert_allclose(reduced.gradient([0.5]), [-1.0], rtol=1e-15)
