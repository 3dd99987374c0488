"""The shallow ViT: shares of successful trials in a loop and in stored sweeps; their claims."""

import contextlib
from dataclasses import replace

import numpy as np
import pytest
from verdicts import scaled

import dynamics
from dynamics.papers.shallow_vit.problems import ReducedPopulation
from dynamics.phase_diagrams.threshold import threshold
from dynamics.verdicts.figure import FigureRequest
from dynamics.verdicts.findings import Finding, Protocol
from dynamics.verdicts.shallow_vit import iterations, runs, samples, stores, trial_rows
from dynamics.verdicts.verify import checks

SYSTEM = dynamics.load_system("shallow_vit")
LAW = SYSTEM.Parameters(m=40, L=40, alpha_star=0.3, alpha_confusion=0.2, data="fixed_disc")
OF_THEOREM = SYSTEM.Parameters(m=200, L=40, alpha_star=0.3, alpha_confusion=0.06, data="fixed_disc")
COUNTS = (2, 8, 24, 48)


def test_rows_end_after_two_full_numbers():
    loss = np.where(np.arange(4)[None, :, None] < [[[1]], [[0]]], 0.5, 0.0) * np.ones((2, 4, 3))
    assert [trial_rows.ended(loss[0, :k]) for k in (1, 2, 3)] == [False, False, True]
    cut = [trial_rows.of_trials(COUNTS, one, one) for one in loss]
    assert [len(one.loss) for one in cut] == [3, 2]
    assert [one.n50.kind for one in cut] == ["measured", "below"]


def test_a_sweep_has_the_trials_of_the_loop(tmp_path):
    shares = (0.3, 0.45)
    laws = [iterations.law_at(LAW, "rest", a) for a in shares]
    loop = [trial_rows.trials_of(SYSTEM.ReducedPopulation, law, 3, 2, COUNTS) for law in laws]
    axes = {
        "alpha_star": shares, "alpha_confusion": iterations.FAMILIES["rest"].confusion,
        "seed": [3, 4],
    }  # fmt: skip
    for _ in range(2):
        swept = stores.stored_trials(SYSTEM, LAW, axes, "alpha_star", COUNTS, tmp_path / "a", 0)
        for one, two in zip(swept, loop, strict=True):
            np.testing.assert_array_equal(one.loss, two.loss)
            np.testing.assert_array_equal(one.steps, two.steps)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a-2.zarr", "a-48.zarr"]


def test_a_trial_that_diverges_is_no_success(monkeypatch):
    trained, calls = runs.descend_in_parts, []

    def every_second_fails(problem, eta, horizons):
        run = trained(problem, eta, horizons)
        calls.append(problem)
        failed = replace(run.outcome, kind="diverged")
        return replace(run, outcome=failed) if len(calls) % 2 else run

    monkeypatch.setattr(runs, "descend_in_parts", every_second_fails)
    easy = replace(LAW, m=41, alpha_star=0.48, alpha_confusion=0.02)
    loss = trial_rows.trials_of(SYSTEM.ReducedPopulation, easy, 0, 2, (8, 16)).loss
    assert (loss < trial_rows.SUCCESS).mean(axis=1).tolist() == [0.5, 0.5]


