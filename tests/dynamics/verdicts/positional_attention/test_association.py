"""Association: at any time, along flows, at the end of training, and by other update rules."""

import dataclasses

import numpy as np
import pytest
from verdicts import moved, verdict_of, verdicts

import dynamics
from dynamics.verdicts.cases import reduced_flow
from dynamics.verdicts.draw import draw
from dynamics.verdicts.positional_attention import plateau, update_rules
from dynamics.verdicts.positional_attention.flow_figures import FIXED
from dynamics.verdicts.positional_attention.plateau import ending, prediction

SYSTEM = dynamics.load_system("positional_attention")
SMALL = SYSTEM.Parameters(D=8, C=2, q=0.5)
CLAIMS = ("Section 4.1, any time", "Section 4.1, gamma and rho", "Lemma D.2", "Equation (2)")


def flow_of(law):
    return reduced_flow(SYSTEM.ReducedPopulation, law, 1e6)[1]


def test_they_hold_at_a_small_size_and_not_of_turned_attention():
    """Definition 2.2 counts j = i: with beta < 0 a patch is not among its own C largest."""
    law = SYSTEM.Parameters(D=12, C=3, q=0.4)
    assert verdicts(SYSTEM, *CLAIMS, parameters=law) == [True] * 4
    wrong = moved(SYSTEM, lambda slope: slope * (1.0, -1.0, -1.0))
    assert verdicts(wrong, *CLAIMS[:2], parameters=SMALL) == [False, False]
    negative = dataclasses.replace(SMALL, beta=-0.5)
    assert verdicts(SYSTEM, CLAIMS[0], parameters=negative) == [False]


def test_association_at_any_time_is_read_at_times_above_zero():
    law = dataclasses.replace(SMALL, beta=0.7)
    verdict, run = verdict_of(SYSTEM, CLAIMS[0], law), flow_of(law)
    literal = verdict.finding.literal
    assert verdict.measured == min(min(0.7, gamma) - rho for _, gamma, rho in run.states[1:])
    assert (literal.holds, literal.measured, literal.bound) == (False, 0.0, 0.0)


def test_alpha_rises_to_t0_as_the_lemma_is_cited():
    event = flow_of(SMALL).events["T0"]
    (row,) = verdict_of(SYSTEM, "Lemma D.2", SMALL).evidence["table"]
    assert (row["T0"], row["threshold"]) == (event.time, event.state[0])
    high = dataclasses.replace(SMALL, alpha0=3.0)  # alpha starts above where it relaxes to
    assert verdict_of(SYSTEM, "Lemma D.2", high).holds is None


def test_the_predictor_of_equation_2_is_the_best_of_a_grid():
    verdict = verdict_of(SYSTEM, "Equation (2)", SMALL)
    (row,) = verdict.evidence["table"]
    problem = SYSTEM.ReducedPopulation(SMALL)
    around = [problem.observables(np.array([row["best_a"] * f, 0, 0]))["risk"] for f in (0.9, 1.1)]
    assert row["loss"] < min(around)
    assert 1 < verdict.measured < 2
    assert verdict.holds is None


def test_the_law_of_t1_is_that_of_its_flows():
    options = {"D": [12, 16], "means": [3.0, 5.0], "time": 1e7}
    drawing = draw(SYSTEM, "T1", options=options, parameters={"C": 2})
    rows = drawing.data["rows"]
    for row in rows[:1] + rows[-1:]:
        nu = 1e-3 if row["case"] == FIXED else row["D"] ** -2.0
        given = {name: row[name] for name in ("D", "C", "q")} | {"nu": nu}
        run = dynamics.flow(SYSTEM.ReducedPopulation(SYSTEM.Parameters(**given)), 1e7)
        assert row["q"] * (row["D"] - row["C"]) == pytest.approx(row["mean"])
        assert row["T1"] == run.events["T1"].time
    own = [row for row in rows if row["case"] == FIXED]
    x = np.log([(np.e, row["D"], row["mean"]) for row in own])
    fitted, *_ = np.linalg.lstsq(x, np.log([row["T1"] for row in own]))
    np.testing.assert_allclose(drawing.data["laws"][FIXED]["exponents"], fitted[1:], rtol=1e-9)
    short = draw(SYSTEM, "T1", options=options | {"time": 1.0}, parameters={"C": 2})
    assert "8 of 8 flows do not reach T1" in short.caption


