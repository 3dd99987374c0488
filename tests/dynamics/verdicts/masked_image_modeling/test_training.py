"""Claims along training: verdicts follow runs that are changed, and one size excuses little."""

import dataclasses

import numpy as np
import pytest

import dynamics
from dynamics.papers.masked_image_modeling.reduced import ReducedPopulation
from dynamics.verdicts.findings import Protocol
from dynamics.verdicts.masked_image_modeling import diversity, gap, grid
from dynamics.verdicts.verify import checks

SYSTEM = dynamics.load_system("masked_image_modeling")
CHECKS = checks(SYSTEM)
SMALL = {"P": 12, "C_global": 8, "C_local": 2, "masked": 3}
NO_PHASE = {"P": 64, "C_global": 48, "C_local": 8, "masked": 60}
ALONG = dict.fromkeys(("Lemma 5.3", "Section 5.2, intuition", "Section 5.3, convergence",
                       "Section 5.3, gradients of convergence"), 4)  # fmt: skip
"""How many sizes a claim takes at least to hold; others take three, or one law at a large P."""


def found(claim, system=SYSTEM, sizes=None, **given):
    """The finding at parameters, or at some laws, before the rules of what may be said."""
    check = CHECKS[claim]
    along = 3 if check.laws[0]["P"] < 4096 else 2 if claim == "Section 5.4, PP" else 1
    check = dataclasses.replace(check, laws=check.laws[: sizes or ALONG.get(claim, along)])
    return check(system, Protocol(SYSTEM.Parameters(**given) if given else None))


@pytest.fixture
def change(monkeypatch):
    """A function that changes every run by ``(problem, run) -> {name: values}``."""
    unchanged = grid.trained

    def apply(new):
        def trained(*given):
            problem, run = unchanged(*given)
            states, changed = run.states.copy(), new(problem, run)
            for name in set(changed) & set(run.layout.names):
                states[:, run.layout.names.index(name)] = changed.pop(name)
            observables = dict(run.observables) | changed
            return problem, dataclasses.replace(run, states=states, observables=observables)

        monkeypatch.setattr(grid, "trained", trained)

    return apply


def times_others(factor, local, rates):
    """All but the leading correlation of a row, or their rates, times a factor."""

    def new(problem, run):
        prefix = "d_" if rates else ""
        names = [f"{prefix}{name}" for name in problem.rows.roles(local)[2]]
        return {name: factor * run[name] for name in names}

    return new


def growing_rates(problem, run):
    """Rates of other correlations that grow along P beside alpha_m."""
    P = problem.parameters.P
    return {f"d_{name}": P * run[f"d_{name}"] for name in problem.rows.roles(local=True)[2]}


def wavering(problem, run):
    """A rate of Phi_m that falls at every second record."""
    return {"alpha_m": run["alpha_m"] * np.where(np.arange(run.time.size) % 2, 0.5, 1.0)}


def to_masked(problem, run):
    """Ten times the attention to masked patches."""
    return {f"{name}_masked": 10 * run[f"{name}_masked"] for name in problem.rows.names}


BROKEN = {
    "Section 5.1, monotone": lambda _, run: {"Phi_0": -run["Phi_0"]},
    "Theorem F.3, local areas": lambda _, run: {"rho": 1.5 + 0 * run["rho"]},
    "Theorem F.3, global areas": times_others(500.0, False, True),
    "Theorem F.4": lambda _, run: {"rho": 30 * run["rho"]},
    "Lemma 5.3": times_others(3.0, True, False),
    "Section 5.2, gradients": growing_rates,
    "Section 5.3, gradients of convergence": growing_rates,
    "Section 5.3, rapid growth": wavering,
    "Section 5.3, convergence": lambda _, run: {"A_m": 0.1 * run["A_m"]},
    "Theorem 4.1, loss": lambda _, run: {"gap": run["gap"] ** 0.5},
    "Theorem 4.1, attention": lambda _, run: {"A_m": 0.5 * run["A_m"]},
    "Section 4, masked patches": to_masked,
    "Section 5.4, PP": times_others(2.0, True, False),
}


