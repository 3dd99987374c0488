from pathlib import Path

import pytest
from sketches import sketched

from dynamics import cli

__all__ = ["here", "refused", "sketched"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def refused(here, capsys):
    """Run a command on a model; everything that a refusal must be is checked here."""

    def run(text, message, *words, command="run"):
        Path("my.py").write_text(text, encoding="utf-8")
        steps = ["--steps", "5"] if command in ("run", "compare") else []
        code = cli.main([command, "my.py", *steps, *words])
        captured = capsys.readouterr()
        assert (code, captured.out) == (2, ""), captured
        assert captured.err.startswith("attdyn: ")
        assert captured.err.count("\n") == 1
        assert "Traceback" not in captured.err
        assert "site-packages" not in captured.err
        assert message in captured.err
        assert len(captured.err) < 500
        assert [p.name for p in here.iterdir()] == ["my.py"]
        return captured.err

    return run
