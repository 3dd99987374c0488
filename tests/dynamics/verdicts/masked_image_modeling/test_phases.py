"""What the checks of Section 5.2 and Lemma 5.3 say where a phase does not begin or end."""

import dataclasses

import numpy as np
import pytest

import dynamics
from dynamics.verdicts.findings import Protocol
from dynamics.verdicts.masked_image_modeling import (
    convergence,
    correlations,
    phases,
    rounding_of_terms,
    runs,
)
from dynamics.verdicts.study import Study
from dynamics.verdicts.verify import checks

SYSTEM = dynamics.load_system("masked_image_modeling")


def law(**given):
    return SYSTEM.Parameters(**given)


def measured(claim, **given):
    """The finding of a check, before the rules of what a verdict may say."""
    return checks(SYSTEM)[claim](SYSTEM, Protocol(law(**given)))


@pytest.fixture
def change(monkeypatch):
    """A function that changes every run by ``(case) -> {name: values}``."""
    unchanged = runs.cases_of

    def changed(case, new):
        run, values = case.run, new(case)
        states, observables = run.states.copy(), dict(run.observables)
        for name in values:
            if name in run.layout.names:
                states[:, run.layout.names.index(name)] = values[name]
            else:
                observables[name] = values[name]
        again = dataclasses.replace(run, states=states, observables=observables)
        return dataclasses.replace(case, run=again)

    def apply(new):
        monkeypatch.setattr(
            runs, "cases_of", lambda *given: [changed(case, new) for case in unchanged(*given)]
        )

    return apply


PHASES_OF_LOCAL = (
    "Section 5.2, stage 1", "Lemma 5.3", "Section 5.2, intuition", "Section 5.2, separation",
)  # fmt: skip
NO_PHASE = {"P": 64, "C_global": 48, "C_local": 8, "masked": 60}


@pytest.mark.parametrize("claim", PHASES_OF_LOCAL)
def test_a_phase_that_does_not_begin_decides_nothing_and_measures_nothing(claim):
    """rho(0) is below 1: what is said of a switch has no value, neither infinite nor against it."""
    found = measured(claim, **NO_PHASE)
    assert (found.holds, found.single, found.missing) == (None, (), ("size",))
    assert np.isnan(found.measured)
    assert "rho starts at 0.381, which is no Phase I" in found.reason
    (said,) = dynamics.verify(SYSTEM, law(**NO_PHASE), [claim])
    assert "again with" not in said.evidence["reason"]
    assert "recalled" not in said.evidence["reason"]


def test_a_threshold_that_is_not_passed_ends_no_stage():
    """With latents of 0.001 scores of positions make the phase, and Phi_0 hardly moves."""
    found = measured("Section 5.2, stage 1", P=16, C_global=12, C_local=4, z="0.001")
    assert found.holds is None
    assert np.isnan(found.measured)
    assert (
        "does not pass -(Delta/2 - 0.01) ln P / U within 1.25e+04 times the switch" in found.reason
    )


def test_phi_m_that_does_not_come_to_the_order_of_ln_p_decides_nothing():
    found = measured("Lemma 5.3", P=16, C_global=12, C_local=2, z="1000")
    assert (found.holds, found.missing) == (None, ("time",))
    assert "after the switch Phi_m comes to" in found.reason


def test_where_its_own_condition_fails_a_claim_does_not_hold(monkeypatch):
    """A bound that is met at a size from which the claim's own P^-0.02 is not small yet."""
    monkeypatch.setattr(phases, "STILL", 2.0)
    monkeypatch.setattr(phases, "growth_in_stage_1", lambda size, ratio, gap: 0.1 * 1e60 / size)
    for claim, bound in (("Section 5.2, separation", 2.0), ("Section 5.2, stage 1", 10.0)):
        wide = Study(SYSTEM, Protocol(law(**runs.POSITIVE)), "change", "<=", bound)
        found = getattr(phases, claim.split(", ")[1].replace(" ", "_")).__wrapped__(wide)
        assert found.measured <= bound
        assert found.holds is None
        assert "P near" in found.reason