@pytest.mark.parametrize("claim", BROKEN)
def test_a_run_that_is_changed_changes_the_verdict(change, claim, monkeypatch):
    monkeypatch.setattr(grid, "FINE", 0.03)
    monkeypatch.setattr(grid, "LARGEST", 6.0)
    # Four sizes do not decide an exponent of 0.
    assert found(claim).holds is (None if claim == "Section 5.3, convergence" else True)
    change(BROKEN[claim])
    assert found(claim).holds is False


class Doubled(ReducedPopulation):
    """rho(0) is twice what it is."""

    rho0 = property(lambda self: 2 * self._named(self.initial_state)["rho"])


def test_an_exponent_of_rho_that_is_not_delta_is_seen(monkeypatch):
    claim = "Equation (4.1)"
    assert found(claim).holds
    assert found(claim, dataclasses.replace(SYSTEM, ReducedPopulation=Doubled)).holds is False
    monkeypatch.setattr(
        "dynamics.verdicts.masked_image_modeling.gap.ratio_at_start",
        lambda P, exponents, share: 9.0 * P**0.44,
    )
    finding = found(claim, **grid.POSITIVE)
    assert (finding.holds, finding.measured) == (None, pytest.approx(0.12))


NEEDED = {
    "Section 5.2, stage 1": "P near 9e23", "Section 5.2, separation": "P near 1e52",
    "Theorem F.3, frozen": "P near 4e10",
}  # fmt: skip


@pytest.mark.parametrize("claim", NEEDED)
def test_what_needs_more_patches_is_undecided_with_how_many(claim, monkeypatch):
    finding = found(claim, **grid.POSITIVE)
    assert finding.holds is None
    assert finding.measured > finding.bound
    assert NEEDED[claim] in finding.reason
    # Were that many enough, the same measurement would contradict the claim.
    monkeypatch.setattr(grid, "least_patches", lambda *given: 1.0)
    assert found(claim, **grid.POSITIVE).holds is False


@pytest.mark.parametrize(
    ("claim", "sizes", "of", "key", "factor"),
    [
        ("Section 5.2, intuition", None, "switch", "Phi_0", 3.0),
        ("Theorem F.3, attention", 1, "moment", "A_m", 0.5),
    ],
)
def test_another_depth_or_attention_changes_the_verdict(claim, sizes, of, key, factor, monkeypatch):
    right = getattr(grid, of)
    assert found(claim, sizes=sizes).holds
    monkeypatch.setattr(grid, of, lambda *given: {key: factor * right(*given)[key]})
    assert found(claim, sizes=sizes).holds is False


@pytest.mark.parametrize(("power", "holds"), [(0.2, True), (0.9, False)])
def test_the_time_to_a_loss_is_an_upper_bound_with_an_exponent(power, holds, monkeypatch):
    """P^(1 - kappa_s) ln P, whatever the factor."""

    def moment(case, _):
        P = case.parameters.P
        return {"time": 1e-3 * P**power * np.log(P)}

    monkeypatch.setattr(grid, "moment", moment)
    finding = found("Theorem F.3, loss")
    assert finding.holds is holds
    assert finding.measured == pytest.approx(power)


@pytest.mark.parametrize(
    ("claim", "sizes", "words"),
    [
        *((claim, NO_PHASE, "rho starts at 0.381, so there is no Phase I") for claim in
          ("Section 5.2, stage 1", "Lemma 5.3", "Theorem F.3, frozen")),
        ("Section 5.3, rapid growth", {"P": 64, "C_global": 48, "C_local": 16}, "2-fold, to lead"),
        ("Section 5.3, convergence", {"P": 64, "C_global": 48, "C_local": 2}, "alpha_m peaks at"),
        ("Section 5.4, PP", {"P": 4096, "C_global": 2048, "C_local": 4}, "need P near 2e6"),
        ("Theorem F.4", {"P": 16, "C_global": 4, "C_local": 4}, "need P near 1e2"),
        ("Theorem F.3, global areas", {"family": "custom", "areas": "0,0,0,0"}, "without local"),
        ("Theorem F.3, global areas", {"P": 8, "C_global": 1, "C_local": 7}, "no global patch"),
        ("Theorem F.3, local areas", {"P": 4096, "C_global": 704, "C_local": 64}, "Delta=0.0766"),
        ("Theorem F.4", grid.POSITIVE, "a negative information gap"),
        ("Theorem 4.1, attention", {"P": 1024, "C_global": 512, "C_local": 8, "masked": 32},
         "of its start"),
    ],
)  # fmt: skip
def test_what_does_not_meet_a_hypothesis_is_not_decided(claim, sizes, words):
    finding = found(claim, **sizes)
    assert finding.holds is None
    assert words in finding.reason
    assert np.isnan(finding.measured) or sizes != NO_PHASE


