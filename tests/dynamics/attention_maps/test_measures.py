"""Attention diversity and total variation: loops, known values, symmetries, and the command."""

import csv
import json
import math

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamics.attention_maps import Setting, diversity, measure, quartiles, total_variation
from dynamics.cli import main
from dynamics.validation import InvalidRequest


def random(shape, seed=0, sharp=3.0):
    weights = np.exp(sharp * np.random.default_rng(seed).normal(size=shape))
    return weights / weights.sum(axis=-1, keepdims=True)


@st.composite
def attention(draw):
    """Maps with many equal weights, and a grid."""
    grid = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    count = grid[0] * grid[1]
    levels = draw(st.lists(st.integers(0, 3), min_size=count**2, max_size=count**2))
    weights = np.reshape(levels, (count, count)).astype(float)
    weights[:, draw(st.integers(0, count - 1))] += 1
    return weights / weights.sum(axis=1, keepdims=True), grid, draw(st.integers(1, count))


def test_two_by_two():
    hard = np.eye(4)[[0, 1, 1, 0]]
    assert diversity(hard, grid=(2, 2), k=1) == 0.5
    assert total_variation(hard) == 0.5
    assert diversity(hard, k=1, off_diagonal=True) == pytest.approx(0.5 * 4 / 3, rel=1e-15)
    assert total_variation(hard, off_diagonal=True) == pytest.approx(0.5 * 4 / 3, rel=1e-15)
    # On a line the keys 0 and 3 are three patches apart.
    line = np.eye(4)[[0, 3, 3, 0]]
    assert diversity(line, grid=(1, 4), k=1) == 1.5
    assert diversity(line, grid=(2, 2), k=1) == pytest.approx(math.sqrt(2) / 2, rel=1e-15)


@settings(max_examples=60, deadline=None)
@given(attention())
def test_any_map_against_loops(case):
    square, grid, k = case
    found = diversity(square, grid, k)
    assert found == pytest.approx(naive.diversity(square, grid, k), rel=1e-12, abs=1e-14)
    comp = total_variation(square)
    assert comp == pytest.approx(naive.total_variation(square), rel=1e-12, abs=1e-14)
    assert 0 <= comp <= 1 - 1 / len(square) + 1e-15


@pytest.mark.parametrize(("skip", "dtype"), [(0, np.float64), (1, np.float32), (2, np.float16)])
def test_stacks_against_loops(skip, dtype):
    stack = random((2, 3, 12 + skip, 12 + skip), 5).astype(dtype)
    comp = diversity(stack, (3, 4), 5, skip=skip), total_variation(stack, skip=skip)
    assert comp[0].shape == comp[1].shape == (2, 3)
    for place in np.ndindex(2, 3):
        square = stack[place].astype(float)[skip:, skip:]
        assert comp[0][place] == pytest.approx(naive.diversity(square, (3, 4), 5), rel=1e-12)
        square /= square.sum(axis=1, keepdims=True)
        assert comp[1][place] == pytest.approx(naive.total_variation(square), rel=1e-12)


