"""The model file of the shallow ViT holds what its optimised kernels compute; laws of two files."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynamics

LIBRARY = Path(dynamics.models.__file__).parent
PATTERNS, NEURONS, ETA = 5, 24, 0.02


def problems(system, **constants):
    parameters = system.Parameters(**constants)
    return system.ReducedPopulation(parameters), system.FullPopulation(parameters)


@pytest.fixture(scope="module")
def file():
    return problems(dynamics.load_system(LIBRARY / "shallow_vit.py"), M=PATTERNS, m=NEURONS)


def beside(full):
    """Full problem of the built-in system from the weights of the file, and a map to its entries.

    Neurons with a > 0 are the first ones of the file, and anywhere in the built-in system.
    """
    system, many = dynamics.load_system("shallow_vit"), 29 + 7 * (PATTERNS - 2)
    law = system.Parameters(
        M=PATTERNS, m=NEURONS, d=PATTERNS, L=many, alpha_star=25 / many,
        alpha_confusion=4 / many, sigma=0.0, delta=0.0, noise=0.0,
    )  # fmt: skip
    built, one = system.FullPopulation(law, start="symmetric"), np.eye(PATTERNS)
    place = np.argsort(np.argsort(-built.start.a, kind="stable"), kind="stable")
    weights = full.layout.part(full.initial_state, "W_O")[place]
    built.start = replace(built.start, W_O=weights, W_V=one, W_K=one, W_Q=one, p=one)
    order = np.arange(full.layout.size)
    rows = order[: NEURONS * PATTERNS].reshape(NEURONS, PATTERNS)
    order[: NEURONS * PATTERNS] = rows[place].ravel()
    return built, lambda entries: entries[..., order]


def test_the_file_is_the_built_in_system(file):
    reduced, full = file
    built, arranged = beside(full)
    generator = np.random.default_rng(0)
    for scale in (0.03, 0.3):
        moved = scale * generator.standard_normal(full.layout.size)
        entries = full.initial_state + moved * (full.gradient(moved) != 0)
        theirs = arranged(entries)
        expected = built.gradient(theirs)
        allowed = 1e-15 * np.abs(expected).max()
        np.testing.assert_allclose(arranged(full.gradient(entries)), expected, 1e-12, allowed)
        assert full.risk(entries) == pytest.approx(built.risk(theirs), rel=1e-12)
    runs = [dynamics.descend(each, ETA, 300, record=1) for each in (reduced, full, built)]
    assert np.abs(arranged(runs[1].states) - runs[2].states).max() < 1e-12
    assert np.abs(reduced.lift(runs[0].final_state) - runs[1].final_state).max() < 1e-12
    steps = [{name: run.events[name].step for name in runs[0].events} for run in runs]
    assert all(found == steps[0] for found in steps)
    assert sum(step is not None for step in steps[0].values()) >= 2


@pytest.mark.long
def test_masked_image_modelling_closes_on_its_row_types():
    file = dynamics.load_system(LIBRARY / "masked_image_modeling.py")
    closure = problems(file, areas="0,0,0,0,1,1,2,2;0,0,1,1,0,2,0,2", masked=4)[1].closure
    assert (closure.entries, closure.scalars, closure.free) == (196, 44, 40)
    assert all(law.exact and law.degree == 1 and law.value == 0 for law in closure.laws)
    rows = closure.classes.labels.reshape(14, 14)[:8, :8]
    sums = {tuple(np.bincount(row, minlength=44).tolist()) for row in rows}
    found = set()
    for law in closure.laws:
        counts = np.zeros(44)
        counts[[k for (k,) in law.terms]] = law.coefficients
        found.add(tuple((counts * 8 / counts.sum()).astype(int).tolist()))
    assert len(closure.laws) == len(sums) == 4
    assert found == sums


def test_linear_and_quadratic_laws_of_the_shallow_vit(file):
    """Columns of T have the sum 0; the flow keeps V V^T - W_O^T W_O and K K^T - Q Q^T.

    Linear: sums of the rows of K, and K = Q on two irreducible parts of the patterns. Quadratic:
    five products of V, three of K, of which the other two follow from the linear laws.
    """
    closure = file[0].closure
    assert (closure.scalars, closure.free) == (28, 24)
    assert (closure.samples, closure.sample_classes) == (2, 1)
    assert all(law.exact for law in closure.laws)
    assert [law.degree for law in closure.laws] == [1] * 4 + [2] * 8

    runs = [dynamics.descend(file[0], eta, round(4 / eta), record=1) for eta in (0.02, 0.01)]
    for law in closure.laws:
        breaks = [np.abs(law.at(run.states) - law.value).max() for run in runs]
        if law.degree == 1:
            assert max(breaks) < 1e-13
        else:
            assert 0.9 < np.log2(breaks[0] / breaks[1]) < 1.1


def test_a_random_start_of_the_shallow_vit_does_not_close():
    system = dynamics.load_system(LIBRARY / "shallow_vit.py")
    closure = system.closure(system.Parameters(symmetric=False))
    assert closure.scalars == closure.entries == 24 * 5 + 3 * 25
