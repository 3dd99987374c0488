"""The law of a model: every sample in one array, draws, and what is refused, in one line each."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from theory.law import Law, ModelError
from theory.model import Model


def start(n=2):
    return {"w": np.full(n, 0.5)}


def law(q=0.25):
    yield q, {"x": np.array([1.0, 0.0]), "y": 1}
    yield 1 - q, {"x": np.array([0.0, 1.0]), "y": -1}


def one(value=1.0):
    return {"x": value}


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([(0.5, one()), (0.48, one())], r"sum to 0\.98, not to 1"),
        ([(0.5, one()), (0.5 + 1e-11, one())], r"sum to 1\.00000000001, not to 1"),
        ([], "law gives no sample"),
        ([(0.0, one())], "law gives no sample"),
        (None, r"law gives NoneType; law can yield \(probability, sample\) pairs"),
        ([1.0], "law can yield"),
        ([(1.0, one(), 3)], "law can yield"),
        ([(-0.5, one()), (1.5, one())], r"the probability -0\.5"),
        ([(float("nan"), one())], "the probability nan"),
        ([("0.5", one()), (0.5, one())], "the probability '0.5'"),
        ([(0.5, one()), (0.5, {"z": 1.0})], "sample 1 has different parts from sample 0"),
        ([(0.5, one()), (0.5, 1.0)], "sample 1 has different parts"),
        ([(0.5, (1.0, one())), (0.5, (1.0,))], "sample 1 has different parts"),
        ([(0.5, one()), (0.5, one(np.ones(2)))], r"law, x: the shape .* from \(\) to \(2,\)"),
        ([(0.5, one()), (0.5, one("a"))], "law, x: sample 1 holds <U1"),
        ([(0.5, one()), (0.5, one(1j))], "law, x: sample 1 holds complex128"),
        ([(0.5, one()), (0.5, one(None))], "law, x: sample 1 holds object"),
        ([(1.0, one(np.nan))], "law, x: a sample holds a number that is not finite"),
        ([(1.0, one(([1.0], [1.0, 2.0]))), (0.0, one())], None),
    ],
)
def test_laws_that_cannot_be(pairs, message):
    model = Model(start=start, law=lambda: pairs, loss=lambda theta, sample, xp: 0)
    if message is None:
        assert model.enumerated_law({}).size == 1
        return
    with pytest.raises(ModelError, match=message) as caught:
        model.enumerated_law({})
    assert "\n" not in str(caught.value)


def test_a_law_in_one_array_each_without_what_never_happens():
    pairs = [(Fraction(1, 4), (1, [1.0, 2.0])), (0.0, (5, [0.0, 0.0])), (0.75, (2, [3.0, 4.0]))]
    found = Model(start=start, law=lambda: iter(pairs), loss=lambda theta, sample, xp: 0)
    got = found.enumerated_law({})
    assert got.size == 2
    np.testing.assert_array_equal(got.weights, [0.25, 0.75])
    np.testing.assert_array_equal(got.samples[0], [1, 2])
    np.testing.assert_array_equal(got.samples[1], [[1.0, 2.0], [3.0, 4.0]])
    assert got.samples[0].dtype.kind == "i"


def test_draws_are_of_the_law_and_of_their_seed():
    model = Model(start=start, law=law, loss=lambda theta, sample, xp: 0)
    many = model.draw_samples(model.constants, 4000, 3)
    assert isinstance(many, Law)
    assert abs((many.samples["y"] == 1).mean() - 0.25) < 0.03
    assert set(many.weights) == {1 / 4000}
    again = model.draw_samples(model.constants, 4000, 3)
    np.testing.assert_array_equal(many.samples["x"], again.samples["x"])
    other = model.draw_samples(model.constants, 4000, 4)
    assert (many.samples["y"] != other.samples["y"]).any()


SEEN = []


def halves():
    """Probabilities that underflow after 1,074 samples, for ever."""
    for k in itertools.count(1):
        SEEN.append(k)
        yield 0.5**k, 1.0


def large():
    return ((2e-3, {"x": [1.0, 2.0], "y": np.ones((3, 2))}) for _ in range(500))


@pytest.mark.parametrize(
    ("law", "limit", "message"),
    [
        (halves, "SAMPLES", "more than 3,000 samples, 1,074 of them"),
        (large, "NUMBERS", "8 in each sample; at most 375 samples of this size"),
    ],
)
def test_samples_that_do_not_fit_are_refused_before_all_are_there(law, limit, message, monkeypatch):
    monkeypatch.setattr(f"theory.model.MOST_{limit}", 3000)
    SEEN.clear()
    model = Model(start=start, law=law, loss=lambda theta, sample, xp: 0)
    with pytest.raises(ModelError, match=message):
        model.enumerated_law({})
    assert len(SEEN) in (0, 3001)
