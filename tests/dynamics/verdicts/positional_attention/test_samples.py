"""Theorem 4.2, Figures 2 and 4 on runs that are made up; and where they are seen."""

from types import SimpleNamespace

import numpy as np
import pytest

import dynamics
from dynamics.papers.positional_attention.gram import GramEmpirical
from dynamics.results.outcome import HORIZON
from dynamics.results.power_law import exponent
from dynamics.verdicts.figure import draw
from dynamics.verdicts.positional_attention import convolution, samples
from dynamics.verdicts.positional_attention.convolution import QUICK
from dynamics.verdicts.positional_attention.figures import localised
from theory.papers.positional_attention.samples import Convolution

SYSTEM = dynamics.load_system("positional_attention")
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


def test_one_level_must_separate_the_entries_of_figure_4(monkeypatch):
    matrix = np.where(SETS[:, None] == SETS[None, :], 0.2, 0.1)
    monkeypatch.setattr(samples, "train", lambda *_: Run((0, 0, 0), matrix))
    (verdict,) = dynamics.verify(SYSTEM, None, ["Figure 4"])
    assert (verdict.holds, verdict.measured) == (True, pytest.approx(0.1))
    matrix[0, 1] = 0.05  # one entry inside a set below those between sets: C largest or not
    (verdict,) = dynamics.verify(SYSTEM, None, ["Figure 4"])
    assert (verdict.holds, verdict.measured) == (None, pytest.approx(-0.05))


def test_too_few_samples_decide_nothing_and_a_rate_above_the_limit_is_replaced():
    (verdict,) = dynamics.verify(SYSTEM, SYSTEM.Parameters(D=512, C=4, q=0.03), ["Theorem 4.2"])
    assert verdict.holds is None
    assert "fewer than 200 samples" in verdict.evidence["reason"]
    steep = SYSTEM.Parameters(D=16, C=4, q=0.5, p=5)
    assert samples.stable_rate(SYSTEM, SYSTEM.Parameters(D=16, C=4, q=0.25)) == 0.02
    assert samples.stable_rate(SYSTEM, steep) < 0.02


def test_deviation_falls_as_the_root_of_the_number_of_samples():
    law, counts = SYSTEM.Parameters(D=8, C=2, d=1, sigma=0.0), (1000, 4000, 16_000)
    for part in samples.deviation(SYSTEM, law, counts, range(12)).values():
        assert abs(exponent(counts, samples.root_mean_square(part)) + 0.5) < 0.3


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
def test_enough_samples_associate_every_row(seed):
    """D=16 C=4 d=16 q=0.25 N=16000 eta=0.02, 20 000 steps, random start: Theorem 4.2 is seen."""
    problem = SYSTEM.FullEmpirical(SYSTEM.Parameters(D=16, C=4, q=0.25), 16_000, seed)
    run = dynamics.descend(problem, 0.02, 20_000, record=np.array([1000, 5000, 20_000]))
    assert run["patch_association"][-1] == 1.0
    assert run["test_error"][-1] < 0.01


def test_few_samples_are_memorised():
    """N=500, else the same: fitted without the sets, and the report says why."""
    from dynamics.cli.report import table

    problem = SYSTEM.FullEmpirical(SYSTEM.Parameters(D=16, C=4, q=0.25), 500, 0)
    run = dynamics.descend(problem, 0.02, 10_000, record=np.array([100, 10_000]))
    assert run["error"][-1] < 0.002
    assert run["patch_association"][-1] < 0.7
    assert run["test_error"][-1] > 0.008
    assert "memorised: the 500 samples" in table(SYSTEM, run)


def test_figures_over_samples_show_every_cell_and_exponent():
    drawing = draw(SYSTEM, "deviation", options={"samples": (100, 400, 1600), "seeds": 2})
    texts = drawing.axes.get_legend().get_texts()
    assert f"{drawing.data['exponents']['alpha']:.2f}" in texts[0].get_text()
    options = {"samples": (50, 100), "chances": (0.2, 0.5), "time": 2.0, "seeds": 2}
    drawing = draw(SYSTEM, "phase", SYSTEM.Parameters(D=8, C=2), options=options)
    shares = drawing.data["association"]
    assert shares.shape == (2, 2, 2)
    texts = [text.get_text() for text in drawing.axes[0].texts]
    assert texts == [f"{share:.2f}" for share in shares.mean(axis=2).ravel()]


