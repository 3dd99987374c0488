"""What "auto" chooses, once: by predicted cost."""

import numpy as np
import pytest

from dynamics.validation import InvalidRequest


@pytest.mark.parametrize(
    ("settings", "tolerance", "chosen"),
    [
        ({}, 1e-10, "exact"),
        ({"D": 64, "q": 0.02}, 1e-6, "spectral"),
        ({"D": 28}, 1e-6, "spectral"),
        ({"D": 4096, "C": 8, "q": 0.008}, 1e-8, "spectral"),
    ],
)
def test_the_cheapest_is_taken_and_said_why(system, settings, tolerance, chosen):
    problem = system.ReducedPopulation(system.Parameters(**settings), tolerance=tolerance)
    assert problem.settings["expectation"] == chosen
    assert "a gradient (predicted)" in problem.settings["auto"]


@pytest.mark.parametrize(
    "settings", [{"D": 6, "C": 2}, {"D": 8, "C": 2, "p": 5}, {"D": 9, "C": 3, "q": 0.6}]
)
def test_every_entry_the_declared_sum_and_the_derived_one_agree(system, settings):
    """Risk, gradient and Hessian at 100 random states, in parts of the gross."""
    parameters, draw = system.Parameters(**settings), np.random.default_rng(3)
    exact, smooth = (
        system.ReducedPopulation(parameters, kind, 1e-12) for kind in ("exact", "spectral")
    )
    full = system.FullPopulation(parameters)
    sets = np.arange(parameters.D) // parameters.C
    same = sets[:, None] == sets[None, :]
    for state in draw.uniform((-0.3, -1.0, -1.0), (0.3, 1.5, 1.0), (100, 3)):
        known = exact.error_estimate(state)
        matrix = np.where(same, state[1], state[2])
        np.fill_diagonal(matrix, parameters.beta)
        entries = np.concatenate([state[:1], matrix.ravel()])
        slope = full.gradient(entries)
        of_entries = [slope[0], slope[2], slope[parameters.D], full.risk(entries)]
        derived = [*smooth.gradient(state), smooth.risk(state)]
        for other in (of_entries, derived):
            assert (np.abs(known["value"] - other) <= 1e-11 * known["gross"]).all()
        curved = np.abs(smooth.jacobian(state) - exact.jacobian(state))
        assert (curved <= 1e-9 * known["gross"][:3, None]).all()


def test_wrong_requests(system):
    for name, value, message in [
        ("expectation", "guess", "expectation='guess' is unknown"),
        ("tolerance", 0, "tolerance=0 is too small"),
        ("samples", 1, "samples=1 is too small"),
        ("seed", -1, "seed=-1 is too small"),
    ]:
        with pytest.raises(InvalidRequest, match=message.replace(".", r"\.")):
            system.ReducedPopulation(system.Parameters(), **{name: value})
