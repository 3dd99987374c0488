"""The showcase is laid beside another law; a comparison at parameters of one's own is not."""

import dataclasses
import json

import pytest

import dynamics
from dynamics.cli import main, report
from dynamics.cli.report import table
from dynamics.papers.positional_attention.system import what_decides
from theory.papers.positional_attention.separability import criterion

SHOWCASE = ["compare", "positional_attention", "--steps", "40", "--out", "x"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_showcase_lays_assumption_1_beside_it(capsys, elsewhere):
    assert main(SHOWCASE) == 0
    out = capsys.readouterr().out
    system = dynamics.load_system("positional_attention")
    default = system.default_runs["compare"]
    shown = system.Parameters(**default.parameters)
    assert criterion(shown.set_law, shown.L, shown.p) == pytest.approx(16 / 27)
    assert f"criterion           {what_decides(shown)}\n" in out
    assert "(L-1)(1-1/C)^p = 0.593 < 1" in out
    assert "some state classifies every sample; under the paper's law none does" in out
    assert "depends on q, nu and beta, here 0.5, 0.001 and 1\n" in out
    assert "alpha falls" not in out
    assert "beside it           random sets = any, reduced\n" in out
    assert "showcase            --D 9 --C 3 --random_sets mixed, where no flag is given; its" in out
    summary = json.loads((elsewhere / "x" / "summary.json").read_text())
    other = system.Parameters(D=9, C=3)
    run = dynamics.descend(system.ReducedPopulation(other), default.eta, 40)
    assert summary["beside"]["parameters"] == {"random_sets": "any"}
    assert summary["beside"]["final"]["alpha"] == run["alpha"][-1]
    assert "beside.png" in summary["files"]


@pytest.mark.parametrize(
    ("command", "words", "changed"),
    [
        ("compare", "", {}),
        ("run", "--q 0.4", {"q": 0.4}),
        ("compare", "--D 6", {"D": 6}),
        ("run", "--D 9 --C 3 --random_sets any", {"random_sets": "any"}),
    ],
)
def test_a_flag_changes_its_own_parameter_of_the_showcase_only(
    capsys, monkeypatch, command, words, changed
):
    monkeypatch.setattr(report, "pictures", lambda result: iter(()))
    assert main([command, *SHOWCASE[1:], "--steps", "20", *words.split(), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    shown = {"D": 9, "C": 3, "random_sets": "mixed", "q": 0.5, **changed}
    assert {name: document["parameters"][name] for name in shown} == shown
    said = "its law is the mixed one" in document.get("showcase", "")
    assert said == (shown["random_sets"] == "mixed")
    assert ("beside" in document) == (command == "compare" and not changed)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--D 16", "C=3 does not divide D=16; C can be 2, 4, 8; nearest: 2 (not given: --C 3, "),
        ("--C 4", "C=4 does not divide D=9; C can be 3; nearest: 3 (not given: --D 9, "),
    ],
)
def test_what_of_the_showcase_does_not_fit_a_flag_is_named(capsys, words, said):
    assert main(["run", "positional_attention", *words.split()]) == 2
    assert said in capsys.readouterr().err


def test_an_event_of_either_column_is_shown_with_what_is_said_of_it():
    system = dynamics.load_system("positional_attention")
    law = system.Parameters(D=4, C=2)
    problems = system.ReducedPopulation(law), system.FullPopulation(law)
    result = dynamics.compare(*problems, eta=0.1, steps=5)
    event = dataclasses.replace(result.full.events["patch_association"], name="event_III", time=7.0)
    full = dataclasses.replace(
        result.full,
        events={**result.full.events, "event_III": event},
        reasons={**result.full.reasons, "event_III": "training error is zero"},
    )
    shown = table(system, dataclasses.replace(result, full=full)).splitlines()
    (line,) = [line for line in shown if line.startswith("event_III")]
    assert line.split()[1:3] == ["none", "7"]
    assert line.endswith("(T1 is not reached; training error is zero)")
    (plain,) = [line for line in table(system, result).splitlines() if "event_III" in line]
    assert plain == f"{'event_III':<20}none: T1 is not reached"
