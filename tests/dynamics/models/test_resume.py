"""Runs of own models resumed, stored, pickled, and drawn without the model file."""

import json
import pickle
from pathlib import Path

import pytest
from runs import same

import dynamics
from dynamics import plotting
from dynamics.cli import main
from dynamics.models.engine import system as engine

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
def mine(here):
    Path("my.py").write_text(TEXT, encoding="utf-8")


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
    assert {path.name for path in here.iterdir()} == {"my.py", "whole", "x"}


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


def test_results_are_read_and_drawn_without_their_model_and_pickled(monkeypatch):
    system = dynamics.load_system("my.py")
    law = system.Parameters(p1=0.4)
    reduced, full = system.ReducedPopulation(law), system.FullPopulation(law)
    result = dynamics.compare(reduced, full, eta=0.5, steps=400)
    dynamics.save(result.full, "run")
    dynamics.save(result, "both")
    packed = pickle.dumps((law, result))
    with monkeypatch.context() as patch:
        patch.setattr(engine, "_FILES", {})  # as where the file was not loaded before
        again, unpacked = pickle.loads(packed)
        assert vars(again) == vars(law)
    Path("my.py").unlink()
    run = dynamics.load("run")
    same(run, result.full)
    assert run.settings["closure"] == result.full.settings["closure"]
    assert run.presentation == result.full.presentation
    for both in (dynamics.load("both"), unpacked):
        same(both.reduced, result.reduced)
        assert both.deviation == result.deviation
        assert both.reduced.presentation == result.reduced.presentation
    assert plotting.training(run)[0].get_ylabel()
    assert plotting.comparison(both)[0].get_ylabel()


def test_a_model_in_no_file_says_why_it_is_not_pickled():
    model = dynamics.Model(start=lambda w=0.1: {"w": [w]}, risk=lambda theta, xp: theta["w"][0])
    parameters = dynamics.load_system(model).Parameters()
    with pytest.raises(pickle.PicklingError, match="has no model file"):
        pickle.dumps(parameters)
