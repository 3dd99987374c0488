"""16 scalars stand for attention where the symmetries hold, and what is said where they do not."""

import numpy as np
import pytest

from dynamics.papers.shallow_vit.recursions import collapse, objection
from dynamics.validation import InvalidRequest

EVEN = {"m": 36, "alpha_confusion": 0.08, "sigma": 0.0, "delta": 0.0, "d": 6}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"margin": 3.0},
        {"frozen": "attention"},
        {"frozen": "values"},
        {"M": 3},
        {"M": 4, "L": 52, "alpha_confusion": 0.0, "alpha_star": 0.5},
        {"data": "fixed_disc", "L": 13, "alpha_confusion": 0.1},
    ],
)
def test_the_collapse_is_exact_where_its_conditions_hold(system, options):
    problem = system.ReducedPopulation(system.Parameters(**(EVEN | options)), start="symmetric")
    assert objection(problem) == ""
    found = collapse(problem, 0.1, 150)
    assert found.deviation < 1e-12
    scalars = [name for name in found.values if name not in ("W_O", "V")]
    assert len(scalars) == (13 if problem.parameters.M == 3 else 16)
    assert len(found.deviations["B_11"]) == 151
    moved = abs(found.values["B_11"] - 1.0)
    assert moved < 1e-12 if problem.parameters.frozen == "attention" else moved > 1e-3


BROKEN = [
    ({"sigma": 0.1}, {}, "sigma = 0"),
    ({"delta": 0.1}, {}, "delta = 0"),
    ({}, {}, "neurons"),
    ({"alpha_confusion": 0.1}, {"start": "symmetric"}, "equal non-discriminative counts"),
    ({"data": "fixed_disc"}, {"start": "symmetric", "samples": 9}, "non-discriminative counts"),
    ({"output_weights": "per_position"}, {}, "one output weight a neuron"),
    ({}, {"start": "symmetric", "samples": 8, "batch": 4}, "mini-batches"),
]


@pytest.mark.parametrize(("changed", "options", "said"), BROKEN)
def test_one_line_says_which_condition_fails(system, changed, options, said):
    problem = system.ReducedPopulation(system.Parameters(**(EVEN | changed)), **options)
    with pytest.raises(InvalidRequest) as caught:
        collapse(problem, 0.1, 10)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_broken_symmetry_is_seen_in_the_deviations(system):
    """The scalars are means: where keys differ, entries of a class leave them."""
    problem = system.ReducedPopulation(system.Parameters(**EVEN), start="symmetric")
    problem.start.W_K[0, 0] += 1e-13
    found = collapse(problem, 0.1, 60)
    assert 1e-14 < found.deviation < 1e-10


def test_orbits_of_neurons_are_whole(system):
    problem = system.ReducedPopulation(system.Parameters(**EVEN), start="symmetric")
    start = problem.start
    found = {
        (round(a, 12), *np.round(row @ start.p, 12))
        for a, row in zip(start.a, start.W_O, strict=True)
    }
    for order, sign in (([1, 0, 2, 3, 4], -1), ([0, 1, 3, 4, 2], 1), ([0, 1, 3, 2, 4], 1)):
        moved = {(round(sign * a, 12), *np.array(row)[order]) for a, *row in found}
        assert moved == found
    with pytest.raises(InvalidRequest, match="m=37 is not a whole number of orbits of 12"):
        system.ReducedPopulation(system.Parameters(**(EVEN | {"m": 37})), start="symmetric")