@pytest.mark.parametrize(
    ("claim", "sizes", "words"),
    [
        ("Section 5.3, rapid growth", {"P": 64, "C_global": 48, "C_local": 16}, "2-fold at P near"),
        ("Section 5.3, convergence", {"P": 64, "C_global": 48, "C_local": 2}, "alpha_m peaks at"),
        (
            "Theorem F.3, global areas",
            {"P": 64, "C_global": 48, "C_local": 16},
            "vanishes along P, and is a constant at P=64 alone",
        ),
        (
            "Theorem F.3, local areas",
            {"P": 16, "C_global": 12, "C_local": 4, "z": "0.001"},
            "vanishes along P, and is a constant at P=16 alone",
        ),
    ],
)
def test_a_constant_at_one_size_does_not_contradict_what_is_said_of_large_p(claim, sizes, words):
    found = measured(claim, **sizes)
    assert (found.holds, found.missing) == (None, ("size",))
    assert words in found.reason


@pytest.mark.parametrize(("factor", "holds"), [(1.0, True), (2.0, None), (30.0, False)])
@pytest.mark.parametrize("local", [False, True])
def test_a_share_that_sizes_of_areas_do_not_make_contradicts_at_one_size(
    change, local, factor, holds
):
    """Whatever vanishes along P is no larger at one size than a mate, or another area, counts."""
    sizes = {"P": 256, "C_global": 32, "C_local": 14} if local else {
        "P": 64, "C_global": 12, "C_local": 4
    }  # fmt: skip
    given = law(**sizes)
    assert 0.09 < correlations.counted_share(given, local) < 0.29

    def others(case):
        names = case.others(local)
        rates = {f"d_{name}": factor * case.run[f"d_{name}"] for name in names}
        return rates | {name: factor * case.run[name] for name in names}

    change(others)
    claim = "Theorem F.4" if local else "Theorem F.3, global areas"
    found = measured(claim, **sizes)
    assert found.holds is holds
    assert ("is more than 2 times that" in found.reason) == (holds is False)


@pytest.mark.parametrize(
    ("own", "others", "z", "local", "share"),
    [
        (20, (10, 10), 1.0, False, 10 / 20),
        (4, (6, 6), 1.0, False, 36 / (4 * 16)),
        (4, (6, 6), 1.0, True, 6 / 10),
        (20, (5,) * 20, 0.1, False, 1 / (19 * 0.1)),
    ],
)
def test_the_share_that_sizes_make_by_hand(own, others, z, local, share):
    areas = [0] * own + [n + 1 for n, size in enumerate(others) for _ in range(size)]
    parameters = law(family="custom", areas=[areas], masked=2, z=[z])
    assert correlations.counted_share(parameters, local) == pytest.approx(share)


@pytest.mark.parametrize(
    ("areas", "share"),
    [
        ([[0, 0, 0, 1, 1, 1]] * 4, 4 / 2),  # all mates in all clusters
        ([[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2]], 2 / 1),  # the first two in both
        ([[0] * 3 + [1] * 3 + [2] * 3, [0, 1, 2] * 3], 1 / 2),  # rows and columns
    ],
)
def test_mates_count_as_often_as_clusters_have_them_together(areas, share):
    parameters = law(family="custom", areas=areas, masked=2)
    assert correlations.counted_share(parameters, local=False) == pytest.approx(share)


def test_ups_that_four_clusters_move_contradicts_nothing_at_one_size():
    """Four times 1/11 beside one Phi, which each cluster has for itself."""
    areas = [[n for n in range(12) for _ in range(12)]] * 4
    found = measured("Theorem F.4", family="custom", areas=areas)
    assert found.holds is None
    assert "is more than 2 times that" not in found.reason


