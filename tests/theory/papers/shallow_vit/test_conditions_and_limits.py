"""Numbers that are derived once: conditions, limits of attention, masses, thresholds of events."""

import math

import numpy as np
import pytest

from theory.papers.shallow_vit import attention_limits, conditions, subgaussian
from theory.papers.shallow_vit import recursion as r
from theory.papers.shallow_vit.data_law import Shares
from theory.papers.shallow_vit.notation import EVENTS, NOTATION
from theory.papers.shallow_vit.symmetry import named, pattern_group
from theory.symmetry import classes


def test_least_share_is_the_edge_of_condition_8():
    """At the edge the epsilon_S that (8) needs is 1/2, and less above it."""
    confusion, sigma, delta, tau = 0.05, 0.1, 0.2, 0.03
    edge = conditions.least_share(confusion, sigma, delta, tau)

    def epsilon(share):
        return confusion / share * math.exp(delta + tau) / (1 - (sigma + tau))

    assert epsilon(edge) == pytest.approx(0.5)
    assert epsilon(1.01 * edge) < 0.5
    assert conditions.least_share(0.0, sigma, delta) == 0.0
    assert conditions.least_share(confusion, 1.0, delta) == math.inf


def test_least_neurons_leave_no_room_in_equation_11():
    least = conditions.least_neurons(5, 200, 0.1)
    epsilon = 5 * math.sqrt(math.log(200) / least)
    assert 1 - epsilon - 0.1 * 5 / math.pi == pytest.approx(0.0)
    assert conditions.least_neurons(5, 200, 0.7) == math.inf


def test_batches_of_equation_9():
    expected = 1 / (0.5 - math.exp(-0.2) * 0.1) ** 2
    assert conditions.least_batch(0.5, 0.1, 0.2) == pytest.approx(expected)
    assert conditions.least_batch(0.05, 0.1, 0.2) == math.inf


def test_equation_70_is_no_equality_of_order():
    assert conditions.equation_70().holds is False
    edge = conditions.pole(0.1, 0.02)
    at = [(edge * (1 + near), 0.1, 0.2, 0.02) for near in (0.1, 0.01)]
    ratios = [conditions.derived_batch(*one) / conditions.least_batch(*one) for one in at]
    assert ratios[1] > 50 * ratios[0]
    assert conditions.derived_batch(0.99 * edge, 0.1, 0.2, 0.02) == math.inf


def test_the_constant_bounds_the_series_of_moments():
    C = 1 / (4 * subgaussian.hoeffding_constant())
    for x in (0.03, 0.4, 1.1, 2.5):
        total, term = 1.0, x
        for p in range(2, 120):
            term = math.exp(p * math.log(x) + p / 2 * math.log(p) - math.lgamma(p + 1))
            total += term
        assert subgaussian.exponent_of_series(x) == pytest.approx(math.log(total) / x**2)
        assert math.log(total) <= C * x**2 * (1 + 1e-6)


@pytest.mark.parametrize("chance", [1.0, 0.7, 0.1, 0.001])
def test_the_norm_is_the_largest_of_all_moments(chance):
    p = np.linspace(1, 60, 100_000)
    assert subgaussian.norm_of_rare_signs(chance) == pytest.approx(
        (p**-0.5 * chance ** (1 / p)).max(), rel=1e-6
    )


RULES = {rule.name: rule for rule in EVENTS}
THRESHOLDS = {
    "t_fit": ("error", 0.0, 0.01), "t_zero": ("active", 0.0, 0.01),
    "mass_50": ("relevant", 0.5, 0.49), "mass_75": ("relevant", 0.75, 0.74),
    "mass_90": ("relevant", 0.91, 0.89),
}  # fmt: skip


@pytest.mark.parametrize("name", THRESHOLDS)
def test_thresholds(name):
    rule, (quantity, reached, missed) = RULES[name], THRESHOLDS[name]
    assert (rule.guard > 0, rule.strict) == (True, False)
    for value, holds in ((reached, True), (missed, False)):
        assert (rule.expression.subs(NOTATION.symbol(quantity), value) >= 0) == holds


@pytest.mark.parametrize(("patterns", "others"), [(5, 4), (4, 7), (3, 2)])
def test_masses_by_query_type(patterns, others):
    rng = np.random.default_rng(7)
    orbits = classes(pattern_group(patterns))
    B = rng.normal(size=orbits.count)[orbits.labels]
    counts = np.array([9, 2, *[others] * (patterns - 2)])
    P = counts[:, None] * np.exp(B)
    P /= P.sum(axis=0)
    values = {f"B_{pair}": B[tuple(where[0])] for pair, where in named(orbits).items()}
    values |= {"n_star": 9, "n_confusion": 2, "n_other": others, "M": patterns, "B_kl": 0} | values
    for (_, mass), query in zip(r.relevant_masses().items(), (0, 1, 2), strict=True):
        value = mass.subs({s: values[s.name] for s in mass.free_symbols})
        assert float(value) == pytest.approx(P[0, query], abs=1e-14)


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
    expected = 5 * math.sqrt(math.log(200) / 1000)
    assert attention_limits.least_epsilon(5, 1000, 200) == pytest.approx(expected)


def test_the_printed_start():
    assert attention_limits.printed_start().holds is False
    assert attention_limits.printed_start(noise=0.1, sigma=0.1, delta=0.1).holds


@pytest.mark.parametrize(
    ("positive", "negative"),
    [([[5, 1, 4, 0], [5, 1, 1, 3]], [[1, 5, 0, 4]]), ([], [[1, 5, 2, 2]] * 3)],
)
def test_no_scores_pass_the_ceiling_of_samples_and_some_come_near_it(positive, negative):
    """Unequal numbers of both labels, one label alone; n_* = 5, n_# = 1."""
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


def test_the_ceiling_of_a_law_is_that_of_its_samples():
    for shares in (Shares(5, 50, 0.5, 0.05), Shares(4, 20, 0.4, 0.3), Shares(5, 30, 0.6, 0.0)):
        one, two, L = shares.n_star, shares.n_confusion, shares.L
        rest = (L - one - two) / (2 * L)
        sides = [one / (2 * L), two / (2 * L), rest], [two / (2 * L), one / (2 * L), rest]
        expected = attention_limits.ceiling(one, two, L)
        assert attention_limits.ceiling_of_samples(one, two, *sides) == pytest.approx(expected)
