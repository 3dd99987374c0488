"""Figures and samples of the paper: checked through what they drew, and runs that are made up."""

from types import SimpleNamespace

import numpy as np
import pytest

import dynamics
from dynamics.cli.report import table
from dynamics.results.power_law import exponent
from dynamics.verdicts.draw import draw
from dynamics.verdicts.positional_attention import convolution, samples
from dynamics.verdicts.positional_attention.convolution import KINDS, linear_error
from dynamics.verdicts.positional_attention.figures import localised
from theory.papers.positional_attention.samples import SignalSets
from theory.symmetry import Partition

SYSTEM = dynamics.load_system("positional_attention")
SMALL = SYSTEM.Parameters(D=8, C=2, d=4, q=0.5)
SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1))
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
    values = np.array(drawing.data["values"])
    shown = [text.get_text().replace("\N{MINUS SIGN}", "-") for text in drawing.axes.texts]
    assert shown == [str(value) for value in values]
    (frame,) = [each for each in drawing.axes.collections if each.get_label() == "frame"]
    inside = {(k % 4, k // 4) for k in drawing.data["signal"]}
    sides = {(x + dx / 2, y + dy / 2) for x, y in inside for dx, dy in SIDES
             if (x + dx, y + dy) not in inside}  # fmt: skip
    assert {tuple(side.mean(axis=0)) for side in frame.get_segments()} == sides
    number, law = drawing.data["draw"], SignalSets(localised(SYSTEM.Parameters())[0], 0.5, 0.25)
    drawn, labels = law.values(number, np.random.default_rng(1))
    np.testing.assert_array_equal(drawn[-1], values)
    misleads = (labels > 0) & (drawn.sum(axis=1) < 0)
    assert misleads.tolist() == [False] * (number - 1) + [True]


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

    monkeypatch.setattr(convolution, "fit", ended)
    drawing = draw(SYSTEM, "2", SMALL, 5, options=FIGURE_2 | {"gram_seeds": 4})
    assert drawing.data["associated"] == pytest.approx((0.75, 0.194, 0.994), abs=5e-4)
    assert (drawing.axes[5].images[0].get_array() == 6.0).all()
    assert "the others are seeds 6 (" in drawing.caption


def test_the_linear_rule_errs_as_the_sums_of_the_sets_say():
    assert linear_error(Partition.contiguous([3, 3]), 0, 10_000) == 0.0  # x^3 + y^3 > 0 iff x + y
    assert linear_error(Partition.contiguous([4] * 4), 0) == pytest.approx(0.0955, abs=1e-3)


PARAMETERS = SYSTEM.Parameters(omega=1e-3)
PARTITION = localised(PARAMETERS)[0]
SETS, FLAT = np.repeat(range(4), 4), np.zeros((16, 16))


class Run(dict):
    """A run of two records after the start, with given shares and a given end of A."""

    time, states = np.array([0.0, 100.0, 200.0]), np.zeros((3, 1))

    def __init__(self, shares, matrix=FLAT, error=0.001):
        ends = {"test_error": error, "error": 0.0, "cosine": 0.99, "bayes_error": 0.0}
        series = {name: np.array([0.5, 0.4, end]) for name, end in ends.items()}
        super().__init__(series, patch_association=np.array(shares))
        self.settings = {"sets": SETS.tolist()}
        self.layout = SimpleNamespace(part=lambda *_: np.array([0 * matrix, matrix, matrix]))


@pytest.mark.parametrize(
    ("small", "large", "few", "holds"),
    [
        ((0, 1, 1), (0, 1, 1), (0, 0, 0.3), True),
        ((0, 1, 0.3), (0, 1, 1), (0, 0, 0.3), None),  # lost again: not at any T
        ((0, 1, 1), (0, 0.5, 0.5), (0, 0, 0.6), None),  # one seed and one time contradict nothing
    ],
)
def test_association_is_asked_for_at_any_time(small, large, few, holds, monkeypatch):
    def train(case, count, time):
        return Run(small if case.parameters.D == 9 else large if count > 5000 else few)

    monkeypatch.setattr(samples, "train", train)
    (verdict,) = dynamics.verify(SYSTEM, None, ["Theorem 4.2"])
    assert verdict.holds is holds
    rows = [row["holds"] for row in verdict.evidence["table"]]
    assert rows == [large[-1] > few[-1], True if small[-1] == 1 else None]
    assert "one seed and one time" in verdict.evidence["reason"]


@pytest.mark.parametrize(
    ("entry", "holds", "measured"),
    [(0.2, True, 0.1), (0.05, None, -0.05)],  # one entry inside a set below those between sets
)
def test_one_level_must_separate_the_entries_of_figure_4(entry, holds, measured, monkeypatch):
    matrix = np.where(SETS[:, None] == SETS[None, :], 0.2, 0.1)
    matrix[0, 1] = entry
    monkeypatch.setattr(samples, "train", lambda *_: Run((0, 0, 0), matrix))
    (verdict,) = dynamics.verify(SYSTEM, None, ["Figure 4"])
    assert (verdict.holds, verdict.measured) == (holds, pytest.approx(measured))


def test_too_few_samples_decide_nothing_and_a_rate_above_the_limit_is_replaced():
    (verdict,) = dynamics.verify(SYSTEM, SYSTEM.Parameters(D=512, C=4, q=0.03), ["Theorem 4.2"])
    assert verdict.holds is None
    assert "fewer than 200 samples" in verdict.evidence["reason"]
    steep = SYSTEM.Parameters(D=16, C=4, q=0.5, p=5)
    assert samples.stable_rate(SYSTEM, SYSTEM.Parameters(D=16, C=4, q=0.25)) == 0.02
    assert samples.stable_rate(SYSTEM, steep) < 0.02


def test_deviation_falls_as_the_root_of_the_number_of_samples():
    law, counts = SYSTEM.Parameters(D=8, C=2, d=1, sigma=0.0), (200, 800, 3200)
    for part in samples.deviation(SYSTEM, law, counts, range(12)).values():
        assert abs(exponent(counts, samples.root_mean_square(part)) + 0.5) < 0.3


@pytest.mark.long
def test_enough_samples_associate_every_row():
    """D=16 C=4 d=16 q=0.25 N=16000 eta=0.02, 20 000 steps, random start: Theorem 4.2 is seen."""
    problem = SYSTEM.FullEmpirical(SYSTEM.Parameters(D=16, C=4, q=0.25), 16_000, 0)
    run = dynamics.descend(problem, 0.02, 20_000, record=np.array([1000, 5000, 20_000]))
    assert run["patch_association"][-1] == 1.0
    assert run["test_error"][-1] < 0.01


def test_few_samples_are_memorised():
    """N=500, else the same: fitted without the sets, and the report says why."""
    problem = SYSTEM.FullEmpirical(SYSTEM.Parameters(D=16, C=4, q=0.25), 500, 0)
    run = dynamics.descend(problem, 0.02, 10_000, record=np.array([100, 10_000]))
    assert run["error"][-1] < 0.002
    assert run["patch_association"][-1] < 0.7
    assert run["test_error"][-1] > 0.008
    assert "memorised: the 500 samples" in table(SYSTEM, run)


@pytest.mark.parametrize(
    ("free", "gram", "holds", "literal"),
    [
        ((0.01, 0.25), (0.01, 1.0), True, False),
        ((0.01, 0.25), (0.01, 0.5), True, True),  # fits, and does not associate
        ((0.06, 0.25), (0.01, 0.5), None, True),  # does not fit, at one seed
    ],
)
def test_the_verdict_reads_free_and_gram_matrices(free, gram, holds, literal, monkeypatch):
    def fitted(system, name, parameters, seed, options):
        error, share = {"T_adam": free, "gram_adam": gram}[name]
        return {
            "seed": seed, "steps": [0, 1], "test_error": [0.5, error], "diverged": False,
            "patch_association": [0.0, share], "associated": share == 1.0,
        }  # fmt: skip

    monkeypatch.setattr(convolution, "fit", fitted)
    monkeypatch.setattr(convolution, "linear_error", lambda *_: 0.1)
    (verdict,) = dynamics.verify(SYSTEM, None, ["Figure 2"])
    assert (verdict.holds, verdict.finding.literal.holds) == (holds, literal)
    assert verdict.finding.single == ("seed",)


def test_figures_over_samples_show_every_cell():
    options = {"samples": (50, 100), "chances": (0.2, 0.5), "time": 2.0, "seeds": 2}
    drawing = draw(SYSTEM, "phase", SYSTEM.Parameters(D=8, C=2), options=options)
    shares = drawing.data["association"].mean(axis=2)
    shown = [text.get_text() for text in drawing.axes[0].texts]
    assert shown == [f"{share:.2f}" for share in shares.ravel()]