# Figure 2, bounds of the project's measurements at D = 16, C = 4, N = 16,000


def made(kind, seed):
    law = Convolution(PARTITION)
    return kind(PARAMETERS, QUICK["samples"], seed, law=law, dtype="float32", feature="random")


def error_on_new_data(value, matrix, feature, count=40_000):
    """Test error of (T) from whole Gaussian patches, every formula written out once more."""
    patches = np.random.default_rng(99).standard_normal((count, 16, 16))
    inside = np.stack([(patches @ feature)[:, s].sum(axis=1) for s in PARTITION.sets])
    label = np.sign((inside**3).sum(axis=0))
    weights = np.exp(PARAMETERS.scale * (matrix - matrix.max(axis=1, keepdims=True)))
    weights /= weights.sum(axis=1, keepdims=True)
    attended = 16 * (patches @ value) @ weights.T
    return float((label * (attended**3 + PARAMETERS.nu * attended).sum(axis=1) <= 0).mean())


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "seed", "errors", "shares"),
    [
        *((SYSTEM.FullEmpirical, seed, (0, 0.03), (0, 0.4)) for seed in range(3)),
        *((GramEmpirical, seed, (0, 0.03), (0.9, 1)) for seed in (2, 3, 4)),
        *((GramEmpirical, seed, (0.085, 0.105), (0, 0)) for seed in (6, 7)),  # the linear rule
    ],
)
def test_what_adam_fits_and_associates(kind, seed, errors, shares):
    problem = made(kind, seed)
    run = dynamics.descend(problem, 3e-3, 10_000, "adam", record=[10_000])
    error, share = run["test_error"][-1], run["patch_association"][-1]
    assert run.outcome.kind == HORIZON
    assert errors[0] <= error <= errors[1]
    assert shares[0] <= share <= shares[1]
    value = problem.layout.part(run.final_state, "v")
    matrix = problem.matrices(run.final_state[None])[0]
    again = error_on_new_data(value, matrix, problem.feature)
    assert again == pytest.approx(error, abs=5 * np.sqrt(error / 10_000))


@pytest.mark.long
@pytest.mark.parametrize("eta", [0.02, 0.005])
def test_free_attention_stays_with_the_linear_rule_under_descent(eta):
    run = dynamics.descend(made(SYSTEM.FullEmpirical, 0), eta, round(900 / eta), record=1)
    error, share = run["test_error"][-1], run["patch_association"][-1]
    assert 0.085 <= error <= 0.105
    assert share == 0


def test_the_verdict_reads_a_free_and_says_what_the_gram_matrix_does(monkeypatch):
    """Literal words ask for a Gram matrix that fits and does not associate."""
    ends = {"T_adam": (0.01, 0.25), "gram_adam": (0.01, 1.0)}

    def fitted(system, name, parameters, seed, options):
        error, share = ends[name]
        return {
            "seed": seed, "steps": [0, 1], "test_error": [0.5, error], "diverged": False,
            "patch_association": [0.0, share], "associated": share == 1.0,
        }  # fmt: skip

    monkeypatch.setattr(convolution, "fit", fitted)
    monkeypatch.setattr(convolution, "linear_error", lambda *_: 0.1)
    (verdict,) = dynamics.verify(SYSTEM, None, ["Figure 2"])
    literal = verdict.finding.literal
    assert (verdict.word, verdict.finding.single) == ("holds, as read here", ("seed",))
    assert (literal.holds, literal.measured) == (False, 0.0)
    ends["gram_adam"] = (0.01, 0.5)  # fits, and does not associate
    (verdict,) = dynamics.verify(SYSTEM, None, ["Figure 2"])
    assert verdict.finding.literal.holds is True
    ends["T_adam"] = (0.06, 0.25)  # does not fit, at one seed
    assert dynamics.verify(SYSTEM, None, ["Figure 2"])[0].holds is None
    assert dynamics.verify(SYSTEM, SYSTEM.Parameters(), ["Figure 2"])[0].holds is None
