"""The shallow ViT: verdicts are measured and flip with the dynamics; rows, sweeps, figures."""

import dataclasses

import numpy as np
import pytest
from matplotlib.text import Text
from verdicts import verdicts

import dynamics
from dynamics import plotting
from dynamics.experiments.figure import FigureRequest, draw
from dynamics.experiments.shallow_vit import complexity, exact, iterations, kept, runs, success
from dynamics.experiments.verify import checks
from dynamics.systems.shallow_vit.brute import FullPopulation
from dynamics.systems.shallow_vit.population import ReducedPopulation
from dynamics.validation import InvalidRequest

SYSTEM = dynamics.load_system("shallow_vit")
SMALL = {"m": 60, "L": 20, "alpha_confusion": 0.1}
CLEAN = SYSTEM.Parameters(m=300, L=20, alpha_confusion=0.0, margin=300**0.5)


def scaled(**factors):
    """A problem in which parts of the state move by other multiples of their gradient."""

    class Scaled(ReducedPopulation):
        def advance(self, state, eta, *rest):
            rates = eta.copy()
            for name, factor in factors.items():
                self.layout.part(rates, name)[...] *= factor
            return super().advance(state, rates, *rest)

    return Scaled


Turned = scaled(K=-1.0, Q=-1.0)
Frozen = scaled(K=0.0, Q=0.0)
Uphill = scaled(W_O=-1.0)
Standing = scaled(W_O=0.0, V=0.0, K=0.0, Q=0.0)


