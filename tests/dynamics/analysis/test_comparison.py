import numpy as np
import pytest

import dynamics
from dynamics import plotting
from dynamics.analysis.comparison import explanation


@pytest.fixture(scope="module")
def problem():
    system = dynamics.load_system("positional_attention")
    return system.ReducedPopulation(system.Parameters(D=8, C=2))


@pytest.fixture(scope="module")
def result(problem):
    return dynamics.overlay(problem, [0.001, 0.004, 0.002, 0.008], time=40.0, rtol=1e-12)


def test_gradient_descent_is_a_distance_of_order_eta_from_the_flow(result):
    """With slope one."""
    assert list(result.etas) == [0.008, 0.004, 0.002, 0.001]
    for name, order in result.orders.items():
        assert order == pytest.approx(1.0, abs=0.1), name
    for distances in result.deviations.values():
        assert (np.diff(distances) < 0).all()


def test_distances_are_taken_at_equal_times(problem, result):
    """The slow way: the flow once more, at the times of one run."""
    run = result.runs[1]
    smooth = dynamics.flow(problem, 40.0, 1e-12, record=run.time)
    naive = np.abs(smooth["gamma"] - run["gamma"]).max()
    assert result.deviations["gamma"][1] == pytest.approx(naive, rel=1e-6)


def test_is_saved_loaded_and_drawn(result, tmp_path):
    again = dynamics.load(dynamics.save(result, tmp_path / "overlay"))
    np.testing.assert_array_equal(again.flow.states, result.flow.states)
    assert again.orders == result.orders
    axes = plotting.overlay(again)
    for panel, name in zip(axes, ("alpha", "gamma", "rho", "risk"), strict=True):
        assert len(panel.lines) == 5
        np.testing.assert_array_equal(panel.lines[2].get_ydata(), result.runs[1][name][1:])


def test_rules_are_laid_over_each_other_by_steps(problem, tmp_path):
    rules = ["gd", "momentum", dynamics.rule("adam", b1=0.5)]
    found = dynamics.overlay(problem, [0.1, 0.01, 0.001], 300, rules)
    found = dynamics.load(dynamics.save(found, tmp_path / "rules"))
    assert found.flow is None
    assert found.labels[2] == "adam, b1 = 0.5, eta = 0.001"
    table = found.to_dataframe()
    assert table["step"].is_unique
    np.testing.assert_array_equal(table["run_2_alpha"], found.runs[2]["alpha"])
    axes = plotting.overlay(found)
    assert axes[-1].get_xlabel() == "steps"
    marks = [line for line in axes[0].lines if line.get_marker() not in ("", "None")]
    happened = [event for run in found.runs for event in run.events.values() if event]
    assert len(marks) == len(happened)
    assert {mark.get_xdata()[0] for mark in marks} == {event.step for event in happened}


def test_a_rule_that_divides_by_rounding_explains_why_the_runs_deviate(tmp_path):
    """At the start the gradient of w is 0 by cancellation, so that Adam amplifies its rounding."""
    (tmp_path / "cancel.py").write_text("""
def start():
    return {"w": [0.0, 0.0, 0.0], "u": [0.0]}

def law():
    for i in range(3):
        for y in (0.1, 0.2, -0.3):
            yield 1 / 9, {"i": i, "y": y}

def loss(theta, sample, xp):
    u = theta["u"][0]
    return (theta["w"][sample["i"]] - sample["y"] - u) ** 2 + (u - 1) ** 2
""")
    system = dynamics.load_system(str(tmp_path / "cancel.py"))
    parameters = system.Parameters()
    reduced, full = system.ReducedPopulation(parameters), system.FullPopulation(parameters)
    adam = dynamics.rule("adam", eps=1e-30)
    with pytest.warns(dynamics.TrainingWarning, match="rounding decides"):
        result = dynamics.compare(reduced, full, eta=0.01, steps=6, rule=adam, record=1)
    assert result.largest_deviation > 1e-3
    assert "at step 0 the gradient of w_0 is" in explanation(result, reduced, full)
