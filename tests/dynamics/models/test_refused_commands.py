"""Commands and files that are wrong, and runs that go wrong: one clear line and an exit code."""

import json
from pathlib import Path

import pytest
from faulty_models import BASE, OTHER_LINE, bent

import dynamics
from dynamics import cli
from dynamics.validation import InvalidRequest


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--aa", "3"], "nearest: --a"),
        (["--a", "x"], "a='x' is not a number"),
        (["--q", "1.5"], "law gives the probability -0.5"),
        (["--n", "1"], "law raises IndexError"),
        (["--n", "0"], "w holds no real numbers"),
        (["--n", "-3"], "start raises ValueError: negative dimensions"),
        (["--coordinates", "polar"], "coordinates='polar' is unknown"),
        (["--expectation", "exact"], "flag '--expectation' is unknown"),
        (["--omega", "0.1"], "omega needs --full empirical"),
        (["--full", "empirical", "--omega", "-1"], "omega=-1"),
        (["--full", "empirical", "--batch", "0"], "batch=0 is too small"),
        (["--eta", "0.1,0.2"], "eta=[0.1, 0.2] has 2 entries"),
    ],
)
def test_the_command_line(refused, words, message):
    refused(BASE, message, *words)


def test_a_risk_alone_has_nothing_to_draw_from(refused):
    text = 'import numpy as np\n\n\ndef start():\n    return {"w": np.ones(2)}\n\n\n'
    text += 'def risk(theta, xp):\n    return xp.sum(theta["w"] ** 2)\n'
    refused(text, "no law to sample", "--full", "empirical")
    refused(text, "no law to sample", "--full", "empirical", command="sweep")


FILES = {
    f"ZeroDivisionError: division by zero (my.py, line {OTHER_LINE})": bent(more="x = 1 / 0\n"),
    f"SyntaxError: invalid syntax (my.py, line {OTHER_LINE})": bent(more="def f(:\n"),
    "my.py defines no model: it has no function start(...)": "",
    "cannot be run: SystemExit": bent(more="raise SystemExit(0)\n"),
}


@pytest.mark.parametrize("message", FILES)
def test_files(refused, message):
    refused(FILES[message], message)


def test_no_claims_and_no_figure(refused):
    refused(BASE, "my has no claims", command="verify")
    refused(BASE, "figure 'x' is unknown", "x", command="figure")
    refused(BASE, "as 'source' is unknown", "--as", "source", command="derive")


KEPT = """def start(low=0.1, high=0.3):
    return {"a": [low, high]}


def risk(theta, xp):
    return 5 * (theta["a"][0] - theta["a"][1] - 1.0) ** 2
"""


def test_a_run_that_diverges_has_a_remedy_and_has_kept_nothing(here, capsys):
    """Exit code 1, everything written; error estimates are of states before that."""
    Path("my.py").write_text(KEPT)
    words = ["run", "my.py", "--steps", "3000", "--out", "x", "--force", "--eta"]
    assert cli.main([*words, "0.01"]) == 0
    assert "kept: a_0 + a_1 = 0.4" in capsys.readouterr().out
    assert cli.main([*words, "3"]) == 1
    captured = capsys.readouterr()
    assert "kept: " not in captured.out
    assert "is above the stability limit 0.1 there; try eta=0.09" in captured.err
    assert "Warning" not in captured.err
    found = dynamics.load("x")
    assert found.outcome.kind == "diverged"
    assert found.settings["closure"]["residual"] < 1e-12


def test_parts_that_a_model_does_not_have_are_named():
    with pytest.raises(InvalidRequest, match="nearest: observables"):
        dynamics.Model(start=lambda: {"w": [0.1]}, observable=None)
    with pytest.raises(InvalidRequest, match="a model needs start"):
        dynamics.Model()


@pytest.mark.parametrize(
    "words",
    [["run", "--config", "c.toml"], ["sweep", "--q", "0.4,0.5", "--eta", "0.02", "--workers", "0"]],
    ids=" ".join,
)
def test_json_is_one_document_on_stdout_whatever_a_file_prints(here, capfd, words):
    said = "import os\nprint('at import')\nos.system('echo by another program')\n\n\ndef law("
    text = bent(
        ("def law(", said), ("    yield q,", "    print('in law')\n    yield q,"),
        ("xp, a):\n", "xp, a):\n    print('in loss')\n"),
    )  # fmt: skip
    Path("my.py").write_text(text)
    Path("c.toml").write_text("json = true\n")
    command, *flags = words
    flags += [] if "--config" in words else ["--json"]
    assert cli.main([command, "my.py", "--steps", "5", *flags]) == 0
    captured = capfd.readouterr()
    assert isinstance(json.loads(captured.out), dict)
    for said in ("at import", "by another program", "in law", "in loss"):
        assert said in captured.err
