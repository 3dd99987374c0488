"""The checks of Theorems 3.1 and 3.2."""

import json
import math

import pytest

from dynamics.verdicts.findings import Protocol
from dynamics.verdicts.positional_attention import linear
from theory.papers.positional_attention import constructions
from theory.symmetry import Partition


def at(system, D, C, q, **other):
    return Protocol(system.Parameters(D=D, C=C, q=q, **other))


def plain(finding):
    assert json.loads(json.dumps(finding.evidence)) == finding.evidence
    assert finding.reason.isascii()
    return finding


def test_theorem_3_1_fails_as_worded(system):
    finding = plain(linear.theorem_3_1(system, Protocol()))
    assert finding.holds is False
    assert finding.measured == pytest.approx(0.0018248, abs=1e-7)
    assert finding.measured < finding.bound == 0.125
    assert "passes 1/8 where q(D-C) is above" in finding.reason
    for row in finding.evidence["table"]:
        assert row["negative"] <= row["unequal_weights"] <= row["equal_weights"]
        assert row["any_link"] < row["unequal_weights"]
        assert (row["equal_weights"] > 0.125) == (row["m_over_C2"] >= 0.75)
    limits = [row for row in finding.evidence["region"] if row["D"] is None]
    assert [round(row["m_over_C2"], 5) for row in limits] == [0.74477, 0.75377, 0.75525, 0.75558]
    for row in finding.evidence["counterexamples"]:
        assert row["error"] < row["equal_weights"]


@pytest.mark.parametrize(
    ("D", "C", "q", "holds"),
    [(16, 4, 0.5, False), (64, 4, 0.25, False), (8, 2, 0.5, False), (196, 4, 4 / 49, False)],
)
def test_theorem_3_1_at_a_size(system, D, C, q, holds):
    """At 8, 2, 1/2 sign(Z) errs more than 1/8 and unequal weights less."""
    finding = plain(linear.theorem_3_1(system, at(system, D, C, q)))
    assert finding.holds is holds
    curves = finding.evidence["plot"]["curves"]
    assert all(len(curve["x"]) == len(curve["y"]) for curve in curves)
    passed = [k for k, error in zip(curves[0]["x"], curves[0]["y"], strict=True) if error > 0.125]
    assert min(passed) == pytest.approx(0.755, abs=0.05)


def test_theorem_3_2(system):
    finding = plain(linear.theorem_3_2(system, Protocol()))
    assert finding.holds is True
    assert finding.literal.holds is False
    assert "Definition 2.2" in finding.literal.reason
    attention = finding.evidence["attention"]
    assert attention["largest_change_by_shift"] < 1e-12
    assert attention["logits"] == {"with_diagonal": [0, 0], "off_diagonal": [0, 0]}
    assert attention["gram"] == {"with_diagonal": [1, 1], "off_diagonal": [0, 0]}
    assert attention["logits_from_encodings"] < 1e-12
    assert attention["pairs"]["least_eigenvalue"] >= -1e-12
    exponents = [run["exponents"][-1] for run in finding.evidence["ladders"]]
    assert exponents == pytest.approx([1, 3, 5], abs=0.3)


@pytest.mark.parametrize(("D", "C", "q"), [(16, 4, 0.5), (12, 4, 0.5), (64, 4, 0.1), (12, 4, 1.0)])
def test_theorem_3_2_at_a_size(system, D, C, q):
    finding = plain(linear.theorem_3_2(system, at(system, D, C, q)))
    assert finding.holds is True
    assert ("pairs" in finding.evidence["attention"]) == (D // C % 2 == 0)


def test_theorem_3_2_says_what_it_cannot_decide(system):
    slow = linear.theorem_3_2(system, at(system, 64, 4, 0.8))
    assert slow.measured == pytest.approx(slow.evidence["ladders"][0]["exponents"][-1] / 3)
    large = linear.theorem_3_2(system, at(system, 4096, 4, 0.01))
    assert large.holds is None
    assert math.isnan(large.measured)


@pytest.mark.parametrize(
    ("D", "C", "q", "error"),
    [(64, 4, 0.05, 0.0005), (64, 4, 0.1, 0.0054), (64, 4, 0.25, 0.062), (16, 4, 0.25, 0.018)],
)
def test_errors_of_pairs(D, C, q, error):
    partition = Partition.contiguous([C] * (D // C))
    values = linear.draw((D, C, q), 40_000, 0)
    found = linear.sampled_error(
        constructions.paired_logits(partition), values, constructions.Head()
    )
    assert abs(found["error"] - error) < 3 * found["standard_error"]


def test_draws_follow_the_law():
    values = linear.draw((16, 4, 0.5), 40_000, 3)
    reference = constructions.sharp_error((16, 4, 0.5)).error
    logits = constructions.set_logits(Partition.contiguous([4] * 4), 30.0)
    found = linear.sampled_error(logits, values, constructions.Head())
    assert abs(found["error"] - reference) < 4 * found["standard_error"]
    assert (linear.draw((16, 4, 0.5), 5, 3) == linear.draw((16, 4, 0.5), 5, 3)).all()
