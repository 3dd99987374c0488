import pytest
from sketches import sketched

__all__ = ["elsewhere", "sketched"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path
