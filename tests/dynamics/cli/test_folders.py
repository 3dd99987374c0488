"""Where results go: nothing of another request is overwritten, and no failure costs the numbers."""

import errno
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import dynamics
from dynamics import plotting
from dynamics.cli import main
from dynamics.results import storage

QUICK = ["run", "positional_attention", "--D", "4", "--C", "2", "--steps", "20"]
PAIR = ["compare", *QUICK[1:]]


def files(folder="."):
    return {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def complaints(err):
    """Lines on stderr; on a busy machine those of the progress may be beside them."""
    return "".join(line for line in err.splitlines(True) if line.startswith("attdyn: "))


def printed(capsys, *words, code=0):
    assert main([*words, "--json"]) == code
    captured = capsys.readouterr()
    return json.loads(captured.out), complaints(captured.err)


def test_another_request_has_a_folder_of_its_own(capsys, undrawn):
    folders = []
    for words in ([], ["--nu", "2e-3"], ["--nu", "0.002"], ["--eta", "0.01"], []):
        document, err = printed(capsys, *QUICK, *words)
        assert (document["outcome"], err) == ("reached horizon", "")
        folders.append(document["folder"])
    numbered = [f"results/run-positional_attention{end}" for end in ("", "-2", "-2", "-3", "")]
    assert folders == numbered
    assert dynamics.load(folders[1]).parameters["nu"] == 2e-3
    assert dynamics.load(folders[0]).parameters["nu"] == 1e-3
    assert main([*QUICK, "--eta", "0.01"]) == 0
    assert f"result   {numbered[3]}\n" in capsys.readouterr().out


def test_a_named_folder_is_not_overwritten_by_another_request(capsys, undrawn):
    assert main([*QUICK, "--out", "x"]) == 0
    before = files()
    other = [*QUICK, "--out", "x", "--nu", "2e-3"]
    assert main(other) == 2
    assert "another request (nu: stored 0.001, requested 0.002" in capsys.readouterr().err
    assert files() == before
    assert printed(capsys, *other, "--force")[0]["folder"] == "x"
    assert dynamics.load("x").parameters["nu"] == 2e-3
    Path("x/notes.txt").write_text("mine")
    assert main([*other, "--force"]) == 2
    assert "holds 'notes.txt', which is not part of a result" in capsys.readouterr().err
    dynamics.save(dynamics.load("x"), "y")
    assert main([*QUICK, "--out", "y", "--nu", "2e-3"]) == 2
    assert "another request (which is not known)" in capsys.readouterr().err


def test_an_interrupted_run_is_gone_on_with_where_it_is(capsys, interrupted, undrawn):
    run = ["run", "positional_attention", "--D", "8", "--C", "2", "--steps", "20000"]
    assert printed(capsys, *run, code=130)[0]["folder"] == "results/run-positional_attention"
    assert printed(capsys, *QUICK)[0]["folder"] == "results/run-positional_attention-2"
    document = printed(capsys, *run, "--resume")[0]
    assert document["folder"] == "results/run-positional_attention"
    assert document["outcome"] == "reached horizon"


@pytest.mark.parametrize("words", [QUICK, PAIR])
def test_a_picture_never_costs_a_result(capsys, monkeypatch, words):
    def broken(*_):
        raise ValueError("a label\nof two lines " + "and more " * 99)

    for name in ("training", "comparison"):
        monkeypatch.setattr(plotting, name, broken)
    document, err = printed(capsys, *words)
    folder = Path(document["folder"])
    assert err.startswith(f"attdyn: '{folder}/training.png' cannot be written (ValueError: a label")
    assert (err.count("\n"), len(err) < 300) == (1, True)
    assert dynamics.load(folder).outcome.kind == "reached horizon"
    others = {"attention.png", "deviation.png"} if words is PAIR else set()
    assert {path.name for path in folder.glob("*.png")} == {*document["files"]} == others
    assert json.loads((folder / "summary.json").read_text())["files"] == document["files"]
    assert [p.name for p in Path("results").iterdir()] == [folder.name]


@pytest.mark.parametrize("words", [QUICK, PAIR])
def test_a_full_disk_is_one_line_and_the_numbers_are_elsewhere(
    capsys, elsewhere, monkeypatch, words
):
    spare, write = elsewhere / "temporary", storage.write_groups
    spare.mkdir()

    def refused(result, folder):
        write(result, folder)
        if not Path(folder).is_relative_to(spare):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))

    monkeypatch.setattr(tempfile, "tempdir", str(spare))
    monkeypatch.setattr(storage, "write_groups", refused)
    document, err = printed(capsys, *words, "--out", "below/x", code=1)
    begin = "attdyn: 'below/x' cannot be written (no space left on device); the numbers are in '"
    assert err == f"{begin}{document['folder']}'\n"
    assert Path(document["folder"]).is_relative_to(spare)
    loaded = dynamics.load(document["folder"])
    assert loaded.outcome.kind == document["outcome"] == "reached horizon"
    assert list(Path("below").iterdir()) == []


FILES = [
    (["diversity", "maps.npy", "--out", "p.png", "--csv", "t.csv"], "results"),
    (["figure", "positional_attention", "3", "--out", "p.png"], "data"),
]


@pytest.mark.parametrize(("words", "numbers"), FILES)
def test_a_file_that_cannot_be_written_is_one_line(capsys, elsewhere, monkeypatch, words, numbers):
    np.save("maps.npy", np.full((2, 16, 16), 1 / 16))

    def refused(axes, path):
        Path(path).write_bytes(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(plotting, "write", refused)
    document, err = printed(capsys, *words, code=1)
    assert err == "attdyn: 'p.png' cannot be written (no space left on device)\n"
    assert document[numbers]
    left = {path.name for path in elsewhere.iterdir()}
    assert left == {"maps.npy"} | ({"t.csv"} if "--csv" in words else set())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_output_to_a_full_disk_is_one_line():
    words = f"{sys.executable} -m dynamics systems > /dev/full"
    done = subprocess.run(["bash", "-c", words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "attdyn: no space left on device\n")
