"""The shallow ViT: figures draw what single runs give, and refuse in one line."""

import numpy as np
import pytest

import dynamics
from dynamics.verdicts.draw import draw
from dynamics.verdicts.shallow_vit import iterations, trial_rows
from theory.papers.shallow_vit.attention_limits import ceiling

SYSTEM = dynamics.load_system("shallow_vit")
QUICK = {"trials": 3, "samples": (2, 24), "workers": 0}


def test_figures_of_success_show_what_was_measured():
    given = {"m": 40, "L": 40}
    options = QUICK | {"alphas": (0.35, 0.4, 0.45)}
    drawing = draw(SYSTEM, "1a", parameters=given, options=options)
    share, left = drawing.data["share"], drawing.axes[0].collections[0]
    # The variable grows as alpha_* falls.
    np.testing.assert_array_equal(np.ma.filled(left.get_array(), np.nan), share[::-1].T)
    law = iterations.law_at(SYSTEM.Parameters(data="fixed_disc", **given), "rest", 0.35)
    loop = trial_rows.trials_of(SYSTEM.ReducedPopulation, law, 0, 3, (2, 24)).loss
    np.testing.assert_array_equal(share[0], (loop < trial_rows.SUCCESS).mean(axis=1))
    few = QUICK | {"samples": (2, 4), "trials": 1, "sigmas": (0.0, 0.5)}
    assert (
        "not fitted (too few values)" in draw(SYSTEM, "1b", parameters=given, options=few).caption
    )


def test_figure_2_is_that_of_single_runs():
    drawing = draw(SYSTEM, "2", parameters={"m": 40}, options={"seeds": 2, "workers": 0,
                                                          "families": ("none",)})  # fmt: skip
    found = drawing.data["none"]
    law = SYSTEM.Parameters(m=40, L=100)
    for alpha, steps in zip(found["alpha_star"][2:], found["steps"][2:], strict=True):
        one = iterations.law_at(law, "none", alpha)
        alone = [
            iterations.steps_to_zero(SYSTEM.ReducedPopulation, one, seed, 0.05) for seed in (0, 1)
        ]
        assert np.rint(steps).tolist() == alone
    np.testing.assert_allclose(found["gap"], found["alpha_star"])


def test_figures_of_noisy_tokens():
    given = {"m": 40, "L": 20, "d": 6}
    options = {"samples": 10, "steps": 40, "seeds": 2}
    attention = draw(SYSTEM, "4", parameters=given, options=options)
    run, lines = attention.data["margin 1"]["relevant"], attention.axes[0, 0].lines
    np.testing.assert_array_equal(lines[0].get_ydata(), np.mean(run, axis=0))
    quick = options | {"removed": (0.0, 0.5), "workers": 0}
    tokens = draw(SYSTEM, "5", parameters=given, options=quick)
    found = tokens.data["loss"][0]["irrelevant first"]
    np.testing.assert_array_equal(tokens.axes[0, 0].lines[3].get_ydata(), found.mean(axis=1))
    assert found[0].tolist() == tokens.data["loss"][0]["at random"][0].tolist()


def test_the_ceiling_of_one_sample_is_not_that_of_the_law():
    given = {"m": 20, "L": 20, "alpha_confusion": 0.1}

    def top(samples):
        options = {"samples": samples, "steps": 20, "seeds": 1, "margins": ("one",)}
        caption = draw(SYSTEM, "4", parameters=given, options=options).caption
        return float(caption.split("cannot exceed ")[1][:-1])

    law = SYSTEM.Parameters(data="fixed_disc", **given)
    even = ceiling(law.n_star, law.n_confusion, law.L)
    assert (top(1), top(4)) == (1.0, pytest.approx(even, abs=6e-4))
