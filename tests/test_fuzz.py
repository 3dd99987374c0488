"""Random requests, many of them absurd: an exit code, short lines, no traceback, finite numbers."""

import sys

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


def test_a_traceback_a_long_line_and_a_silent_null_are_complaints(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    answers = iter([1 / 3, "x" * 301, '{"final": {"risk": null}, "remedy": ""}', '{"a": NaN}'])

    def answer(words):
        text = next(answers)
        if isinstance(text, float):
            raise KeyError("x")
        print(text, file=None if text.startswith("{") else sys.stderr)
        return 0

    monkeypatch.setattr(fuzz, "main", answer)
    found = [fuzz.complaint(["run", "--json"], tmp_path, []) for _ in range(4)]
    assert [part in text for part, text in zip(
        ("Traceback", "301 letters", "risk is null", "not a JSON"), found, strict=True
    )] == [True] * 4  # fmt: skip
