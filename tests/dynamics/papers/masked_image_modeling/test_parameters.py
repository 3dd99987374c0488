"""Parameters: what is filled in, files, and laws without local areas."""

import dataclasses
import json

import numpy as np
import pytest

import dynamics


def test_families_fill_in_what_follows(system):
    one = system.Parameters()
    assert (one.P, one.C_global, one.C_local, one.masked, one.d) == (256, 128, 4, 128, 289)
    assert one.Delta == pytest.approx(0.5)
    grid = system.Parameters(family="two_cluster_grid")
    assert (grid.P, grid.K, grid.features, grid.C_global, grid.masked) == (40, 2, 14, 16, 20)
    custom = system.Parameters(family="custom", areas="0,0,1,1;0,1,0,1")
    assert custom.areas == ((0, 0, 1, 1), (0, 1, 0, 1))
    for parameters in (one, grid, custom):
        assert parameters.features == sum(row.max() + 1 for row in parameters.area_ids)
        sizes = [np.bincount(row) for row in parameters.area_ids]
        assert sizes[0][0] == parameters.C_global
        assert parameters.C_local in sizes[0][1:]


def test_parameters_survive_json(system):
    made = system.Parameters(z="0.7,1.3", family="custom", areas="0,0,1,1")
    assert system.Parameters(**json.loads(json.dumps(dataclasses.asdict(made)))) == made


def test_without_local_areas_nothing_is_said_of_a_local_row(system):
    parameters = system.Parameters(family="custom", areas="0,0,0,0")
    assert parameters.C_local is None
    assert np.isnan([parameters.kappa_s, parameters.Delta, parameters.Delta_eff]).all()
    problems = system.ReducedPopulation(parameters), system.FullPopulation(parameters)
    result = dynamics.compare(*problems, eta=1.0, steps=300)
    assert max(result.deviation.values()) < 1e-12
    for run in (result.reduced, result.full):
        for name in ("rho", "alpha_m", "alpha_0", "Phi_m", "Phi_0", "A_m", "gap"):
            assert np.isnan(run[name]).all()
        assert np.isfinite(run["A_g"]).all()
        reached = {name for name, event in run.events.items() if event}
        assert reached == {"E4_global", "E5_global"}
