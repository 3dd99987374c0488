"""The shallow ViT: verdicts are measured, and flip with the dynamics."""

import dataclasses
from dataclasses import replace

import numpy as np
import pytest
from verdicts import verdicts

import dynamics
from dynamics.papers.shallow_vit.problems import FullPopulation, ReducedPopulation
from dynamics.verdicts.findings import Protocol
from dynamics.verdicts.shallow_vit import (
    attention,
    complexity,
    inequalities,
    iterations,
    noiseless,
    runs,
    samples,
)
from dynamics.verdicts.study import Study
from dynamics.verdicts.verify import checks

SYSTEM = dynamics.load_system("shallow_vit")
SMALL = {"m": 60, "L": 20, "alpha_confusion": 0.1}
CLEAN = SYSTEM.Parameters(m=300, L=20, alpha_confusion=0.0, margin=300**0.5)
NARROW = SYSTEM.Parameters(m=100, L=20, alpha_confusion=0.0, margin=10.0, d=6)


def scaled(**factors):
    """A problem in which parts of the state move by other multiples of their gradient."""

    class Scaled(ReducedPopulation):
        def advance(self, state, updates, *rest):
            rates = updates.eta.copy()
            for name, factor in factors.items():
                self.layout.part(rates, name)[...] *= factor
            return super().advance(state, replace(updates, eta=rates), *rest)

    return Scaled


Turned = scaled(K=-1.0, Q=-1.0)
Frozen = scaled(K=0.0, Q=0.0)
Uphill = scaled(W_O=-1.0)
Standing = scaled(W_O=0.0, V=0.0, K=0.0, Q=0.0)


