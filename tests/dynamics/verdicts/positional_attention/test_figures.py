"""Figures of the paper, checked through what they drew, at sizes that take no time."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.collections import LineCollection

import dynamics
from dynamics import plotting
from dynamics.results.outcome import DIVERGED
from dynamics.validation import InvalidRequest
from dynamics.verdicts.figure import FigureRequest, draw, figures
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


@pytest.fixture(scope="module")
def fourth():
    return draw(SYSTEM, "4", SMALL, 3, options=QUICK | {"steps": 40})


def words(panel):
    return [text.get_text().replace("\N{MINUS SIGN}", "-") for text in panel.texts]


def test_the_partition_of_the_paper_is_drawn():
    drawing = draw("positional_attention", "1b")
    near, far = drawing.axes
    image = np.asarray(near.images[0].get_array())
    sets = [{1, 2, 5, 6}, {3, 4, 7, 8}, {9, 10, 13, 14}, {11, 12, 15, 16}]
    for k, members in enumerate(sets):
        assert set(np.flatnonzero(image.ravel() == k) + 1) == members
    assert words(near) == words(far) == [str(k) for k in range(1, 17)]
    shuffled = np.asarray(far.images[0].get_array()).ravel()
    np.testing.assert_array_equal(shuffled, drawing.data["random"])
    assert np.bincount(shuffled).tolist() == [4, 4, 4, 4]
    assert not np.array_equal(shuffled, image.ravel())


@pytest.mark.parametrize(("size", "members"), [(8, 2), (12, 3), (16, 8), (30, 6), (196, 4), (6, 3)])
def test_any_sizes_have_a_grid_of_blocks(size, members):
    partition, columns = localised(SYSTEM.Parameters(D=size, C=members))
    assert {len(part) for part in partition.sets} == {members}
    assert size % columns == 0
    for part in partition.sets:
        down, along = np.divmod(part, columns)
        assert (np.ptp(down) + 1) * (np.ptp(along) + 1) == members


def test_a_data_point_has_its_signal_set_framed_and_misleads():
    for seed in range(5):
        drawing = draw(SYSTEM, "3", seed=seed)
        values, sets = np.array(drawing.data["values"]), np.array(drawing.data["sets"])
        signal = np.array(drawing.data["signal"])
        assert words(drawing.axes) == [str(value) for value in values]
        assert (values[signal] == 1).all()
        assert np.unique(sets[signal]).size == 1
        assert (values == -1).sum() > (values == 1).sum()
        assert drawing.data["label"] == 1
        (frame,) = [c for c in drawing.axes.collections if c.get_label() == "frame"]
        framed = np.isin(np.arange(16), signal).reshape(4, 4)
        found = {tuple(map(tuple, part.tolist())) for part in frame.get_segments()}
        assert found == {tuple(map(tuple, part)) for part in border(framed)}
        assert f"number {drawing.data['draw']}" in drawing.caption


def test_earlier_draws_do_not_mislead():
    drawing = draw(SYSTEM, "3", seed=1)
    made = SignalSets(localised(SYSTEM.Parameters())[0], 0.5, 0.25)
    values, labels = made.values(drawing.data["draw"], np.random.default_rng(1))
    np.testing.assert_array_equal(values[-1], drawing.data["values"])
    misleads = (labels > 0) & (values.sum(axis=1) < 0)
    assert misleads.tolist() == [False] * (drawing.data["draw"] - 1) + [True]


def test_where_no_draw_can_mislead_the_first_positive_one_is_drawn():
    drawing = draw(SYSTEM, "3", SYSTEM.Parameters(D=8, C=4, q=0.5))
    assert drawing.data["label"] == 1
    assert "with label +1 (number" in drawing.caption


def test_a_frame_follows_any_set():
    framed = np.array([[True, False], [False, True]])
    assert len(border(framed)) == 8
    assert len(border(np.ones((2, 3), dtype=bool))) == 10
    lengths = [np.hypot(*np.subtract(*side)) for side in border(framed)]
    np.testing.assert_array_equal(lengths, 1.0)


def test_figure_4_shows_one_run(fourth):
    data, (sets, learned, error, cosine) = fourth.data, fourth.axes
    labels = np.array(data["sets"])
    same = np.asarray(sets.images[0].get_array()) < 1
    np.testing.assert_array_equal(same, labels[:, None] == labels)
    shown = learned.images[0].get_array()
    np.testing.assert_array_equal(shown.data, data["A"])
    np.testing.assert_array_equal(shown.mask, np.eye(8, dtype=bool))
    problem = SYSTEM.FullEmpirical(SMALL, 200, 3, Partition(labels))
    run = dynamics.descend(problem, 0.02, 40, record="log")
    np.testing.assert_array_equal(data["A"], run["A"][-1])
    for panel, names in ((error, ["test_error"]), (cosine, ["cosine", "patch_association"])):
        assert panel.get_xscale() == "log"
        lines = [line for line in panel.lines if len(line.get_xdata()) > 2]
        for line, name in zip(lines, names, strict=True):
            np.testing.assert_array_equal(line.get_ydata(), run[name][1:])
            np.testing.assert_array_equal(line.get_xdata(), run.steps[1:])
    assert error.get_yscale() == "log"


def test_the_caption_of_figure_4_reports_the_association(fourth):
    share = fourth.data["patch_association"][-1]
    assert f"Patch association: {share:.0%} of the rows" in fourth.caption
    assert "eta=0.02, 40 steps (time 0.8)" in fourth.caption


def test_figure_2_draws_every_case_and_seed(second):
    error, grid, sets, *matrices = second.axes
    labels = np.array(second.data["sets"])
    np.testing.assert_array_equal(np.asarray(grid.images[0].get_array()).ravel(), labels)
    assert (np.asarray(sets.images[0].get_array()) < 1).sum() == 16
    curves = [line for line in error.lines if len(line.get_xdata()) > 2]
    made = [one for name in KINDS for one in second.data["cases"][name]]
    assert len(curves) == len(made) == 6
    for line, one in zip(curves, made, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), one["test_error"][1:])
    for panel, (name, case) in zip(matrices, KINDS.items(), strict=True):
        one = second.data["cases"][name][0]
        np.testing.assert_array_equal(panel.images[0].get_array().data, one["A"])
        assert case.label in panel.get_title()
        assert "seed 3: " in panel.get_title()
    assert (error.get_xscale(), error.get_yscale()) == ("log", "log")
    assert any(set(line.get_ydata()) == {second.data["linear_error"]} for line in error.lines)


def test_figure_2_shows_a_seed_that_associates_and_one_that_does_not(second, monkeypatch):
    """Their share has an interval, and the caption names the seeds that stay."""
    made = iter(range(4))

    def ended(system, name, parameters, seed, options):
        one = dict(second.data["cases"]["gram_adam"][0]) | {"seed": seed, "outcome": "at the end"}
        if name == "gram_adam":
            there = next(made) in (0, 2, 3)
            one |= {"associated": there, "patch_association": [0.0, float(there)]}
            one["A"] = np.full((8, 8), float(seed)).tolist()
        return one

    monkeypatch.setattr(figure_2, "fit", ended)
    drawing = draw(SYSTEM, "2", SMALL, 5, options=FIGURE_2 | {"gram_seeds": 4})
    share, low, high = drawing.data["associated"]
    assert (share, round(low, 3), round(high, 3)) == (0.75, 0.194, 0.994)
    error, _, _, free, there, other, _ = drawing.axes
    assert len([line for line in error.lines if len(line.get_xdata()) > 2]) == 6
    labels = {line.get_label().partition("\n")[2] for line in error.lines}
    assert {"3 of 4 seeds associated", "1 of 4 seeds not associated"} <= labels
    assert "seed 5: 100% associated" in there.get_title()
    assert "seed 6: 0% associated" in other.get_title()
    assert (there.images[0].get_array() == 5.0).all()
    assert (other.images[0].get_array() == 6.0).all()
    assert "3 of 4 seeds associate every row, 75 % (95 %: 19 to 99)" in drawing.caption
    assert "the others are seeds 6 (" in drawing.caption


def test_cases_of_figure_2_are_what_they_are_called(second):
    cases = second.data["cases"]
    gram = np.array(cases["gram_adam"][0]["A"])
    np.testing.assert_allclose(gram, gram.T, atol=1e-15)
    free = np.array(cases["T_adam"][0]["A"])
    assert not np.allclose(free, free.T)
    np.testing.assert_array_equal(np.diag(free), 1.0)
    # Thirty steps of Adam take an entry about thirty rates away, those of descent do not.
    assert np.abs(free[~np.eye(8, dtype=bool)]).max() == pytest.approx(30 * 3e-3, rel=0.3)
    descent = np.array(cases["T_gd"][0]["A"])
    assert np.abs(descent[~np.eye(8, dtype=bool)]).max() < 0.03


def test_a_run_that_diverges_is_said_to_have(tmp_path):
    options = FIGURE_2 | {"gd_eta": 500.0}
    drawing = draw(SYSTEM, "2", SMALL, options=options)
    (lost,) = drawing.data["cases"]["T_gd"]
    assert lost["diverged"]
    assert DIVERGED in lost["outcome"]
    assert "diverged at step" in drawing.caption
    assert "diverged" in drawing.axes[-1].get_title()
    assert not drawing.data["cases"]["T_adam"][0]["diverged"]


def test_the_linear_rule_errs_as_the_sums_of_the_sets_say():
    assert linear_error(Partition.contiguous([3, 3]), 0, 10_000) == 0.0  # x^3 + y^3 > 0 iff x + y
    assert linear_error(Partition.contiguous([4] * 4), 0) == pytest.approx(0.0955, abs=1e-3)


def test_thorough_changes_defaults_and_options_have_the_last_word():
    request = FigureRequest(user_options={"thorough": True, "seeds": 2})
    options = request.options(figure_2.QUICK, figure_2.THOROUGH)
    assert (options["seeds"], options["adam_steps"], options["adam_eta"]) == (2, 100_000, 3e-3)
    assert options["gram_seeds"] >= 20
    request = FigureRequest(user_options={"thorough": False})
    plain = request.options(figure_2.QUICK, figure_2.THOROUGH)
    assert plain == figure_2.QUICK


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("5", {}, "figure '5' of positional_attention is unknown; known are 1b, 2, 3, 4"),
        ("4", {"stepz": 1}, "option 'stepz' is unknown; known are thorough, samples, eta"),
        ("4", {"steps": 0}, "steps=0 is too small"),
        ("1b", {"steps": 3}, "option 'steps' is unknown; known are thorough"),
        ("2", {"seeds": 0}, "seeds=0 is too small"),
        ("2", {"samples": 9, "adam_steps": 0}, "adam_steps=0 is too small"),
    ],
)
def test_what_there_is_not_is_refused_in_one_line(name, options, message):
    with pytest.raises(InvalidRequest) as refused:
        draw("positional_attention", name, options=options)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


def test_a_system_without_figures_has_none():
    assert figures(replace(SYSTEM, name="no_such_system")) == {}


def test_files_are_written(second, fourth, tmp_path):
    for name in ("1b", "3"):
        drawing = draw(SYSTEM, name)
        assert plotting.write(drawing.axes, tmp_path / f"{name}.pdf").stat().st_size > 4000
        assert any(isinstance(c, LineCollection) for c in np.ravel(drawing.axes)[0].collections)
    for name, drawing in (("2", second), ("4", fourth)):
        assert plotting.write(drawing.axes, tmp_path / f"{name}.png").stat().st_size > 20_000
