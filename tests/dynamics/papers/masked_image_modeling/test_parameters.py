"""Every wrong request ends in one line that says what is allowed."""

import dataclasses
import json

import numpy as np
import pytest

import dynamics
from dynamics.validation import InvalidRequest

WRONG = [
    ({"family": "three"}, "family='three' is unknown"),
    ({"P": 256, "C_global": 100, "C_local": 7}, "nearest: 6"),
    ({"C_local": 5}, "areas do not partition the patches"),
    ({"masked": 0}, "masked=0 masks nothing"),
    ({"d": 288}, "d=288 has no room for 33 features and 256 positions"),
    ({"z": "0.5,1.5", "odds": "0.5,0.6"}, "sums to 1.1"),
    ({"z": "0.5,1.5", "odds": 1.0}, "has 1 entries; odds can be 2 probabilities"),
    ({"z": 0}, "z=0 is too small"),
    ({"z": (1.0, 1.0)}, "has a value twice"),
    ({"T": 3}, "T=3 does not fit family='one_cluster'"),
    ({"family": "custom"}, "has no cluster"),
    ({"family": "custom", "areas": "0,0,2,2"}, "does not partition 4 patches in cluster 1"),
    ({"family": "custom", "areas": "0,nan,1,1"}, "areas='0,nan,1,1' is not a list of whole"),
    ({"family": "custom", "areas": [[0, 0, 1, 1]], "P": 5}, "P=5 does not fit"),
    ({"family": "two_cluster_grid", "b10": 6}, "b10=6 is not a multiple of C_local=4"),
    ({"family": "two_cluster_grid", "b11": 0, "b10": 0}, "leaves no global area"),
]


@pytest.mark.parametrize(("given", "said"), WRONG)
def test_wrong_parameters_are_refused_in_one_line(system, given, said):
    with pytest.raises(InvalidRequest) as caught:
        system.Parameters(**given)
    told = str(caught.value)
    assert said in told
    assert "\n" not in told
    assert "nearest:" in told


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
