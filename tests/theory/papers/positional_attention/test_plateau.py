"""Rates at the plateau, and the criterion of zero error: every configuration one by one."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit

from theory.papers.positional_attention import separability
from theory.papers.positional_attention.data_law import SetLaw, configurations
from theory.papers.positional_attention.enumeration import brute_law
from theory.papers.positional_attention.plateau import Plateau, tilt_of_many_patches
from theory.papers.positional_attention.separability import criterion, least_margin
from theory.symmetry import Partition


def enumerated(plateau, alpha):
    """Rates of alpha, gamma, rho and A_01 - A_0(D-1), over all samples and all entries of A."""
    D, C, p = plateau.D, plateau.law.C, plateau.p
    sets = Partition(tuple(i // C for i in range(D)))
    values, chance = brute_law(sets, plateau.law)
    logits = plateau.scale * plateau.beta * np.eye(D)
    S = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    seen = S @ values
    inner = D * alpha * seen
    slope = p * inner ** (p - 1) + plateau.nu
    weight = chance * expit(-(inner**p + plateau.nu * inner).sum(axis=0))
    # dS_ij/dA_ij = s S_ij (1 - S_ij), dS_ik/dA_ij = -s S_ij S_ik
    moved = (slope * weight) @ values.T - ((slope * weight * seen).sum(axis=1))[:, None]
    of_entries = D * alpha * plateau.scale * S * moved
    same = sets.labels[:, None] == sets.labels[None, :]
    inside, between = same & ~np.eye(D, dtype=bool), ~same
    gamma, rho = of_entries[inside].mean(), of_entries[between].mean()
    return float((weight * slope * seen * D).sum()), float(gamma - rho)


SMALL = [
    (8, 2, 0.9, "any", {"p": 5, "beta": 2.0, "scale": 0.6}),
    (9, 3, 0.7, "any", {"nu": 0.3, "beta": -0.7}),
    (8, 2, 1.0, "any", {"nu": 0.0}),
    (9, 3, 0.8, "mixed", {"p": 5, "beta": 2.0, "nu": 0.1}),
    (9, 3, 1.0, "mixed", {"beta": -0.7}),
]


@pytest.mark.parametrize(("D", "C", "q", "random_sets", "more"), SMALL)
def test_rates_are_those_of_every_sample_and_every_entry(D, C, q, random_sets, more):
    plateau = Plateau(D, SetLaw(C, q, random_sets), **more)
    for alpha in (0.02, 0.15, 0.4):
        rate, lead = enumerated(plateau, alpha)
        assert plateau.rate(alpha) == pytest.approx(rate, rel=1e-12, abs=1e-13)
        assert plateau.lead(alpha) == pytest.approx(lead, rel=1e-12, abs=1e-15)


def critical(D, C, nu, beta=1.0, **more):
    """The q at which gamma and rho are equally fast."""

    def lead(q):
        plateau = Plateau(D, SetLaw(C, q), nu=nu, beta=beta, **more)
        return plateau.tilt(plateau.alpha(0.03))

    return brentq(lead, 0.3, 0.99, xtol=1e-5)


@pytest.mark.parametrize(("C", "p", "linear"), [(4, 3, 0.0), (2, 5, 0.3)])
def test_critical_q_comes_near_that_of_many_patches(C, p, linear):
    assert Plateau(8, SetLaw(4, 0.5)).alpha(0.03) == np.inf  # every sample is right

    def limit(q):
        return tilt_of_many_patches(SetLaw(C, q), p, np.e - 1, linear)

    expected = brentq(limit, 0.1, 1.0)
    near, far = (
        abs(critical(D, C, linear / D ** (1.5 * (p - 1) / p), p=p) - expected) for D in (384, 48)
    )
    assert near < 0.05
    assert near < 0.55 * far


@pytest.mark.parametrize(
    ("D", "C", "p", "number"),
    [(8, 2, 3, 0.375), (16, 4, 5, 0.712), (18, 2, 3, 1.0), (15, 3, 3, 1.185)],
)
def test_the_criterion_of_both_laws(D, C, p, number):
    assert criterion(SetLaw(C, 0.5, "mixed"), D // C, p) == pytest.approx(number, abs=5e-4)
    assert criterion(SetLaw(C, 0.5), D // C, p) == D // C - 1


@pytest.mark.parametrize("weights", [(1, 1, 0), (2, 1, 0), (3, 0, 1), (0, 2, 1), (1, 0, 4)])
def test_the_least_margin_is_that_of_all_samples_one_by_one(weights):
    sets = ((0, 1), (2, 3), (4, 5))
    alone, within, between = weights
    attention = np.full((6, 6), between)
    for members in sets:
        attention[np.ix_(members, members)] = within
    np.fill_diagonal(attention, alone)
    margins = [
        label * int(((attention @ np.array(values)) ** 3).sum())
        for label, values, _ in configurations(sets, "mixed")
    ]
    assert least_margin(SetLaw(2, 0.5, "mixed"), 3, 3, weights) == min(margins)


def test_the_proposition_holds_on_a_grid_and_fails_for_the_law_of_the_paper(monkeypatch):
    monkeypatch.setattr(separability, "FINEST", 4)
    assert separability.separability().holds is True
    assert separability.separability("any").holds is False
