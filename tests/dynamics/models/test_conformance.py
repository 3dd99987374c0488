"""The model file of the shallow ViT holds what its optimised kernels compute; laws of two files."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynamics
from theory.closure.conservation import break_by_descent

LIBRARY = Path(dynamics.models.__file__).parent
PATTERNS, NEURONS, ETA = 5, 24, 0.02


def problems(system, **constants):
    parameters = system.Parameters(**constants)
    return system.ReducedPopulation(parameters), system.FullPopulation(parameters)


class Beside:
    """Problems of the model file, and of the built-in system from the same weights."""

    def __init__(self):
        file = dynamics.load_system(LIBRARY / "shallow_vit.py")
        built = dynamics.load_system("shallow_vit")
        many = 29 + 7 * (PATTERNS - 2)
        law = built.Parameters(
            M=PATTERNS, m=NEURONS, d=PATTERNS, L=many, alpha_star=25 / many,
            alpha_confusion=4 / many, sigma=0.0, delta=0.0, noise=0.0,
        )  # fmt: skip
        self.reduced, self.full = problems(file, M=PATTERNS, m=NEURONS)
        self.its_reduced = built.ReducedPopulation(law, start="symmetric")
        self.its_full = built.FullPopulation(law, start="symmetric")
        # Neurons with a > 0 are the first ones of the file, and anywhere in the built-in system.
        order = np.argsort(-self.its_reduced.start.a, kind="stable")
        self.place, one = np.argsort(order, kind="stable"), np.eye(PATTERNS)
        weights = self.full.layout.part(self.full.initial_state, "W_O")[self.place]
        for problem in (self.its_reduced, self.its_full):
            problem.start = replace(problem.start, W_O=weights, W_V=one, W_K=one, W_Q=one, p=one)

    def arranged(self, entries):
        """Entries of the file as those of the built-in system."""
        size = NEURONS * PATTERNS
        rows = entries[..., :size].reshape(*entries.shape[:-1], NEURONS, PATTERNS)
        moved = rows[..., self.place, :].reshape(*entries.shape[:-1], -1)
        return np.concatenate([moved, entries[..., size:]], axis=-1)

    def entries(self, scalars, of_state=True):
        """Every entry of the built-in system, of scalars of the file."""
        order = [self.reduced.layout.names.index(name) for name in self.full.closure.names]
        classes = self.full.closure.classes
        if not of_state:
            classes = replace(classes, start=0 * classes.start)
        return self.arranged(classes.lift(scalars[..., order]))

    def read(self, entries):
        """States of the built-in reduced problem, (records, k), of entries of its full one."""
        read = self.its_full.orbit_values(entries).values()
        parts = [
            values.reshape(len(entries), -1).mean(axis=1, keepdims=True)
            if shape == ()
            else values.reshape(len(entries), -1)
            for values, shape in zip(read, self.its_reduced.layout.shapes, strict=True)
        ]
        return np.concatenate(parts, axis=1)


@pytest.fixture(scope="module")
def beside():
    return Beside()


def close(found, expected):
    """Entry by entry, up to rounding of the largest."""
    expected = np.asarray(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15 * np.abs(expected).max())


def test_risk_and_gradient_at_random_states(beside):
    """Of the closed space, and in general position, which no symmetry has."""
    generator = np.random.default_rng(0)
    np.testing.assert_array_equal(
        beside.entries(beside.reduced.initial_state), beside.arranged(beside.full.initial_state)
    )
    for scale in (0.03, 0.3):
        moved = scale * generator.standard_normal(beside.reduced.layout.size)
        scalars = beside.reduced.initial_state + moved
        entries = beside.entries(scalars)
        state = beside.read(entries[None])[0]
        wide = beside.entries(beside.reduced.gradient(scalars), of_state=False)
        assert np.abs(wide).max() > 0
        close(beside.read(wide[None])[0], beside.its_reduced.gradient(state))
        close(wide, beside.its_full.gradient(entries))
        close(beside.reduced.risk(scalars), beside.its_reduced.risk(state))
        moved = scale * generator.standard_normal(beside.full.layout.size)
        entries = beside.full.initial_state + moved * (beside.full.gradient(moved) != 0)
        theirs = beside.arranged(entries)
        close(beside.arranged(beside.full.gradient(entries)), beside.its_full.gradient(theirs))
        close(beside.full.risk(entries), beside.its_full.risk(theirs))


def test_gradient_descent_and_events(beside):
    """300 steps of each problem of both, every scalar at every step."""
    reduced, full, its_reduced, its_full = runs = [
        dynamics.descend(problem, eta=ETA, steps=300, record=1)
        for problem in (beside.reduced, beside.full, beside.its_reduced, beside.its_full)
    ]
    lifted, theirs = beside.entries(reduced.states), beside.arranged(full.states)
    assert np.abs(lifted - lifted[0]).max() > 0.05
    for entries in (lifted, theirs):
        assert np.abs(beside.read(entries) - its_reduced.states).max() < 1e-12
        assert np.abs(entries - its_full.states).max() < 1e-12
    assert np.abs(reduced["risk"] - its_reduced["risk"]).max() < 1e-12
    steps = [{name: run.events[name].step for name in reduced.events} for run in runs]
    assert all(found == steps[0] for found in steps)
    assert sum(step is not None for step in steps[0].values()) >= 2


@pytest.mark.long
def test_masked_image_modelling_closes_on_its_row_types():
    """Each law is the sum of Ups_pq over q, of one row type: every entry counts once."""
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


def test_linear_and_quadratic_laws_of_the_shallow_vit(beside):
    """Columns of T have the sum 0; the flow keeps V V^T - W_O^T W_O and K K^T - Q Q^T.

    Linear: sums of the rows of K, and K = Q on two irreducible parts of the patterns. Quadratic:
    five products of V, three of K, of which the other two follow from the linear laws.
    """
    closure = beside.reduced.closure
    assert (closure.scalars, closure.free) == (28, 24)
    assert (closure.samples, closure.sample_classes) == (2, 1)
    assert all(law.exact for law in closure.laws)
    assert [law.degree for law in closure.laws] == [1] * 4 + [2] * 8

    def run(eta):
        return dynamics.descend(beside.reduced, eta=eta, steps=round(4 / eta), record=1).states

    for law in closure.laws:
        breaks, power = break_by_descent(law, run, (0.02, 0.01))
        if law.degree == 1:
            assert breaks.max() < 1e-13
        else:
            assert 0.9 < power < 1.1


def test_a_random_start_of_the_shallow_vit_does_not_close():
    system = dynamics.load_system(LIBRARY / "shallow_vit.py")
    closure = system.closure(system.Parameters(symmetric=False))
    assert closure.scalars == closure.entries == 24 * 5 + 3 * 25
