"""The shallow ViT: figures draw what single runs give, and refuse in one line."""

import dataclasses

import numpy as np
import pytest
from matplotlib.text import Text

import dynamics
from dynamics import plotting
from dynamics.validation import InvalidRequest
from dynamics.verdicts.figure import draw
from dynamics.verdicts.shallow_vit import iterations, samples
from theory.papers.shallow_vit.attention_limits import ceiling

SYSTEM = dynamics.load_system("shallow_vit")
QUICK = {"trials": 3, "samples": (2, 24), "workers": 0}


def test_figures_of_success_show_what_was_measured(tmp_path):
    given = {"m": 40, "L": 40}
    drawing = draw(
        SYSTEM, "1a", user_parameters=given, options=QUICK | {"alphas": (0.35, 0.4, 0.45)}
    )
    share, left = drawing.data["share"], drawing.axes[0].collections[0]
    # The variable grows as alpha_* falls.
    np.testing.assert_array_equal(np.ma.filled(left.get_array(), np.nan), share[::-1].T)
    law = iterations.law_at(_with(given), "rest", 0.35)
    loop = samples.trials_of(SYSTEM.ReducedPopulation, law, 0, 3, (2, 24)).loss
    np.testing.assert_array_equal(share[0], (loop < samples.SUCCESS).mean(axis=1))
    once = QUICK | {"trials": 1}
    sigma = draw(SYSTEM, "1b", user_parameters=given, options=once | {"sigmas": (0.0, 0.5)})
    assert "Exponent of N50 in 1/(1 - sigma)" in sigma.caption
    both = draw(SYSTEM, "3", user_parameters=given, options=once | {"alphas": (0.15, 0.3, 0.6)})
    assert both.data["trained"]["share"].shape == (3, 2)
    for name, one in (("a", drawing), ("b", sigma), ("c", both)):
        assert plotting.write(one.axes, tmp_path / f"{name}.png").stat().st_size > 10_000


def _with(given):
    return SYSTEM.Parameters(**({"data": "fixed_disc"} | given))


