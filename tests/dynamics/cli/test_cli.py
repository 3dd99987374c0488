import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dynamics
from dynamics.cli import main
from dynamics.expectations import spectral_sum

PAPERS = ["--D", "16", "--C", "4", "--random_sets", "any"]
QUICK = ["compare", "positional_attention", "--D", "4", "--C", "2", "--steps", "20"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(capsys, *words):
    code = main(list(words))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


BAD = [
    (["--D", "16", "--C", "5"], "C=5 does not divide D=16; C can be 2, 4, 8; nearest: 4"),
    (["--D", "16", "--C", "16"], "C=16 equals D=16; C can be 2, 4, 8; nearest: 8"),
    (["--D", "-4"], "D=-4 is too small; D can be a whole number of at least 4; nearest: 4"),
    (["--p", "4"], "p=4 is even; p can be an odd number of at least 3"),
    (["--steps", "0"], "steps=0 is too small; steps can be a whole number of at least 1"),
    (["--D", "16", "--C", "4"], "D=16 needs 2,125,764 configurations"),
    (["--DD", "16"], "flag '--DD' is unknown"),
    (["--config", "missing.toml"], "cannot be read (no such file or directory)"),
    (["--out", "."], "out='.' is the working folder or holds it"),
]


@pytest.mark.parametrize(("words", "message"), BAD, ids=[" ".join(w) for w, _ in BAD])
def test_bad_input_is_one_line_and_exit_code_2(capsys, elsewhere, words, message):
    (elsewhere / "a_file").write_text("mine")
    code, out, err = call(capsys, "compare", "positional_attention", *words)
    assert code == 2
    assert out == ""
    assert message in err
    assert err.count("\n") == 1
    assert err.startswith("attdyn: ")
    assert [p.name for p in elsewhere.iterdir()] == ["a_file"]


TOML = [
    ("nuu = 1.0", "key of run.toml 'nuu' is unknown", "nearest: nu"),
    ('D = "16"', "D='16' is not a number", ""),
    ("D = 16\nC = 5", "C=5 does not divide D=16", ""),
    ("D = = 16", "config='run.toml' is not TOML", ""),
]


@pytest.mark.parametrize(("text", "message", "near"), TOML)
def test_bad_files_are_one_line_and_exit_code_2(capsys, elsewhere, text, message, near):
    Path("run.toml").write_text(text)
    code, out, err = call(capsys, "compare", "positional_attention", "--config", "run.toml")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err
    assert near in err
    assert [p.name for p in elsewhere.iterdir()] == ["run.toml"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["comprae", "positional_attention"], "command 'comprae' is unknown"),
        (["compare", "positional"], "system 'positional' is unknown"),
        (["run", "positional_attention", "--full", "empiric"], "full problem 'empiric' is unknown"),
        (["systems", "all"], "takes no words"),
    ],
)
def test_unknown_names_are_told_with_the_nearest(capsys, words, message):
    code, out, err = call(capsys, *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_compare_writes_result_pictures_and_summary(capsys, elsewhere):
    code, out, _ = call(capsys, *QUICK)
    assert code == 0
    folder = elsewhere / "results" / "compare-positional_attention"
    names = {"training.png", "attention.png", "deviation.png", "summary.json", "result.zarr"}
    assert names == {p.name for p in folder.iterdir()}
    assert "patch_association" in out
    assert "results/compare-positional_attention/training.png" in out
    result = dynamics.load(folder)
    assert result.full["A"].shape[1:] == (4, 4)


def test_json_is_one_document_with_the_keys_that_checks_rely_on(capsys):
    code, out, err = call(capsys, *QUICK, "--json", "--out", "here")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["parameters"]["D"] == 4
    assert set(document["deviation"]) == {"alpha", "gamma", "rho"}
    assert set(document["events"]) == set(document["event_steps"]) == {"reduced", "full"}
    assert document["events"]["reduced"]["patch_association"] == 0.03
    assert document["event_steps"]["full"]["patch_association"] == 1
    assert document["events"]["full"]["event_III"] is None
    assert document["outcome"] == "reached horizon"


def test_a_file_and_flags_make_one_request_and_the_flag_wins(capsys):
    Path("run.toml").write_text("D = 8\nC = 2\nsteps = 30\nq = 0.25\n")
    words = ["--config", "run.toml", "--q", "16/64", "--steps", "1e1", "--json", "--out", "x"]
    code, out, _ = call(capsys, "run", "positional_attention", *words)
    document = json.loads(out)
    assert code == 0
    assert document["parameters"]["q"] == 0.25
    assert document["settings"]["steps"] == 10
    code, printed, _ = call(capsys, "run", "positional_attention", *words, "--print_config")
    Path("again.toml").write_text(printed)
    code, out, _ = call(capsys, "run", "positional_attention", "--config", "again.toml", "--json")
    assert json.loads(out)["final"] == document["final"]


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["--eta", "1", "--steps", "100"], "diverged"),
        ([*PAPERS, "--eta", "0.04", "--steps", "50000"], "oscillating"),
    ],
)
def test_a_failed_run_is_exit_code_1_and_kept(capsys, words, kind):
    code, out, err = call(capsys, "run", "positional_attention", *words, "--json", "--out", "x")
    assert code == 1
    assert json.loads(out)["outcome"] == kind
    assert err.splitlines()[-1].startswith(f"attdyn: {kind} at step ")
    assert "try eta=" in err
    assert dynamics.load("x").outcome.kind == kind


