"""Figures that cannot be drawn are refused in one line; options have the last word."""

import numpy as np
import pytest

import dynamics
from dynamics.validation import InvalidRequest
from dynamics.verdicts.draw import draw
from dynamics.verdicts.figure import FigureRequest
from dynamics.verdicts.positional_attention.convolution import QUICK, THOROUGH

PA, MIM, VIT = "positional_attention", "masked_image_modeling", "shallow_vit"


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
