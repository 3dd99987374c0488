"""Lemmas of Appendix A, equation (3.2) and Section 3.1: slow twins, and breaks that are seen."""

import dataclasses
import itertools
from fractions import Fraction

import numpy as np
import pytest

import dynamics
from dynamics.papers.masked_image_modeling.full import FullPopulation
from dynamics.verdicts.findings import Protocol
from dynamics.verdicts.masked_image_modeling import (
    averaged_claims,
    masks,
    significance,
    token_vectors,
)
from dynamics.verdicts.study import Study
from dynamics.verdicts.verify import checks

SYSTEM = dynamics.load_system("masked_image_modeling")
SMALL = {"P": 12, "C_global": 8, "C_local": 2, "masked": 3}
CROSSED = {"family": "custom", "areas": "0,0,1,1,2;0,1,0,2,1", "masked": 2}


def law(**given):
    return SYSTEM.Parameters(**given)


def finding(claim, system=SYSTEM, **given):
    return checks(SYSTEM)[claim](system, Protocol(law(**given) if given else None))


# chances


@pytest.mark.parametrize(("P", "masked", "size"), [(8, 3, 4), (9, 6, 5), (7, 1, 3), (6, 5, 2)])
def test_chances_are_those_of_all_masks(P, masked, size):
    counts = [
        size - len(set(hidden) & set(range(size)))
        for hidden in itertools.combinations(range(P), masked)
    ]
    mean = Fraction(size * (P - masked), P)
    off = sum(abs(h - mean) > mean / 2 for h in counts)
    assert masks.off_chance(P, masked, size) == Fraction(off, len(counts))


def test_an_event_that_is_too_narrow_or_a_chance_that_is_too_large_is_seen(monkeypatch):
    assert finding("Lemma A.6").holds
    assert finding("Lemma A.7").holds
    monkeypatch.setattr(masks, "HALF", Fraction(1, 8))
    assert finding("Lemma A.6").holds is False
    one_less = masks.fully_masked
    monkeypatch.setattr(masks, "fully_masked", lambda P, m, size: one_less(P, m, size - 1))
    assert finding("Lemma A.7").holds is False


def test_the_bound_of_a_7_is_met_at_the_size_of_a_user():
    found = finding("Lemma A.7", P=64, C_global=32, C_local=8, masked=32)
    assert found.holds
    assert {row["C"] for row in found.evidence["table"]} == {8, 32}
    assert found.measured < 1


# losses


def test_the_loss_over_likely_masks_is_that_of_the_statement():
    """L_p - L_p^low minus the loss over likely masks, mask by mask, in loops."""
    parameters = law(z="0.7,1.3", **CROSSED)
    draws = np.random.default_rng(0)
    phi = draws.normal(size=(5, parameters.features))
    ups = draws.normal(size=(5, 5))
    found, bound = masks._above_likely(parameters, phi, ups)
    areas, expected = parameters.area_ids, 0.0
    p, hidden_sets = 1, [h for h in itertools.combinations(range(5), 2) if 1 in h]
    for k, latents in itertools.product(range(2), itertools.product((0.7, 1.3), repeat=3)):
        for hidden in hidden_sets:
            z = np.array(latents)[areas[k]]
            first = 3 * k
            weights = [
                np.exp(ups[p, q] + (0 if q in hidden else z[q] * phi[p, first + areas[k, q]]))
                for q in range(5)
            ]
            shares = np.zeros(3)
            for q in set(range(5)) - set(hidden):
                shares[areas[k, q]] += weights[q] / sum(weights)
            goal = np.array([latents[a] * (a == areas[k, p]) for a in range(3)])
            loss = ((np.array(latents) * shares - goal) ** 2).sum() / 2
            own = [q for q in range(5) if areas[k, q] == areas[k, p]]
            seen, mean = len(set(own) - set(hidden)), len(own) * 0.6
            low = 0.0 if seen else z[p] ** 2 / 2
            likely = abs(seen - mean) <= mean / 2
            expected += ((0.0 if likely else loss) - low) / 10 / 2 / 8
    assert found[p] == pytest.approx(expected, rel=1e-12, abs=1e-16)
    assert bound.shape == (5,)


def test_an_unavoidable_error_that_is_too_large_is_seen(monkeypatch):
    assert finding("Lemma A.10").holds
    monkeypatch.setattr(masks, "bound_of_a_6", lambda gamma, size: 2 * np.exp(-2.0 * size))
    assert finding("Lemma A.10").holds is False


class Higher(SYSTEM.ReducedPopulation):
    """A floor that descent goes through."""

    def __init__(self, parameters):
        super().__init__(parameters)
        data = self.expectation.data
        read = data.reading
        self.expectation.data = data._replace(reading=read._replace(floors=1.1 * read.floors))


