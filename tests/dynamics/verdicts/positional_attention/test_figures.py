"""Figures of the paper, checked through what they drew, at sizes that take no time."""

import numpy as np
import pytest

import dynamics
from dynamics.verdicts.draw import draw
from dynamics.verdicts.positional_attention import convolution as figure_2
from dynamics.verdicts.positional_attention.convolution import KINDS, linear_error
from dynamics.verdicts.positional_attention.figures import border, localised
from theory.papers.positional_attention.samples import SignalSets
from theory.symmetry import Partition

SYSTEM = dynamics.load_system("positional_attention")
SMALL = SYSTEM.Parameters(D=8, C=2, d=4, q=0.5)
QUICK = {"samples": 200, "dtype": "float64"}
FIGURE_2 = QUICK | {"adam_steps": 30, "gram_steps": 30, "gram_seeds": 2, "gd_steps": 20}


@pytest.fixture(scope="module")
def second():
    return draw(SYSTEM, "2", SMALL, 3, options=FIGURE_2 | {"seeds": 2})


def test_the_partition_of_the_paper_is_drawn():
    drawing = draw("positional_attention", "1b")
    near, far = (np.asarray(panel.images[0].get_array()).ravel() for panel in drawing.axes)
    assert near.tolist() == [0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3]
    np.testing.assert_array_equal(far, drawing.data["random"])
    assert np.bincount(far).tolist() == [4, 4, 4, 4]


def test_the_first_data_point_that_misleads_has_its_signal_set_framed():
    drawing = draw(SYSTEM, "3", seed=1)
    values, signal = (np.array(drawing.data[name]) for name in ("values", "signal"))
    shown = [text.get_text().replace("\N{MINUS SIGN}", "-") for text in drawing.axes.texts]
    assert shown == [str(value) for value in values]
    (frame,) = [c for c in drawing.axes.collections if c.get_label() == "frame"]
    framed = border(np.isin(np.arange(16), signal).reshape(4, 4))
    assert sorted(part.tolist() for part in frame.get_segments()) == sorted(map(_listed, framed))
    number, law = drawing.data["draw"], SignalSets(localised(SYSTEM.Parameters())[0], 0.5, 0.25)
    drawn, labels = law.values(number, np.random.default_rng(1))
    np.testing.assert_array_equal(drawn[-1], values)
    misleads = (labels > 0) & (drawn.sum(axis=1) < 0)
    assert misleads.tolist() == [False] * (number - 1) + [True]


def _listed(part):
    return np.array(part, float).tolist()


def test_figure_4_shows_one_run():
    drawing = draw(SYSTEM, "4", SMALL, 3, options=QUICK | {"steps": 40})
    data, (_, learned, error, cosine) = drawing.data, drawing.axes
    problem = SYSTEM.FullEmpirical(SMALL, 200, 3, Partition(np.array(data["sets"])))
    run = dynamics.descend(problem, 0.02, 40, record="log")
    np.testing.assert_array_equal(data["A"], run["A"][-1])
    shown = learned.images[0].get_array()
    np.testing.assert_array_equal(shown.data, data["A"])
    np.testing.assert_array_equal(shown.mask, np.eye(8, dtype=bool))
    for panel, names in ((error, ["test_error"]), (cosine, ["cosine", "patch_association"])):
        lines = [line for line in panel.lines if len(line.get_xdata()) > 2]
        for line, name in zip(lines, names, strict=True):
            np.testing.assert_array_equal(line.get_ydata(), run[name][1:])
            np.testing.assert_array_equal(line.get_xdata(), run.steps[1:])


def test_figure_2_draws_every_case_and_seed(second):
    error, _, _, *matrices = second.axes
    curves = [line for line in error.lines if len(line.get_xdata()) > 2]
    made = [one for name in KINDS for one in second.data["cases"][name]]
    assert len(curves) == len(made) == 6
    for line, one in zip(curves, made, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), one["test_error"][1:])
    for panel, name in zip(matrices, KINDS, strict=True):
        one = second.data["cases"][name][0]
        np.testing.assert_array_equal(panel.images[0].get_array().data, one["A"])
    assert any(set(line.get_ydata()) == {second.data["linear_error"]} for line in error.lines)


def test_figure_2_counts_the_seeds_that_associate(second, monkeypatch):
    def ended(system, name, parameters, seed, options):
        there = float(seed != 6)
        one = dict(second.data["cases"]["gram_adam"][0]) | {"seed": seed, "outcome": "at the end"}
        one["A"] = np.full((8, 8), float(seed)).tolist()
        return one | {"associated": there == 1.0, "patch_association": [0.0, there]}

    monkeypatch.setattr(figure_2, "fit", ended)
    drawing = draw(SYSTEM, "2", SMALL, 5, options=FIGURE_2 | {"gram_seeds": 4})
    assert drawing.data["associated"] == pytest.approx((0.75, 0.194, 0.994), abs=5e-4)
    assert (drawing.axes[5].images[0].get_array() == 6.0).all()
    assert "the others are seeds 6 (" in drawing.caption


def test_the_linear_rule_errs_as_the_sums_of_the_sets_say():
    assert linear_error(Partition.contiguous([3, 3]), 0, 10_000) == 0.0  # x^3 + y^3 > 0 iff x + y
    assert linear_error(Partition.contiguous([4] * 4), 0) == pytest.approx(0.0955, abs=1e-3)