@pytest.mark.parametrize(
    ("gamma", "rho", "associated"),
    [
        ([0, 1.0], [0, -8.0], True), ([0, -9.0], [0, -0.3], False),
        ([0, 0.2], [0, 0.1], None), ([0, -0.1], [0, 0.3], None),
        ([0.0] * 6 + [-1.0, 5.0], [0, 0], None),  # changes sides in its last decade
    ],
)  # fmt: skip
def test_a_flow_has_ended_where_one_of_them_is_on_top(gamma, rho, associated):
    class Run(dict):
        time, parameters = np.geomspace(1.0, 1e7, 8), {"scale": 1.0}

    gamma, rho = (x if len(x) > 2 else np.linspace(*x, 8) for x in (gamma, rho))
    found = ending(Run(gamma=np.array(gamma), rho=rho))
    assert found == {"gamma": gamma[-1], "rho": rho[-1], "associated": associated}


@pytest.mark.parametrize(("q", "associated"), [(0.3, True), (0.9, False)])
def test_both_ends_are_predicted_and_another_prediction_is_contradicted(q, associated, monkeypatch):
    law = dataclasses.replace(SMALL, q=q)
    found = verdict_of(SYSTEM, "Association", law)
    (row,) = found.evidence["table"]
    assert found.holds is True
    assert (row["associated"], row["lead"] > 0) == (associated, associated)
    wrong = {"alpha": 0.1, "lead": -1e-3 if associated else 1e-3}
    monkeypatch.setattr(plateau, "prediction", lambda _: wrong)
    found = verdict_of(SYSTEM, "Association", law)
    assert (found.holds, found.measured) == (False, 0.0)
    assert f"misses: D=8, C=2, q={q}, p=3, nu=0.001, beta=1, " in found.evidence["reason"]


def test_without_a_plateau_or_a_positive_diagonal_nothing_is_decided():
    for law in (SYSTEM.Parameters(D=8, C=2, beta=-0.5), SYSTEM.Parameters(D=4, C=2)):
        assert verdict_of(SYSTEM, "Association", law).word == "not decidable under this law"


def test_the_figure_has_the_line_between_the_ends():
    options = {"D": [8], "C": [2], "chances": [0.3, 0.9], "diagonals": [1.0, 2.0]}
    drawing = draw(SYSTEM, "association_ends", options=options)
    rows = drawing.data["rows"]
    assert [row["associated"] for row in rows] == [row["q"] == 0.3 for row in rows]
    assert drawing.data["counts"] == {"D=8, C=2": {"flows": 4, "otherwise": 0, "open": 0}}
    (panel,) = drawing.axes.flat
    (line,) = [path for one in panel.collections for path in one.get_paths() if len(path.vertices)]
    for beta, q in line.vertices[:: len(line.vertices) // 5]:
        law = dataclasses.replace(SMALL, q=float(q), beta=float(beta))
        near = [dataclasses.replace(law, q=float(q) + shift) for shift in (-0.02, 0.02)]
        assert prediction(near[0])["lead"] > 0 > prediction(near[1])["lead"]


def test_the_figure_has_the_events_of_every_rule():
    drawing = draw(SYSTEM, "rules", options={"steps": 30_000})
    steps = {
        (run["random_sets"], run["rule"]): (run["T0"], run["T1"], run["event_III"])
        for run in drawing.data["runs"]
    }
    assert steps["mixed", "gd"] == (56, 3915, 22_807)  # those of the README
    assert [name for name, (_, _, third) in steps.items() if third is None] == [
        ("any", rule) for rule in update_rules.RATES
    ]
    for run in drawing.data["runs"]:
        at_once = run["T0"] == run["T1"]
        assert at_once == (run["rule"] in ("adam", "sign")) == (run["half"] < run["T1"])


@pytest.mark.parametrize(
    ("given", "word", "told"),
    [
        ({"D": 16, "C": 4, "q": 0.8}, "holds", ""),
        ({"D": 12, "C": 3, "q": 0.8}, "does not hold here", "Adam associates at none"),
        ({"D": 9, "C": 3, "q": 0.5}, "not decidable", "the flow associates too"),
    ],
)
def test_adam_associates_where_the_flow_does_not(given, word, told, monkeypatch):
    monkeypatch.setattr(update_rules, "ADAM_RATES", (1e-2, 1e-3))
    monkeypatch.setattr(update_rules, "ADAM_STEPS", 3000)
    found = verdict_of(SYSTEM, "Adam", SYSTEM.Parameters(**given))
    assert found.word.startswith(word)
    assert told in found.evidence["reason"]
    if word == "holds":
        (row,) = found.evidence["table"]
        assert (found.measured, row["rates"], row["T1"]) == (1.0, "0.001", "422")
        assert row["gamma"] < row["rho"] < 0
