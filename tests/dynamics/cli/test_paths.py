"""Paths of commands: ``~`` is the folder of the user, a table that is there is left alone."""

from pathlib import Path

import numpy as np
import pytest

import dynamics
from dynamics.cli import main

RUN = ["run", "positional_attention", "--D", "4", "--C", "2", "--steps", "20"]
SWEEP = ["sweep", "positional_attention", "--D", "4", "--C", "2", "--q", "0.4,0.5", "--time", "5"]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch, undrawn):
    """A home folder, and a working folder beside it in which nothing may appear."""
    folder, here = tmp_path / "home", tmp_path / "here"
    folder.mkdir()
    here.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.chdir(here)
    yield folder
    assert not list(here.iterdir())
    assert not [path.name for path in folder.iterdir() if path.name.startswith(".attdyn")]


def test_paths_of_a_run(home, capsys):
    (home / "run.toml").write_text('csv = "~/t.csv"\ncheckpoint = "~/saved.checkpoint"\n')
    assert main([*RUN, "--out=~/results/x", "--config=~/run.toml"]) == 0
    assert f"result   {home}/results/x\n" in capsys.readouterr().out
    assert {path.name for path in home.iterdir()} == {"results", "run.toml", "t.csv"}
    run = dynamics.load("~/results/x")
    assert dynamics.save(run, "~/saved") == home / "saved"
    assert (dynamics.load(Path("~/saved")).states == run.states).all()


def test_a_place_that_cannot_be_written_is_refused_before_the_run(home, monkeypatch, capsys):
    (home / "file").write_text("mine")
    for name in ("descend", "flow"):
        monkeypatch.setattr(f"dynamics.training.descent.{name}", None, raising=False)
    for words in (
        [*RUN, "--out=~/file/x"], [*RUN, "--csv=~/file/x.csv"], [*RUN, "--checkpoint=~/file/c"],
        [*SWEEP, "--out=~/file/x"], ["explore", "positional_attention", "--out=~/file/x.html"],
        ["verify", "positional_attention", "--out=~/v", "--report=~/file/x"],
        ["gallery", "single_location", "--out=~/file/x"],
        ["figure", "positional_attention", "2", "--out=~/file/x.png"],
    ):  # fmt: skip
        assert main(words) == 2, words
        assert "cannot be written" in capsys.readouterr().err
    assert [path.name for path in home.iterdir()] == ["file"]


def test_a_table_that_is_there_is_replaced_by_force_only(home, capsys):
    np.save(home / "a.npy", np.full((1, 4, 4), 0.25))
    table = home / "t.csv"
    maps = ["diversity", "~/a.npy", "--k", "1", "--out=~/d.png"]
    for words in ([*RUN, "--out=~/x"], maps):
        table.write_text("mine")
        assert main([*words, "--csv=~/t.csv"]) == 2
        assert f"csv='{table}' exists; --force replaces it" in capsys.readouterr().err
        assert table.read_text() == "mine"
        assert main([*words, "--csv=~/t.csv", "--force"]) == 0
        assert table.read_text() != "mine"
