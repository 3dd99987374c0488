"""Definition 2.1, Theorems 3.1, 3.2, 5.1 and 5.2: exact laws against enumeration, verdicts."""

import itertools
from functools import partial

import numpy as np
import pytest
from verdicts import moved, verdict_of, verdicts

import dynamics
from dynamics.verdicts.positional_attention import linear, transfer
from theory.papers.positional_attention import constructions
from theory.papers.positional_attention.linear_rules import sign_rule_error
from theory.papers.positional_attention.samples import assumption_1, samples

SYSTEM = dynamics.load_system("positional_attention")


def enumerated(D, C, q):
    """Chance, f* and Z of every sample with y = +1, the signal set first."""
    for rest in itertools.product((1, -1, 0), repeat=D - C):
        x = np.array([1] * C + list(rest))
        sets = x.reshape(-1, C).sum(axis=1)
        chance = np.prod([q / 2 if v else 1 - q for v in rest])
        yield chance, int(sets[np.abs(sets) > 0.9 * C].sum()), int(x.sum()), x


def test_the_joint_law_is_that_of_every_sample():
    D, C, q = 6, 2, 0.4
    found = linear.label_law((D, C, q))
    expected = np.zeros_like(found)
    for chance, label, total, _ in enumerated(D, C, q):
        expected[D + label, D + total] += chance
    np.testing.assert_allclose(found, expected, atol=1e-15)
    np.testing.assert_allclose(linear.label_law((D, C, q), False)[:, 0], expected.sum(axis=1))


def test_theorem_3_1_is_about_f_and_counts_ties_whole():
    (verdict,) = dynamics.verify(SYSTEM, None, ["Theorem 3.1"])
    assert verdict.holds is False
    assert verdict.measured == pytest.approx(0.003637, abs=1e-6)  # twice what a fair coin leaves
    rows = {row["D"]: row for row in verdict.evidence["table"]}
    assert rows[8]["holds"] is True  # P(f* = 0) is .1443, which no g goes below
    assert rows[8]["value"] == pytest.approx(0.1443, abs=1e-4)


def test_the_label_is_found_up_to_a_power_that_grows_with_c(monkeypatch):
    assert verdicts(SYSTEM, "Definition 2.1") == [True]
    slow = partial(linear.joint_law, value=lambda z: z)  # the sum of all, no threshold
    monkeypatch.setattr(linear, "label_law", lambda law, whole=True: slow(law, whole=whole)[2])
    assert verdicts(SYSTEM, "Definition 2.1") == [None]


def test_theorem_3_2_names_its_limit_and_has_two_lines(monkeypatch):
    (verdict,) = dynamics.verify(SYSTEM, None, ["Theorem 3.2"])
    assert verdict.word == "holds, as read here"
    assert verdict.finding.literal.holds is False
    row = verdict.evidence["table"][-1]
    assert (row["D"], round(row["error"], 5), round(row["finite"], 5)) == (64, 0.00236, 0.0024)
    assert "in the limit of sharp attention and nu -> 0" in verdict.evidence["reason"]
    real = constructions.set_logits
    monkeypatch.setattr(constructions, "set_logits", lambda sets, s, _: real(sets, s, 0))
    assert verdicts(SYSTEM, "Theorem 3.2") == [False]


def at(D, C, m, **other):
    return SYSTEM.Parameters(D=D, C=C, q=m / (D - C), **other)


def test_true_sets_transfer_and_uniform_attention_stays_at_the_linear_rule():
    law = at(16, 4, 8)
    logits, inside = transfer.attentions(SYSTEM, law)
    assert (inside["true sets"], inside["uniform"]) == (1.0, pytest.approx(4 / 16))
    assert inside["uniform"] < inside["learned, early"] < inside["learned"] < 1
    found = transfer.fine_tuned(SYSTEM, law, logits, 8, range(6))
    least = float(sign_rule_error(16, 4, law.q).error)
    assert np.median(found["true sets"]) <= 0.03
    assert np.median(found["learned"]) <= 0.03
    assert found["uniform"].min() >= least - 3 * np.sqrt(least * (1 - least) / 10_000)
    # Early attention has patch association, gamma > rho, and too little mass.
    assert logits["learned, early"][0, 1] > logits["learned, early"][0, -1]
    assert np.median(found["learned, early"]) > 2 * np.median(found["learned"])


def test_theorem_5_1_at_a_size_and_where_gamma_moves_the_wrong_way(monkeypatch):
    monkeypatch.setattr(transfer, "STEPS", 1000)
    verdict = verdict_of(SYSTEM, "Theorem 5.1", at(16, 4, 8))
    assert verdict.holds is True
    assert verdict.measured < 0.2
    wrong = moved(SYSTEM, lambda slope: slope * [1.0, -1.0, 1.0])
    wrong = verdict_of(wrong, "Theorem 5.1", at(16, 4, 8))
    assert wrong.holds is False
    assert wrong.measured > 0.8


def test_theorem_5_1_says_what_it_cannot_decide(monkeypatch):
    assert "cannot help" in verdict_of(SYSTEM, "Theorem 5.1", at(16, 4, 1)).finding.reason
    assert verdict_of(SYSTEM, "Theorem 5.1", at(512, 4, 8)).holds is None
    monkeypatch.setattr(transfer, "PRE_TRAINING", 1.0)  # before much attention is inside
    monkeypatch.setattr(transfer, "STEPS", 1000)
    early = verdict_of(SYSTEM, "Theorem 5.1", at(16, 4, 8))
    assert early.holds is None
    assert "G/D = 0.33" in early.finding.reason


def test_the_error_of_the_leading_direction_is_that_on_fresh_data(monkeypatch):
    """Against draws of the law: sign(<v, sum of all patches>) with the same v."""
    law = at(32, 4, 4)
    x, y = samples(assumption_1(law), law.d, 1, np.random.default_rng(3))
    v = np.linalg.svd(x[0])[2][0]
    v *= np.sign(y[0] * x[0].sum(axis=0) @ v)
    fresh, labels = samples(assumption_1(law), law.d, 20_000, np.random.default_rng(9))
    error = float((labels * (fresh.sum(axis=1) @ v) <= 0).mean())
    assert transfer.leading_error(law, 1, 3) == pytest.approx(error, abs=4 * (error / 2e4) ** 0.5)


def test_theorem_5_2_fails_where_sign_z_errs_less_and_less(monkeypatch):
    (verdict,) = dynamics.verify(SYSTEM, None, ["Theorem 5.2"])
    rows = verdict.evidence["table"]
    assert verdict.holds is False
    assert verdict.measured == pytest.approx(rows[2]["linear"], rel=0.05)
    assert [row["holds"] for row in rows] == [True, False, False, True, True]
    assert [row["least"] for row in rows[3:]] == [9, 38]
    # An algorithm that learns nothing of the feature has no such errors.
    monkeypatch.setattr(transfer, "leading_error", lambda *_: 0.5)
    assert dynamics.verify(SYSTEM, None, ["Theorem 5.2"])[0].holds is True
    monkeypatch.undo()
    assert verdict_of(SYSTEM, "Theorem 5.2", at(32, 4, 16)).holds is True
    assert verdict_of(SYSTEM, "Theorem 5.2", at(32, 4, 4)).holds is None  # one law alone
