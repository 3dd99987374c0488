"""The odds identity, the ceiling, lucky neurons, the printed start, and what claims say."""

import math

import numpy as np
import pytest

from theory.papers.shallow_vit import attention_limits
from theory.papers.shallow_vit.data_law import Shares


def attention(B, counts):
    P = counts[:, None] * np.exp(B)
    return P / P.sum(axis=0)


def test_odds_identity():
    assert attention_limits.odds_identity().holds
    assert not attention_limits.odds_identity(attention_limits.n_star).holds


def test_bounds_of_the_masses():
    assert attention_limits.mean_is_bounded().holds
    evidence = attention_limits.proposition_2()
    assert evidence.holds is False
    assert "0.9189" in " ".join(evidence.findings)


def test_share_of_a_cap():
    assert attention_limits.cap_share(2, 0.3) == pytest.approx(0.3 / math.pi)
    assert attention_limits.cap_share(3, 0.3) == pytest.approx((1 - math.cos(0.3)) / 2)
    assert attention_limits.cap_share(3, 2.5) == pytest.approx((1 - math.cos(2.5)) / 2)
    rows = np.random.default_rng(0).normal(size=(200_000, 10))
    share = (rows[:, 0] / np.linalg.norm(rows, axis=1) > math.cos(1.0)).mean()
    assert attention_limits.cap_share(10, 1.0) == pytest.approx(share, abs=1e-3)


def test_lemma_3_promises_more_than_there_are():
    evidence = attention_limits.lemma_3()
    assert evidence.holds is False
    assert evidence.findings[0] == "promised: at least 95 of 1000"
    assert attention_limits.lemma_3(dimension=2, M=4, sigma=0.7).holds
    assert attention_limits.least_epsilon(5, 1000, 200) == pytest.approx(
        5 * math.sqrt(math.log(200) / 1000)
    )


def test_the_printed_start():
    assert attention_limits.printed_start().holds is False
    assert attention_limits.printed_start(noise=0.1, sigma=0.1, delta=0.1).holds


@pytest.mark.parametrize(
    ("positive", "negative"),
    [
        ([[5, 1, 4]], []),
        ([[5, 1, 4], [5, 1, 4]], [[1, 5, 4]]),
        ([[5, 1, 4, 0], [5, 1, 1, 3]], [[1, 5, 0, 4]]),
        ([], [[1, 5, 2, 2]] * 3),
    ],
)
def test_no_scores_pass_the_ceiling_of_samples_and_some_come_near_it(positive, negative):
    """One label alone, unequal numbers of both, patterns of one label; n_* = 5, n_# = 1."""
    counts = np.array([*positive, *negative], float)
    labels = np.array([1.0] * len(positive) + [-1.0] * len(negative))
    queries = counts / counts.sum()

    def mass(scores):
        weights = counts[:, :, None] * np.exp(scores)
        weights /= weights.sum(axis=1, keepdims=True)
        relevant = np.where(labels[:, None] > 0, weights[:, 0], weights[:, 1])
        return float((queries * relevant).sum())

    sides = [queries[labels == sign].sum(axis=0) for sign in (1, -1)]
    top = attention_limits.ceiling_of_samples(5, 1, *sides)
    random, size = np.random.default_rng(0), (counts.shape[1],) * 2
    assert max(mass(5 * random.normal(size=size)) for _ in range(500)) <= top + 1e-12
    # Only the difference of the scores of patterns 1 and 2 matters, once no other has attention.
    shifts, best = np.linspace(-30, 30, 60_001), 0.0
    for j in range(counts.shape[1]):
        a, b = (float(side[j]) for side in sides)
        s = np.exp(shifts)
        best += float((a * 5 * s / (1 + 5 * s) + b * 5 / (5 + s)).max())
    assert top == pytest.approx(best, abs=1e-6)
    assert top >= best - 1e-12


def test_the_ceiling_of_a_law_is_that_of_its_samples():
    for shares in (Shares(5, 50, 0.5, 0.05), Shares(4, 20, 0.4, 0.3), Shares(5, 30, 0.6, 0.0)):
        one, two, L = shares.n_star, shares.n_confusion, shares.L
        rest = (L - one - two) / (2 * L)
        sides = [one / (2 * L), two / (2 * L), rest], [two / (2 * L), one / (2 * L), rest]
        expected = attention_limits.ceiling(one, two, L)
        assert attention_limits.ceiling_of_samples(one, two, *sides) == pytest.approx(expected)
