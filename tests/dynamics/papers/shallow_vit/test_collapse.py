"""16 scalars stand for attention where the symmetries hold, and what is said where they do not."""

import pytest

from dynamics.papers.shallow_vit.recursions import collapse, gram, objection
from dynamics.validation import InvalidRequest

EVEN = {"m": 36, "alpha_confusion": 0.08, "sigma": 0.0, "delta": 0.0, "d": 6}
HOLDS = [{}, {"frozen": "attention"}, {"frozen": "values"}, {"M": 3},
         {"data": "fixed_disc", "L": 13, "alpha_confusion": 0.1}]  # fmt: skip


@pytest.mark.parametrize("options", HOLDS)
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
    ({}, {}, "neurons"),
    ({"alpha_confusion": 0.1}, {"start": "symmetric"}, "equal non-discriminative counts"),
    ({"data": "fixed_disc"}, {"start": "symmetric", "samples": 9}, "non-discriminative counts"),
    ({"output_weights": "per_position"}, {}, "one output weight per neuron"),
    ({}, {"start": "symmetric", "samples": 8, "batch": 4}, "mini-batches"),
]


@pytest.mark.parametrize(("changed", "options", "said"), BROKEN)
def test_one_line_says_which_condition_fails(system, changed, options, said):
    problem = system.ReducedPopulation(system.Parameters(**(EVEN | changed)), **options)
    with pytest.raises(InvalidRequest) as caught:
        collapse(problem, 0.1, 10)
    assert said in str(caught.value)
    frozen = system.ReducedPopulation(system.Parameters(**EVEN, frozen="values"))
    with pytest.raises(InvalidRequest, match="frozen='values' has no recursion"):
        gram(frozen, 0.1, 3)
