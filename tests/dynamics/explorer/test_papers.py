"""Pages of the papers: their lists give what Python gives."""

import dataclasses

import numpy as np
import pytest
from node import needs_node, problem_of, run_script

import dynamics
from dynamics.explorer import own_points, shallow_vit
from dynamics.explorer.driver import worker_script
from dynamics.explorer.papers import page_model
from dynamics.validation import InvalidRequest

POSITIONAL = dynamics.load_system("positional_attention")
IMAGES = dynamics.load_system("masked_image_modeling")
VIT = dynamics.load_system("shallow_vit")
POINTS = [
    (POSITIONAL, {"D": 12, "C": 4, "q": 0.3, "beta": 0.4}, {"q": 0.8, "nu": 0.02, "scale": 1.7}),
    (POSITIONAL, {"D": 8, "C": 4, "q": 0.9, "p": 5, "random_sets": "mixed"}, {"q": 0.1}),
    (IMAGES, {"P": 12, "C_global": 8, "C_local": 2, "masked": 3}, {}),
    (IMAGES, {"family": "two_cluster_grid", "b11": 3, "b10": 2, "C_local": 2, "T": 1}, {}),
]


@pytest.fixture(autouse=True)
def few_points(monkeypatch):
    monkeypatch.setattr(own_points, "MOST_TRIED", 0)


def constants(parameters, model):
    return {slider.name: getattr(parameters, slider.name) for slider in model.sliders}


def order_of(problem, scalars):
    """Place in the state of Python of each scalar of a page."""
    if problem.system == "positional_attention":
        return [problem.layout.names.index(name) for name in scalars]
    own, remote, _, _ = map(int, problem.rows.references)
    names = list(problem.layout.names)
    names[own], names[remote] = "Phi_m", "Phi_0"
    return [names.index(name) for name in scalars]


@needs_node
@pytest.mark.parametrize(("system", "first", "moved"), POINTS, ids=str)
def test_gradients_are_those_of_python_at_random_states(system, first, moved):
    parameters = system.Parameters(**first)
    model = page_model(system, parameters)
    there = dataclasses.replace(parameters, **moved, **({"alpha0": None} if "nu" in moved else {}))
    problem = system.ReducedPopulation(there)
    states = np.random.default_rng(3).normal(size=(100, problem.layout.size))
    script = worker_script(model.script, model.problem)
    found = problem_of(script, constants(there, model), states)
    place = order_of(problem, found["scalars"])
    assert found["start"] == pytest.approx(problem.initial_state[place], rel=1e-14)
    for state, (slope, _, observed, _) in zip(states, found["values"], strict=True):
        own = np.empty(state.size)
        own[place] = state
        expected = problem.gradient(own)[place]
        # The net gradient may be far below what it is the sum of, and e^-F has |F| roundings.
        allowed = 1e-12 * np.abs(expected).max()
        if system is POSITIONAL:
            known = problem.error_estimate(own)
            allowed = max(allowed, 1e-12 * known["gross"][:3].max()) + known["estimate"][:3].max()
        assert np.abs(np.array(slope) - expected).max() <= allowed
        values = problem.observables(own)
        for name, value in zip(found["names"], observed, strict=True):
            if name != "error":
                assert value == pytest.approx(values[name], rel=1e-11, abs=1e-13), name


@needs_node
def test_sizes_are_the_given_one_and_its_neighbours(monkeypatch):
    monkeypatch.setattr(own_points, "MOST_TRIED", 5)
    parameters = POSITIONAL.Parameters(D=6, C=3, random_sets="mixed")
    model = page_model(POSITIONAL, parameters)
    sliders = {slider.name: slider for slider in model.sliders}
    assert sliders["D"].values == (6, 9)
    assert sliders["p"].values == (3, 5, 7)
    assert sliders["random_sets"].values == ("mixed", "any")
    usual = constants(parameters, model)
    script = worker_script(model.script, model.problem)
    asked = [usual | {"D": 9, "q": 0.2}, usual | {"D": 12}]
    held, other = run_script(script, "return given.map((each) => MODEL.check(each));", asked)
    assert held["ok"]
    assert not other["ok"]
    assert other["nearest"]["D"] == 9
    shown = "return MODEL.make(given).matrix('A', Float64Array.of(0.1, 0.7, -0.4));"
    matrix = run_script(script, shown, usual)
    A = np.array([*matrix["values"], np.nan])[np.array(matrix["labels"]).reshape(6, 6)]
    sets = np.arange(6) // 3
    wanted = np.where(sets[:, None] == sets, 0.7, -0.4)
    np.fill_diagonal(wanted, np.nan)  # never trained
    np.testing.assert_array_equal(A, wanted)


@needs_node
@pytest.mark.parametrize("moved", [{}, {"margin": 2.5, "sigma": 0.2, "xi": 0.03}, {"L": 22}])
def test_gradients_of_every_trained_entry_are_those_of_python_along_a_run(moved):
    parameters = VIT.Parameters(m=30, L=20, margin=3.0)
    model, there = shallow_vit.page_model(VIT, parameters), dataclasses.replace(parameters, **moved)
    problem = VIT.ReducedPopulation(there)
    states = dynamics.descend(problem, eta=0.1, steps=60, record=12).states
    script = worker_script(model.script, model.problem)
    found = problem_of(script, constants(there, model), states)
    assert found["start"] == pytest.approx(problem.initial_state, abs=1e-15)
    for state, (slope, row, *_) in zip(states, found["values"], strict=True):
        own = problem.gradient(state)
        assert slope == pytest.approx(own, rel=1e-11, abs=1e-13 * np.abs(own).max())
        assert row == pytest.approx(problem.order_parameters(state, own), rel=1e-12)


def test_a_step_that_takes_too_long_is_refused_with_a_size_that_does_not():
    with pytest.raises(InvalidRequest) as refusal:
        shallow_vit.page_model(VIT, VIT.Parameters(m=1000))
    nearest = int(str(refusal.value).rpartition("m=")[2])
    for m, fits in ((nearest, True), (nearest + 1, False)):
        problem = VIT.ReducedPopulation(VIT.Parameters(m=m))
        assert (problem.layout.size <= shallow_vit.MOST_ENTRIES) is fits
