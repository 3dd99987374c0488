"""The rules of verdicts as they apply to the shallow ViT; each has a case that fails without it."""

import dataclasses

import numpy as np
import pytest

import dynamics
from dynamics.papers.shallow_vit.empirical import FullEmpirical
from dynamics.papers.shallow_vit.problems import ReducedPopulation
from dynamics.verdicts.findings import Finding, Protocol, Undecided
from dynamics.verdicts.rules import applied
from dynamics.verdicts.shallow_vit import (
    attention,
    complexity,
    hypothesis,
    iterations,
    neurons,
    runs,
    samples,
)
from dynamics.verdicts.verify import checks

SYSTEM = dynamics.load_system("shallow_vit")
NARROW = SYSTEM.Parameters(m=100, L=20, alpha_confusion=0.0, margin=10.0, d=6)


# 1. the hypothesis


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"alpha_star": 0.3, "alpha_confusion": 0.2},
            "alpha_* above 0.543, or alpha_# below 0.111",
        ),
        ({"m": 100}, "with N = 200 it takes 188 neurons"),
        ({"sigma": 0.7}, "below pi / M = 0.628"),
        ({"delta": 0.5}, "below 0.5"),
    ],
)
def test_outside_of_theorem_1_nothing_is_decided(given, words):
    law = SYSTEM.Parameters(**given)
    with pytest.raises(Undecided, match="outside of the hypothesis"):
        hypothesis.theorem_1(law)
    for claim in ("Theorem 1, samples", "Remark 3, convergence", "Proposition 2", "Lemma 4"):
        (verdict,) = dynamics.verify(SYSTEM, law, [claim])
        assert verdict.holds is None
        assert words in verdict.evidence["reason"]


OF_ALL_WEIGHTS = (
    "Theorem 1, generalization", "Theorem 1, iterations", "Equation (9)", "Remark 3, samples",
    "Remark 3, convergence", "Proposition 2", "Proposition 2, rate", "Lemma 2, claim 1",
    "Lemma 2, claim 3", "Lemma 4", "Figure 4", "Figure 1a", "Figure 2, in proportion", "Remark 2",
)  # fmt: skip


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"frozen": "attention"}, "attention is frozen"),
        ({"frozen": "values"}, "values are frozen"),
        ({"loss": "linear"}, "the loss is linear"),
    ],
)
def test_what_is_of_all_weights_and_the_hinge_decides_nothing_of_other_training(given, words):
    for verdict in dynamics.verify(SYSTEM, SYSTEM.Parameters(**given), OF_ALL_WEIGHTS):
        assert verdict.word.startswith("not decidable under this law")
        assert words in verdict.evidence["reason"]


def test_claims_that_freeze_attention_themselves_ask_for_the_hinge_alone():
    frozen = SYSTEM.Parameters(frozen="attention")
    hypothesis.up_to_frozen(frozen)
    with pytest.raises(Undecided, match="the loss is linear"):
        hypothesis.up_to_frozen(dataclasses.replace(frozen, loss="linear"))
    linear = SYSTEM.Parameters(loss="linear")
    for source in ("Theorem 1, samples", "Proposition 1", "Remark 1", "Figure 3"):
        (verdict,) = dynamics.verify(SYSTEM, linear, [source])
        assert "the loss is linear" in verdict.evidence["reason"]


def test_keys_that_grow_under_another_loss_decide_nothing(monkeypatch):
    """At no decades that are asked for, the linear loss would decide."""
    monkeypatch.setattr(neurons, "DECADES", 0.0)
    law = SYSTEM.Parameters(m=200, L=20, alpha_confusion=0.1, loss="linear")
    (verdict,) = dynamics.verify(SYSTEM, law, ["Lemma 2, claim 2"])
    assert verdict.word.startswith("not decidable under this law")
    assert "the loss is linear" in verdict.evidence["reason"]


# 2. bounds


def test_fewer_samples_than_a_bound_allows_do_not_contradict_it(monkeypatch):
    """N50 that does not grow holds; that grows faster, does not."""
    law = SYSTEM.Parameters(m=200, L=100, alpha_confusion=0.1, data="fixed_disc")

    def rows(power):
        def run(study, laws):
            N50 = 20 * np.array([one.alpha_star for one in laws]) ** -power / 0.05**-power
            counts, loss = np.geomspace(1e-3, 1e3, 800), np.zeros((len(laws), 800, 20))
            loss[counts < N50[:, None], :] = 1.0
            return complexity.Rows(counts, loss, loss + 1.0)

        monkeypatch.setattr(samples, "_run", run)

    for claim, claimed in (("Theorem 1, samples", 2), ("Proposition 1", 4)):
        for power, expected in ((0.5, True), (claimed, True), (claimed + 1, None)):
            rows(power)
            (verdict,) = dynamics.verify(SYSTEM, law, [claim])
            assert verdict.measured == pytest.approx(power, abs=0.1)
            assert verdict.holds is expected
        rows(claimed + 1)
        (verdict,) = dynamics.verify(SYSTEM, law, [claim], thorough=True)
        assert verdict.holds is False


# 3. what the text has lost


