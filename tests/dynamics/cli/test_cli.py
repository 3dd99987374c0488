import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dynamics
from dynamics.cli import main

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


def test_earlier_results_are_replaced_but_not_with_files_of_others(call):
    for _ in range(2):
        assert call(*QUICK, "--out", "x")[0] == 0
    Path("x/notes.txt").write_text("mine")
    code, _, err = call(*QUICK, "--out", "x")
    assert code == 2
    assert "holds 'notes.txt', which is not part of a result" in err
    assert Path("x/notes.txt").read_text() == "mine"


def test_run_of_the_flow(call):
    words = ["run", "positional_attention", *PAPERS, "--time", "1e3", "--json", "--out", "x"]
    code, out, _ = call(*words)
    document = json.loads(out)
    assert code == 0
    assert document["settings"]["time"] == 1000.0
    assert document["events"]["T1"] == pytest.approx(759.395, abs=1e-3)
    assert document["event_steps"]["T1"] is None


def test_gradient_descent_laid_over_the_flow(call):
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


def test_systems_and_help(call):
    assert "positional_attention" in call("systems")[1]
    for words in (["--help"], ["compare", "--help"], ["systems", "--help"], ["--version"]):
        assert call(*words)[0] == 0
    assert main([]) == 2


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
