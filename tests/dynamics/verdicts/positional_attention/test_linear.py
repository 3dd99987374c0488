"""Definition 2.1, Theorems 3.1 and 3.2: the exact laws against enumeration, and the verdicts."""

import itertools
from functools import partial

import numpy as np
import pytest
from verdicts import verdicts

import dynamics
from dynamics.verdicts.positional_attention import linear
from theory.papers.positional_attention import constructions

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


@pytest.mark.parametrize(
    ("claim", "law", "holds"),
    [
        ("Theorem 3.1", (8, 2, 0.5), True),
        ("Theorem 3.2", (64, 4, 0.1), True),
        ("Theorem 3.2", (4096, 4, 0.5), None),  # takes too long
    ],
)
def test_theorems_at_a_size(claim, law, holds):
    parameters = SYSTEM.Parameters(**dict(zip(("D", "C", "q"), law, strict=True)))
    assert verdicts(SYSTEM, claim, parameters=parameters) == [holds]
