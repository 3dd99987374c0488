"""Model files that print: ``--json`` is one document on stdout, their output is on stderr."""

import json
from pathlib import Path

import pytest
from faulty_models import bent

from dynamics import cli

PRINTING = bent(
    (
        "def law(",
        "import os\nprint('at import')\nos.system('echo by another program')\n\n\ndef law(",
    ),
    ("    yield q,", "    print('in law')\n    yield q,"),
    ("xp, a):\n", "xp, a):\n    print('in loss')\n"),
)


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--steps", "5", "--config", "c.toml"],
        ["sweep", "--q", "0.4,0.5", "--steps", "5", "--eta", "0.02", "--workers", "0"],
    ],
    ids=" ".join,
)
def test_json_is_one_document_on_stdout(tmp_path, monkeypatch, capfd, words):
    monkeypatch.chdir(tmp_path)
    Path("my.py").write_text(PRINTING)
    Path("c.toml").write_text("json = true\n")
    command, *flags = words
    json_flag = [] if "--config" in words else ["--json"]
    assert cli.main([command, "my.py", *flags, *json_flag]) == 0
    captured = capfd.readouterr()
    assert isinstance(json.loads(captured.out), dict)
    for said in ("at import", "by another program", "in law", "in loss"):
        assert said in captured.err