class Uneven(FullPopulation):
    """One training sample has another number of confusion tokens."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.instance.vectors.counts[0, 1:3] += (1, -1)


def with_(problem):
    return dataclasses.replace(SYSTEM, ReducedPopulation=problem)


def test_every_claim_has_a_check_and_nothing_else_has():
    assert set(checks(SYSTEM.name)) == {claim.source for claim in SYSTEM.claims}


def test_what_is_exact_holds_and_fails_for_another_step():
    claims = ("Pattern closure", "Gram form", "Margin and output weights")
    law = SYSTEM.Parameters(**SMALL)
    assert verdicts(SYSTEM, *claims, parameters=law) == [True] * 3
    assert verdicts(with_(Turned), *claims, parameters=law) == [False] * 3
    assert verdicts(with_(Frozen), *claims, parameters=law) == [False] * 3
    even = SYSTEM.Parameters(m=60, L=40, sigma=0.0, delta=0.0)
    assert verdicts(SYSTEM, "Symmetric collapse", parameters=even) == [True]
    assert verdicts(with_(Turned), "Symmetric collapse", parameters=even) == [False]


def test_the_odds_rest_on_the_law():
    law = SYSTEM.Parameters(**SMALL)
    assert verdicts(SYSTEM, "Odds identity", parameters=law) == [True]
    varied = dataclasses.replace(law, data="fixed_disc")
    assert verdicts(SYSTEM, "Odds identity", parameters=varied) == [True]
    uneven = dataclasses.replace(SYSTEM, FullPopulation=Uneven)
    assert verdicts(uneven, "Odds identity", parameters=law) == [False]


def test_the_odds_are_those_of_the_softmax_over_tokens():
    """Each query against each token, in loops."""
    problem = SYSTEM.FullPopulation(SYSTEM.Parameters(**SMALL))
    keys, queries = np.random.default_rng(1).standard_normal((2, 10, 10))
    found = exact._log_odds(problem, keys, queries)
    for sample, counts in enumerate(problem.instance.vectors.counts):
        for query in range(problem.parameters.M):
            powers = [
                np.exp(keys[:, pattern] @ queries[:, query])
                for pattern, many in enumerate(counts) for _ in range(many)
            ]  # fmt: skip
            one, two = sum(powers[: counts[0]]), sum(powers[counts[0] : counts[0] + counts[1]])
            assert found[sample, query] == pytest.approx(np.log(one / two), abs=1e-12)


def test_concentration_needs_that_there_are_no_confusion_tokens():
    claims = ("Proposition 2", "Proposition 2, rate")
    some = dataclasses.replace(CLEAN, alpha_confusion=0.05)
    assert verdicts(SYSTEM, *claims, parameters=CLEAN) == [True, True]
    assert verdicts(SYSTEM, claims[0], parameters=some) == [False]
    longer = dataclasses.replace(some, margin=10 * CLEAN.margin)
    assert verdicts(SYSTEM, *claims, parameters=longer) == [False, False]
    for wrong in (Turned, Frozen):
        assert verdicts(with_(wrong), *claims, parameters=CLEAN) == [False, False]


def test_figure_4_on_noisy_tokens():
    """With d = 5, as in the tests of the problem: its functions are compiled for each d."""
    small = dataclasses.replace(CLEAN, m=100, margin=10.0, d=5)
    some = dataclasses.replace(small, alpha_confusion=0.05)
    assert verdicts(SYSTEM, "Figure 4", parameters=small) == [True]
    assert verdicts(SYSTEM, "Figure 4", parameters=some) == [False]


def test_lucky_neurons_rest_on_their_descent():
    claims = ("Lemma 2, claim 1", "Lemma 2, claim 3", "Lemma 4")
    law = SYSTEM.Parameters(m=300, L=20, alpha_confusion=0.1)
    assert verdicts(SYSTEM, *claims, parameters=law) == [True] * 3
    assert verdicts(with_(Uphill), *claims, parameters=law) == [False] * 3


def test_keys_grow_as_log_t_only_where_values_are_frozen():
    usual = SYSTEM.Parameters(m=100, L=20, alpha_confusion=0.1)
    linear = dataclasses.replace(usual, loss="linear")
    values = dataclasses.replace(linear, frozen="values")
    claim = "Lemma 2, claim 2"
    for law, expected in ((usual, False), (linear, False), (values, True)):
        assert verdicts(SYSTEM, claim, parameters=law) == [expected]
    assert verdicts(with_(Turned), claim, parameters=values) == [False]


def test_lemma_3_and_the_printed_start_at_other_parameters():
    wide = SYSTEM.Parameters(M=3, d=3, sigma=0.8)
    assert verdicts(SYSTEM, "Lemma 3", parameters=SYSTEM.Parameters()) == [False]
    assert verdicts(SYSTEM, "Lemma 3", parameters=wide) == [True]
    equal = SYSTEM.Parameters(m=60, noise=0.1, sigma=0.1, delta=0.1)
    assert verdicts(SYSTEM, "Section 4.1, initialization", parameters=equal) == [True]
    printed = SYSTEM.Parameters(m=60)
    assert verdicts(SYSTEM, "Section 4.1, initialization", parameters=printed) == [False]


def test_generalization_rests_on_training():
    law = SYSTEM.Parameters(m=60, L=20, alpha_star=0.6, alpha_confusion=0.1, data="fixed_disc")
    assert verdicts(SYSTEM, "Theorem 1, generalization", parameters=law) == [True]
    assert verdicts(with_(Standing), "Theorem 1, generalization", parameters=law) == [False]


def test_iterations_follow_the_difference_of_the_shares():
    law = SYSTEM.Parameters(m=300, L=100)
    rest, share, none = (
        np.array([iterations.steps_to_zero(SYSTEM, _law(law, name, a), (0,))[0] for a in alphas])
        for name, alphas in (("rest", (0.3, 0.4)), ("proportion", (0.2, 0.4)),
                             ("none", (0.2, 0.4)))
    )  # fmt: skip
    assert share[0] / share[1] == pytest.approx(2, rel=0.1)
    assert none[0] / none[1] == pytest.approx(2, rel=0.1)
    assert rest[0] / rest[1] == pytest.approx(3, rel=0.15)


def _law(law, family, alpha):
    confusion = iterations.confusion(family, alpha)
    return dataclasses.replace(law, alpha_star=alpha, alpha_confusion=confusion)


def test_where_numbers_decide_nothing():
    placed = SYSTEM.Parameters(output_weights="per_position")
    assert verdicts(SYSTEM, "Lemma 4", "Lemma 2, claim 1", parameters=placed) == [None, None]
    far = SYSTEM.Parameters(sigma=0.9)
    assert verdicts(SYSTEM, "Lemma 3", parameters=far) == [None]
    assert verdicts(SYSTEM, "Odds identity", parameters=CLEAN) == [None]
    assert verdicts(SYSTEM, "Symmetric collapse", parameters=SYSTEM.Parameters()) == [None]


LAW = SYSTEM.Parameters(m=40, L=40, alpha_star=0.3, alpha_confusion=0.2, data="fixed_disc")
COUNTS = (2, 8, 24, 48)


def test_rows_end_after_two_full_numbers():
    assert not success.ended([1.0])
    assert success.ended([0.2, 1.0, 1.0])
    assert not success.ended([1.0, 0.9, 1.0])
    loss = np.where(np.arange(4)[None, :, None] < [[[1]], [[0]]], 0.5, 0.0) * np.ones((2, 4, 3))
    cut = success.cut(success.Rows(np.array(COUNTS), loss, loss))
    assert np.isnan(cut.share).tolist() == [[False] * 3 + [True], [False] * 2 + [True] * 2]
    assert [found.kind for found in cut.thresholds] == ["measured", "below"]


def test_a_sweep_has_the_trials_of_the_loop(tmp_path):
    """The same runs, N by N here, and there in stores that a second call only reads."""
    shares = (0.3, 0.45)
    laws = [_law(LAW, "rest", a) for a in shares]
    loop = success.climb(SYSTEM, laws, seed=3, trials=4, counts=COUNTS)
    asked = kept.plain(LAW, ("alpha_star",)) | {
        "alpha_confusion": iterations.CONFUSION["rest"], "seed": [3, 4, 5, 6],
    }  # fmt: skip
    for _ in range(2):
        swept = kept.rows(SYSTEM, asked, ("alpha_star", shares), COUNTS, (tmp_path / "a", 0))
        np.testing.assert_array_equal(swept.loss, loop.loss)
        np.testing.assert_array_equal(swept.steps, loop.steps)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a-2.zarr", "a-48.zarr"]


def test_frozen_attention_has_no_advantage_over_itself(monkeypatch):
    """Remark 1 compares two trainings: where attention never moves, the ratio is 1."""
    laws = [_law(LAW, "proportion", a) for a in (0.15, 0.25, 0.4)]

    def few(system, given, protocol):
        frozen = [dataclasses.replace(law, frozen=given[0].frozen) for law in laws]
        return success.climb(system, frozen, 0, 6, COUNTS)

    monkeypatch.setattr(complexity, "_climb", few)
    monkeypatch.setattr(complexity, "SHARES", (0.15, 0.25, 0.4))
    trained, frozen = dynamics.verify(with_(Frozen), LAW, ["Theorem 1, samples", "Proposition 1"])
    for one, two in zip(*(v.evidence["table"].values() for v in (trained, frozen)), strict=True):
        assert [row["N50"] for row in one] == [row["N50"] for row in two]
    ratio = dynamics.verify(with_(Frozen), LAW, ["Remark 1"])[0]
    assert ratio.measured == 0.0
    assert ratio.holds is False


def test_sweeps_of_a_figure_stay_until_it_is_drawn(tmp_path):
    request = FigureRequest(given={"m": 40})
    first = _folder_of_one_that_stops(request)
    assert (first / "part").exists()
    with kept.folder("1a", request, {"store": ""}) as again:
        assert again == first
    assert not first.exists()
    with kept.folder("1a", FigureRequest(), {"store": ""}) as other:
        assert other != first
    with kept.folder("1a", request, {"store": str(tmp_path / "mine")}) as own:
        own.mkdir()
    assert own.exists()


def _folder_of_one_that_stops(request):
    try:
        with kept.folder("1a", request, {"store": ""}) as found:
            (found / "part").mkdir(parents=True)
            raise kept.Interrupted("now")
    except kept.Interrupted:
        return found


QUICK = {"trials": 3, "samples": (2, 24), "workers": 0}


def test_figures_of_success_show_what_was_measured(tmp_path):
    given = {"m": 40, "L": 40}
    drawing = draw(SYSTEM, "1a", given=given, options=QUICK | {"alphas": (0.35, 0.4, 0.45)})
    share, left = drawing.data["share"], drawing.axes[0].collections[0]
    # The variable grows as alpha_* falls.
    np.testing.assert_array_equal(np.ma.filled(left.get_array(), np.nan), share[::-1].T)
    loop = success.climb(SYSTEM, [_law(_with(given), "rest", 0.35)], 0, 3, (2, 24))
    np.testing.assert_array_equal(share[0], loop.share[0])
    sigma = draw(SYSTEM, "1b", given=given, options=QUICK | {"sigmas": (0.0, 0.5)})
    assert "Exponent of N50 in 1/(1 - sigma)" in sigma.caption
    both = draw(SYSTEM, "3", given=given, options=QUICK | {"alphas": (0.15, 0.3, 0.6)})
    assert both.data["trained"]["share"].shape == (3, 2)
    for name, one in (("a", drawing), ("b", sigma), ("c", both)):
        assert plotting.write(one.axes, tmp_path / f"{name}.png").stat().st_size > 10_000


def _with(given):
    return SYSTEM.Parameters(**({"data": "fixed_disc"} | given))


def test_figure_2_is_that_of_single_runs():
    drawing = draw(SYSTEM, "2", given={"m": 40}, options={"seeds": 2, "workers": 0,
                                                          "families": ("none",)})  # fmt: skip
    found = drawing.data["none"]
    law = SYSTEM.Parameters(m=40, L=100)
    for alpha, steps in zip(found["alpha_star"][2:], found["steps"][2:], strict=True):
        alone = iterations.steps_to_zero(SYSTEM, _law(law, "none", alpha), (0, 1))
        assert tuple(np.rint(steps)) == alone
    np.testing.assert_allclose(found["gap"], found["alpha_star"])


def test_figures_of_noisy_tokens(tmp_path):
    given = {"m": 40, "L": 20, "d": 5}
    options = {"samples": 10, "steps": 40, "seeds": 2}
    attention = draw(SYSTEM, "4", given=given, options=options)
    run = attention.data["margin 1"]["relevant"]
    lines = attention.axes[0, 0].lines
    np.testing.assert_array_equal(lines[0].get_ydata(), np.mean(run, axis=0))
    np.testing.assert_allclose(lines[1].get_ydata(), 1 - np.mean(run, axis=0), rtol=1e-14)
    quick = options | {"removed": (0.0, 0.5), "workers": 0}
    tokens = draw(SYSTEM, "5", given=given, options=quick)
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
        draw(SYSTEM, name, given=given, options=options)


@pytest.mark.long
def test_verdicts_at_the_sizes_of_the_paper():
    """The five differences: concentration, what T and N follow, sigma, exponents, lucky neurons."""
    false = (
        "Proposition 2", "Figure 4", "Figure 1a", "Figure 2", "Remark 3", "Theorem 1, iterations",
        "Theorem 1, samples", "Proposition 1", "Remark 1", "Lemma 3", "Lemma 2, claim 2",
    )  # fmt: skip
    assert verdicts(SYSTEM, *false) == [False] * len(false)
    true = ("Remark 2", "Figures 7 and 8", "Lemma 2, claim 1", "Lemma 2, claim 3", "Lemma 4")
    assert verdicts(SYSTEM, *true) == [True] * len(true)


REFERENCE = {
    ("rest", "none"): {0.27: 52.6, 0.28: 24.2, 0.3: 10.1, 0.32: 5.4},
    ("rest", "attention"): {0.28: 45.0, 0.3: 21.0, 0.32: 13.5, 0.37: 5.2},
    ("proportion", "none"): {0.05: 8.4, 0.07: 8.7, 0.1: 5.1, 0.15: 5.3, 0.2: 4.4, 0.3: 2.5},
    ("proportion", "attention"): {0.05: 50.0, 0.07: 56.0, 0.1: 75.0, 0.15: 33.0, 0.2: 13.5,
                                  0.3: 5.5},
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(("family", "frozen"), REFERENCE)
def test_n50_of_another_program_within_a_factor(family, frozen):
    expected = REFERENCE[family, frozen]
    usual = SYSTEM.Parameters(m=300, L=100, data="fixed_disc", frozen=frozen)
    laws = [_law(usual, family, a) for a in expected]
    trials = 60 if frozen == "none" else 20
    found = success.climb(SYSTEM, laws, trials=trials).values
    assert np.abs(np.log(found / list(expected.values()))).max() < np.log(1.5)


def test_a_panel_leaves_out_the_curve_of_a_class_without_members():
    """With M = 3 there is one other pattern, and no B between two of them."""
    problem = SYSTEM.ReducedPopulation(SYSTEM.Parameters(M=3, m=12))
    run = dynamics.descend(problem, 0.1, 5)
    assert "B_kl" not in run.observables
    labels = [line.get_label() for axes in plotting.training(run) for line in axes.lines]
    assert not any("B_{kl}" in label for label in labels)


def test_without_lucky_neurons_nothing_is_said_of_them():
    law = SYSTEM.Parameters(m=1, L=20)
    claims = ["Lemma 2, claim 1", "Lemma 2, claim 3", "Lemma 4"]
    for verdict in dynamics.verify(SYSTEM, law, claims):
        assert verdict.holds is None
        assert "|W| = 0" in verdict.evidence["reason"]


def test_points_that_short_samples_do_not_have_are_left_out():
    law = SYSTEM.Parameters(m=60, L=20)
    alphas, laws = iterations.possible(law, "proportion")
    assert alphas == [0.05, 0.1, 0.2, 0.4, 0.8]
    short, laws = iterations.possible(dataclasses.replace(law, L=5), "proportion")
    assert short == [0.1, 0.4, 0.8]
    assert all(one.n_star > one.n_confusion for one in laws)
    none = SYSTEM.Parameters(m=12, L=1, alpha_star=1.0, alpha_confusion=0.0)
    for verdict in dynamics.verify(SYSTEM, none, ["Figure 2", "Theorem 1, iterations"]):
        assert verdict.holds is None
        assert "L=1 tokens" in verdict.evidence["reason"]
    drawing = draw(SYSTEM, "2", given={"m": 24, "L": 20}, options={"seeds": 1, "workers": 0,
                   "families": ("rest", "none")})  # fmt: skip
    for family in drawing.data.values():
        assert len(family["alpha_star"]) == len(family["steps"]) >= 3


def test_the_linear_loss_goes_on_past_its_zero(monkeypatch):
    law = SYSTEM.Parameters(m=60, L=20)
    for loss, whole in (("linear", True), ("hinge", False)):
        case = runs.trained(SYSTEM, dataclasses.replace(law, loss=loss), 0, steps=200)
        assert case.run.events["t_zero"].step < 200
        assert (case.last == 200) == whole
    monkeypatch.setattr(success, "FIRST_STEPS", 120)
    monkeypatch.setattr(success, "STEPS", 150)
    problem = SYSTEM.ReducedPopulation(dataclasses.replace(law, loss="linear"))
    run, stop = success._trained(problem)
    assert stop is not None
    assert run.steps[-1] == 150


@pytest.mark.parametrize(
    ("claim", "given", "told"),
    [
        ("Proposition 2, rate", {"L": 1}, "nothing is left"),
        ("Lemma 2, claim 2", {"L": 20, "margin": 1e-7}, "no value"),
        ("Lemma 3", {"xi": 0.0}, "no direction"),
    ],
)
def test_what_is_not_a_number_decides_nothing(claim, given, told):
    verdict = dynamics.verify(SYSTEM, SYSTEM.Parameters(m=60, **given), [claim])[0]
    assert verdict.holds is None
    assert told in verdict.evidence["reason"]


def test_reasons_are_of_the_law_that_was_asked_for():
    law = SYSTEM.Parameters(m=60, L=20)

    def reason(claim, **given):
        verdict = dynamics.verify(SYSTEM, dataclasses.replace(law, **given), [claim])[0]
        return verdict.evidence["reason"]

    assert "cannot pass" in reason("Proposition 2")
    for share in (0.05, 0.01):
        varied = reason("Proposition 2", data="iid", alpha_confusion=share)
        assert "cannot pass" not in varied
        assert "without confusion" not in varied
    assert "frozen" in reason("Proposition 2, rate", frozen="attention")
    assert "confusion tokens" not in reason("Proposition 2, rate", alpha_confusion=0.0)
    few = SYSTEM.Parameters(m=60, L=20, margin=0.01)
    verdict = dynamics.verify(SYSTEM, few, ["Proposition 2, rate"])[0]
    assert verdict.holds is None
    assert "a line needs" in verdict.evidence["reason"]


@pytest.mark.parametrize(
    ("name", "axis"),
    [
        ("1a", {"alphas": (0.35, 0.4)}),
        ("1b", {"sigmas": (0.0, 0.5)}),
        ("3", {"alphas": (0.1, 0.2)}),
    ],
)
def test_where_nothing_was_fitted_the_caption_says_so(name, axis, tmp_path):
    few = QUICK | {"samples": (2, 4)} | axis
    drawing = draw(SYSTEM, name, given={"m": 40, "L": 40}, options=few)
    assert "nan" not in drawing.caption
    assert "not fitted (too few N50)" in drawing.caption
    assert "> 4" in drawing.caption
    words = [text.get_text() for text in drawing.axes[0].figure.findobj(Text)]
    assert not any("nan" in word for word in words)
    figure = plotting.write(drawing.axes, tmp_path / "a.png")
    assert figure.exists()
