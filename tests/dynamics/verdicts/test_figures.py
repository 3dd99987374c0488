"""Figures show what was measured; those that cannot be drawn are refused in one line."""

import numpy as np
import pytest
from small_images import write_bars

import dynamics
from dynamics.images import datasets
from dynamics.validation import InvalidRequest
from dynamics.verdicts.draw import draw
from dynamics.verdicts.figure import FigureRequest
from dynamics.verdicts.masked_image_modeling import diversity
from dynamics.verdicts.masked_image_modeling.diversity import Measures, Plan
from dynamics.verdicts.positional_attention.convolution import QUICK, THOROUGH
from dynamics.verdicts.shallow_vit import iterations, trial_rows
from theory.papers.shallow_vit.attention_limits import ceiling

PA, MIM, VIT = "positional_attention", "masked_image_modeling", "shallow_vit"
PATTERNS, MASKED = dynamics.load_system(VIT), dynamics.load_system(MIM)


@pytest.mark.parametrize(
    ("system", "name", "given", "options", "told"),
    [
        (PA, "5", {}, {}, "figure '5' of positional_attention is unknown; known are 1b, 2, 3, 4"),
        (PA, "4", {}, {"stepz": 1}, "option 'stepz' is unknown; known are thorough, samples, eta"),
        (PA, "2", {}, {"samples": 9, "adam_steps": 0}, "adam_steps=0 is too small"),
        (MIM, "phases", {"P": 16, "C_global": 4, "C_local": 4}, {}, "C_local can be 2, 3, 6, 12"),
        (MIM, "phases", {"family": "two_cluster_grid"}, {}, "is not the family of this figure"),
        (MIM, "gap", {"P": 64}, {"local": float("nan")}, "local=nan is not finite"),
        (VIT, "1a", {"alpha_star": 0.4}, {}, "alpha_star is an axis"),
        (VIT, "3", {}, {"family": "half"}, "family='half' is unknown"),
        (VIT, "1b", {}, {"sigmas": (0.0, 1.0)}, "below 1"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_line(system, name, given, options, told):
    with pytest.raises(InvalidRequest) as refused:
        draw(system, name, parameters=given, options=options)
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


def test_thorough_changes_defaults_and_options_have_the_last_word():
    request = FigureRequest(user_options={"thorough": True, "seeds": 2})
    options = request.options(QUICK, THOROUGH)
    assert (options["seeds"], options["adam_steps"], options["adam_eta"]) == (2, 100_000, 3e-3)
    assert FigureRequest(user_options={"thorough": False}).options(QUICK, THOROUGH) == QUICK


def test_the_stability_limit_is_drawn_along_the_flow_up_to_the_end_of_the_run():
    """The risk w^4 / 4 has the curvature 3 w^2 and the flow w = (1 + 2 t)^(-1/2) from w = 1."""
    model = dynamics.Model(start=lambda: {"w": 1.0}, risk=lambda theta, xp: theta["w"] ** 4 / 4)
    data = draw(model, "stability", options={"eta": 0.1, "steps": 200}).data
    assert data["time"][-1] == pytest.approx(20)
    np.testing.assert_allclose(data["limit"], 2 * (1 + 2 * data["time"]) / 3, rtol=1e-3)


def test_the_plane_agrees_with_training_and_without_equal_rates_says_so():
    drawing = draw(MASKED, "gap", parameters={"P": 256}, options={"local": 3, "core": 6})
    boundary, trained = drawing.data["boundary"], drawing.data["trained"]
    assert len(boundary) == 3
    np.testing.assert_array_equal(trained[:, 2], trained[:, 3])
    assert set(trained[:, 2]) == {0.0, 1.0}
    assert all((np.diff(ratios) > 0).all() for _, _, ratios in drawing.data["rows"])
    none = {"parameters": {"P": 64, "masked": 63}, "options": {"local": 3, "core": 4}}
    assert "passes 1 in no row: one phase" in draw(MASKED, "gap", **none).caption


def test_figures_show_what_was_measured():
    small = {"P": 256, "C_global": 128, "C_local": 4}
    phases = draw(MASKED, "phases", parameters=small, options={"steps": 400})
    run = dynamics.descend(MASKED.ReducedPopulation(MASKED.Parameters(**small)), 1.0, 400)
    shown = [run["Phi_m"][1:], -run["alpha_0"][1:], run["local_masked"][1:]]
    for panel, line, values in zip(phases.axes, (0, 1, 3), shown, strict=True):
        np.testing.assert_array_equal(panel.lines[line].get_ydata(), values)
    scaling = draw(MASKED, "scaling", options={"sizes": (512, 1024)})
    assert "E2 1.33, 1.29, as P^-0.04" in scaling.caption
    assert scaling.data["limit"] == pytest.approx(4 / 3, rel=1e-4)
    options = {"sizes": (512, 1024), "kappa_c": 0.6, "kappa_s": 0.4}
    assert "E1 not reached" in draw(MASKED, "scaling", options=options).caption


SMALL = {"seeds": 2, "steps": 4, "keys": 3, "shown": 2, "layers": 1}


def test_the_figure_measures_both_trainings_from_one_start(tmp_path):
    folder = write_bars(tmp_path)
    drawing = draw(MASKED, "digits", options=SMALL | {"images": folder})
    masked, supervised = (np.array(drawing.data[f"{task}, 1"]) for task in ("masked", "supervised"))
    assert masked.shape == (2, 2, 2)
    np.testing.assert_allclose(masked[:, 0], supervised[:, 0])
    assert not np.allclose(masked[:, 1], supervised[:, 1])
    assert len(drawing.table) == 4
    curves = [np.array(one.lines[0].get_ydata(), float) for one in drawing.axes[0, 0].containers]
    np.testing.assert_allclose(curves, [masked[:, :, 0].mean(0), supervised[:, :, 0].mean(0)])
    whole = SMALL | {"images": folder, "patch": datasets.load(folder).side}
    with pytest.raises(InvalidRequest, match="keys=3 is more than there are patches"):
        draw(MASKED, "digits", options=whole)
    assert (Plan(steps=70).records, Plan(steps=4).records) == ((0, 20, 50, 70), (0, 4))


def made_up(plan, gap):
    random, shape = np.random.default_rng(0), (len(plan.seeds), len(plan.records), 2)
    return Measures(plan, {
        (task, layers): 10 + gap * (task == "masked") + 0.1 * random.normal(size=shape)
        for task in ("masked", "supervised") for layers in plan.layers
    })  # fmt: skip


@pytest.mark.parametrize(("gap", "holds"), [(2.0, True), (0.0, None), (-2.0, None)])
def test_the_claim_follows_what_is_measured(gap, holds, monkeypatch):
    monkeypatch.setattr(diversity, "measure_once", lambda plan: made_up(plan, gap))
    (verdict,) = dynamics.verify(MASKED, claims=["Figure 3"])
    assert verdict.holds is holds


TRIALS = {"trials": 3, "samples": (2, 24), "workers": 0}


def test_figures_of_success_show_what_was_measured():
    given, options = {"m": 40, "L": 40}, TRIALS | {"alphas": (0.4, 0.45)}
    drawing = draw(PATTERNS, "1a", parameters=given, options=options)
    share, left = drawing.data["share"], drawing.axes[0].collections[0]
    # The variable grows as alpha_* falls.
    np.testing.assert_array_equal(np.ma.filled(left.get_array(), np.nan), share[::-1].T)
    law = iterations.law_at(PATTERNS.Parameters(data="fixed_disc", **given), "rest", 0.4)
    loop = trial_rows.trials_of(PATTERNS.ReducedPopulation, law, 0, 3, (2, 24)).loss
    np.testing.assert_array_equal(share[0], (loop < trial_rows.SUCCESS).mean(axis=1))
    few = TRIALS | {"samples": (2, 4), "trials": 1, "sigmas": (0.0, 0.5)}
    caption = draw(PATTERNS, "1b", parameters=given, options=few).caption
    assert "not fitted (too few values)" in caption


def test_figure_2_is_that_of_single_runs():
    drawing = draw(PATTERNS, "2", parameters={"m": 40}, options={"seeds": 2, "workers": 0,
                                                          "families": ("none",)})  # fmt: skip
    found = drawing.data["none"]
    law = PATTERNS.Parameters(m=40, L=100)
    for alpha, steps in zip(found["alpha_star"][2:], found["steps"][2:], strict=True):
        one = iterations.law_at(law, "none", alpha)
        make = PATTERNS.ReducedPopulation
        alone = [iterations.steps_to_zero(make, one, seed, 0.05) for seed in (0, 1)]
        assert np.rint(steps).tolist() == alone
    np.testing.assert_allclose(found["gap"], found["alpha_star"])


def test_figures_of_noisy_tokens():
    given, options = {"m": 40, "L": 20, "d": 6}, {"samples": 10, "steps": 20, "seeds": 2}
    attention = draw(PATTERNS, "4", parameters=given, options=options)
    run, lines = attention.data["margin 1"]["relevant"], attention.axes[0, 0].lines
    np.testing.assert_array_equal(lines[0].get_ydata(), np.mean(run, axis=0))
    law = PATTERNS.Parameters(**given)  # ten samples have the counts of the law
    even = ceiling(law.n_star, law.n_confusion, law.L)
    assert float(attention.caption.split("cannot exceed ")[1][:-1]) == pytest.approx(even, abs=6e-4)
    one = {"samples": 1, "steps": 20, "seeds": 1, "margins": ("one",)}
    caption = draw(PATTERNS, "4", parameters=given | {"alpha_confusion": 0.1}, options=one).caption
    assert caption.endswith("cannot exceed 1.000.")  # one label: keys may all favour its pattern
    quick = options | {"removed": (0.0, 0.5), "workers": 0}
    tokens = draw(PATTERNS, "5", parameters=given, options=quick)
    found = tokens.data["loss"][0]["irrelevant first"]
    np.testing.assert_array_equal(tokens.axes[0, 0].lines[3].get_ydata(), found.mean(axis=1))
    assert found[0].tolist() == tokens.data["loss"][0]["at random"][0].tolist()