REFERENCE = {
    ("rest", "none"): {0.27: 52.6, 0.28: 24.2, 0.3: 10.1, 0.32: 5.4, 0.37: 2.8},
    ("rest", "attention"): {0.27: 73.8, 0.28: 45.0, 0.3: 21.0, 0.32: 13.5, 0.37: 5.2},
    ("proportion", "none"): {0.05: 8.4, 0.07: 8.7, 0.1: 5.1, 0.15: 5.3, 0.2: 4.4, 0.3: 2.5},
    ("proportion", "attention"): {0.05: 50.0, 0.07: 56.0, 0.1: 75.0, 0.15: 33.0, 0.2: 13.5,
                                  0.3: 5.5},
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(("family", "frozen"), REFERENCE)
def test_n50_of_another_program_within_a_factor(family, frozen):
    expected = REFERENCE[family, frozen]
    usual = SYSTEM.Parameters(m=300, L=100, data="fixed_disc", frozen=frozen)
    trials = 60 if frozen == "none" else 20
    for a, n50 in expected.items():
        law = iterations.law_at(usual, family, a)
        found = trial_rows.trials_of(SYSTEM.ReducedPopulation, law, 0, trials).n50.value
        assert abs(np.log(found / n50)) < np.log(1.5)


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(samples, "SHARES", (0.15, 0.25, 0.4))

    def trials(case, law=None, **given):
        make, law = case.system.ReducedPopulation, law or case.parameters
        return trial_rows.trials_of(make, law, case.seed, 3, COUNTS[:3])

    monkeypatch.setattr(samples, "trials", trials)


def test_sweeps_of_a_figure_stay_until_it_is_drawn(tmp_path):
    request = FigureRequest(user_parameters={"m": 40})
    with contextlib.suppress(stores.Interrupted), stores.folder("1a", request, {"store": ""}) as at:
        (at / "part").mkdir(parents=True)
        raise stores.Interrupted("now")
    assert (at / "part").exists()
    with stores.folder("1a", request, {"store": ""}) as again:
        assert again == at
    assert not at.exists()
    with stores.folder("1a", request, {"store": str(tmp_path / "mine")}) as own:
        own.mkdir()
    assert own.exists()


def test_generalization_rests_on_training(few, monkeypatch):
    monkeypatch.setattr(samples, "BATCH_STEPS", 100)
    monkeypatch.setattr(samples, "BATCH_TRIALS", 2)
    monkeypatch.setattr(trial_rows, "STEPS", 60)
    law = replace(OF_THEOREM, alpha_star=0.6, alpha_confusion=0.1)
    still = replace(SYSTEM, ReducedPopulation=scaled(ReducedPopulation, W_O=0, V=0, K=0, Q=0))
    for source in ("Theorem 1, generalization", "Equation (9)"):
        for system, expected in ((SYSTEM, True), (still, False)):
            (verdict,) = dynamics.verify(system, law, [source])
            assert verdict.holds is expected


def test_frozen_attention_has_no_advantage_over_itself(few):
    """Remark 1 compares two trainings: where attention never moves, the ratio is 1."""
    system = replace(SYSTEM, ReducedPopulation=scaled(ReducedPopulation, K=0, Q=0))
    (ratio,) = dynamics.verify(system, OF_THEOREM, ["Remark 1"])
    assert (ratio.measured, ratio.holds, ratio.finding.literal.holds) == (0.0, None, True)


def of_power(power):
    """Trials whose N50 grows as 1/alpha_* to a power, and with what the start is off by."""

    def trials(case, law=None, **given):
        law = law or case.parameters
        n50 = 20 * (law.alpha_star / 0.05) ** -power * np.exp(10 * (law.sigma - law.delta))
        counts = np.geomspace(1e-4, 1e4, 800)
        steps = np.full((1, 20), 1 / law.alpha_star)
        return trial_rows.Trials(np.zeros((1, 20)), steps, threshold(
            counts, np.where(counts > n50, 20, 0), 20))  # fmt: skip

    return trials


@pytest.mark.parametrize(
    ("source", "claimed", "better"),
    [("Theorem 1, samples", 2, True), ("Proposition 1", 4, True), ("Figure 1a", 2, None)],
)
def test_exponents_are_those_of_n50(source, claimed, better, monkeypatch):
    """N50 that grows less meets a bound; that grows faster does not."""
    law = replace(OF_THEOREM, L=100, alpha_confusion=0.1)
    for power, expected in ((0.5, better), (claimed, True), (claimed + 1, None)):
        monkeypatch.setattr(samples, "trials", of_power(power))
        (verdict,) = dynamics.verify(SYSTEM, law, [source])
        assert verdict.measured == pytest.approx(power, abs=0.1)
        assert verdict.holds is expected


def test_what_grows_with_the_start_and_falls_with_the_shares(monkeypatch):
    monkeypatch.setattr(samples, "trials", of_power(2.0))
    law = replace(OF_THEOREM, m=500, L=100, alpha_confusion=0.03)
    (start, shares) = (
        checks(SYSTEM)[source](SYSTEM, Protocol(law))
        for source in ("Remark 3, samples", "Remark 2, shares")
    )
    assert start.holds is False  # with delta it falls
    assert shares.holds
    monkeypatch.setattr(samples, "trials", of_power(-2.0))
    assert checks(SYSTEM)["Remark 2, shares"](SYSTEM, Protocol(law)).holds is False


def test_points_beside_those_that_were_asked_for_may_be_impossible():
    shortest = SYSTEM.Parameters(m=200, L=1, alpha_star=1.0, alpha_confusion=0.0)
    for verdict in dynamics.verify(SYSTEM, shortest, ["Theorem 1, samples", "Figure 1a"]):
        assert verdict.holds is None
        assert "fewer than 3" in verdict.evidence["reason"]


@pytest.mark.parametrize(
    ("share", "trials", "holds"), [(1.0, 20, None), (1.0, 300, True), (0.5, 20, False)]
)
def test_trials_are_held_against_a_probability_with_their_error(share, trials, holds):
    """Of n trials that all succeed the probability p is excluded where p^n is below 0.05."""
    rows = [{"value": share, "trials": trials}, {"value": 1.0, "trials": 10**4}]
    literal = samples.of_all_trials(rows, Finding(True, "share", share, 0.99, "")).literal
    assert literal.holds is holds
    if share == 1:
        assert literal.measured == pytest.approx(0.05 ** (1 / trials), rel=1e-12)
