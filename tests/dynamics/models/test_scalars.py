"""Scalars: their names, groups and events; averages over samples, and curvatures."""

import numpy as np
import pytest

import dynamics
from dynamics.validation import InvalidRequest


def problem(start, risk=None, kind="ReducedPopulation", coordinates=None, **others):
    system = dynamics.load_system(dynamics.Model(start=lambda: start, risk=risk, **others))
    options = {} if coordinates is None else {"coordinates": coordinates}
    return getattr(system, kind)(system.Parameters(), **options)


def test_a_frozen_array_decides_no_learning_rate():
    def risk(theta, xp):
        a, b, c = theta["a"][0], theta["b"][0], theta["c"][0]
        return (b * c - 1) ** 2 / 2 + a**2 * b**2

    start = {"a": np.zeros(1), "b": np.full(1, 0.1), "c": np.full(1, 0.2)}
    groups = {"a": "slow", "b": "fast", "c": "slow"}
    views = "ReducedPopulation", "FullPopulation"
    reduced, full = (problem(start, risk, view, groups=groups) for view in views)
    assert reduced.layout.group_names == full.layout.group_names == ("slow", "fast")
    b, c = 0.1, 0.2
    for _ in range(50):
        b, c = b - 0.02 * (b * c - 1) * c, c - 0.2 * (b * c - 1) * b
    for each, end in ((reduced, [b, c]), (full, [0.0, b, c])):
        run = dynamics.descend(each, eta=(0.2, 0.02), steps=50)
        np.testing.assert_allclose(run.final_state, end, 1e-12)
    with pytest.raises(InvalidRequest, match="one for each of slow, fast"):
        dynamics.descend(full, eta=(0.1, 0.2, 0.3), steps=50)


def test_a_guard_that_may_hold_with_equality_does():
    same = "w_0 >= 0.2 while one "
    reduced = problem(
        {"w": np.full(2, 0.1)}, lambda theta, xp: (xp.sum(theta["w"]) - 1) ** 2 / 2,
        observables=lambda theta, xp: {"one": xp.ones(())},
        events={"plain": "w_0 >= 0.2", "open": f"{same}>= 1", "shut": f"{same}> 1"},
    )  # fmt: skip
    for run in (dynamics.descend(reduced, eta=0.02, steps=400), dynamics.flow(reduced, time=8)):
        assert run.events["open"].time == pytest.approx(run.events["plain"].time, rel=1e-10)
        assert not run.events["shut"]


def test_a_name_of_minus_a_scalar_is_refused():
    start = {"A": np.array([[0.0, 0.1], [-0.1, 0.0]])}
    risk = lambda theta, xp: ((theta["A"][0, 1] - theta["A"][1, 0]) / 2 - 1) ** 2  # noqa: E731
    with pytest.raises(InvalidRequest, match=r"minus A\[0, 1\]; name A"):
        problem(start, risk, names={"beta": ("A", 1, 0)})
    assert problem(start, risk, names={"beta": ("A", 0, 1)}).state_names == ("beta",)


def test_a_count_has_a_rate_and_d_of_an_array_is_no_array():
    given = {
        "law": lambda: [(1.0, {"x": 1.0})], "events": {"still": "d_n <= 0"},
        "loss": lambda theta, sample, xp: (theta["a"][0] - sample["x"]) ** 2 / 2,
        "observe": lambda theta, sample, xp: {"n": xp.sum(theta["a"] > 0.5)},
    }  # fmt: skip
    run = dynamics.descend(problem({"a": np.full(1, 0.1)}, **given), eta=0.1, steps=20)
    assert run["n"].tolist()[::20] == [0.0, 1.0]
    assert "still" in run.reasons
    with pytest.raises(InvalidRequest, match="the name of the rate of 'a'"):
        problem({"a": np.full(1, 0.1), "d_a": np.ones(1)}, **given)


@pytest.mark.parametrize("name", ["linear_icl", "topic_model"])
def test_events_of_scalars_are_the_same_in_a_linear_space(name):
    library = dynamics.load_system(name)
    eta = library.default_runs["run"].eta
    of, law = library.ReducedPopulation, library.Parameters()
    problems = (of(law, coordinates=how) for how in ("classes", "linear"))
    one, other = (dynamics.descend(each, eta, 300) for each in problems)
    assert any(one.events.values())
    assert [e.step for e in one.events.values()] == [e.step for e in other.events.values()]
    for scalar in one.layout.names:
        np.testing.assert_allclose(other[scalar], one[scalar], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("coordinates", ["classes", "linear"])
def test_two_names_of_an_entry_that_never_moves_are_both_known(coordinates):
    names = {"a": ("w", 0), "f": ("w", 1), "b": ("w", 1)}
    events = {"low": "b <= 1/2", "high": "f >= 1/2", "half": "a >= 1/2"}
    reduced = problem(
        {"w": np.array([0.1, 0.4])}, lambda theta, xp: (theta["w"][0] - 1) ** 2,
        coordinates=coordinates, names=names, events=events,
    )  # fmt: skip
    run = dynamics.descend(reduced, 0.05, 40)
    assert run.events["low"].step == 0
    assert not run.events["high"]
    assert run.events["half"].step == np.flatnonzero(1 - 0.9 * 0.9 ** np.arange(40) >= 0.5)[0]
    np.testing.assert_array_equal(run["b"], 0.4)


def test_the_curvature_of_every_entry_is_that_of_differences():
    system = dynamics.load_system("single_location")
    problem = system.FullPopulation(system.Parameters(L=2))
    state = problem.initial_state + 0.3
    by_hand = np.empty((state.size, state.size))
    for k, step in enumerate(1e-5 * np.eye(state.size)):
        by_hand[:, k] = (problem.gradient(state + step) - problem.gradient(state - step)) / 2e-5
    np.testing.assert_allclose(problem.jacobian(state), by_hand, atol=1e-8)
    direction = np.arange(1.0, state.size + 1)
    found = problem.hessian_product(state, direction)
    np.testing.assert_allclose(found, by_hand @ direction, atol=1e-7)
    largest = np.linalg.eigvals(by_hand).real.max()
    assert dynamics.stability_limit(problem, state) == pytest.approx(2 / largest, rel=1e-6)


@pytest.mark.parametrize("count", [10, 49])
def test_what_is_one_of_every_sample_is_one_of_them_all(count):
    """The weights of a law sum up to 1 but for rounding: ten of .1 to less."""
    system = dynamics.Model(
        start=lambda: {"w": 0.0}, events={"all": "acc >= 1"},
        law=lambda: [(1 / count, {"x": 1.0 + k / count}) for k in range(count)],
        loss=lambda theta, sample, xp: (theta["w"] - sample["x"]) ** 2,
        observe=lambda theta, sample, xp: {"acc": xp.where(theta["w"] > 0.5, 1.0, 0.0)},
    )  # fmt: skip
    for problem in (system.ReducedPopulation, system.FullPopulation):
        run = dynamics.descend(problem(system.Parameters()), 0.1, 20)
        assert run.events["all"].step == int(np.argmax(run["w"] > 0.5))
        assert run["acc"][-1] == 1.0
