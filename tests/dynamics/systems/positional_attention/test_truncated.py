"""The truncated expectation against the exact one: what is kept, the bound, the certificate."""

import math

import numpy as np
import pytest

import dynamics
from dynamics.systems.positional_attention.reduced.configurations import (
    enumeration,
    most_probable,
)
from dynamics.validation import InvalidRequest
from theory.papers.positional_attention.data_law import SetLaw


@pytest.mark.parametrize(("D", "C", "q"), [(16, 4, 0.5), (18, 3, 0.3), (32, 8, 0.25), (8, 2, 1.0)])
@pytest.mark.parametrize("dropped", [1e-2, 1e-5, 1e-9, 1e-40])
def test_the_most_probable_are_kept_and_the_rest_is_accounted_for(D, C, q, dropped):
    types, weights, left = most_probable(D, SetLaw(C, q), dropped)
    everything = np.sort(enumeration(D, SetLaw(C, q)).probability)[::-1]
    np.testing.assert_allclose(np.sort(weights)[::-1], everything[: weights.size], 1e-12)
    assert left <= dropped
    assert math.fsum([*weights, left]) == pytest.approx(1, abs=1e-13)
    assert left == pytest.approx(math.fsum(everything[weights.size :]), rel=1e-9)
    assert len(np.unique(np.sort(types, axis=1), axis=0)) == len(types)


def test_the_bound_is_never_violated(system):
    """Random problems, truncations and states, some of them extreme."""
    draw = np.random.default_rng(3)
    sizes = [(12, 3), (16, 4), (8, 2), (18, 3), (9, 3), (24, 8)]
    tightest = 0.0
    for _ in range(60):
        D, C = sizes[draw.integers(len(sizes))]
        p, q = int(draw.choice([3, 9])), draw.uniform(0.02, 0.9)
        parameters = system.Parameters(D=D, C=C, q=q, p=p, beta=draw.uniform(0.2, 2.0))
        whole = system.ReducedPopulation(parameters, "exact")
        dropped = 10 ** draw.uniform(-8, -1)
        part = system.ReducedPopulation(parameters, "truncated", 1e12, dropped=dropped)
        for _ in range(8):
            scale = 10 ** draw.uniform(-2, 1)
            state = scale * draw.normal(size=3) * np.array([0.3, 1.0, 0.5])
            found, reference = part.error_bound(state), whole.error_bound(state)
            error = np.abs(found["value"] - reference["value"])
            assert (error <= found["bound"] + reference["bound"]).all()
            tightest = max(tightest, (error / found["bound"]).max())
    assert tightest > 0.1


@pytest.mark.parametrize("C", [2, 3])
def test_what_is_left_out_counts_with_the_largest_term_of_all(system, C):
    """Where the risk is large every term is, and no configuration may pass what it is taken for."""
    parameters = system.Parameters(D=4 * C, C=C, q=0.5)
    whole = system.ReducedPopulation(parameters, "exact")
    part = system.ReducedPopulation(parameters, "truncated", 1e12, dropped=0.2)
    largest = []
    for state in ([-2.0, 0.0, 0.0], [-1.0, 0.4, -0.1], [-3.0, 0.1, 0.0]):
        _, sizes = whole.expectation.contributions(np.array(state))
        bound = part.error_bound(state)["bound"] / part.settings["dropped"]
        assert (sizes.max(axis=1) <= bound * (1 + 1e-9)).all()
        largest.append((sizes.max(axis=1) / bound).max())
    assert max(largest) > 0.99


def test_a_truncation_by_tolerance_is_certified_at_the_start(system):
    """It is as coarse as the tolerance allows there, follows the exact run, and ends."""
    parameters = system.Parameters(D=12, C=3, q=0.4)
    whole = system.ReducedPopulation(parameters, "exact")
    loose, tight = (
        system.ReducedPopulation(parameters, "truncated", tolerance=t) for t in (1e-2, 1e-6)
    )
    assert tight.settings["dropped"] < 0.01 * loose.settings["dropped"]
    for part, tolerance in ((loose, 1e-2), (tight, 1e-6)):
        run = dynamics.descend(part, eta=0.02, steps=60_000, record=50)
        reference = dynamics.descend(whole, eta=0.02, steps=run.steps[-1], record=run.steps)
        assert (run["certificate"][:-1] <= tolerance).all()
        assert (run["certificate"] > 0).any()
        np.testing.assert_allclose(run.states, reference.states, rtol=tolerance, atol=1e-12)


def test_a_fixed_truncation_ends_where_its_certificate_is_lost(system):
    parameters = system.Parameters(D=12, C=3, q=0.4)
    part = system.ReducedPopulation(parameters, "truncated", tolerance=5e-3, dropped=1e-5)
    for run in (dynamics.descend(part, eta=0.01, steps=5000), dynamics.flow(part, time=50.0)):
        assert run.outcome.kind == "certificate lost"
        assert 0.02 < run.outcome.time < 0.2
        assert "leave out less" in run.outcome.remedy
        assert np.isfinite(run.states).all()
        # The records before the last are certified, and where the last stands nothing is.
        assert (run["certificate"][:-1] <= 5e-3).all()
    finer = system.ReducedPopulation(parameters, "truncated", tolerance=5e-3, dropped=1e-8)
    assert dynamics.flow(finer, time=1.0).outcome.kind == "reached horizon"


def test_rare_configurations_decide_whether_alpha_rises_again(system):
    """D=32 C=8 q=0.25: a truncation invents an Event III; its certificate was lost long before."""
    parameters = system.Parameters(D=32, C=8, q=0.25, nu=1e-4)
    whole = dynamics.flow(system.ReducedPopulation(parameters, "exact"), time=1e9, record=20)
    assert not whole.events["event_III"]
    assert whole.final_state[0] == pytest.approx(0.049, abs=1e-3)
    cut = {"expectation": "truncated", "dropped": 8e-6}
    part = system.ReducedPopulation(parameters, tolerance=1e12, **cut)
    followed = dynamics.flow(part, time=1e9, record=20)
    assert followed.events["event_III"].time == pytest.approx(1.11e7, rel=0.01)
    assert followed.final_state[0] > 0.3
    finer = system.ReducedPopulation(parameters, tolerance=1e-2, **cut)
    honest = dynamics.flow(finer, time=1e9, record=20)
    assert honest.outcome.kind == "certificate lost"
    assert honest.outcome.time < 100.0


def test_a_direct_gradient_is_certified_or_not_a_number(system):
    """The same answer whatever was computed before."""
    parameters = system.Parameters(D=12, C=3, q=0.4)
    part = system.ReducedPopulation(parameters, "truncated", tolerance=5e-3, dropped=1e-5)
    late, early = dynamics.descend(part, eta=0.01, steps=5000).final_state, part.initial_state
    for _ in range(2):
        assert np.isnan(part.gradient(late)).any()
        assert "leave out less" in part.certificate_failure(late)
        assert np.isfinite(part.gradient(early)).all()
        assert part.certificate_failure(early) == ""


def test_too_many_configurations_are_refused(system):
    with pytest.raises(InvalidRequest, match="too many configurations"):
        system.ReducedPopulation(system.Parameters(D=4096, C=8, q=0.1), "truncated")
    with pytest.raises(InvalidRequest, match=r"dropped=0\.1 is not of exact"):
        system.ReducedPopulation(system.Parameters(), "exact", dropped=0.1)
