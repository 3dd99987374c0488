import io
import json
import os
import re
import runpy
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import dynamics
from dynamics.cli import COMMANDS, derive, main, parser_of
from dynamics.cli.arguments import CommandRequest
from dynamics.library import system_names

PAPERS = ["--D", "16", "--C", "4", "--random_sets", "any"]
QUICK = ["compare", "positional_attention", "--D", "4", "--C", "2", "--steps", "20"]


def test_compare_writes_result_pictures_and_summary(call, elsewhere):
    code, out, _ = call(*QUICK)
    assert code == 0
    folder = elsewhere / "results" / "compare-positional_attention"
    names = {"training.png", "attention.png", "deviation.png", "summary.json", "result.zarr"}
    assert names == {p.name for p in folder.iterdir()}
    assert "patch_association" in out
    assert "results/compare-positional_attention/training.png" in out
    result = dynamics.load(folder)
    assert result.full["A"].shape[1:] == (4, 4)


def test_json_is_one_document_with_the_keys_that_checks_rely_on(call):
    code, out, err = call(*QUICK, "--json", "--out", "here")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["parameters"]["D"] == 4
    assert set(document["deviation"]) == {"alpha", "gamma", "rho"}
    assert set(document["events"]) == set(document["event_steps"]) == {"reduced", "full"}
    assert document["events"]["reduced"]["patch_association"] == 0.03
    assert document["event_steps"]["full"]["patch_association"] == 1
    assert document["events"]["full"]["event_III"] is None
    assert document["outcome"] == "reached horizon"


def test_a_file_and_flags_make_one_request_and_the_flag_wins(call):
    Path("run.toml").write_text("D = 8\nC = 2\nsteps = 30\nq = 0.25\n")
    words = ["--config", "run.toml", "--q", "16/64", "--steps", "1e1", "--json", "--out", "x"]
    code, out, _ = call("run", "positional_attention", *words)
    document = json.loads(out)
    assert code == 0
    assert document["parameters"]["q"] == 0.25
    assert document["settings"]["steps"] == 10
    code, printed, _ = call("run", "positional_attention", *words, "--print_config")
    Path("again.toml").write_text(printed)
    code, out, _ = call("run", "positional_attention", "--config", "again.toml", "--json")
    assert json.loads(out)["final"] == document["final"]


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["--eta", "1", "--steps", "100"], "diverged"),
        ([*PAPERS, "--eta", "0.04", "--steps", "50000"], "oscillating"),
    ],
)
def test_a_failed_run_is_exit_code_1_and_kept(call, words, kind):
    code, out, err = call("run", "positional_attention", *words, "--json", "--out", "x")
    assert code == 1
    assert json.loads(out)["outcome"] == kind
    assert err.splitlines()[-1].startswith(f"attdyn: {kind} at step ")
    assert "try eta=" in err
    assert dynamics.load("x").outcome.kind == kind


def test_every_seed_is_beside_the_reduced_run_of_its_own_start(call):
    """Without noise each pair is equal; beside the start of another seed it is of order 1."""
    words = ["compare", "shallow_vit", "--full", "empirical", "--m", "24", "--L", "10", "--d", "6"]
    words += ["--alpha_confusion", "0.1", "--noise", "0", "--samples", "6", "--steps", "20"]
    code, out, _ = call(*words, "--seeds", "2", "--out", "r", "--json")
    document = json.loads(out)
    assert (code, [row["seed"] for row in document["seeds"]]) == (0, [0, 1])
    assert max(document["deviation"].values()) < 1e-12
    found = dynamics.load("r")
    assert [run.settings["seed"] for run in (found.reduced, *found.partners)] == [0, 1]


def test_compare_with_samples_prints_every_seed(call):
    words = ["compare", "positional_attention", "--full", "empirical", "--D", "8", "--C", "2"]
    words += ["--samples", "60", "--steps", "300", "--partition", "random", "--batch", "20"]
    code, out, _ = call(*words, "--seeds", "2", "--out", "r")
    assert code == 0
    assert all(part in out for part in ("seed 0", "seed 1", "of the rows associated"))
    assert Path("r/realistic.png").exists()


def test_figure_takes_parameters_options_and_a_seed(call):
    words = ["figure", "positional_attention", "deviation", "--out", "d.png"]
    words += ["--json", "--option", "samples=200,400", "--option", "seeds=2", "--D", "4"]
    first, other = (json.loads(call(*words, *more)[1]) for more in ((), ("--seed", "7")))
    assert "sigma=0" in first["caption"]
    assert first["data"]["samples"] == [200, 400]
    assert other["data"]["gamma"] != first["data"]["gamma"]


