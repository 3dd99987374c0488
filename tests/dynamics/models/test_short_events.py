"""Models at which a closure, or what is said of one, could go wrong between the states looked at.

Numbers that training has are from plain numpy here, by the gradient written down by hand.
"""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import dynamics
from dynamics.analysis.comparison import explanation


def problems(model, **constants):
    system = dynamics.load_system(model)
    parameters = system.Parameters(**constants)
    return system.ReducedPopulation(parameters), system


def descended(gradient, start, eta, steps):
    state = np.array(start, float)
    for _ in range(steps):
        state = state - eta * np.asarray(gradient(state))
    return state


def bump(s, at=30.0, width=3.0):
    return np.maximum(0.0, 1 - abs(s - at) / width)


def test_a_bump_far_from_the_start_breaks_a_law():
    def risk(theta, xp):
        s, w = theta["s"][0], theta["w"]
        passing = xp.maximum(0.0, 1 - xp.abs(s - 30.0) / 3.0)
        return -s + (w[0] + 2 * w[1] - 1) ** 2 / 2 + 0.1 * passing * w[0]

    model = dynamics.Model(
        start=lambda: {"s": np.zeros(1), "w": np.zeros(2)}, risk=risk, eta=0.02, steps=3000
    )
    reduced, _ = problems(model)
    assert reduced.closure.laws == ()
    assert (reduced.closure.scalars, reduced.closure.free) == (3, 3)

    def gradient(state):
        s, w0, w1 = state
        slope = -np.sign(s - 30.0) / 3.0 * (abs(s - 30.0) < 3.0)
        one = w0 + 2 * w1 - 1
        return -1 + 0.1 * slope * w0, one + 0.1 * bump(s), 2 * one

    run = dynamics.descend(reduced, eta=0.02, steps=3000)
    np.testing.assert_allclose(run.final_state, descended(gradient, [0, 0, 0], 0.02, 3000), 1e-10)


def test_a_bump_opens_a_linear_space():
    along = np.sqrt(np.arange(1, 11) / 55.0)

    def risk(theta, xp):
        s, w = theta["s"][0], theta["w"]
        passing = xp.maximum(0.0, 1 - xp.abs(s - 30.0) / 3.0)
        return -s + (w @ along - 1) ** 2 / 2 + 0.1 * passing * w[0]

    model = dynamics.Model(
        start=lambda: {"s": np.zeros(1), "w": np.zeros(10)}, risk=risk, eta=0.02, steps=3000
    )
    reduced, system = problems(model)
    assert reduced.closure.free == 3
    full = system.FullPopulation(system.Parameters())
    result = dynamics.compare(reduced, full, eta=0.02, steps=3000)
    assert result.largest_deviation < 1e-10


def test_a_frozen_array_decides_no_learning_rate():
    def risk(theta, xp):
        a, b, c = theta["a"][0], theta["b"][0], theta["c"][0]
        return (b * c - 1) ** 2 / 2 + a**2 * b**2

    model = dynamics.Model(
        start=lambda: {"a": np.zeros(1), "b": np.full(1, 0.1), "c": np.full(1, 0.2)},
        groups={"a": "slow", "b": "fast", "c": "slow"}, risk=risk,
    )  # fmt: skip
    reduced, system = problems(model)
    full = system.FullPopulation(system.Parameters())
    assert reduced.layout.group_names == full.layout.group_names == ("slow", "fast")
    run = dynamics.descend(reduced, eta=(0.2, 0.02), steps=50)

    def gradient(state):
        b, c = state
        return (b * c - 1) * c * 0.1, (b * c - 1) * b  # the first is a tenth as fast

    np.testing.assert_allclose(run.final_state, descended(gradient, [0.1, 0.2], 0.2, 50), 1e-12)
    with pytest.raises(dynamics.validation.InvalidRequest, match="one for each of slow, fast"):
        dynamics.descend(full, eta=(0.1, 0.2, 0.3), steps=50)


def late(entries):
    """Samples that are alike until w passes 5, at time 680 of a flow."""

    def law():
        for probability, c in ((0.25, 5.0), (0.25, 9.0), (0.5, 100.0)):
            yield probability, {"c": c}

    def loss(theta, sample, xp):
        w = xp.sum(theta["w"])
        return (w - 10) ** 2 / 800 + xp.relu(w - sample["c"]) ** 2 / 100

    start = {"w": np.zeros(entries)}
    return dynamics.Model(start=lambda: start, law=law, loss=loss, eta=0.02, steps=3000)


def test_samples_that_part_late_are_apart_from_the_start():
    reduced, system = problems(late(2))
    assert reduced.closure.sample_classes == 3
    full = system.FullPopulation(system.Parameters())
    result = dynamics.compare(reduced, full, time=2000)
    assert result.largest_deviation < 1e-8
    assert explanation(result, reduced, full) == ""


