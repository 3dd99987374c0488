"""Published models outside the library: what their closures are, and the runs on them."""

import itertools

import numpy as np
import pytest

import dynamics
from dynamics.analysis.comparison import explanation


def system_of(start, risk=None, **others):
    return dynamics.load_system(dynamics.Model(start=lambda: start, risk=risk, **others))


def test_three_vectors_stay_in_planes():
    D = 5
    rows = np.random.default_rng(1).standard_normal((6, D))

    def risk(theta, xp):
        true = xp.einsum("i,j,k", *rows[:3])
        return xp.mean((true - xp.einsum("i,j,k", theta["a"], theta["b"], theta["c"])) ** 2) / 2

    closure = system_of(dict(zip("abc", rows[3:], strict=True)), risk, eta=1.0).closure()
    assert (closure.scalars, closure.free) == (3 * D, 6)
    assert closure.space.proved


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


def test_a_closed_space_that_repels_is_called_unstable():
    library = dynamics.load_system("merged_staircase")
    parameters = library.Parameters(target="leap")
    reduced, full = library.ReducedPopulation(parameters), library.FullPopulation(parameters)
    result = dynamics.compare(reduced, full, eta=1.0, steps=500)
    told = explanation(result, reduced, full)
    assert told.startswith("closed, but unstable: a start that is off by 1e-10 leaves the classes")


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
    with pytest.raises(dynamics.validation.InvalidRequest, match="the stated symmetry"):
        system.closure()


def test_a_closure_says_of_what_it_is_proved():
    def at_one(theta, xp, a=1.0):
        return theta["z"][0] ** 4 + a * theta["z"][1] ** 4

    def on_a_grid(theta, xp):
        return xp.sum((theta["z"] - np.sqrt(2.0)) ** 2)

    scopes = {at_one: "at these constants alone", on_a_grid: "for data read to 2^-40"}
    for risk, scope in scopes.items():
        closure = system_of({"z": np.full(2, 0.1)}, risk).closure()
        assert (closure.scalars, closure.scope) == (1, scope)
        assert f", {scope}" in closure.proof


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