def test_figure_2_is_that_of_single_runs():
    drawing = draw(SYSTEM, "2", user_parameters={"m": 40}, options={"seeds": 2, "workers": 0,
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


def test_figures_of_noisy_tokens(tmp_path):
    given = {"m": 40, "L": 20, "d": 6}
    options = {"samples": 10, "steps": 40, "seeds": 2}
    attention = draw(SYSTEM, "4", user_parameters=given, options=options)
    run = attention.data["margin 1"]["relevant"]
    lines = attention.axes[0, 0].lines
    np.testing.assert_array_equal(lines[0].get_ydata(), np.mean(run, axis=0))
    np.testing.assert_allclose(lines[1].get_ydata(), 1 - np.mean(run, axis=0), rtol=1e-14)
    quick = options | {"removed": (0.0, 0.5), "workers": 0}
    tokens = draw(SYSTEM, "5", user_parameters=given, options=quick)
    found = tokens.data["loss"][0]["irrelevant first"]
    np.testing.assert_array_equal(tokens.axes[0, 0].lines[3].get_ydata(), found.mean(axis=1))
    assert found[0].tolist() == tokens.data["loss"][0]["at random"][0].tolist()
    for name, drawing in (("a", attention), ("t", tokens)):
        assert plotting.write(drawing.axes, tmp_path / f"{name}.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("name", "given", "options", "told"),
    [
        ("1a", {"alpha_star": 0.4}, {}, "alpha_star is an axis"),
        ("7", {"M": 4}, {}, "M is an axis"),
        ("3", {}, {"family": "half"}, "family='half' is unknown"),
        ("2", {}, {"families": ("half",)}, "families='half' is unknown"),
        ("4", {}, {"margins": ("two",)}, "margins='two' is unknown"),
        ("1b", {}, {"sigmas": (0.0, 1.0)}, "below 1"),
        ("5", {}, {"seeds": 0}, "seeds=0"),
        ("6", {}, {}, "known are 1a, 1b, 2, 3, 4, 5, 7, 8"),
    ],
)
def test_what_cannot_be_drawn_is_refused(name, given, options, told):
    with pytest.raises(InvalidRequest, match=told):
        draw(SYSTEM, name, user_parameters=given, options=options)


def test_a_panel_leaves_out_the_curve_of_a_class_without_members():
    """With M = 3 there is one other pattern, and no B between two of them."""
    problem = SYSTEM.ReducedPopulation(SYSTEM.Parameters(M=3, m=12))
    run = dynamics.descend(problem, 0.1, 5)
    assert "B_kl" not in run.observables
    labels = [line.get_label() for axes in plotting.training(run) for line in axes.lines]
    assert not any("B_{kl}" in label for label in labels)


def test_points_that_short_samples_do_not_have_are_left_out():
    law = SYSTEM.Parameters(m=60, L=20)
    laws = iterations.laws_of(law, "proportion")
    assert [one.alpha_star for one in laws] == [0.05, 0.1, 0.2, 0.4, 0.8]
    laws = iterations.laws_of(dataclasses.replace(law, L=5), "proportion")
    assert [one.alpha_star for one in laws] == [0.1, 0.4, 0.8]
    assert all(one.n_star > one.n_confusion for one in laws)
    options = {"seeds": 1, "workers": 0, "families": ("rest", "none")}
    drawing = draw(SYSTEM, "2", user_parameters={"m": 24, "L": 20}, options=options)
    for family in drawing.data.values():
        assert len(family["alpha_star"]) == len(family["steps"]) >= 3


@pytest.mark.parametrize(
    ("name", "axis"),
    [
        ("1a", {"alphas": (0.35, 0.4)}),
        ("1b", {"sigmas": (0.0, 0.5)}),
        ("3", {"alphas": (0.1, 0.2)}),
    ],
)
def test_where_nothing_was_fitted_the_caption_says_so(name, axis, tmp_path):
    few = QUICK | {"samples": (2, 4), "trials": 1} | axis
    drawing = draw(SYSTEM, name, user_parameters={"m": 40, "L": 40}, options=few)
    assert "nan" not in drawing.caption
    assert "not fitted (too few values)" in drawing.caption
    assert "> 4" in drawing.caption
    words = [text.get_text() for text in drawing.axes[0].figure.findobj(Text)]
    assert not any("nan" in word for word in words)
    figure = plotting.write(drawing.axes, tmp_path / "a.png")
    assert figure.exists()


def test_the_ceiling_of_one_sample_is_not_that_of_the_law():
    """One sample has one label: nothing keeps attention from its relevant tokens."""
    short = {"m": 20, "L": 20, "alpha_confusion": 0.1}
    options = {"samples": 1, "steps": 20, "seeds": 1, "margins": ("one",)}
    one = draw(SYSTEM, "4", user_parameters=short | {"noise": 0.0}, options=options)
    assert "on tokens without noise (N=1" in one.caption
    assert "1 seed)" in one.caption
    assert one.caption.endswith(" It cannot pass 1.000.")
    three = draw(SYSTEM, "4", user_parameters=short, options=options | {"samples": 3})
    even = draw(SYSTEM, "4", user_parameters=short, options=options | {"samples": 4})
    tops = [float(each.caption.split("cannot pass ")[1][:-1]) for each in (three, even)]
    law = _with(short)
    assert tops[1] == pytest.approx(ceiling(law.n_star, law.n_confusion, law.L), abs=6e-4)
    assert tops[0] > tops[1]
    assert "on noisy tokens" in even.caption


def test_a_linear_loss_is_never_called_zero():
    short = {"m": 20, "L": 20, "alpha_confusion": 0.1, "loss": "linear"}
    options = {"samples": 4, "steps": 60, "seeds": 1, "margins": ("one",)}
    drawing = draw(SYSTEM, "4", user_parameters=short, options=options)
    assert "linear loss" in drawing.caption
    assert "zero training loss" not in drawing.caption
    labels = [text.get_text() for text in drawing.axes[0, 0].figure.legends[0].get_texts()]
    assert "training loss is zero" not in labels