def test_a_bump_that_no_step_meets_parts_two_entries():
    def risk(theta, xp):
        s, w = theta["s"][0], theta["w"]
        passing = xp.maximum(0.0, 1 - xp.abs(s - 32.5) / 0.8)
        return -s + xp.sum((w - 1) ** 2) / 200 + 0.2 * passing * w[0]

    model = dynamics.Model(
        start=lambda: {"s": np.zeros(1), "w": np.zeros(2)}, risk=risk, eta=0.02, steps=3000
    )
    reduced, system = problems(model)
    full = system.FullPopulation(system.Parameters())
    result = dynamics.compare(reduced, full, eta=0.02, steps=3000)
    assert reduced.closure.scalars == 3
    assert result.largest_deviation < 1e-12


def test_an_entry_that_waits_behind_a_kink_moves_under_a_law_of_draws():
    def sample(generator):
        return {"y": 8.0 + 0.1 * generator.standard_normal(2)}

    def loss(theta, sample, xp):
        a, b = theta["a"], theta["b"]
        return xp.sum((a - sample["y"]) ** 2) / 2 + 0.05 * xp.sum(
            xp.relu(a - 4.0) ** 2 * (b - 1) ** 2
        )

    model = dynamics.Model(
        start=lambda: {"a": np.zeros(2), "b": np.zeros(2)}, sample=sample, loss=loss,
        axes={"a": ("k",), "b": ("k",)}, symmetry=lambda: [{"k": np.array([1, 0])}],
        eta=0.02, steps=1000,
    )  # fmt: skip
    reduced, _ = problems(model)
    assert reduced.state_names == ("a_0", "b_0")
    run = dynamics.descend(reduced, eta=0.02, steps=1000)
    assert run.final_state[1] == pytest.approx(1.0, abs=1e-3)


def test_a_small_difference_of_probabilities_is_no_rounding():
    """The probabilities differ by 2e-7."""

    def law(d=1e-7):
        yield 0.5 + d, {"x": np.array([1.0, 0.0]), "y": 1.0}
        yield 0.5 - d, {"x": np.array([0.0, 1.0]), "y": 1.0}

    def loss(theta, sample, xp):
        w = theta["w"]
        m = (w**2) @ sample["x"]
        right = xp.where(sample["y"] == 1.0, -m, m)
        return right + (w @ w) ** 2 / 4 + w[0] ** 2 * w[1] ** 2

    start = {"w": np.full(2, 0.1)}
    reduced, _ = problems(
        dynamics.Model(start=lambda: start, law=law, loss=loss, eta=0.05, steps=3000)
    )
    assert reduced.closure.scalars == 2


def test_a_kink_at_100_is_not_hidden():
    def risk(theta, xp):
        w = theta["w"]
        total = xp.exp(w[0]) + xp.exp(w[1])
        return xp.sum((w - 120) ** 2) / 2 + xp.log(total) + 3 * xp.relu(w[0] - 100)

    start = {"w": np.full(2, 20.0)}
    reduced, _ = problems(dynamics.Model(start=lambda: start, risk=risk, eta=0.02, steps=3000))
    assert reduced.closure.scalars == 2
    run = dynamics.descend(reduced, eta=0.02, steps=3000)
    share = 1 / (1 + np.exp(run.final_state[1] - run.final_state[0]))
    assert run.final_state == pytest.approx([117 - share, 119 + share], rel=1e-9)


def test_a_guard_that_may_hold_with_equality_does():
    def observe(theta, sample, xp):
        return {"one": xp.ones(())}

    def law():
        yield 1.0, {"x": 1.0}

    def loss(theta, sample, xp):
        return (xp.sum(theta["w"]) - sample["x"]) ** 2 / 2

    start, same = {"w": np.full(2, 0.1)}, "w_0 >= 0.2 while one "
    model = dynamics.Model(
        start=lambda: start, law=law, loss=loss, observe=observe, eta=0.02, steps=400,
        events={"plain": "w_0 >= 0.2", "open": f"{same}>= 1", "shut": f"{same}> 1"},
    )  # fmt: skip
    reduced, _ = problems(model)
    for run in (dynamics.descend(reduced, eta=0.02, steps=400), dynamics.flow(reduced, time=8)):
        assert run.events["open"].time == pytest.approx(run.events["plain"].time, rel=1e-10)
        assert not run.events["shut"]


