"""Runs of own models interrupted and resumed, stored and read, and drawn without the model file."""

import json
import signal
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from interruptions import signalled
from runs import same

import dynamics
from dynamics import plotting
from dynamics.cli import main
from dynamics.validation import InvalidRequest

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


@pytest.mark.parametrize(
    "words",
    [
        RUN,
        pytest.param([*RUN, "--full", "population"], marks=pytest.mark.long),
        [*RUN, "--full", "empirical", "--samples", "50", "--batch", "20", "--seed", "3"],
    ],
    ids=["reduced", "full", "batches"],
)
def test_a_run_goes_on_bitwise(here, capsys, interrupted, words):
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


def test_a_comparison_goes_on_bitwise(here, capsys, interrupted):
    words = ["compare", "my.py", "--eta", "0.5", "--steps", "3000", "--json"]
    assert main([*words, "--out", "x"]) == 130
    assert main([*words, "--out", "x", "--resume"]) == 0
    assert main([*words, "--out", "whole"]) == 0
    one, two = dynamics.load("x"), dynamics.load("whole")
    same(one.reduced, two.reduced)
    same(one.full, two.full)
    assert max(one.deviation.values()) < 1e-13
    assert files(here) == ["my.py", "whole", "x"]


@pytest.mark.long
def test_a_process_that_is_interrupted_in_the_middle(here):
    err, code = signalled(RUN, signal.SIGINT)
    assert "--resume goes on" in err
    assert code == 130
    assert main([*RUN, "--out", "x", "--resume"]) == 0
    assert main([*RUN, "--out", "whole"]) == 0
    same(dynamics.load("x"), dynamics.load("whole"))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("** 2) / 2", "** 2) / 3", "loss="),
        pytest.param(
            *("p[query] * math", "p[K - 1 - query] * math", "law="), marks=pytest.mark.long
        ),
        pytest.param(
            *("events = {", "events = {'more': 'own > 2', ", "events="), marks=pytest.mark.long
        ),
    ],
)
def test_a_changed_model_is_refused_with_the_difference(here, capsys, interrupted, old, new, told):
    assert main([*RUN, "--out", "x"]) == 130
    assert TEXT.count(old) == 1
    Path("my.py").write_text(TEXT.replace(old, new))
    capsys.readouterr()
    assert main([*RUN, "--out", "x", "--resume"]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert "holds another run (" in captured.err
    assert told in captured.err
    Path("my.py").write_text(TEXT + "\n# a remark\n")
    assert main([*RUN, "--out", "x", "--resume", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outcome"] == "reached horizon"
    assert not (here / ".x.checkpoint").exists()


def problems():
    system = dynamics.load_system("my.py")
    parameters = system.Parameters(p1=0.4)
    return [kind(parameters) for kind in (system.ReducedPopulation, system.FullPopulation)]


def drawn(axes):
    """Numbers and words of a picture."""
    lines, words = [], []
    for panel in np.atleast_1d(axes).ravel():
        lines += [line.get_xydata() for line in panel.lines]
        words += [panel.get_xlabel(), panel.get_ylabel(), panel.get_title()]
        legend = panel.get_legend()
        words += [text.get_text() for text in legend.get_texts()] if legend else []
    plt.close("all")
    return lines, words


def alike(one, two):
    (lines, words), (others, texts) = drawn(one), drawn(two)
    assert words == texts
    assert len(lines) == len(others) > 0
    for line, other in zip(lines, others, strict=True):
        np.testing.assert_array_equal(line, other)


def test_stored_results_are_drawn_without_their_model(here):
    reduced, full = problems()
    run = dynamics.descend(full, eta=0.5, steps=400)
    result = dynamics.compare(reduced, full, eta=0.5, steps=400)
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
    alike(plotting.training(run), plotting.training(again))
    alike(plotting.comparison(result), plotting.comparison(both))
    grid = [plotting.entry_classes(r.settings["closure"]) for r in (run, again)]
    images = [[im.get_array() for ax in np.atleast_1d(g).ravel() for im in ax.images] for g in grid]
    assert len(images[0]) == len(images[1]) > 0
    for one, two in zip(*images, strict=True):
        np.testing.assert_array_equal(one, two)
    plt.close("all")
    with pytest.raises(InvalidRequest, match=r"'my\.py' is missing"):
        dynamics.load_system("my.py")