class Uneven(FullPopulation):
    """One training sample has another number of confusion tokens."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.vectors.counts[0, 1:3] += (1, -1)
        self.tokens = self.vectors.token_by_token(self.parameters.d)


def with_(problem):
    return dataclasses.replace(SYSTEM, ReducedPopulation=problem)


def test_every_claim_has_a_check_and_nothing_else_has():
    assert set(checks(SYSTEM)) == {claim.source for claim in SYSTEM.claims}


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
    found = noiseless._log_odds(problem, keys, queries)
    for sample, counts in enumerate(problem.vectors.counts):
        for query in range(problem.parameters.M):
            powers = [
                np.exp(keys[:, pattern] @ queries[:, query])
                for pattern, many in enumerate(counts) for _ in range(many)
            ]  # fmt: skip
            one, two = sum(powers[: counts[0]]), sum(powers[counts[0] : counts[0] + counts[1]])
            assert found[sample, query] == pytest.approx(np.log(one / two), abs=1e-12)


def test_concentration_needs_that_there_are_no_confusion_tokens(monkeypatch):
    """The limit is denied by the odds, at any step size; its rate then is not defined."""
    monkeypatch.setattr(runs, "STEPS", 600)
    claims = ("Proposition 2", "Proposition 2, rate")
    some = dataclasses.replace(CLEAN, alpha_confusion=0.05)
    assert verdicts(SYSTEM, *claims, parameters=CLEAN) == [True, True]
    assert verdicts(SYSTEM, *claims, parameters=some) == [False, None]
    shorter = dataclasses.replace(CLEAN, margin=5.0)
    for verdict in dynamics.verify(SYSTEM, shorter, claims):
        assert (verdict.holds, verdict.claim.source) in ((None, claims[0]), (True, claims[1]))
    for verdict in dynamics.verify(SYSTEM, dataclasses.replace(CLEAN, margin=1.0), claims):
        assert verdict.holds is None
        assert "training ends before" in verdict.evidence["reason"]
    longer = dataclasses.replace(some, margin=10 * CLEAN.margin)
    assert verdicts(SYSTEM, *claims, parameters=longer) == [False, None]
    for wrong in (Turned, Frozen):
        assert verdicts(with_(wrong), *claims, parameters=CLEAN) == [False, False]


def test_figure_4_on_noisy_tokens(monkeypatch):
    """With d = 6, as in the tests of the problem: its functions are compiled for each d."""
    monkeypatch.setattr(attention, "STEPS", 200)
    monkeypatch.setattr(runs, "SAMPLES", 40)
    many = dataclasses.replace(NARROW, alpha_confusion=0.2)
    assert verdicts(SYSTEM, "Figure 4", parameters=NARROW) == [True]
    (verdict,) = dynamics.verify(SYSTEM, many, ["Figure 4"])
    assert verdict.holds is False
    assert "eta times 0.25" in verdict.evidence["reason"]


def test_lucky_neurons_rest_on_their_descent(monkeypatch):
    monkeypatch.setattr(runs, "STEPS", 400)
    claims = ("Lemma 2, claim 1", "Lemma 2, claim 3", "Lemma 4")
    law = SYSTEM.Parameters(m=200, L=20, alpha_confusion=0.1)
    assert verdicts(SYSTEM, *claims, parameters=law) == [True] * 3
    assert verdicts(with_(Uphill), *claims, parameters=law) == [False] * 3


def test_keys_grow_as_log_t_only_where_values_are_frozen():
    usual = SYSTEM.Parameters(m=200, L=20, alpha_confusion=0.1)
    linear = dataclasses.replace(usual, loss="linear")
    values = dataclasses.replace(linear, frozen="values")
    claim = "Lemma 2, claim 2"
    growth = {}
    for name, law in (("usual", usual), ("linear", linear), ("values", values)):
        (verdict,) = dynamics.verify(SYSTEM, law, [claim])
        assert verdict.holds is None
        assert "takes 2 decades" in verdict.evidence["reason"]
        growth[name] = verdict.measured
    assert 1 / 1.5 < growth["values"] < 1.5
    assert min(growth["usual"], growth["linear"]) > 3
    assert verdicts(with_(Turned), claim, parameters=usual) == [False]


def test_lemma_3_and_the_printed_start_at_other_parameters():
    wide = SYSTEM.Parameters(M=3, d=3, sigma=0.8)
    assert verdicts(SYSTEM, "Lemma 3", parameters=SYSTEM.Parameters()) == [False]
    assert verdicts(SYSTEM, "Lemma 3", parameters=wide) == [True]
    equal = SYSTEM.Parameters(m=60, noise=0.1, sigma=0.1, delta=0.1)
    assert verdicts(SYSTEM, "Section 4.1, initialization", parameters=equal) == [True]
    printed = SYSTEM.Parameters(m=60)
    assert verdicts(SYSTEM, "Section 4.1, initialization", parameters=printed) == [False]


def test_generalization_rests_on_training(monkeypatch):
    for name, value in (("STEPS", 200), ("TRIALS", 2)):
        monkeypatch.setattr(inequalities, name, value)
    monkeypatch.setattr(complexity, "STEPS", 200)
    monkeypatch.setattr(samples, "TRIALS", 2)
    law = SYSTEM.Parameters(m=200, L=20, alpha_star=0.6, alpha_confusion=0.1, data="fixed_disc")
    claims = ("Theorem 1, generalization", "Equation (9)")
    assert verdicts(SYSTEM, *claims, parameters=law) == [True, True]
    assert verdicts(with_(Standing), *claims, parameters=law) == [False, False]


def test_iterations_follow_the_difference_of_the_shares():
    law = SYSTEM.Parameters(m=300, L=100)

    def steps_of(one):
        return iterations.steps_to_zero(SYSTEM, one, (0,))[0]

    rest, share, none = (
        np.array([steps_of(iterations.law_at(law, name, a)) for a in alphas])
        for name, alphas in (("rest", (0.3, 0.4)), ("proportion", (0.2, 0.4)),
                             ("none", (0.2, 0.4)))
    )  # fmt: skip
    assert share[0] / share[1] == pytest.approx(2, rel=0.1)
    assert none[0] / none[1] == pytest.approx(2, rel=0.1)
    assert rest[0] / rest[1] == pytest.approx(3, rel=0.15)


def test_where_numbers_decide_nothing():
    placed = SYSTEM.Parameters(output_weights="per_position")
    assert verdicts(SYSTEM, "Lemma 4", "Lemma 2, claim 1", parameters=placed) == [None, None]
    far = SYSTEM.Parameters(sigma=0.9)
    assert verdicts(SYSTEM, "Lemma 3", parameters=far) == [None]
    assert verdicts(SYSTEM, "Odds identity", parameters=CLEAN) == [None]
    assert verdicts(SYSTEM, "Symmetric collapse", parameters=SYSTEM.Parameters()) == [None]


LAW = SYSTEM.Parameters(m=200, L=40, alpha_star=0.3, alpha_confusion=0.06, data="fixed_disc")
COUNTS = (2, 8, 24, 48)


def test_frozen_attention_has_no_advantage_over_itself(monkeypatch):
    """Remark 1 compares two trainings: where attention never moves, the ratio is 1."""
    laws = [iterations.law_at(LAW, "proportion", a) for a in (0.15, 0.25, 0.4)]

    def few(study, given):
        frozen = [dataclasses.replace(law, frozen=given[0].frozen) for law in laws]
        return complexity.trials_of(study.system, frozen, 0, 6, COUNTS)

    monkeypatch.setattr(samples, "_run", few)
    monkeypatch.setattr(samples, "SHARES", (0.15, 0.25, 0.4))
    trained, frozen = dynamics.verify(with_(Frozen), LAW, ["Theorem 1, samples", "Proposition 1"])
    for one, two in zip(*(v.evidence["table"].values() for v in (trained, frozen)), strict=True):
        assert [row["N50"] for row in one] == [row["N50"] for row in two]
    ratio = dynamics.verify(with_(Frozen), LAW, ["Remark 1"])[0]
    assert ratio.measured == 0.0
    # The exponent is 0 with no error at all; at one step size that contradicts nothing.
    assert ratio.holds is None
    assert "one step size" in ratio.evidence["reason"]
    assert ratio.document()["literal"]["holds"] is True


@pytest.mark.long
def test_verdicts_at_the_sizes_of_the_paper():
    expected = {
        "Theorem 1, generalization": True, "Theorem 1, iterations": True,
        "Theorem 1, samples": True, "Equation (9)": True, "Equation (70)": False,
        "Figure 1a": None, "Figure 1b": None, "Figure 2, in proportion": True,
        "Figure 2, other shares": False, "Proposition 1": True, "Figure 3": None,
        "Remark 1": None, "Remark 2": True, "Figure 5": True, "Remark 3, samples": None,
        "Remark 3, convergence": None, "Proposition 2": False, "Proposition 2, rate": None,
        "Figure 4": None, "Figures 7 and 8": True, "Lemma 1": True, "Lemma 2, claim 1": True,
        "Lemma 2, claim 2": None, "Lemma 2, claim 3": True, "Lemma 3": False, "Lemma 4": True,
        "Section 4.1, initialization": False,
    }  # fmt: skip
    found = dynamics.verify(SYSTEM, None, list(expected))
    assert {verdict.claim.source: verdict.holds for verdict in found} == expected


def test_lemma_1_on_tails_of_a_loop():
    """Tails by enumeration; a norm that is too small contradicts the inequality."""
    chance, number = 0.3, 5
    outcomes = np.array(np.meshgrid(*[[-1, 0, 1]] * number)).reshape(number, -1)
    weights = np.where(outcomes == 0, 1 - chance, chance / 2).prod(axis=0)
    sums = outcomes.sum(axis=0)
    slow = [weights[sums >= t].sum() for t in range(number + 1)]
    tail = inequalities.tail_of_signs(chance, number)
    np.testing.assert_allclose(tail, slow, rtol=1e-12)
    norm = 0.39
    constant = inequalities.largest_constant(tail, norm, number)
    t = np.arange(1, number + 1)
    room = np.e * np.exp(-constant * t**2 / (norm**2 * number)) / tail[1:]
    assert room.min() == pytest.approx(1.0)
    assert verdicts(SYSTEM, "Lemma 1") == [True]


def test_lemma_1_fails_with_a_norm_that_is_too_small(monkeypatch):
    monkeypatch.setattr(inequalities, "norm_of_rare_signs", lambda chance: 0.1 * chance)
    assert verdicts(SYSTEM, "Lemma 1") == [False]


def test_both_sides_of_equation_70_have_one_order_where_the_start_is_exact():
    assert verdicts(SYSTEM, "Equation (70)") == [False]
    exact = SYSTEM.Parameters(sigma=0.0, alpha_confusion=0.0)
    assert verdicts(SYSTEM, "Equation (70)", parameters=exact) == [True]


def test_what_is_said_of_the_training_of_attention_needs_it():
    frozen = SYSTEM.Parameters(frozen="attention", alpha_star=0.3, alpha_confusion=0.1, m=100, L=30)
    for verdict in dynamics.verify(SYSTEM, frozen, ["Figure 4", "Figures 7 and 8"]):
        assert verdict.word == "not decidable under this law"


@pytest.mark.parametrize(
    ("share", "trials", "low", "holds"),
    [
        (1.0, 20, 0.05 ** (1 / 20), None),
        (1.0, 300, 0.05 ** (1 / 300), True),
        (0.5, 20, None, False),
    ],
)
def test_trials_are_held_against_a_probability_with_their_error(share, trials, low, holds):
    """Of n trials that all succeed the probability p is excluded where p^n is below 0.05."""
    finding = samples.of_all_trials(share, trials, 0.99)
    assert finding.holds is holds
    if low is not None:
        assert finding.measured == pytest.approx(low, rel=1e-12)


def test_figure_2_where_the_shares_are_in_proportion_and_where_not(monkeypatch):
    monkeypatch.setattr(iterations, "SEEDS", 1)
    law = SYSTEM.Parameters(m=40, L=100)
    claims = ("Figure 2, in proportion", "Figure 2, other shares")
    assert verdicts(SYSTEM, claims[0], parameters=SYSTEM.Parameters(m=100, L=100)) == [True]
    (few,) = dynamics.verify(SYSTEM, law, [claims[0]])
    assert few.holds is None  # R^2 is 0.999, and the power 0.82
    assert "not yet a proportion" in few.evidence["reason"]
    (verdict,) = dynamics.verify(SYSTEM, law, [claims[1]])
    assert verdict.holds is False
    assert "eta times 0.25" in verdict.evidence["reason"]


def test_without_lucky_neurons_nothing_is_said_of_them():
    class Closed(ReducedPopulation):
        """Every neuron points away from what opens it."""

        @property
        def initial_state(self):
            state = super().initial_state.copy()
            ahead = self.layout.part(state, "V")[:, :2].sum(axis=1)
            self.layout.part(state, "W_O")[...] = -ahead
            return state

    law = SYSTEM.Parameters(m=200, L=20)
    claims = ["Lemma 2, claim 1", "Lemma 2, claim 3", "Lemma 4"]
    for verdict in dynamics.verify(with_(Closed), law, claims):
        assert verdict.holds is None
        assert "|W| = 0" in verdict.evidence["reason"]


@pytest.mark.parametrize(
    ("claim", "given", "told"),
    [
        ("Proposition 2, rate", {"L": 1}, "nothing is left"),
        ("Lemma 2, claim 2", {"L": 20, "margin": 1e-7}, "does not move"),
        ("Lemma 2, claim 2", {"L": 20, "frozen": "attention"}, "does not move"),
        ("Lemma 3", {"xi": 0.0, "m": 1000}, "no direction"),
    ],
)
def test_what_is_not_a_number_decides_nothing(claim, given, told):
    verdict = dynamics.verify(SYSTEM, SYSTEM.Parameters(**({"m": 200} | given)), [claim])[0]
    assert verdict.holds is None
    assert told in verdict.evidence["reason"]


def test_reasons_are_of_the_law_that_was_asked_for(monkeypatch):
    monkeypatch.setattr(runs, "SAMPLES", 20)
    monkeypatch.setattr(runs, "STEPS", 300)
    law = SYSTEM.Parameters(m=200, L=22)

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
    few = SYSTEM.Parameters(m=200, L=20, margin=0.01)
    verdict = dynamics.verify(SYSTEM, few, ["Proposition 2, rate"])[0]
    assert verdict.holds is None
    assert "a line needs" in verdict.evidence["reason"]


def test_where_training_is_unstable_long_runs_do_not_deny_an_identity():
    law = SYSTEM.Parameters(m=60, L=20, margin=1000.0)
    (verdict,) = dynamics.verify(SYSTEM, law, ["Pattern closure"])
    assert verdict.holds is None
    assert "unstable" in verdict.evidence["reason"]
    calm = SYSTEM.Parameters(m=60, L=20)
    assert verdicts(with_(Turned), "Pattern closure", parameters=calm) == [False]


def test_lemma_3_promises_nothing_to_few_neurons():
    assert verdicts(SYSTEM, "Lemma 3", parameters=SYSTEM.Parameters(m=60)) == [None]
    verdict = dynamics.verify(SYSTEM, claims=["Lemma 3"])[0]
    assert verdict.bound == pytest.approx(95.4, abs=0.1)


def test_points_beside_those_that_were_asked_for_may_be_impossible():
    law = SYSTEM.Parameters(m=200, L=9)
    laws = samples.theorem_laws(Study(SYSTEM, Protocol(law), "", "<", 0.0))
    assert 3 <= len(laws) < len(samples.SHARES)
    assert all(one.n_star > one.n_confusion for one in laws)
    shortest = SYSTEM.Parameters(m=200, L=1, alpha_star=1.0, alpha_confusion=0.0)
    claims = ["Theorem 1, samples", "Remark 1", "Figure 1a"]
    for verdict in dynamics.verify(SYSTEM, shortest, claims):
        assert verdict.holds is None
        assert "fewer than 3" in verdict.evidence["reason"]


def test_what_was_not_taken_is_told():
    law = SYSTEM.Parameters(m=200, L=20, noise=0.5)
    (verdict,) = dynamics.verify(SYSTEM, law, ["Pattern closure"])
    assert verdict.evidence["reason"].endswith("on tokens without noise")
    bare = dataclasses.replace(law, noise=0.0)
    assert "noise" not in dynamics.verify(SYSTEM, bare, ["Pattern closure"])[0].evidence["reason"]
    frozen = dataclasses.replace(law, L=1, alpha_star=1.0, alpha_confusion=0.0, frozen="values")
    (verdict,) = dynamics.verify(SYSTEM, frozen, ["Remark 1"])
    assert "not frozen=values" in verdict.evidence["reason"]