def test_a_loss_below_the_floor_is_seen():
    assert finding("Lemma A.9", **SMALL).holds
    wrong = dataclasses.replace(SYSTEM, ReducedPopulation=Higher)
    found = masks.lemma_a_9.__wrapped__(Study(wrong, Protocol(law(**SMALL)), "loss", ">=", 1.0))
    assert found.holds is False
    assert found.measured < 1
    assert finding("Lemma A.9", P=12, C_global=8, C_local=4, masked=2).holds is None


# from the vectors


class Shifted(FullPopulation):
    """A gradient that is wrong in one entry that no masked patch reaches."""

    def gradient(self, state):
        slope = np.array(super().gradient(state))
        slope[0] += 1e-3
        return slope


def test_a_gradient_of_one_wrong_entry_is_seen():
    wrong = dataclasses.replace(SYSTEM, FullPopulation=Shifted)
    assert finding("Lemma A.1", **SMALL).holds
    assert finding("Lemma A.1", wrong, **SMALL).holds is False


def test_a_statement_that_is_no_slope_of_the_loss_is_seen(monkeypatch):
    """Where gradient and statement are wrong alike, the loss still tells."""
    right = token_vectors.stated_gradient
    monkeypatch.setattr(token_vectors, "stated_gradient", lambda *given: 1.01 * right(*given))
    gradient = FullPopulation.gradient
    monkeypatch.setattr(FullPopulation, "gradient", lambda *given: 1.01 * gradient(*given))
    found = finding("Lemma A.1", **SMALL)
    assert found.holds is False
    assert found.quantity.startswith("largest difference of the statement from the slope")


def test_masked_contents_that_are_seen_change_the_attention(monkeypatch):
    assert finding("Equation (3.2)", **SMALL).holds
    seen = token_vectors._seen

    def leaking(problem, state):
        for weight, k, masked, contents, visible, _ in seen(problem, state):
            scores = (problem.positions[masked] @ state) @ (contents + problem.positions).T
            wrong = np.exp(scores - scores.max(axis=1, keepdims=True))
            yield weight, k, masked, contents, visible, wrong / wrong.sum(axis=1, keepdims=True)

    monkeypatch.setattr(token_vectors, "_seen", leaking)
    assert finding("Equation (3.2)", **SMALL).holds is False


# positions alone


@pytest.mark.parametrize("z", ["1", "0.5,1.5"])
def test_the_loss_of_positions_is_the_loss_without_features(z):
    parameters = law(z=z, **CROSSED)
    ups = np.random.default_rng(1).normal(size=(5, 5))
    stated = averaged_claims.paper_values(parameters, np.zeros((5, parameters.features)), ups).loss
    for p in range(5):
        u = np.exp(ups[p]) / np.exp(ups[p]).sum()
        loss = significance.position_loss(parameters, p)
        assert loss.value(u) == pytest.approx(stated[p], rel=1e-12)
        nudge = np.zeros(5)
        nudge[3] = 1e-6
        slope = (loss.value(u + nudge) - loss.value(u - nudge)) / 2e-6
        assert loss.slope(u)[3] == pytest.approx(slope, rel=1e-6)


def test_the_least_loss_of_positions_is_no_larger_than_that_of_any_attention():
    parameters = law(**CROSSED)
    lower, upper = significance.least_by_positions(parameters, 2)
    assert upper - lower < 1e-7
    loss = significance.position_loss(parameters, 2)
    draws = np.random.default_rng(2).dirichlet(np.full(5, 0.3), size=2000)
    values = [loss.value(u) for u in draws]
    assert lower <= min(values)
    assert upper == pytest.approx(min(values), rel=0.2)


def test_positions_are_insufficient_only_where_patterns_differ():
    found = finding("Section 3.1")
    assert found.holds
    table = {(r["K"], r["masked"], r["row"]): r["positions"] for r in found.evidence["table"]}
    assert table[1, 1, "local"] == pytest.approx(0, abs=1e-6)
    assert table[2, 1, "B11"] == pytest.approx(0, abs=1e-6)
    assert table[2, 1, "B00"] == pytest.approx(0.31, abs=0.01)
    assert table[1, 20, "local"] == pytest.approx(0.24, abs=0.01)
    assert "one cluster" in finding("Section 3.1", **SMALL).reason
    nested = {"family": "custom", "areas": "0,0,0,0,1,1;0,0,1,1,2,2", "masked": 2}
    assert finding("Section 3.1", **nested).holds is None


def test_features_that_do_not_reach_the_floor_are_seen(monkeypatch):
    monkeypatch.setattr(significance, "STRONG", 1.0)
    found = finding("Section 3.1")
    assert found.holds is False
    assert found.quantity == "largest share that features alone leave"
