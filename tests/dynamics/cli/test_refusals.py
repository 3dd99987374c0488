"""Absurd requests end in one short line, exit code 2 and nothing written; failed runs in 1."""

import json

import pytest

from dynamics.cli import main

MANY = "9" * 400
ATTENTION = "positional_attention"
SMALL = [ATTENTION, "--D", "4", "--C", "2"]


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["run", ATTENTION, "--D", MANY], ["D=999", "at most 1,000,000", "nearest: 1000000"]),
        (["run", *SMALL, "--time", "1", "--eta", "1e-300"], ["eta=1e-300", "at least 1e-12"]),
        (["run", ATTENTION, "--out", "o" * 300], ["out='ooo", "file name too long"]),
        (["sweep", ATTENTION, "--q=-1e308:1e308:3"], ["q='-1e308:1e308:3'", "a:b:n"]),
        (["sweep", *SMALL, "--nu", "floor((-1)**0.5)"], ["nu='floor((-1)**0.5)'", "not real"]),
        (["phase", "store", "--out", "a" * 300 + ".png"], ["aaa", "file name too long"]),
        (["verify", ATTENTION, "--claims", "k" * 999], ["claim 'kkk", "nearest"]),
    ],
)
def test_absurd_requests_are_one_short_line(words, parts, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert len(printed.err) <= 300
    assert [part for part in parts if part not in printed.err] == []
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["phase", "status"])
def test_a_store_whose_description_is_nested_without_end_is_refused(command, tmp_path, capsys):
    (tmp_path / "zarr.json").write_text("[" * 100_000 + "]" * 100_000)
    assert main([command, str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["run", *SMALL, "--steps", "1", "--out", str(tmp_path)]) == 2
    assert "is not a result" in capsys.readouterr().err


@pytest.mark.parametrize(("flag", "meant"), [("--lr", "--eta"), ("--seeds", "--seed")])
def test_flags_by_another_word_are_suggested(flag, meant, capsys):
    assert main(["run", ATTENTION, flag, "3"]) == 2
    line = capsys.readouterr().err
    assert line.endswith(f"; nearest: {meant}\n")
    assert f"flag {flag!r} is unknown; known are --C, --D" in line
    assert len(line) <= 300


@pytest.mark.filterwarnings("ignore:constrained_layout")
@pytest.mark.parametrize(
    "words",
    [
        ["shallow_vit", "--xi", "1e200", "--steps", "1"],
        ["shallow_vit", "--xi", "1e200", "--steps", "3", "--full", "population", "--m", "4"],
        [*SMALL, "--alpha0", "1e160", "--steps", "1", "--eta", "1e-300"],
        [*SMALL, "--alpha0", "1e160", "--time", "1e-200"],
        [ATTENTION, "--alpha0", "1e100", "--time", "288"],
    ],
)
def test_a_risk_or_state_that_is_not_finite_is_an_outcome(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["run", *words, "--json"]) == 1
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert document["outcome"] in ("diverged", "precision lost")
    assert document["remedy"]
    assert f"attdyn: {document['outcome']} at " in printed.err.splitlines()[-1]
