"""Runs on samples and figures, as the command line has them."""

import json
import runpy
from dataclasses import replace

import pytest

import dynamics
from dynamics.cli import derive, main
from dynamics.cli.arguments import CommandRequest


def test_compare_with_samples_prints_every_seed(tmp_path, capsys):
    words = ["compare", "positional_attention", "--full", "empirical", "--D", "8", "--C", "2"]
    words += ["--samples", "60", "--steps", "300", "--seeds", "2", "--out", str(tmp_path / "r")]
    assert main([*words, "--partition", "random", "--batch", "20"]) == 0
    printed = capsys.readouterr().out
    assert all(part in printed for part in ("seed 0", "seed 1", "of the rows associated"))
    assert (tmp_path / "r" / "realistic.png").exists()
    assert main([*words, "--json", "--force"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["seed"] for row in document["seeds"]] == [0, 1]
    assert len(document["departures"]["0.1"]["alpha"]) == 2


def test_figure_takes_parameters_options_and_a_seed(tmp_path, capsys):
    words = ["figure", "positional_attention", "deviation", "--out", str(tmp_path / "d.png")]
    words += ["--json", "--option", "samples=200,400", "--option", "seeds=2", "--D", "4"]
    assert main(words) == 0
    first = json.loads(capsys.readouterr().out)
    assert "sigma=0" in first["caption"]
    assert first["data"]["samples"] == [200, 400]
    assert main([*words, "--seed", "7"]) == 0
    assert json.loads(capsys.readouterr().out)["data"]["gamma"] != first["data"]["gamma"]


def test_every_seed_is_beside_the_reduced_run_of_its_own_start(tmp_path, capsys):
    """Without noise each pair is equal; beside the start of another seed it is of order 1."""
    words = ["compare", "shallow_vit", "--full", "empirical", "--m", "24", "--L", "10", "--d", "6"]
    words += ["--alpha_confusion", "0.1", "--noise", "0", "--samples", "6", "--steps", "20"]
    words += ["--out", str(tmp_path / "r"), "--json"]
    assert main(words) == 0
    assert [row["seed"] for row in json.loads(capsys.readouterr().out)["seeds"]] == [0]
    assert main([*words, "--seeds", "2", "--force"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["seed"] for row in document["seeds"]] == [0, 1]
    assert max(document["deviation"].values()) < 1e-12
    found = dynamics.load(tmp_path / "r")
    assert [run.settings["seed"] for run in (found.reduced, *found.partners)] == [0, 1]


@pytest.mark.parametrize("form", ["source", "latex"])
def test_what_proofs_print_leaves_source_and_latex_what_they_are(tmp_path, capsys, system, form):
    quick = next(claim for claim in system.claims if claim.source == "Lemma 4.2")
    one = replace(system, claims=(quick,))
    flags = {"D": 8, "C": 2, "as": form, "prove": True}
    assert derive.execute(CommandRequest("derive", flags, one)) == 0
    text = capsys.readouterr().out
    begin = {"source": "# ", "latex": "% "}[form]
    assert f"\n{begin}Lemma 4.2: holds" in text
    proof = text[text.index(f"{begin}Lemma 4.2") :].splitlines()
    assert all(line.startswith(begin) for line in proof)
    if form == "source":
        (tmp_path / "generated.py").write_text(text)
        assert callable(runpy.run_path(str(tmp_path / "generated.py"))["reduced"])


def test_a_command_without_an_output_ends_well(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout", None)
    assert main(["systems"]) == 0
    assert capsys.readouterr().err == ""