@pytest.mark.parametrize(("steeper", "holds"), [(True, None), (False, False)])
def test_a_loss_that_stays_above_its_floor_is_no_matter_of_size(monkeypatch, steeper, holds):
    monkeypatch.setattr(gap, "late_slope", lambda case, local: -0.3)
    monkeypatch.setattr(gap, "steepens", lambda case, local: steeper)
    monkeypatch.setattr(gap, "FALLEN", 1e-9)
    sizes = {"P": 64, "C_global": 48, "C_local": 8}
    assert found("Section 5.3, convergence", **sizes).holds is holds
    assert found("Theorem 4.1, loss", **sizes).holds is holds


@pytest.mark.parametrize(("roundings", "holds"), [(0.9, True), (1e6, False)])
def test_a_sign_within_the_rounding_of_its_rate_decides_nothing(change, roundings, holds):
    def last_rate(problem, run):
        rate = run["alpha_0"].copy()
        error = grid.rounding_of_rates(problem.parameters, np.abs(run.states).max())
        rate[-1] = -np.sign(rate[-2]) * roundings * error
        return {"alpha_0": rate}

    change(last_rate)
    assert found("Section 5.1, monotone", P=16, C_global=12, C_local=4).holds is holds


def test_steps_and_horizon_follow_a_constant_latent():
    """Z Phi moves z^4 times as fast as with z = 1, and then the same way."""
    sizes = {"P": 256, "C_global": 160, "C_local": 24}
    one, large = (found("Section 5.3, rapid growth", z=z, **sizes) for z in (1.0, 10.0))
    assert one.holds is large.holds is True
    assert large.measured == pytest.approx(one.measured, rel=0.06)
    apart = found("Section 5.3, rapid growth", z="0.1,10", **sizes)
    assert (apart.holds, apart.missing) == (None, ("time",))
    assert "a factor of 1e+08" in apart.reason


def test_the_metric_is_settled_by_one_step(monkeypatch):
    sizes = {"P": 256, "C_global": 128, "C_local": 4}
    (verdict,) = dynamics.verify(SYSTEM, SYSTEM.Parameters(**sizes), ["Section 6"])
    assert (verdict.holds, verdict.finding.single) == (False, ())
    for again in ("eta times 0.5: 1", "eta times 0.25: 1", "time times 2: 1"):
        assert again in verdict.evidence["reason"]
    variation = lambda one, **_: diversity.total_variation(one)  # noqa: E731
    monkeypatch.setattr(diversity, "diversity", variation)
    assert found("Section 6", **sizes).holds
    monkeypatch.setattr(diversity, "total_variation", lambda one: 1.0)
    assert found("Section 6", **SMALL).holds is None


def test_the_diversity_is_the_measured_one():
    problem = SYSTEM.ReducedPopulation(SYSTEM.Parameters(**diversity.SIZES))
    run = dynamics.descend(problem, 1.0, 455, record=[0, 1, 165, 455])
    values = diversity.measured_maps(problem.rows, run, (10,), 30)
    (metric,) = values["diversity"]
    assert metric[0] == 0
    np.testing.assert_allclose(metric[1:], 50.228, atol=5e-4)
    assert values["total_variation"] == pytest.approx([0, 0.012, 0.380, 0.670], abs=6e-4)
