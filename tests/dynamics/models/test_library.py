"""Every published model of the library: what closes, full = reduced, figures, at most 40 lines."""

import ast
from pathlib import Path

import numpy as np
import pytest

import dynamics
from dynamics import models
from dynamics.library import library_names
from dynamics.verdicts import verdicts_of
from dynamics.verdicts.figure import draw

FOLDER = Path(models.__file__).parent
CLOSES = {
    "attention_sink": "closes on 3 scalars of 16 entries (sizes 8, 2, 6), in a linear space of 2",
    "causal_tree": "closes on 129 scalars of 384 entries (sizes 4, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, "
    "1, ...; 184 never move), in a linear space of 83",
    "committee": "closes on 12 of 12: no two entries stay equal, in a linear space of 8",
    "deep_linear": "closes on 4 scalars of 32 entries (sizes 2, 2, 2, 2; 24 never move)",
    "induction_head": "closes on 17 scalars of 1792 entries (sizes 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, "
    "8, "
    "8, ...; 1656 never move)",
    "linear_icl": "closes on 2 scalars of 17 entries (sizes 4, 1; 12 never move), in a linear "
    "space "
    "of 1",
    "markov_attention": "closes on 2 of 2: no two entries stay equal",
    "memory_spikes": "closes on 2 scalars of 4 entries (sizes 2, 2)",
    "merged_staircase": "closes on 60 scalars of 84 entries (sizes 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, "
    "1, "
    "1, ...; 24 never move)",
    "reversal_curse": "closes on 7 scalars of 360 entries (sizes 2, 12, 24, 12, 144, 12, 60; 94 "
    "never move), in a linear space of 5",
    "scan_and_snap": "closes on 3 scalars of 300 entries (sizes 20, 80, 160; 40 never move), in a "
    "linear space of 2",
    "single_location": "closes on 2 scalars of 8 entries (sizes 1, 1; 6 never move)",
    "single_location_gaussian": "closes on 2 scalars of 16 entries (sizes 1, 1; 14 never move)",
    "softmax_icl": "closes on 2 scalars of 9 entries (sizes 3, 6), in a linear space of 1",
    "sparse_parity": "closes on 48 scalars of 120 entries (sizes 3, 5, 3, 5, 3, 5, 3, 5, 3, 5, "
    "3, "
    "5, ...)",
    "statistical_induction": "closes on 9 scalars of 11 entries (sizes 2, 2, 1, 1, 1, 1, 1, 1, 1), "
    "in a linear space of 8",
    "statistical_induction_drawn": "closes on 18 scalars of 20 entries (sizes 2, 2, 1, 1, 1, 1, 1, "
    "1, 1, 1, 1, 1, ...)",
    "token_selection": "closes on 2 of 2: no two entries stay equal",
    "topic_model": "closes on 8 scalars of 153 entries (sizes 16, 48, 8, 16, 48, 8, 8, 1), in a "
    "linear space of 6",
}
QUICK = {
    ("committee", "dimensions"): {"dimensions": [10], "time": 100.0},
    ("linear_icl", "drops"): {"ranks": [1], "slopes": [0.1], "time": 700.0},
    ("softmax_icl", "order"): {"shares": [1 / 3, 0.6], "lengths": [3]},
    ("induction_head", "times"): {"sizes": [3]},
    ("markov_attention", "regions"): {"starts": 6},
    ("merged_staircase", "losses"): {"time": 30.0},
    ("sparse_parity", "losses"): {"dimensions": [8, 51], "steps": 100},
    ("causal_tree", "tree"): {"steps": 50},
    ("statistical_induction_drawn", "lengths"): {"lengths": [5], "seeds": 1, "time": 10.0},
    ("single_location_gaussian", "overlaps"): {"seeds": 1, "time": 30.0},
}


def test_every_model_is_listed_and_recorded():
    assert set(library_names()) == set(CLOSES)
    assert set(dynamics.system_names()) > set(CLOSES)


@pytest.mark.parametrize("name", CLOSES)
def test_a_model_is_at_most_40_lines_of_code(name):
    text = (FOLDER / f"{name}.py").read_text()
    tree = ast.parse(text)
    assert len(ast.get_docstring(tree).splitlines()) > 5
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    prose = [node.body[0] for node in (tree, *functions) if ast.get_docstring(node)]
    words = {line for node in prose for line in range(node.lineno, node.end_lineno + 1)}
    numbered = enumerate(text.splitlines(), start=1)
    assert sum(bool(line.strip()) and k not in words for k, line in numbered) <= 40


@pytest.mark.parametrize("name", CLOSES)
def test_closes_as_recorded_and_every_entry_follows(name):
    system = dynamics.load_system(name)
    parameters = system.Parameters()
    reduced, full = system.ReducedPopulation(parameters), system.FullPopulation(parameters)
    assert reduced.closure.summary() == CLOSES[name]
    result = dynamics.compare(reduced, full, eta=system.model.eta, steps=300)
    if name.endswith(("_gaussian", "_drawn")):  # known by draws, which have no exact symmetry
        assert max(result.deviation.values()) < 0.1
    else:
        assert max(result.deviation.values()) < 1e-12
        closure, declared = reduced.closure, system.model.reduced is not None
        assert closure.grade == ("declared" if declared else "proved")
        assert declared or closure.scope.startswith("for any") or not closure.samples
    assert result.reduced.presentation.event_latex


FIGURES = [
    (name, figure)
    for name in CLOSES
    for figure in verdicts_of(dynamics.load_system(name), "figures")
]


@pytest.mark.parametrize(("name", "figure"), FIGURES)
def test_a_figure_is_of_finite_numbers(name, figure):
    drawing = draw(name, figure, options=QUICK.get((name, figure)))
    assert drawing.caption
    assert drawing.data
    for values in drawing.data.values():
        assert np.isfinite(np.asarray(values, dtype=float)).all()


def test_every_model_has_a_figure_and_a_check_of_every_claim():
    assert {name for name, _ in FIGURES} == set(CLOSES)
    for name in CLOSES:
        system = dynamics.load_system(name)
        assert set(verdicts_of(system, "checks")) == {claim.source for claim in system.claims}
