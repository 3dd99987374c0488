"""The shallow ViT: shares of successful trials, in a loop and in stored sweeps."""

import dataclasses

import numpy as np
import pytest

import dynamics
from dynamics.verdicts.figure import FigureRequest
from dynamics.verdicts.shallow_vit import complexity, iterations, runs

SYSTEM = dynamics.load_system("shallow_vit")
LAW = SYSTEM.Parameters(m=40, L=40, alpha_star=0.3, alpha_confusion=0.2, data="fixed_disc")
COUNTS = (2, 8, 24, 48)


def test_rows_end_after_two_full_numbers():
    assert not complexity.ended([1.0])
    assert complexity.ended([0.2, 1.0, 1.0])
    assert not complexity.ended([1.0, 0.9, 1.0])
    loss = np.where(np.arange(4)[None, :, None] < [[[1]], [[0]]], 0.5, 0.0) * np.ones((2, 4, 3))
    cut = complexity.Rows(np.array(COUNTS), loss, loss).cut()
    assert np.isnan(cut.share).tolist() == [[False] * 3 + [True], [False] * 2 + [True] * 2]
    assert [found.kind for found in cut.thresholds] == ["measured", "below"]


def test_a_sweep_has_the_trials_of_the_loop(tmp_path):
    """The same runs, N by N here, and there in stores that a second call only reads."""
    shares = (0.3, 0.45)
    laws = [iterations.law_at(LAW, "rest", a) for a in shares]
    loop = complexity.trials_of(SYSTEM, laws, seed=3, trials=4, counts=COUNTS)
    axes = {
        "alpha_star": shares, "alpha_confusion": iterations.FAMILIES["rest"].confusion,
        "seed": [3, 4, 5, 6],
    }  # fmt: skip
    for _ in range(2):
        swept = complexity.stored_trials(SYSTEM, LAW, axes, "alpha_star", COUNTS, tmp_path / "a", 0)
        np.testing.assert_array_equal(swept.loss, loop.loss)
        np.testing.assert_array_equal(swept.steps, loop.steps)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a-2.zarr", "a-48.zarr"]


def test_sweeps_of_a_figure_stay_until_it_is_drawn(tmp_path):
    request = FigureRequest(user_parameters={"m": 40})
    first = _folder_of_one_that_stops(request)
    assert (first / "part").exists()
    with runs.folder("1a", request, {"store": ""}) as again:
        assert again == first
    assert not first.exists()
    with runs.folder("1a", FigureRequest(), {"store": ""}) as other:
        assert other != first
    with runs.folder("1a", request, {"store": str(tmp_path / "mine")}) as own:
        own.mkdir()
    assert own.exists()


def _folder_of_one_that_stops(request):
    try:
        with runs.folder("1a", request, {"store": ""}) as found:
            (found / "part").mkdir(parents=True)
            raise runs.Interrupted("now")
    except runs.Interrupted:
        return found


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
    laws = [iterations.law_at(usual, family, a) for a in expected]
    trials = 60 if frozen == "none" else 20
    found = complexity.trials_of(SYSTEM, laws, trials=trials).values
    assert np.abs(np.log(found / list(expected.values()))).max() < np.log(1.5)


def test_the_linear_loss_goes_on_past_its_zero():
    law = SYSTEM.Parameters(m=60, L=20)
    for loss, whole in (("linear", True), ("hinge", False)):
        case = runs.trained(SYSTEM, dataclasses.replace(law, loss=loss), 0, steps=200)
        assert case.run.events["t_zero"].step < 200
        assert (case.last == 200) == whole
    problem = SYSTEM.ReducedPopulation(dataclasses.replace(law, loss="linear"))
    run = runs.descend_in_parts(problem, complexity.ETA, (120, 150))
    assert run.events["t_zero"]
    assert run.steps[-1] == 150


def test_a_trial_that_diverges_is_no_success(monkeypatch):
    loss = np.array([[[np.inf, 1e-9], [1e-9, 1e-9], [1e-9, 1e-9], [np.nan, np.nan]]])
    rows = complexity.Rows(np.array(COUNTS), loss, loss)
    np.testing.assert_array_equal(rows.share, [[0.5, 1.0, 1.0, np.nan]])
    trained, calls = runs.descend_in_parts, []

    def every_second_fails(problem, eta, horizons):
        run = trained(problem, eta, horizons)
        calls.append(problem)
        failed = dataclasses.replace(run.outcome, kind="diverged")
        return dataclasses.replace(run, outcome=failed) if len(calls) % 2 else run

    monkeypatch.setattr(runs, "descend_in_parts", every_second_fails)
    easy = dataclasses.replace(LAW, m=41, alpha_star=0.48, alpha_confusion=0.02)
    share = complexity.trials_of(SYSTEM, [easy], trials=2, counts=(8, 16)).share
    assert share.tolist() == [[0.5, 0.5]]