def test_few_mates_excuse_a_share_and_not_a_phi_0_that_rises(change):
    sizes = {"P": 64, "C_global": 48, "C_local": 8}
    assert measured("Lemma 5.3", **sizes).holds is None
    change(lambda case: {"Phi_0": -case.run["Phi_0"]})
    assert measured("Lemma 5.3", **sizes).holds is False


def test_what_else_was_measured_and_failed_is_said_where_nothing_is_decided():
    """At this size the threshold comes after the switch, and Phi_m is past |Phi_0| there."""
    found = measured("Section 5.2, stage 1", P=64, C_global=48, C_local=16)
    assert found.holds is None
    assert "largest Phi_m over |Phi_0| at that threshold is 1.09, claimed < 1" in found.reason


@pytest.mark.parametrize(("fallen", "holds"), [(0.02, None), (1e-3, False)])
def test_one_size_does_not_excuse_a_loss_that_stays_above_its_floor(monkeypatch, fallen, holds):
    """A_m at the peak is a constant of order one; a loss that does not come down is not."""
    monkeypatch.setattr(convergence, "FALLEN", fallen)
    monkeypatch.setattr(convergence, "late_slope", lambda case, local: -0.3)
    monkeypatch.setattr(convergence, "still_steepening", lambda patches: False)
    found = measured("Section 5.3, convergence", P=64, C_global=48, C_local=2)
    assert found.holds is holds
    assert found.measured == -0.3


def test_growth_is_counted_from_the_switch_on():
    """alpha_m is largest before the switch; from there on it falls."""
    found = measured("Section 5.3, rapid growth", P=16, C_global=12, C_local=4, z="0.001")
    assert found.measured == 1.0
    assert found.holds is None


def test_a_correlation_at_rest_is_monotone():
    """At latents of 0.001 the run ends where steps are below rounding, and one rate is 0."""
    found = measured("Section 5.1, monotone", P=16, C_global=12, C_local=4, z="0.001")
    assert found.holds
    assert found.measured == 0.0
    assert "or one rests to rounding" in found.reason


@pytest.mark.parametrize(("roundings", "holds"), [(0.9, True), (1e6, False)])
@pytest.mark.parametrize("name", ["Phi_m", "Phi_0"])
def test_a_sign_within_the_rounding_of_its_rate_decides_nothing(change, name, roundings, holds):
    sizes = {"P": 16, "C_global": 12, "C_local": 4}

    def last_rate(case):
        error = rounding_of_terms.rounding_of_rates(case.parameters, np.abs(case.run.states).max())
        observable = f"alpha_{name[-1]}"
        rate = case.run[observable].copy()
        rate[-1] = -np.sign(rate[-2]) * roundings * error
        return {observable: rate}

    change(last_rate)
    found = measured("Section 5.1, monotone", **sizes)
    assert found.holds is holds
    assert ("or one rests to rounding" in found.reason) == holds


def test_rates_that_are_all_rounding_have_no_sign(change):
    change(lambda case: {"alpha_0": 1e-10 * np.finfo(float).eps * case.run["alpha_0"]})
    found = measured("Section 5.1, monotone", P=16, C_global=12, C_local=4)
    assert (found.holds, found.missing) == (None, ("precision",))
    assert "within its rounding" in found.reason


def test_the_rounding_of_a_rate_is_no_less_than_that_of_the_reduced_problem():
    """Against the gradient by another expectation, at the end of training."""
    sizes = {"P": 16, "C_global": 12, "C_local": 4, "z": "1,4"}
    case = runs.trained(SYSTEM, law(**sizes))
    names = [name for name in case.run.layout.names if "_Phi_" in name]
    one, other = (
        SYSTEM.ReducedPopulation(law(**sizes), expectation=how) for how in ("counts", "contour")
    )
    error = rounding_of_terms.rounding_of_rates(case.parameters, np.abs(case.run.states).max())
    off = np.abs(one.gradient(case.run.final_state) - other.gradient(case.run.final_state))
    phi = [case.run.layout.names.index(name) for name in names]
    assert off[phi].max() <= error <= 1e-11 * np.abs(one.gradient(one.initial_state)).max()