def test_a_law_that_fills_one_array_again_has_every_sample():
    def law():
        x = np.empty(2)
        for one in (-1.0, 1.0):
            for two in (-1.0, 1.0):
                x[:] = one, two
                yield 0.25, {"x": x, "y": one}

    def loss(theta, sample, xp):
        return (theta["w"] @ sample["x"] - sample["y"]) ** 2 / 2

    reduced, _ = problems(dynamics.Model(start=lambda: {"w": np.full(2, 0.5)}, law=law, loss=loss))
    np.testing.assert_allclose(reduced.gradient([0.5, 0.5]), [-0.5, 0.5], rtol=1e-14)


def test_a_name_of_minus_a_scalar_is_refused():
    start = {"A": np.array([[0.0, 0.1], [-0.1, 0.0]])}

    def risk(theta, xp):
        return ((theta["A"][0, 1] - theta["A"][1, 0]) / 2 - 1) ** 2

    model = dynamics.Model(start=lambda: start, risk=risk, names={"beta": ("A", 1, 0)})
    with pytest.raises(dynamics.validation.InvalidRequest, match=r"minus A\[0, 1\]; names can be"):
        problems(model)
    model = dynamics.Model(start=lambda: start, risk=risk, names={"beta": ("A", 0, 1)})
    assert problems(model)[0].state_names == ("beta",)


@pytest.mark.parametrize("name", ["weight", "row", "share", "z0", "x0", "t0"])
def test_a_constant_of_any_name_is_an_input(name):
    """Named parts and printed functions have names of their own."""
    body = f"""

import numpy as np


def start():
    return {{"w": np.full(2, 0.1)}}


def law():
    yield 0.5, {{"x": 1.0, "y": 1.0}}
    yield 0.5, {{"x": 2.0, "y": 1.0}}


def loss(theta, sample, xp, {name}=0.5):
    w = xp.sum(theta["w"])
    return (w * sample["x"] - sample["y"]) ** 2 / 2 + {name} * xp.sum(theta["w"] ** 2)
"""
    space = {}
    exec(body, space)  # a function has its constants by their names
    model = dynamics.Model(start=space["start"], law=space["law"], loss=space["loss"])
    system = dynamics.load_system(model)
    parameters = system.Parameters(**{name: 0.05})
    compiled = system.ReducedPopulation(parameters)
    # (2.5 (2 w) - 1.5) + 2 (.05 w) = 0
    assert compiled.gradient([1.5 / 5.1]) == pytest.approx([0.0], abs=1e-15)
    assert compiled.gradient([0.1]) == pytest.approx([0.5 - 1.5 + 0.01], rel=1e-14)


def test_a_flow_does_not_step_over_what_passes_by_at_rest():
    """Two layers at rest, pulled apart while s is near 30; steps of LSODA had grown over it."""

    def risk(theta, xp):
        s, w = theta["s"][0], theta["w"]
        passing = xp.exp(-((s - 30.0) ** 2))
        return -s + (w[0] * w[1] - 1) ** 2 / 2 + 0.1 * passing * w[0]

    def rate(_, state):
        s, one, two = state
        passing, off = np.exp(-((s - 30.0) ** 2)), one * two - 1
        slope = -1 - 0.2 * (s - 30.0) * passing * one, off * two + 0.1 * passing, off * one
        return -np.array(slope)

    start = {"s": np.zeros(1), "w": np.array([0.5, 0.2])}
    reduced, _ = problems(dynamics.Model(start=lambda: start, risk=risk, eta=0.02, steps=3000))
    run = dynamics.flow(reduced, time=60)
    exact = solve_ivp(
        rate, (0, 60), [0.0, 0.5, 0.2], method="DOP853", rtol=1e-11, atol=1e-13, max_step=0.05
    )
    np.testing.assert_allclose(run.final_state, exact.y[:, -1], rtol=1e-6)


def test_a_count_has_a_rate_and_d_of_an_array_is_no_array():
    def law():
        yield 1.0, {"x": 1.0}

    def loss(theta, sample, xp):
        return (theta["a"][0] - sample["x"]) ** 2 / 2

    def observe(theta, sample, xp):
        return {"n": xp.sum(theta["a"] > 0.5)}

    given = {"law": law, "loss": loss, "events": {"still": "d_n <= 0"}, "observe": observe}
    reduced, _ = problems(dynamics.Model(start=lambda: {"a": np.full(1, 0.1)}, **given))
    run = dynamics.descend(reduced, eta=0.1, steps=20)
    assert run["n"].tolist()[::20] == [0.0, 1.0]
    assert "still" in run.reasons
    both = {"a": np.full(1, 0.1), "d_a": np.ones(1)}
    with pytest.raises(dynamics.validation.InvalidRequest, match="the rate of 'a' is called"):
        problems(dynamics.Model(start=lambda: both, **given))
