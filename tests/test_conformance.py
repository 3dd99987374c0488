"""What every system must be, whatever it is; runs on every system found."""

import dataclasses

import numpy as np
import pytest

import dynamics
from dynamics.library import built_in_names
from theory.claims import Claim
from theory.events import EventRule
from theory.notation import Notation

SYSTEMS = built_in_names()


@pytest.fixture(scope="module", params=SYSTEMS)
def pair(request):
    system = dynamics.load_system(request.param)
    parameters = system.Parameters(**system.default_runs["compare"].parameters)
    return system, system.ReducedPopulation(parameters), system.FullPopulation(parameters)


def test_a_system_has_table_claims_derivations_and_default_runs(pair):
    system = pair[0]
    assert isinstance(system.notation, Notation)
    assert all(isinstance(claim, Claim) for claim in system.claims)
    assert set(system.derivation.formulas()) <= set(system.notation)
    assert set(system.default_runs) == {"run", "compare", "empirical"}
    assert len(dataclasses.fields(system)) <= 12


def test_parameters_are_frozen_validated_and_in_the_table(pair):
    system = pair[0]
    parameters = system.Parameters()
    for field in dataclasses.fields(parameters):
        assert field.name in system.notation
        missing = field.name in getattr(parameters, "absent", ())
        assert (getattr(parameters, field.name) is None) == missing
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(parameters, field.name, 1)
        with pytest.raises(ValueError, match=field.name):
            system.Parameters(**{field.name: "a word"})
    with pytest.raises(ValueError, match="nonsense"):
        system.Parameters(nonsense=1)


def test_problems_fit_the_drivers(pair):
    for problem in pair[1:]:
        state = problem.initial_state
        assert state.shape == (problem.layout.size,)
        assert problem.state_names == problem.layout.names
        assert problem.gradient(state).shape == state.shape
        assert np.isfinite(problem.gradient(state)).all()
        assert problem.risk(state) == pytest.approx(problem.observables(state)["risk"])
        assert problem.order_parameters(state).shape == (len(problem.order_names),)
        assert all(isinstance(rule, EventRule) for rule in problem.events)
        assert set(problem.order_names) <= set(problem.notation)
        others = {"patch_association", "cosine", "gamma_spread", "rho_spread", "error_estimate"}
        assert set(problem.observables(state)) - set(problem.notation) <= others


def test_full_reads_back_every_reduced_state(pair):
    _, reduced, full = pair
    result = dynamics.compare(reduced, full, eta=1e-2, steps=20)
    assert set(result.deviation) == set(reduced.state_names)
    assert max(result.deviation.values()) < 1e-14
