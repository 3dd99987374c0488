"""The showcase is laid beside another law; a comparison at parameters of one's own is not."""

import json

import pytest

import dynamics
from dynamics.cli import main, report
from dynamics.papers.positional_attention.system import what_decides
from theory.papers.positional_attention.separability import criterion

SHOWCASE = ["compare", "positional_attention", "--steps", "40", "--out", "x"]


def test_the_showcase_lays_assumption_1_beside_it(capsys, elsewhere):
    assert main(SHOWCASE) == 0
    out = capsys.readouterr().out
    system = dynamics.load_system("positional_attention")
    default = system.default_runs["compare"]
    shown = system.Parameters(**default.parameters)
    assert criterion(shown.set_law, shown.L, shown.p) == pytest.approx(16 / 27)
    assert f"criterion           {what_decides(shown)}\n" in out
    assert "(L-1)(1-1/C)^p = 0.593 < 1" in out
    assert "compared with       random sets = any, reduced\n" in out
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
