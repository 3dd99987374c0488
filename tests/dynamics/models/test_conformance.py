"""The three built-in systems as model files hold what their optimised kernels compute."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynamics
from dynamics.papers.shallow_vit.recursions import collapse
from theory.closure.conservation import break_by_descent

LIBRARY = Path(dynamics.models.__file__).parent
MODELS = Path(__file__).resolve().parents[2] / "support" / "models"
FILE = Path(dynamics.__file__).parent / "models" / "masked_image_modeling.py"
SHALLOW_VIT = Path(dynamics.__file__).parent / "models" / "shallow_vit.py"
AREAS = "0,0,0,0,1,1,2,2;0,0,1,1,0,2,0,2"


@dataclass(frozen=True)
class Case:
    """A model beside the built-in system that it transcribes.

    Attributes
    ----------
    reduced, full : problems of the model
    its_reduced, its_full : problems of the built-in system
    arranged : callable
        Entries of the model, shape (..., n), as those of the built-in full problem, (..., m).
    offset : float array
        What states of that have beside them.
    eta : float
        Learning rate of the runs.
    """

    reduced: Any
    full: Any
    its_reduced: Any
    its_full: Any
    arranged: Callable[[np.ndarray], np.ndarray]
    offset: Any
    eta: float

    def entries(self, scalars, of_state=True):
        """Every entry of the built-in full problem, of scalars of the model."""
        closure = self.full.closure
        order = [self.reduced.layout.names.index(name) for name in closure.names]
        classes, ordered = closure.classes, scalars[..., order]
        if of_state:
            return self.arranged(classes.lift(ordered)) + self.offset
        return self.arranged(replace(classes, start=0 * classes.start).lift(ordered))

    def read(self, entries):
        """States of the built-in reduced problem, (records, k), of entries of its full one."""
        read = self.its_full.orbit_values(entries)
        parts = [
            values.reshape(len(entries), -1).mean(axis=1, keepdims=True)
            if shape == ()
            else values.reshape(len(entries), -1)
            for values, shape in zip(read.values(), self.its_reduced.layout.shapes, strict=True)
        ]
        return np.concatenate(parts, axis=1)


def problems(system, **constants):
    parameters = system.Parameters(**constants)
    return system.ReducedPopulation(parameters), system.FullPopulation(parameters)


def positional():
    model = dynamics.load_system(LIBRARY / "positional_attention.py")
    built = dynamics.load_system("positional_attention")
    sizes = {"D": 9, "C": 3, "alpha0": 1e-3}
    return Case(
        *problems(model, **sizes), *problems(built, **sizes), lambda entries: entries, 0.0, 0.1
    )


def masked_image():
    built = dynamics.load_system("masked_image_modeling")
    law = built.Parameters(family="custom", areas=AREAS, masked=4)
    its = built.ReducedPopulation(law), built.FullPopulation(law, basis=None)
    made = problems(dynamics.load_system(FILE), areas=AREAS, masked=4)
    return Case(*made, *its, lambda entries: entries, 0.0, 2.0)


def shallow_vit(patterns=5, neurons=24):
    """Neurons with a > 0 are the first ones of the file, and anywhere in the built-in system."""
    built = dynamics.load_system("shallow_vit")
    others = 7 * (patterns - 2)
    law = built.Parameters(
        M=patterns, m=neurons, d=patterns, L=29 + others, alpha_star=25 / (29 + others),
        alpha_confusion=4 / (29 + others), sigma=0.0, delta=0.0, noise=0.0,
    )  # fmt: skip
    its = [kind(law, start="symmetric") for kind in (built.ReducedPopulation, built.FullPopulation)]
    made = problems(dynamics.load_system(SHALLOW_VIT), M=patterns, m=neurons)
    place = np.argsort(np.argsort(-its[0].start.a, kind="stable"), kind="stable")

    def arranged(entries):
        rows = entries[..., : neurons * patterns].reshape(*entries.shape[:-1], neurons, patterns)
        moved = rows[..., place, :].reshape(*entries.shape[:-1], -1)
        return np.concatenate([moved, entries[..., neurons * patterns :]], axis=-1)

    one = np.eye(patterns)
    for problem in its:
        weights = made[1].layout.part(made[1].initial_state, "W_O")[place]
        problem.start = replace(problem.start, W_O=weights, W_V=one, W_K=one, W_Q=one, p=one)
    return Case(*made, *its, arranged, 0.0, 0.02)


CASES = {"positional": positional, "masked_image": masked_image, "shallow_vit": shallow_vit}


@pytest.fixture(scope="module")
def case(request):
    return CASES[request.param]()


every = pytest.mark.parametrize("case", CASES, indirect=True)


def close(found, expected, part=1e-12):
    """Entry by entry, up to rounding of the largest."""
    expected = np.asarray(expected)
    np.testing.assert_allclose(found, expected, rtol=part, atol=1e-15 * np.abs(expected).max())


@every
def test_the_file_starts_where_the_system_starts(case):
    start = case.entries(case.reduced.initial_state)
    np.testing.assert_array_equal(start, case.arranged(case.full.initial_state) + case.offset)
    np.testing.assert_allclose(start, case.its_full.initial_state, rtol=0, atol=1e-15)
    found = case.read(start[None])[0]
    np.testing.assert_allclose(found, case.its_reduced.initial_state, rtol=0, atol=1e-15)


@every
def test_risk_and_gradient_of_the_scalars(case):
    """At random states of the closed space, of both problems of both."""
    generator = np.random.default_rng(0)
    for scale in (0.03, 0.1, 0.3):
        moved = scale * generator.standard_normal(case.reduced.layout.size)
        scalars = case.reduced.initial_state + moved
        entries = case.entries(scalars)
        state = case.read(entries[None])[0]
        slope = case.reduced.gradient(scalars)
        assert np.abs(slope).max() > 0
        wide = case.entries(slope, of_state=False)
        close(case.read(wide[None])[0], case.its_reduced.gradient(state))
        close(wide, case.its_full.gradient(entries))
        close(case.reduced.risk(scalars), case.its_reduced.risk(state))


@every
def test_risk_and_gradient_of_every_entry(case):
    """At random states in general position, which no symmetry has."""
    generator = np.random.default_rng(1)
    for scale in (0.03, 0.1, 0.3):
        moved = scale * generator.standard_normal(case.full.layout.size)
        entries = case.full.initial_state + moved * (case.full.gradient(moved) != 0)
        theirs = case.arranged(entries) + case.offset
        close(case.arranged(case.full.gradient(entries)), case.its_full.gradient(theirs))
        close(case.full.risk(entries), case.its_full.risk(theirs))


@every
def test_gradient_descent_and_events(case):
    """300 steps of each problem of both, every scalar at every step."""
    reduced, full, its_reduced, its_full = (
        dynamics.descend(problem, eta=case.eta, steps=300, record=1)
        for problem in (case.reduced, case.full, case.its_reduced, case.its_full)
    )
    lifted = case.entries(reduced.states)
    assert np.abs(lifted - lifted[0]).max() > 0.05
    assert np.abs(case.read(lifted) - its_reduced.states).max() < 1e-12
    assert np.abs(lifted - its_full.states).max() < 1e-12
    theirs = case.arranged(full.states) + case.offset
    assert np.abs(case.read(theirs) - its_reduced.states).max() < 1e-12
    assert np.abs(theirs - its_full.states).max() < 1e-12
    assert np.abs(reduced["risk"] - its_reduced["risk"]).max() < 1e-12
    steps = [
        {name: event.step for name, event in run.events.items() if name in reduced.events}
        for run in (reduced, full, its_reduced, its_full)
    ]
    assert all(found == steps[0] for found in steps)
    assert sum(step is not None for step in steps[0].values()) >= 2


@pytest.mark.parametrize("case", ["positional"], indirect=True)
def test_three_thousand_steps_of_positional_attention(case):
    """The file as it is in the specification: no names, no events."""
    model = dynamics.load_system(MODELS / "positional.py")
    reduced, full = (
        dynamics.descend(problem, eta=0.02, steps=3000, record=25) for problem in problems(model)
    )
    theirs = dynamics.descend(case.its_reduced, eta=0.02, steps=3000, record=25)
    assert reduced.layout.names == ("v_0", "A_0_1", "A_0_3")
    assert np.abs(reduced.states - theirs.states).max() < 1e-13
    entries = case.full.closure.classes.lift(reduced.states)
    entries[:, 1:] -= np.eye(9).ravel()  # its loss has the diagonal, its state has not
    assert np.abs(entries - full.states).max() < 1e-13


@pytest.mark.parametrize("case", ["masked_image"], indirect=True)
def test_masked_image_modelling_closes_on_its_row_types(case):
    closure = case.full.closure
    assert (closure.entries, closure.scalars, closure.free) == (196, 44, 40)
    assert len(closure.laws) == 4
    assert all(law.exact and law.degree == 1 and law.value == 0 for law in closure.laws)
    # Each is the sum of Ups_pq over q, of one row type: every entry counts once.
    rows = closure.classes.labels.reshape(14, 14)[:8, :8]
    sums = {tuple(np.bincount(row, minlength=44).tolist()) for row in rows}
    assert len(sums) == 4
    found = set()
    for law in closure.laws:
        counts = np.zeros(44)
        counts[[k for (k,) in law.terms]] = law.coefficients
        found.add(tuple((counts * 8 / counts.sum()).astype(int).tolist()))
    assert found == sums


@pytest.mark.parametrize("case", ["masked_image"], indirect=True)
def test_loss_of_masked_image_modelling_after_three_thousand_steps(case):
    assert case.reduced.risk(case.reduced.initial_state) == pytest.approx(93 / 56, rel=1e-14)
    runs = [
        dynamics.descend(problem, eta=2.0, steps=3000)
        for problem in (case.reduced, case.full, case.its_reduced)
    ]
    assert {f"{run['risk'][-1]:.13f}" for run in runs} == {"0.4586236549702"}


@pytest.mark.parametrize(("patterns", "neurons", "pairs"), [(5, 24, 6), (3, 6, 5)])
def test_the_shallow_vit_collapses(patterns, neurons, pairs):
    """K and Q have one value on each class of pairs, and their inner products are 16 scalars."""
    made = shallow_vit(patterns, neurons)
    closure = made.reduced.closure
    arrays = [name.rsplit("_", 2)[0] for name in closure.names]
    orbits = neurons * patterns // (2 if patterns == 3 else 12)
    counted = {name: arrays.count(name) for name in ("W_O", "V", "K", "Q")}
    assert counted == {"W_O": orbits, "V": pairs, "K": pairs, "Q": pairs}
    assert (closure.samples, closure.sample_classes) == (2, 1)
    beside = collapse(made.its_reduced, made.eta, 300)
    run = dynamics.descend(made.reduced, eta=made.eta, steps=300)
    last = made.full.layout
    keys, queries = (last.part(made.reduced.lift(run.states[-1]), name) for name in ("K", "Q"))
    products = {"B": keys.T @ queries, "G_K": keys.T @ keys, "G_Q": queries.T @ queries}
    places = {"11": (0, 0), "12": (0, 1), "1k": (0, 2), "k1": (2, 0), "kk": (2, 2), "kl": (2, -1)}
    scalars = {name: value for name, value in beside.values.items() if name not in ("W_O", "V")}
    assert len(scalars) == 3 * pairs - 2
    for name, value in scalars.items():
        matrix, pair = name.rsplit("_", 1)
        assert abs(products[matrix][places[pair]] - value) < 1e-12
    for matrix in products.values():
        assert len(np.unique(np.round(matrix, 10))) <= pairs


@pytest.mark.parametrize("case", ["shallow_vit"], indirect=True)
def test_linear_and_quadratic_laws_of_the_shallow_vit(case):
    """Columns of T have the sum 0; the flow keeps V V^T - W_O^T W_O and K K^T - Q Q^T.

    Linear: sums of the rows of K, and K = Q on two irreducible parts of the patterns. Quadratic:
    five products of V, three of K, of which the other two follow from the linear laws.
    """
    closure = case.reduced.closure
    assert (closure.scalars, closure.free) == (28, 24)
    assert all(law.exact for law in closure.laws)
    assert [law.degree for law in closure.laws] == [1] * 4 + [2] * 8

    def run(eta):
        return dynamics.descend(case.reduced, eta=eta, steps=round(4 / eta), record=1).states

    for law in closure.laws:
        breaks, power = break_by_descent(law, run, (0.02, 0.01))
        if law.degree == 1:
            assert breaks.max() < 1e-13
        else:
            assert 0.9 < power < 1.1


def test_a_random_start_of_the_shallow_vit_does_not_close():
    system = dynamics.load_system(SHALLOW_VIT)
    closure = system.closure(system.Parameters(symmetric=False))
    assert closure.scalars == closure.entries == 24 * 5 + 3 * 25
    assert "closes on 195 of 195" in closure.summary()
