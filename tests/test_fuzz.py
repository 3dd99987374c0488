"""Random requests, many of them absurd: an exit code, short lines, no traceback, finite numbers."""

import fuzz
import pytest


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("seed", "count"), [(7, 60), pytest.param(0, 3000, marks=pytest.mark.long)]
)
def test_every_request_ends_well_or_in_one_line(seed, count, tmp_path, monkeypatch):
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert fuzz.run(seed, count, folder) == {}