def test_the_order_that_a_masked_model_learns_in_one_step():
    """A map of one cluster: own area first, then local areas of 8, then the shared one of 512."""
    area = np.where(np.arange(1024) < 512, 0, 1 + (np.arange(1024) - 512) // 8)
    weights = np.where(area[None, :] == area[:, None], 4.0, np.where(area[None, :] == 0, 1.0, 2.0))
    weights[np.diag_indices(1024)] = 3.0
    square = weights / weights.sum(axis=1, keepdims=True)
    assert diversity(square, k=10) == pytest.approx(50.228, abs=5e-4)
    assert diversity(square, k=8) == pytest.approx(48.146, abs=5e-4)


def test_measure_takes_one_to_four_axes():
    stack = random((3, 2, 16, 16))
    setting = Setting(k=4, off_diagonal=True)
    whole = measure(stack, setting, "model")
    assert (whole.images, whole.heads, whole.grid, whole.name) == (3, 2, (4, 4), "model")
    np.testing.assert_array_equal(whole.diversity, diversity(stack, k=4, off_diagonal=True))
    np.testing.assert_array_equal(whole.total_variation, total_variation(stack, off_diagonal=True))
    images = measure(stack[:, 0], setting)
    np.testing.assert_array_equal(images.diversity[:, 0], whole.diversity[:, 0])
    single = measure(stack[1, 1], setting)
    assert single.diversity.tolist() == [[whole.diversity[1, 1]]]
    with pytest.raises(InvalidRequest, match="has too many axes"):
        measure(stack[None], setting)
    np.testing.assert_allclose(quartiles(whole.diversity)[1], np.median(whole.diversity, axis=0))


def changed(place, value):
    stack = random((2, 2, 9, 9))
    stack[place] = value
    return stack


@pytest.mark.parametrize(
    ("array", "options", "message"),
    [
        (changed((1, 0, 3, 4), np.nan), {}, "attention[1, 0, 3, 4]=nan is not finite"),
        (changed((0, 1, 2, 2), -0.1), {}, "attention[0, 1, 2, 2]=-0.1 is negative"),
        (changed((1, 1, 8), 0.1 / 9), {}, "attention[1, 1, 8] sums to 0.1; rows"),
        (random((9, 9)).T, {}, "nearest: the transpose"),
        (random((9, 9)) * 1.01, {}, "nearest: each row divided by its sum"),
        (random((9, 4)), {}, "attention=(9, 4) is not square"),
        (np.ones(9) / 9, {}, "attention=(9,) is not a map"),
        (np.eye(9) * 1j, {}, "attention=complex128 is not real"),
        ([[1.0], [0.5, 0.5]], {}, "is ragged"),
        (np.eye(9), {"k": 10}, "k=10 is too large; k can be at most 9"),
        (np.eye(9), {"k": 1.5}, "k=1.5 is not a whole number"),
        (np.eye(9), {"grid": (2, 4), "k": 2}, "grid='2x4' does not hold 9 patches"),
        (np.eye(9), {"grid": "3x3"}, "grid='3x3' is not two whole numbers"),
        (np.eye(9), {"grid": (3, None)}, "nearest: 3x3"),
        (np.eye(12), {"k": 2}, "nearest: 3x4"),
        (np.eye(10), {"k": 2}, "or skip=1 where the first is a class token"),
        (np.eye(9), {"skip": 9, "k": 1}, "skip=9 is too large; skip can be at most 8"),
        (np.eye(9), {"skip": -1}, "skip=-1 is too small"),
        (np.eye(10)[[0] * 10], {"skip": 1, "k": 2}, "attention[1] is zero on every patch"),
        (np.eye(1), {"k": 1, "off_diagonal": True}, "needs two patches"),
    ],
)
def test_what_is_no_attention_is_refused_in_one_line(array, options, message):
    with pytest.raises(InvalidRequest) as refused:
        diversity(array, **({"k": 3} | options))
    assert message in str(refused.value)
    assert "nearest: " in str(refused.value)
    assert "\n" not in str(refused.value)
    if not options:
        with pytest.raises(InvalidRequest):
            total_variation(array)


@pytest.mark.parametrize("excess", [-9e-4, 9e-4])
def test_a_total_variation_is_that_of_distributions(excess):
    """Rows sum to 1 within 1e-3, as in half precision; of no common key their distance is 1."""
    apart = (1 + excess) * np.eye(5)
    assert total_variation(apart, off_diagonal=True) == pytest.approx(1.0, abs=1e-15)
    assert total_variation(apart) == pytest.approx(0.8, abs=1e-15)
    rows = random((6, 6), seed=3)
    assert total_variation((1 + excess) * rows) == pytest.approx(float(total_variation(rows)))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("mae.npy", random((6, 2, 17, 17)).astype(np.float32))
    np.save("moco.npy", random((4, 3, 17, 17), 1))
    np.savez("dino.npz", attention=random((5, 2, 17, 17), 2))
    np.savez_compressed("two.npz", queries=np.zeros(3), layer=random((17, 17), 3))
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
    np.save("dino.npy", random((5, 2, 17, 17), 2))
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
    wrong = random((2, 1, 17, 17))
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
