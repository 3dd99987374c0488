import pytest
from sketches import sketched

from dynamics.cli import main, report

__all__ = ["elsewhere", "sketched"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def call(capsys):
    """Run a command: exit code, stdout, stderr."""

    def run(*words):
        code = main([str(word) for word in words])
        told = capsys.readouterr()
        return code, told.out, told.err

    return run


@pytest.fixture
def undrawn(monkeypatch):
    """Nothing is drawn, which saves time."""
    monkeypatch.setattr(report, "pictures", lambda result: iter(()))
