"""attdyn diversity, as it is typed."""

import csv
import json

import numpy as np
import pytest

from dynamics import diversity, total_variation
from dynamics.cli import main


def attention(shape, seed=0):
    weights = np.exp(3 * np.random.default_rng(seed).normal(size=shape))
    return weights / weights.sum(axis=-1, keepdims=True)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("mae.npy", attention((6, 2, 17, 17)).astype(np.float32))
    np.save("moco.npy", attention((4, 3, 17, 17), 1))
    np.savez("dino.npz", attention=attention((5, 2, 17, 17), 2))
    np.savez_compressed("two.npz", queries=np.zeros(3), layer=attention((17, 17), 3))
    return tmp_path


def said(capsys, words):
    code = main(["diversity", *words])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_one_file(folder, capsys):
    code, out, error = said(capsys, ["mae.npy", "--skip", "1", "--k", "3"])
    assert (code, error) == (0, "")
    assert "mae: 6 images, 2 heads, 4x4 patches, 1 first left out, k=3" in out
    stack = np.load("mae.npy")
    middle = np.median(diversity(stack, k=3, skip=1), axis=0)
    spread = np.median(total_variation(stack, skip=1), axis=0)
    rows = [line.split() for line in out.splitlines() if line[:4].strip().isdigit()]
    assert [int(row[0]) for row in rows] == [0, 1]
    assert [row[2] for row in rows] == [f"{value:.3f}" for value in middle]
    assert [row[5] for row in rows] == [f"{value:.4f}" for value in spread]
    assert "written  results/diversity-mae.png" in out
    assert (folder / "results/diversity-mae.png").read_bytes()[:4] == b"\x89PNG"
    assert [path.name for path in (folder / "results").iterdir()] == ["diversity-mae.png"]


def test_several_files_and_tables(folder, capsys):
    files = ["mae.npy", "moco.npy", "dino.npz"]
    words = ["--skip", "1", "--csv", "t.csv", "--out", "p.svg", "--json", "--off_diagonal"]
    code, out, _ = said(capsys, [*files, *words])
    document = json.loads(out)
    assert code == 0
    assert document["files"] == ["p.svg", "t.csv"]
    assert b"<svg" in (folder / "p.svg").read_bytes()
    assert [found["name"] for found in document["results"]] == ["mae", "moco", "dino"]
    assert [found["images"] for found in document["results"]] == [6, 4, 5]
    first = document["results"][0]
    assert {"grid": [4, 4], "k": 10, "skip": 1, "off_diagonal": True}.items() <= first.items()
    ref = diversity(np.load("mae.npy"), skip=1, off_diagonal=True)
    assert first["diversity"] == ref.tolist()
    assert len(first["quartiles"]["total_variation"]) == 2
    with open("t.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 6 * 2 + 4 * 3 + 5 * 2
    assert [float(row["diversity"]) for row in rows[:12]] == ref.ravel().tolist()
    assert (rows[11]["name"], rows[11]["image"], rows[11]["head"]) == ("mae", "5", "1")
    np.save("dino.npy", attention((5, 2, 17, 17), 2))
    _, out, _ = said(capsys, ["dino.npy", "dino.npz", "--skip", "1", "--json"])
    assert [found["name"] for found in json.loads(out)["results"]] == ["dino.npy", "dino.npz"]
    _, out, _ = said(capsys, ["two.npz", "--name", "layer", "--grid", "1x17", "--k", "2"])
    assert "two: 1 image, 1 head, 1x17 patches, k=2, all P^2 pairs" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--k", "3"], "diversity needs a file: attdyn diversity FILE"),
        (["none.npy"], "file='none.npy' cannot be read (no such file or directory)"),
        (["two.npz"], "name is needed: 'two.npz' holds queries, layer"),
        (["two.npz", "--name", "queries"], "two.npz: attention=(3,) is not a map"),
        (["mae.npy", "--name", "layer"], "name='layer' needs a .npz file"),
        (["mae.npy", "--grid", "0x17"], "grid='0x17' is not HxW; grid can be like 14x14"),
        (["mae.npy", "mae.npy"], "file='mae.npy' is given twice"),
        (["mae.npy", "--skip", "1", "--out", "p.txt"], "'p.txt' can end in .png, .svg, .pdf"),
        (["mae.npy", "--skip", "1", "--out", "mae.npy/p.png"], "cannot be written"),
        (["wrong.npy", "--skip", "1"], "wrong.npy: attention[1, 0, 2] sums to 2;"),
        (["objects.npy"], "file='objects.npy' is damaged, holds Python objects or is not"),
        (["pickle.npy"], "Python objects"),
        *(([name], "is damaged") for name in ("cut.npy", "bent.npz", "below.npy", "locked.npz")),
        (["nothing.npz"], "file='nothing.npz' holds no arrays"),
    ],
)
def test_a_wrong_request_is_one_line_and_writes_nothing(folder, words, message, capsys):
    wrong = attention((2, 1, 17, 17))
    wrong[1, 0, 2] *= 2
    np.save("wrong.npy", wrong)
    (folder / "pickle.npy").write_bytes(b"cos\nsystem\n(S'touch opened'\ntR.")
    np.save("objects.npy", np.array([{}, {}], dtype=object), allow_pickle=True)
    np.savez("nothing.npz")
    whole, packed = ((folder / name).read_bytes() for name in ("mae.npy", "dino.npz"))
    (folder / "cut.npy").write_bytes(whole[: len(whole) // 2])
    (folder / "bent.npz").write_bytes(packed[:900] + b"bent" + packed[904:])
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (-6, 2, 17, 17)}"
    bad = b"\x93NUMPY\1\0" + (len(header) + 1).to_bytes(2, "little") + header + b"\n"
    (folder / "below.npy").write_bytes(bad + whole[128:])
    # The flag of a password in the local header and in the one of the directory.
    two = packed.index(b"PK\1\2") + 8
    locked = packed[:6] + b"\1" + packed[7:two] + b"\1" + packed[two + 1 :]
    (folder / "locked.npz").write_bytes(locked)
    before = sorted(folder.rglob("*"))
    code, out, error = said(capsys, words)
    assert (code, out) == (2, "")
    assert message in error
    assert error.count("\n") == 1
    assert sorted(folder.rglob("*")) == before
