"""Verdicts on the transformer on a Markov chain, and on laws in which its statements fail."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import dynamics
from dynamics.models import markov_attention as file
from dynamics.verdicts.draw import draw
from dynamics.verdicts.library.markov_attention import is_good, separatrix

SYSTEM = dynamics.load_system("markov_attention")


def half(theta, xp, p=0.1, q=0.1):
    """Half as much feed-forward: another energy, and another saddle."""
    return file.risk({"e": theta["e"], "w": theta["w"] / np.sqrt(2)}, xp, p, q)


def decayed(theta, xp, p=0.1, q=0.1):
    """A penalty on the embedding, and a constant."""
    return file.risk(theta, xp, p, q) + 0.01 * (1 + theta["e"][0] ** 2)


@cache
def broken(risk):
    model = dynamics.load_system(
        dynamics.Model(
            start=file.start, risk=risk, names=file.names, observables=file.observables,
            eta=file.eta, steps=file.steps,
        )
    )  # fmt: skip
    return replace(
        SYSTEM, Parameters=model.Parameters, ReducedPopulation=model.ReducedPopulation,
        FullPopulation=model.FullPopulation,
    )  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(
    ("claim", "risk"),
    [
        ("Two ends", half), ("Separatrix", half), ("Energy", half), ("Global minima", decayed),
        ("Local minima", decayed),
    ],
)  # fmt: skip
def test_another_law_contradicts(claim, risk):
    (verdict,) = dynamics.verify(SYSTEM, claims=[claim])
    assert verdict.finding.word == "holds"
    (other,) = dynamics.verify(broken(risk), claims=[claim])
    assert other.finding.word != "holds"
    assert other.finding.measured > 100 * max(verdict.finding.measured, 1e-3 * verdict.bound)


def test_the_sides_are_those_of_the_published_regions():
    below, above = SYSTEM.Parameters(), SYSTEM.Parameters(p=0.9, q=0.9)
    w = np.array([-1.5, -1.5, -0.5, -0.5, 0.5])
    e = np.array([0.998, 1.0, 0.1, 2.0, 0.1])
    np.testing.assert_array_equal(is_good(w, e, below), [False, True, True, True, True])
    np.testing.assert_array_equal(is_good(w, e, above), [True, True, False, True, False])
    assert separatrix(np.array([-1.5]))[0] == pytest.approx(0.998980, abs=1e-6)


@pytest.mark.long
def test_the_boundary_of_the_figure_is_the_separatrix():
    drawing = draw("markov_attention", "regions", options={"starts": 10})
    w, e = drawing.data["separatrices_0.1_0.1"].T
    curve = w < -0.8
    assert curve.sum() > 8
    np.testing.assert_allclose(np.abs(e[curve]), separatrix(w[curve]), rtol=1e-5)
    labels = [text.get_text() for text in drawing.axes[0].figure.legends[0].get_texts()]
    assert {"ends at global minima", "ends at local minima", "separatrix"} <= set(labels)
