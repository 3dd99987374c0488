from dataclasses import replace

import numpy as np
import pytest

import dynamics
from dynamics import plotting
from dynamics.cli import report


@pytest.fixture(scope="module")
def result():
    """Two runs whose alpha is known; see `ratios`."""
    system = dynamics.load_system("positional_attention")
    law = system.Parameters(D=4, C=2)
    seeds = [system.FullEmpirical(law, samples=20, seed=seed) for seed in range(2)]
    made = dynamics.compare(system.ReducedPopulation(law), seeds, eta=0.5, steps=5, record=1)
    alpha = made.reduced["alpha"]
    runs = [
        replace(run, observables={**run.observables, "alpha": alpha * (1 + ratio)})
        for run, ratio in zip(made.fulls, ratios(), strict=True)
    ]
    return replace(made, full=runs[0], others=(runs[1],))


def ratios():
    """The first run comes back once, and leaves by 10 % for good at step 4; the second is near."""
    return np.array([[0.2, -0.005, 0.02, 0.05, -0.2, 0.3], [0, 0, 0, 0, 0, 0.02]])


def test_deviations_are_relative_to_the_reduced_value_of_the_same_time(result):
    np.testing.assert_allclose(
        result.relative_deviations["alpha"], np.abs(ratios()), rtol=1e-9, atol=1e-15
    )
    assert np.isinf(result.relative_deviations["gamma"][:, 0]).all()  # a random start beside 0
    exact = replace(result, full=replace(result.full, observables=result.fulls[1].observables))
    assert exact.relative_deviations["alpha"][0, 0] == 0


def test_a_departure_is_the_time_from_which_on_a_run_stays_away(result):
    for share, times in [(0.01, [1.0, 2.5]), (0.1, [2.0, np.inf]), (0.5, [np.inf, np.inf])]:
        np.testing.assert_array_equal(result.departures(share)["alpha"], times)
    assert result.departures(0.001)["gamma"].min() >= 0


def test_the_command_prints_a_line_for_every_state(result, system):
    printed = report.table(system, result).splitlines()
    first = next(k for k, line in enumerate(printed) if line.startswith("away for good by"))
    lines = printed[first : next(k for k in range(first, len(printed)) if not printed[k])]
    (alpha,) = [line for line in lines if line.startswith("alpha")]
    cells = [cell.strip() for cell in alpha.split("  ") if cell.strip()]
    assert cells == ["alpha", "1 to 2.5", "2 (1 of 2)", "not at the end", "2 to 30 %"]
    assert report.document(result)["departures"]["0.1"]["alpha"].tolist() == [2.0, np.inf]
    assert report.departs(result)
    assert not report.departs(replace(result, full=replace(result.full, settings={})))


def test_the_picture_has_the_median_and_the_band_of_the_seeds(result):
    axes = plotting.departure(result)
    line = next(line for line in axes.lines if line.get_label() == r"$\alpha$")
    shown = np.clip(np.abs(ratios()[:, 1:]), 1e-3, None)
    np.testing.assert_allclose(line.get_ydata(), np.median(shown, axis=0), rtol=1e-9)
    assert len([c for c in axes.collections if c.get_alpha() == 0.2]) == 3
    assert "2 seeds" in axes.get_legend().get_title().get_text()
