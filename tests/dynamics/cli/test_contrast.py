"""The showcase is laid beside another law; a comparison at parameters of one's own is not."""

import json

import pytest

import dynamics
from dynamics.cli import main
from dynamics.systems.positional_attention import what_decides
from theory.systems.positional_attention.separability import criterion

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
    assert f"what decides        {what_decides(shown)}\n" in out
    assert "(L-1)(1-1/C)^p = 0.593 < 1" in out
    assert "beside it           random sets = any, reduced\n" in out
    summary = json.loads((elsewhere / "x" / "summary.json").read_text())
    other = system.Parameters(D=9, C=3)
    run = dynamics.descend(system.ReducedPopulation(other), default.eta, 40)
    assert summary["beside"]["parameters"] == {"random_sets": "any"}
    assert summary["beside"]["final"]["alpha"] == run["alpha"][-1]
    assert "beside.png" in summary["files"]


@pytest.mark.parametrize(
    ("words", "law"), [(["--q", "0.4"], "mixed"), (["--D", "9", "--C", "3"], "any")]
)
def test_parameters_of_ones_own_have_nothing_beside_them(capsys, words, law):
    assert main([*SHOWCASE, *words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert "beside" not in document
    assert document["parameters"]["random_sets"] == law