def test_a_flow_and_gradient_descent_laid_over_it(call):
    code, out, _ = call("run", "positional_attention", *PAPERS, "--time", "1e3", "--json")
    document = json.loads(out)
    assert (code, document["settings"]["time"]) == (0, 1000.0)
    assert document["events"]["T1"] == pytest.approx(759.395, abs=1e-3)
    words = ["run", "positional_attention", "--time", "20", "--eta", "0.004,0.002"]
    code, out, _ = call(*words, "--json", "--out", "x")
    document = json.loads(out)
    assert code == 0
    assert document["eta"] == [0.004, 0.002]
    assert document["order"]["alpha"] == pytest.approx(1.0, abs=0.1)
    assert document["files"] == ["overlay.png"]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("masked_image_modeling --family two_cluster_grid", "Rows of type B00"),
        ("positional_attention --random_sets mixed", "/((1 - 2*(q/2)**C)*a_k!*b_k!*c_k!)"),
        ("shallow_vit --data iid", "alpha_star**c_2"),
    ],
)
def test_derivations_are_of_the_parameters_that_are_given(call, words, part):
    code, out, _ = call("derive", *words.split())
    assert code == 0
    assert part in out
    assert part not in call("derive", words.split()[0])[1]


def test_the_derivation_is_the_same_in_python(call):
    system = dynamics.load_system("positional_attention")
    page = system.derivation()
    assert call("derive", system.name)[1] == page.as_text() + "\n"
    assert call("derive", system.name, "--as", "latex")[1] == page.as_latex() + "\n"
    given = system.derivation(system.Parameters(random_sets="mixed"))
    words = ("--random_sets", "mixed", "--standalone")
    assert call("derive", system.name, *words)[1] == given.as_latex(True) + "\n"


@pytest.mark.parametrize("form", ["source", "latex"])
def test_what_proofs_print_leaves_source_and_latex_what_they_are(capsys, system, form):
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
        Path("generated.py").write_text(text)
        assert callable(runpy.run_path("generated.py")["reduced"])


def test_systems_and_help(call, monkeypatch):
    assert "positional_attention" in call("systems")[1]
    for words in (["--help"], ["compare", "--help"], ["systems", "--help"], ["--version"]):
        assert call(*words)[0] == 0
    assert main([]) == 2
    monkeypatch.setattr("sys.stdout", None)
    assert main(["systems"]) == 0


PARSERS = [
    (command, name)
    for command, about in COMMANDS.items()
    for name in (system_names() if about.subject == "SYSTEM" else [None])
    if about.module
]


@pytest.mark.parametrize(("command", "name"), PARSERS)
def test_every_flag_says_what_it_is(command, name):
    system = name and dynamics.load_system(name)
    parser, letters = parser_of(command, system), system.notation if name else ()
    for action in parser._actions:
        text = re.sub(r"\(default[^)]*\)", "", action.help or "").strip()
        unclear = len(text.split()) < 2 or text.startswith(("of ", "default"))
        assert not unclear or action.dest in letters, action.dest
    assert parser.description[0].isupper()


def test_a_reader_that_leaves_is_no_error():
    words = f"{sys.executable} -m dynamics derive positional_attention | head -1"
    done = subprocess.run(["bash", "-c", words], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Positional attention: gradient descent")
    assert done.stderr == ""


def test_start_is_light():
    heavy = "{'sympy', 'numba', 'xarray', 'matplotlib', 'jax'} & set(sys.modules)"
    code = f"import sys, dynamics; sys.exit(len({heavy}))"
    subprocess.run([sys.executable, "-c", code], check=True)
    code = f"import sys; from dynamics.cli import main; main(['systems']); sys.exit(len({heavy}))"
    environment = os.environ | {"PYTHONWARNINGS": "error"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, stdout=-3)


def test_too_little_memory_is_one_line(call, monkeypatch):
    def hungry(*_):
        raise MemoryError("Unable to allocate 12 TiB")

    monkeypatch.setattr("dynamics.cli.train.execute", hungry)
    code, out, err = call(*QUICK)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "too little memory (Unable to allocate 12 TiB)" in err


def test_letters_that_stdout_does_not_have_are_escaped(monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="latin-1"))
    assert main(["describe", "positional_attention"]) == 0
    assert b"\\u03bd" in written.getvalue()
