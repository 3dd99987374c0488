"""Phases of training, with their measured steps and values, and laws of training."""

import numpy as np
import pytest

import dynamics

WITHIN = 0.01


@pytest.fixture(scope="module")
def two_phases():
    system = dynamics.load_system("masked_image_modeling")
    parameters = system.Parameters(P=4096, C_global=2048, C_local=16)
    problem = system.ReducedPopulation(parameters)
    return problem, dynamics.descend(problem, 1.0, 20_000, record=np.arange(0, 20_001, 50))


def test_events_are_at_the_measured_steps(two_phases):
    _, run = two_phases
    expected = {
        "E1": 244, "E1p": 575, "E2": 310, "E3": 488, "E4p": 857, "E4": 859, "E5": 1168,
        "E4_global": 16, "E5_global": 333,
    }  # fmt: skip
    for name, step in expected.items():
        assert abs(run.events[name].step - step) <= 1, name


def test_values_are_the_measured_ones(two_phases):
    problem, run = two_phases
    names = ("local_Phi_target", "local_Phi_global", "local_Phi_other")
    places = [problem.layout.names.index(name) for name in names]
    assert problem.rho0 == pytest.approx(24.346, rel=1e-4)
    assert run.events["E4"].state[places] == pytest.approx([5.734, -2.338, -0.0106], rel=WITHIN)
    assert run.final_state[places] == pytest.approx([10.419, -2.480, -0.0223], rel=WITHIN)
    assert run["local_Ups_own"][-1] == pytest.approx(0.693, rel=WITHIN)
    assert [run["A_m"][-1], run["A_g"][-1]] == pytest.approx([0.99328, 0.99283], rel=1e-5)
    gap = dict(zip(run.steps.tolist(), run["local_gap"], strict=True))
    assert [gap[0], gap[5000], gap[20_000]] == pytest.approx([0.2648, 6.11e-5, 1.27e-5], rel=WITHIN)
    assert problem.rows.floors[1] == pytest.approx(7.41e-6, rel=WITHIN)


def test_laws_of_training(two_phases):
    """Monotone correlations and loss, the invariant, the late law L_p - L*_p ~ K/(4 eta t)."""
    problem, run = two_phases
    assert (np.diff(run["local_Phi_target"]) > 0).all()
    assert (np.diff(run["local_Phi_global"]) < 0).all()
    assert (np.diff(run["risk"]) < 0).all()
    rows = problem.rows
    for start, row in zip(rows.starts, rows.types, strict=False):
        place = slice(start, start + len(row.ups_names))
        assert np.abs(run.states[:, place] @ row.ups_sizes).max() < 1e-12
    late = 4 * run["local_gap"][-1] * (run.time[-1] - run.events["E4"].time)
    assert late == pytest.approx(0.97, abs=0.02)


@pytest.mark.parametrize(("masked", "C_local"), [(1, 8), (1023, 2)])
def test_a_loss_near_its_floor_is_no_convergence_before_attention_grows(system, masked, C_local):
    """Where p is rarely masked beside an open mate, the gap is below 1e-3 at the start already."""
    sizes = {"P": 1024, "C_global": 512, "C_local": C_local, "masked": masked}
    problem = system.ReducedPopulation(system.Parameters(**sizes))
    run = dynamics.descend(problem, eta=1.0, steps=40)
    assert run["gap"][0] < 1e-3
    assert run["A_m"][-1] < 0.5
    assert not run.events["E5"]
    assert run.reasons["E5"] == "E4 is not reached"


def test_a_sweep_takes_families_and_lists_as_words(system, tmp_path):
    law = {"family": "two_cluster_grid", "z": "0.7, 1.3", "odds": [0.4, 0.6]}
    how = {"b10": "4,6", "eta": 4.0, "steps": 5}
    found = dynamics.sweep(system, law | how, tmp_path / "grid.zarr", workers=0)
    values = found.dataset["B00_Phi_target"].values
    assert np.isfinite(values).tolist() == [True, False]
    run = dynamics.descend(system.ReducedPopulation(system.Parameters(**law, b10=4)), 4.0, 5)
    assert values[0] == run["B00_Phi_target"][-1]
    other = law | {"z": np.array([0.7, 1.3]), "odds": "0.4,0.6"}
    again = dynamics.sweep(system, other | how, tmp_path / "grid.zarr", workers=0)
    assert again.plan.description == found.plan.description
