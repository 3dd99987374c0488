"""Runs of own models interrupted and resumed, stored and read, and drawn without the model file."""

import json
from pathlib import Path

import pytest
from runs import same

import dynamics
from dynamics import plotting
from dynamics.cli import main

BASE = (Path(__file__).parents[2] / "support/models/softmax_icl.py").read_text(encoding="utf-8")
TEXT = (
    BASE.replace("N=6", "N=3")
    + """

names = {"own": ("Q", 0, 0), "other": ("Q", 0, 1)}
events = {"apart": "own >= 1", "slow": "other starts growing after apart"}
panels = [("own", "other"), ("log risk",)]
"""
)
RUN = ["run", "my.py", "--p1", "0.4", "--eta", "0.5", "--steps", "8000"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("my.py").write_text(TEXT, encoding="utf-8")
    return tmp_path


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_run_on_batches_goes_on_bitwise(here, capsys, interrupted):
    words = [*RUN, "--full", "empirical", "--samples", "50", "--batch", "20", "--seed", "3"]
    assert main([*words, "--out", "x"]) == 130
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "with --resume goes on from there (checkpoint .x.checkpoint)" in err
    assert 0 < dynamics.load("x").outcome.step < 8000
    assert dynamics.load("x").outcome.kind == "interrupted"
    assert main([*words, "--out", "x", "--resume"]) == 0
    assert main([*words, "--out", "whole"]) == 0
    same(dynamics.load("x"), dynamics.load("whole"))
    assert dynamics.load("x").events["apart"]
    assert files(here) == ["my.py", "whole", "x"]


def test_a_changed_model_is_refused_with_the_difference(here, capsys, interrupted):
    assert main([*RUN, "--out", "x"]) == 130
    Path("my.py").write_text(TEXT.replace("** 2) / 2", "** 2) / 3"))
    capsys.readouterr()
    assert main([*RUN, "--out", "x", "--resume"]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert "holds another run (" in captured.err
    assert "loss: stored" in captured.err
    Path("my.py").write_text(TEXT + "\n# a remark\n")
    assert main([*RUN, "--out", "x", "--resume", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outcome"] == "reached horizon"
    assert not (here / ".x.checkpoint").exists()


def test_stored_results_are_drawn_without_their_model(here):
    system = dynamics.load_system("my.py")
    law = system.Parameters(p1=0.4)
    reduced, full = system.ReducedPopulation(law), system.FullPopulation(law)
    result = dynamics.compare(reduced, full, eta=0.5, steps=400)
    run = result.full
    dynamics.save(run, "run")
    dynamics.save(result, "both")
    Path("my.py").unlink()
    assert files(here) == ["both", "run"]
    again, both = dynamics.load("run"), dynamics.load("both")
    same(again, run)
    same(both.reduced, result.reduced)
    assert both.deviation == result.deviation
    assert again.settings["closure"] == run.settings["closure"]
    assert again.presentation == run.presentation
    assert plotting.training(again)[0].get_ylabel()
    assert plotting.comparison(both)[0].get_ylabel()
