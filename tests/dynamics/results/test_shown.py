"""Every result that an exported function returns is shown in a few lines."""

import numpy as np
import pytest
from scalars import wells

import dynamics
import theory
from dynamics.analysis.phase_portrait import portrait
from dynamics.attention_maps import measure
from dynamics.phase_diagrams import select, threshold
from dynamics.verdicts.figure import Drawing


@pytest.fixture(scope="module")
def results():
    """One of each, of small runs."""
    system = dynamics.load_system("positional_attention")
    parameters = system.Parameters(D=8, C=2)
    reduced, full = system.ReducedPopulation(parameters), system.FullPopulation(parameters)
    run = dynamics.descend(full, eta=0.02, steps=100)
    sweep = dynamics.sweep(system, {"D": 8, "C": "2,3,4", "q": "0.2:0.6:3", "time": 50}, workers=0)
    evidence = {"table": [{"D": 8}] * 999}
    finding = dynamics.Finding(None, "spread of A", np.nan, 1e-12, "too large", evidence)
    claim, plane, flow = system.claims[0], portrait(wells(), 5.0), dynamics.flow(reduced, 10.0)
    return [
        run, *run.events.values(), flow,
        dynamics.compare(reduced, full, eta=0.02, steps=100),
        dynamics.overlay(reduced, [0.02, 0.01], time=2.0),
        dynamics.branches(reduced, flow.final_state, "alpha", count=2, steps=256),
        sweep, select(sweep.dataset, "risk", "q", "C"), plane, *plane.nullclines.values(),
        system, claim, finding, dynamics.Verdict(claim, finding),
        measure(np.full((2, 3, 16, 16), 1 / 16)), threshold([1, 2, 3, 4], [0, 0, 5, 5], [5] * 4),
        theory.classes(theory.Partition.contiguous((2, 3))), system.derivation(),
        Drawing(np.empty(3, object), {"rows": np.zeros(999)}, "A caption. " * 99),
    ]  # fmt: skip


def test_a_result_is_a_few_lines_and_a_small_table(results):
    for result in results:
        assert len(repr(result)) < 600, repr(result)
        assert len(repr(result).splitlines()) <= 8
        assert "object at 0x" not in repr(result)
        assert len(result._repr_html_()) < 2000
    shown = repr(results[0])
    for word in (
        "positional_attention, full population",
        "D=8, C=2",
        "T0 0.56",
        "not T1, event_III",
    ):
        assert word in shown
