"""What the checks of Section 5.2 and Lemma 5.3 say where a phase does not begin or end."""

import numpy as np
import pytest

import dynamics
from dynamics.experiments.masked_image_modeling import convergence, phases, runs
from dynamics.experiments.measurement import Study
from dynamics.experiments.verify import Protocol, checks

SYSTEM = dynamics.load_system("masked_image_modeling")


def law(**given):
    return SYSTEM.Parameters(**given)


def measured(claim, **given):
    """The finding of a check, before the rules of what a verdict may say."""
    return checks(SYSTEM)[claim](SYSTEM, Protocol(law(**given)))


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
    assert "re-derived" not in said.evidence["reason"]


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
