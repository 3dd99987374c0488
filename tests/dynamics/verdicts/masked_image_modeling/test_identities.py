"""Claims at every Q, on masks and on positions alone: what breaks them is seen, rounding is not."""

import dataclasses
import itertools
from fractions import Fraction

import numpy as np
import pytest

import dynamics
from dynamics.papers.masked_image_modeling.full import FullPopulation
from dynamics.verdicts.findings import Protocol
from dynamics.verdicts.masked_image_modeling import identities, masks
from dynamics.verdicts.verify import checks
from theory.papers.masked_image_modeling.averages import Query
from theory.papers.masked_image_modeling.positions_alone import least_by_positions

SYSTEM = dynamics.load_system("masked_image_modeling")
CHECKS = checks(SYSTEM)
SMALL = {"P": 12, "C_global": 8, "C_local": 2, "masked": 3}
EIGHT = {"P": 8, "C_global": 4, "C_local": 2, "masked": 3}
AT_EVERY_Q = (
    "Appendix A.1", "Lemma A.1", "Lemma A.8", "Lemma 5.1", "Lemma 5.2", "Equation (5.1)",
    "Lemma A.10", "Equation (3.2)",
)  # fmt: skip
SATURATED = [
    {"family": "custom", "areas": "0,0", "masked": 1, "z": "0.001"},
    {"family": "custom", "areas": "0,1", "masked": 1, "z": "1000"},
    {"family": "custom", "areas": "0,1;0,0", "masked": 1, "z": "30"},
    EIGHT | {"z": "1000"},
]
"""Laws at which most gradients are the last digits of terms that cancel, or zero."""


def found(claim, system=SYSTEM, **given):
    """The finding of a check, before the rules of what a verdict may say."""
    law = SYSTEM.Parameters(**given) if given else None
    return CHECKS[claim](system, Protocol(law))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("given", SATURATED)
def test_values_that_are_equal_within_rounding_hold(given):
    """Without a warning: no value is compared through 0/0."""
    for claim in AT_EVERY_Q:
        finding = found(claim, **given)
        assert finding.holds, (claim, finding.measured, finding.reason)


class Heavier(FullPopulation):
    """One masked image counts too much: masks are no longer uniform."""

    def __init__(self, parameters):
        super().__init__(parameters)
        data, embedding = self.payload
        tilted = np.array(data.weights)
        tilted[0] *= 3.0
        self.payload = data._replace(weights=tilted / tilted.sum()), embedding


@pytest.mark.parametrize("given", [EIGHT, EIGHT | {"z": "1000"}])
def test_masks_that_are_not_uniform_flip_the_lemmas(given):
    wrong = dataclasses.replace(SYSTEM, FullPopulation=Heavier)
    also = () if "z" in given else ("Equation (5.1)",)
    for claim in ("Lemma A.1", "Lemma A.8", "Lemma 5.1", "Lemma 5.2", *also):
        assert found(claim, **given).holds
        assert found(claim, wrong, **given).holds is False


class Leaking(FullPopulation):
    """A gradient that moves every entry of Q a little, of a loss that is a paraboloid."""

    def gradient(self, state):
        return np.array(super().gradient(state)) + 1e-3

    def risk(self, state):
        return 1.0 + float((np.asarray(state) ** 2).sum())


class Higher(SYSTEM.ReducedPopulation):
    """A floor that descent goes through."""

    def __init__(self, parameters):
        super().__init__(parameters)
        data = self.expectation.data
        read = data.reading
        self.expectation.data = data._replace(reading=read._replace(floors=1.1 * read.floors))


@pytest.mark.parametrize(
    ("claim", "wrong", "measured"),
    [
        ("Appendix A.1", {"FullPopulation": Leaking}, None),
        ("Section 2.3, nonconvex", {"FullPopulation": Leaking}, None),
        ("Lemma A.9", {"ReducedPopulation": Higher}, 1.019),
    ],
)
def test_broken_problems_are_seen(claim, wrong, measured):
    finding = found(claim, **SMALL)
    assert finding.holds
    assert measured is None or finding.measured == pytest.approx(measured, abs=1e-3)
    assert found(claim, dataclasses.replace(SYSTEM, **wrong), **SMALL).holds is False


def test_a_statement_that_is_no_slope_of_the_loss_is_seen(monkeypatch):
    """Where gradient and statement are wrong alike, the loss still tells."""
    right, gradient = identities.stated_gradient, FullPopulation.gradient
    monkeypatch.setattr(identities, "stated_gradient", lambda *given: 1.01 * right(*given))
    monkeypatch.setattr(FullPopulation, "gradient", lambda *given: 1.01 * gradient(*given))
    finding = found("Lemma A.1", **SMALL)
    assert finding.holds is False
    assert finding.quantity.startswith("largest difference of the statement from the slope")