@pytest.mark.parametrize("source", ["Figure 1b", "Figure 3", "Figure 5"])
def test_what_the_text_has_lost_is_not_contradicted(source):
    (claim,) = (claim for claim in SYSTEM.claims if claim.source == source)
    finding = Finding(False, "exponent", 0.0, 2.0, "measured", relation="==")
    assert applied(claim, finding).holds is None


# 4. readings


@pytest.mark.parametrize(
    ("source", "literal"),
    [("Lemma 2, claim 1", None), ("Lemma 2, claim 3", None), ("Lemma 4", None)],
)
def test_readings_have_a_line_of_the_literal_words(source, literal):
    law = SYSTEM.Parameters(m=300, L=20, alpha_confusion=0.1)
    (verdict,) = dynamics.verify(SYSTEM, law, [source])
    assert verdict.word == "holds, as read here"
    assert "lucky neurons are those that have their part" in verdict.evidence["reason"]
    assert verdict.document()["literal"]["holds"] is literal
    if source == "Lemma 2, claim 1":  # Gaussian entries exceed their spread: at this seed
        assert verdict.finding.literal.measured > verdict.finding.literal.bound
        assert "one seed" in verdict.finding.literal.reason


def test_iterations_hold_up_to_the_factor_of_sigma(monkeypatch):
    monkeypatch.setattr(iterations, "SEEDS", 1)
    law = SYSTEM.Parameters(m=500, L=100, alpha_confusion=0.1)
    (verdict,) = dynamics.verify(SYSTEM, law, ["Theorem 1, iterations"])
    assert verdict.word == "holds, as read here"
    literal = verdict.document()["literal"]
    assert literal["holds"] is None
    assert abs(literal["measured"]) < 0.3


# 5. one step size, and rounding


def test_an_end_of_attention_that_depends_on_the_step_size_decides_nothing(monkeypatch):
    monkeypatch.setattr(attention, "STEPS", 200)
    monkeypatch.setattr(runs, "SAMPLES", 40)

    class Coarse(FullEmpirical):
        """Attention that long steps do not train."""

        def advance(self, state, updates, *rest):
            rates = updates.eta.copy()
            for name in ("W_K", "W_Q"):
                self.layout.part(rates, name)[...] *= updates.unit < 0.08
            return super().advance(state, dataclasses.replace(updates, eta=rates), *rest)

    coarse = dataclasses.replace(SYSTEM, FullEmpirical=Coarse)
    (verdict,) = dynamics.verify(coarse, NARROW, ["Figure 4"])
    assert verdict.measured < 0.7
    assert verdict.holds is None
    assert "again with eta times 0.5: 0.9" in verdict.evidence["reason"]


class Amplifying(ReducedPopulation):
    """What a start differs by from that of its seed grows, in the first step, a lot."""

    def advance(self, state, updates, step, *rest):
        if step == 0:
            state += 3e14 * (state - ReducedPopulation.initial_state.fget(self))
        return super().advance(state, updates, step, *rest)


@pytest.mark.parametrize(
    ("source", "confusion", "margin"),
    [
        ("Lemma 2, claim 1", 0.1, 1.0),
        ("Lemma 2, claim 3", 0.1, 1.0),
        ("Proposition 2, rate", 0.0, 15.0),
    ],
)
def test_checks_decide_nothing_where_training_amplifies_rounding(
    source, confusion, margin, monkeypatch
):
    monkeypatch.setattr(runs, "STEPS", 400)
    law = SYSTEM.Parameters(m=200, L=21, alpha_confusion=confusion, margin=margin)
    wild = dataclasses.replace(SYSTEM, ReducedPopulation=Amplifying)
    (calm,), (verdict,) = (dynamics.verify(one, law, [source]) for one in (SYSTEM, wild))
    assert calm.measured == verdict.measured
    assert calm.holds is not None
    assert verdict.holds is None
    assert "training here is unstable" in verdict.evidence["reason"]


@pytest.mark.parametrize(("errors", "expected"), [(-3.0, None), (-5.0, False), (3.0, True)])
def test_remark_3_is_contradicted_by_four_standard_errors_alone(errors, expected, monkeypatch):
    law = SYSTEM.Parameters(m=500, L=100, alpha_confusion=0.0, sigma=0.0)
    noise = np.array([1.0, -1.0] * 5)  # of mean 0, and of standard error 1/3

    def steps(study, laws, *rest):
        at = np.linspace(0, 1, len(laws))[:, None]
        return np.exp(at * (errors / 3 + noise))

    monkeypatch.setattr(iterations, "_steps_of", steps)
    finding = checks(SYSTEM)["Remark 3, convergence"](SYSTEM, Protocol(law))
    assert finding.measured == pytest.approx(errors, rel=1e-6)
    assert finding.holds is expected
    rows = complexity.Rows(np.ones(2), np.zeros((3, 2, 20)), np.ones((3, 2, 20)))
    monkeypatch.setattr(samples, "_run", lambda study, laws: rows)
    monkeypatch.setattr(samples, "_slope", lambda values, rows: (errors, 1.0))
    finding = checks(SYSTEM)["Remark 3, samples"](SYSTEM, Protocol(law))
    assert finding.holds is expected