def test_earlier_results_are_replaced_but_not_with_files_of_others(capsys, elsewhere):
    assert call(capsys, *QUICK, "--out", "x")[0] == 0
    assert call(capsys, *QUICK, "--out", "x")[0] == 0
    Path("x/notes.txt").write_text("mine")
    code, _, err = call(capsys, *QUICK, "--out", "x")
    assert code == 2
    assert "holds 'notes.txt', which is not of the result" in err
    assert Path("x/notes.txt").read_text() == "mine"


def test_run_of_the_flow(capsys):
    words = ["run", "positional_attention", *PAPERS, "--time", "1e3", "--json", "--out", "x"]
    code, out, _ = call(capsys, *words)
    document = json.loads(out)
    assert code == 0
    assert document["settings"]["time"] == 1000.0
    assert document["events"]["T1"] == pytest.approx(759.395, abs=1e-3)
    assert document["event_steps"]["T1"] is None
    code, _, err = call(capsys, *words, "--steps", "100")
    assert code == 2
    assert "give steps (descent) or time (flow)" in err
    assert call(capsys, "run", "positional_attention", "--time", "0")[0] == 2


def test_gradient_descent_laid_over_the_flow(capsys):
    words = ["run", "positional_attention", "--time", "20", "--eta", "0.004,0.002"]
    code, out, _ = call(capsys, *words, "--json", "--out", "x")
    document = json.loads(out)
    assert code == 0
    assert document["eta"] == [0.004, 0.002]
    assert document["order"]["alpha"] == pytest.approx(1.0, abs=0.1)
    assert document["files"] == ["overlay.png"]
    code, _, err = call(capsys, *words[:4], "--eta", "0.1,-3")
    assert code == 2
    assert "eta=-3 is too small" in err


def test_lost_precision_is_an_outcome(capsys, monkeypatch):
    monkeypatch.setattr(spectral_sum, "BUDGET", 100.0)
    words = ["run", "positional_attention", "--D", "8", "--C", "2", "--time", "1", "--out", "x"]
    code, out, err = call(capsys, *words, "--expectation", "spectral", "--json")
    document = json.loads(out)
    assert code == 1
    assert document["outcome"] == "precision lost"
    assert "above its budget" in document["remedy"]
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("masked_image_modeling", "Rows of type local"),
        ("masked_image_modeling --family two_cluster_grid", "Rows of type B00"),
        ("positional_attention", "n(rho) = D*(D - C)"),
        ("positional_attention --random_sets mixed", "/((1 - 2*(q/2)**C)*a_k!*b_k!*c_k!)"),
        ("shallow_vit", "c_2 = n_confusion"),
        ("shallow_vit --data iid", "alpha_star**c_2"),
    ],
)
def test_derivations_are_of_the_parameters_that_are_given(capsys, words, part):
    code, out, _ = call(capsys, "derive", *words.split())
    assert code == 0
    assert part in out
    name, *flags = words.split()
    assert (out == call(capsys, "derive", name)[1]) == (not flags)


def test_the_derivation_is_the_same_in_python(capsys):
    system = dynamics.load_system("positional_attention")
    page = system.derivation()
    assert call(capsys, "derive", system.name)[1] == page.as_text() + "\n"
    assert call(capsys, "derive", system.name, "--as", "latex")[1] == page.as_latex() + "\n"
    given = system.derivation(system.Parameters(random_sets="mixed"))
    words = ("--random_sets", "mixed", "--standalone")
    assert call(capsys, "derive", system.name, *words)[1] == given.as_latex(True) + "\n"
    for words in (("--as", "text"), ("--as", "source")):
        code, _, err = call(capsys, "derive", system.name, "--standalone", *words)
        assert (code, err) == (2, "attdyn: standalone needs as=latex\n")


def test_systems_and_help(capsys):
    assert "positional_attention" in call(capsys, "systems")[1]
    for words in (["--help"], ["compare", "--help"], ["systems", "--help"], ["--version"]):
        assert call(capsys, *words)[0] == 0
    assert main([]) == 2
    with pytest.raises(SystemExit) as end:
        main(["compare", "positional_attention", "--help"])
    assert end.value.code == 0


def test_a_reader_that_leaves_is_no_error():
    words = f"{sys.executable} -m dynamics derive positional_attention | head -1"
    done = subprocess.run(["bash", "-c", words], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Positional attention: gradient descent")
    assert done.stderr == ""


def test_start_is_light():
    """Importing compiles and loads nothing heavy; the measured times are in the benchmarks."""
    heavy = "{'sympy', 'numba', 'xarray', 'matplotlib', 'tqdm', 'jax'} & set(sys.modules)"
    code = f"import sys, dynamics; sys.exit(len({heavy}))"
    subprocess.run([sys.executable, "-c", code], check=True)
    code = f"import sys; from dynamics.cli import main; main(['systems']); sys.exit(len({heavy}))"
    environment = os.environ | {"PYTHONWARNINGS": "error"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, stdout=-3)


def test_too_little_memory_is_one_line(capsys, monkeypatch):
    def hungry(*_):
        raise MemoryError("Unable to allocate 12 TiB")

    monkeypatch.setattr("dynamics.cli.train.execute", hungry)
    code, out, err = call(capsys, *QUICK)
    assert (code, out) == (1, "")
    assert err == (
        "attdyn: there is too little memory (Unable to allocate 12 TiB); smaller sizes take less\n"
    )


def test_letters_that_stdout_does_not_have_are_escaped(monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="latin-1"))
    assert main(["describe", "positional_attention"]) == 0
    assert b"\\u03bd" in written.getvalue()