def test_attention_to_masked_keys_as_if_they_were_not_is_seen(monkeypatch):
    right = identities.token_images

    def leaking(law, positions, features, Q):
        for image in right(law, positions, features, Q):
            wrong = np.exp(positions[image.masked] @ Q @ (image.contents + positions).T)
            yield image._replace(u=wrong / wrong.sum(axis=1, keepdims=True))

    assert found("Equation (3.2)", **SMALL).holds
    monkeypatch.setattr(identities, "token_images", leaking)
    assert found("Equation (3.2)", **SMALL).holds is False


def test_the_key_observation_holds_image_by_image_and_its_means_do_not(monkeypatch):
    """1.07 at Q = 0 already: no step size is in it."""
    claim = "Section 5.1, key observation"
    (verdict,) = dynamics.verify(SYSTEM, SYSTEM.Parameters(**SMALL), [claim])
    assert (verdict.word, verdict.literal_word) == ("holds, as read here", "does not hold here")
    assert verdict.finding.literal.reason.startswith("1.78 along descent, 1.07 at Q = 0")
    finding = found(claim, z="0.5,1.5", **SMALL)  # latents must be 1
    assert (finding.holds, finding.missing) == (None, ("law",))
    monkeypatch.setattr(Query, "beta", property(lambda self: 9.0 * self.u))
    assert found(claim, **SMALL).holds is False


def test_what_would_take_too_long_is_not_begun():
    assert found("Lemma A.9", P=12, C_global=8, C_local=4, masked=2).holds is None
    finding = found("Appendix A.1", P=64, C_global=32, C_local=4, masked=4)
    assert finding.holds is None
    assert "635,376 masked images of P=64 patches would take about" in finding.reason


@pytest.mark.parametrize(("P", "masked", "size"), [(8, 3, 4), (9, 6, 5), (7, 1, 3), (6, 5, 2)])
def test_chances_are_those_of_all_masks(P, masked, size):
    counts = [
        size - len(set(hidden) & set(range(size)))
        for hidden in itertools.combinations(range(P), masked)
    ]
    mean = Fraction(size * (P - masked), P)
    off = sum(abs(h - mean) > mean / 2 for h in counts)
    assert masks.off_chance(P, masked, size) == Fraction(off, len(counts))


def test_chances_and_losses_beyond_their_bounds_are_seen(monkeypatch):
    assert [found(f"Lemma A.{k}").holds for k in (6, 7, 10)] == [True] * 3
    one_less = masks.fully_masked
    monkeypatch.setattr(masks, "fully_masked", lambda P, m, size: one_less(P, m, size - 1))
    monkeypatch.setattr(masks, "HALF", Fraction(1, 8))
    assert [found(f"Lemma A.{k}").holds for k in (6, 7)] == [False] * 2
    monkeypatch.setattr(masks, "_bound_of_a_6", lambda gamma, size: 2 * np.exp(-2.0 * size))
    assert found("Lemma A.10").holds is False


def test_positions_are_insufficient_only_where_patterns_differ(monkeypatch):
    crossed, alone = found("Section 3.1"), found("Section 3.1, one cluster")
    assert (crossed.holds, alone.holds) == (True, True)
    assert crossed.measured == pytest.approx(0.58, abs=0.01)
    assert "one cluster" in found("Section 3.1", **SMALL).reason
    nested = {"family": "custom", "areas": "0,0,0,0,1,1;0,0,1,1,2,2", "masked": 2}
    assert found("Section 3.1", **nested).holds is None
    assert found("Section 3.1, one cluster", **SMALL).holds is None  # more than p is masked
    monkeypatch.setattr(masks, "STRONG", 1.0)
    for claim in ("Section 3.1", "Section 3.1, one cluster"):
        finding = found(claim)
        assert finding.holds is False
        assert finding.quantity == "largest share that features alone leave"


def test_positions_that_reach_the_floor_contradict(monkeypatch):
    for claim, loss in (("Section 3.1", 0.0125), ("Section 3.1, one cluster", 0.75)):
        change = {"lower": loss, "upper": loss}
        least = lambda law, p, to=change: least_by_positions(law, p)._replace(**to)  # noqa: E731
        monkeypatch.setattr(masks, "least_by_positions", least)
        assert found(claim).holds is False
