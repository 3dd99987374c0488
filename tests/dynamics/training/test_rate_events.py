"""Events of rates near the start of a flow, whose rates may be carried from there."""

import numpy as np

import dynamics


def test_a_jacobian_that_the_generated_file_has_not_carries_no_rates():
    """All entries at D=4: integrated by collocation, the Jacobian in closed form beside it."""
    system = dynamics.load_system("positional_attention")
    problem = system.FullPopulation(system.Parameters(D=4, C=2, q=0.9))
    draw, found = np.random.default_rng(0), 0
    for _ in range(7):
        start = problem.initial_state.copy()
        positions = start[1:].reshape(4, 4)
        beta = positions.diagonal().copy()
        start[0], positions[:] = draw.uniform(0.1, 2.0), 1.5 * draw.normal(size=(4, 4))
        np.fill_diagonal(positions, beta)
        runs = [
            dynamics.flow(problem, 100.0, initial=start, compiled=compiled)
            for compiled in (True, False)
        ]
        assert runs[0].settings["integrator"] != runs[1].settings["integrator"]
        for name in runs[0].events:
            one, other = (run.events[name] for run in runs)
            assert bool(one) == bool(other)
            if one:
                assert abs(one.time - other.time) <= one.uncertainty + other.uncertainty
                found += one.time > 0
    assert found >= 2
