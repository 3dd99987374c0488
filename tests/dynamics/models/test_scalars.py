"""Which entries are scalars, events of them in a linear space, and names of others."""

import itertools

import numpy as np
import pytest

import dynamics
from theory.model import Model


def converged_committee(s0, when=40.0, K=3):
    """A converged committee, so that gradients are rounding; late a switch parts its entries."""

    def start(K=K):
        return {"z": np.zeros(1), "W": s0 + (1 - s0) * np.eye(K)}

    def risk(theta, xp, K):
        W, z = theta["W"], theta["z"][0]
        B = xp.eye(K)
        Q, P, T = W @ W.T, W @ B.T, B @ B.T
        q, t = 1 + xp.diag(Q), 1 + xp.diag(T)

        def mean(m, a, b):
            return xp.sum(xp.arcsin(m / xp.sqrt(a[:, None] * b[None, :])))

        switch = xp.relu(z - when) * (W[0, 1] + 2 * W[2, 0]) / 10
        return (mean(Q, q, q) + mean(T, t, t) - 2 * mean(P, q, t)) / np.pi - z + switch

    return dynamics.load_system(Model(start=start, risk=risk, eta=0.02, steps=3000))


@pytest.mark.parametrize("s0", [1e-15, 5e-15])
def test_a_switch_far_from_the_start_parts_entries(s0):
    """At z = 40, long after gradients were rounding."""
    closure = converged_committee(s0).closure()
    assert (closure.scalars, closure.grade) == (10, "proved")


def kinked():
    def law():
        for x in itertools.product((-1.0, 1.0), repeat=3):
            yield 0.125, {"x": np.array(x), "y": x[0]}

    def loss(theta, sample, xp):
        return xp.abs(theta["w"] @ sample["x"] - sample["y"])

    return dynamics.load_system(
        Model(start=lambda: {"w": np.full(3, 0.1)}, law=law, loss=loss, eta=0.02, steps=30)
    )


def test_a_kink_that_a_short_run_does_not_reach_splits_a_class():
    closure = kinked().closure()
    assert closure.scalars == 2
    assert closure.residual < 1e-14


def test_an_entry_that_starts_where_it_rests_up_to_rounding_is_a_scalar():
    """w2 starts at the float next to sqrt(2): its gradient is 1e-16, and not 0."""
    deep = dynamics.load_system("deep_linear")
    reduced = deep.ReducedPopulation(deep.Parameters(a0=2.0))
    assert reduced.scalars == ("w1", "w2", "w3", "w4")
    run = dynamics.descend(reduced, 0.01, 20)
    np.testing.assert_allclose(run["w2"], np.sqrt(2.0), rtol=1e-15)
    assert run.events["T2"].step == 0


@pytest.mark.parametrize("name", ["linear_icl", "topic_model", "deep_linear"])
def test_events_of_scalars_are_the_same_in_a_linear_space(name):
    library = dynamics.load_system(name)
    steps = {"deep_linear": 800}.get(name, 300)
    runs = [
        dynamics.descend(
            library.ReducedPopulation(library.Parameters(), coordinates=coordinates),
            library.default_runs["run"].eta,
            steps,
        )
        for coordinates in ("classes", "linear")
    ]
    assert any(runs[0].events.values())
    for event, other in zip(*(run.events.values() for run in runs), strict=True):
        assert event.step == other.step
    for scalar in runs[0].layout.names:
        np.testing.assert_allclose(runs[1][scalar], runs[0][scalar], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("coordinates", ["classes", "linear"])
def test_two_names_of_an_entry_that_never_moves_are_both_known(coordinates):
    def risk(theta, xp):
        return (theta["w"][0] - 1) ** 2

    frozen = dynamics.load_system(
        Model(
            start=lambda: {"w": np.array([0.1, 0.4])},
            risk=risk,
            names={"a": ("w", 0), "f": ("w", 1), "b": ("w", 1)},
            events={"low": "b <= 1/2", "high": "f >= 1/2", "half": "a >= 1/2"},
        )
    )
    reduced = frozen.ReducedPopulation(frozen.Parameters(), coordinates=coordinates)
    run = dynamics.descend(reduced, 0.05, 40)
    assert run.events["low"].step == 0
    assert not run.events["high"]
    assert run.events["half"].step == np.flatnonzero(1 - 0.9 * 0.9 ** np.arange(40) >= 0.5)[0]
    np.testing.assert_array_equal(run["b"], 0.4)


def test_a_name_of_the_model_is_known_among_many_scalars():
    weights = np.linspace(1.0, 2.0, 300)

    def risk(theta, xp):
        return (theta["w"] @ weights - 1) ** 2 / 2

    many = dynamics.load_system(
        Model(
            start=lambda: {"w": np.zeros(300)},
            risk=risk,
            names={"last": ("w", 299)},
            events={"up": "last >= 1/1000"},
        )
    )
    reduced = many.ReducedPopulation(many.Parameters(), coordinates="linear")
    assert reduced.layout.size == 1
    run = dynamics.descend(reduced, 1e-3, 20)
    assert run.events["up"]
    assert run["last"][-1] == pytest.approx(2 / (weights @ weights), rel=1e-3)
