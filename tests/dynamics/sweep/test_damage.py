"""A store that is another's, or damaged: one line, and the same command mends it."""

import json
import shutil

import numpy as np
import pytest
from sweeps import GIVEN, SYSTEM

import dynamics
from dynamics.results.outcome import PENDING
from dynamics.sweep import status
from dynamics.sweep.contents import empty
from dynamics.sweep.store import SweepStore, read
from dynamics.validation import InvalidRequest


def again(out):
    return dynamics.sweep(SYSTEM, GIVEN, out, workers=0, trajectory=5)


@pytest.fixture
def out(small, tmp_path):
    return shutil.copytree(small[0], tmp_path / "s.zarr")


def test_another_request_on_the_same_store_is_refused_with_the_difference(out):
    for change, message in [
        ({"time": 60}, "time: stored 50, requested 60"),
        ({"q": "0.2:0.6:5"}, r"q: stored 0.2,0.4,0.6, requested 0.2 ... 0.6 \(5 values\)"),
        ({"p": 5}, "p: stored 3, requested 5"),
        ({"expectation": "spectral"}, "expectation: stored not given, requested spectral"),
    ]:
        with pytest.raises(InvalidRequest, match=message):
            dynamics.sweep(SYSTEM, GIVEN | change, out, workers=0, trajectory=5)
    turned = dict(reversed(GIVEN.items()))
    assert dynamics.sweep(SYSTEM, turned, out, workers=0, trajectory=5).complete


def test_a_store_of_other_versions_is_read_but_not_continued(out):
    head = json.loads((out / "zarr.json").read_text())
    head["attributes"]["versions"] = head["attributes"]["versions"].replace("numba", "numbat")
    (out / "zarr.json").write_text(json.dumps(head))
    assert dynamics.load(out).complete
    with pytest.raises(InvalidRequest, match=r"version of numbat: stored .*, requested not given"):
        again(out)
    head["attributes"]["format"] = 99
    (out / "zarr.json").write_text(json.dumps(head))
    for reads in (dynamics.load, status, lambda out: dynamics.sweep(SYSTEM, GIVEN, out)):
        with pytest.raises(InvalidRequest, match="has format 99; this program reads 1"):
            reads(out)


@pytest.mark.parametrize("how", ["bit", "gone"])
def test_a_damaged_chunk_is_named_and_its_block_run_again(small, out, how, files):
    before = files(out)
    chunk = next(p for p in sorted((out / "risk" / "c").rglob("*")) if p.is_file())
    content = bytearray(chunk.read_bytes())
    chunk.unlink()
    if how == "bit":
        content[len(content) // 2] ^= 1
        chunk.write_bytes(content)
    found = status(out)
    assert len(found["damaged"]) == 1
    assert found["done"] == found["blocks"] - 1
    plan = small[1].plan
    whole, rest = read(small[0], plan).values, read(out, plan)
    assert rest.pending == [int(number) for number in found["damaged"]]
    for name, values in rest.values.items():
        expected = whole[name].copy()
        for number in rest.pending:
            expected[plan.box(number)] = empty(plan, name)[plan.box(number)]
        np.testing.assert_array_equal(values, expected)
    with pytest.raises(InvalidRequest, match="is damaged in 1 of its blocks") as caught:
        dynamics.load(out)
    assert "\n" not in str(caught.value)
    again(out)
    assert files(out) == before


@pytest.mark.parametrize("names", [["risk"], None])
def test_a_block_in_the_place_of_another_is_seen(small, out, names, files):
    """One chunk, a mark, or all of a block, each valid in itself."""
    first, last = (small[1].plan.blocks[number] for number in (1, 4))
    folders = [path for path in out.iterdir() if (path / "c").is_dir()]
    for folder in folders if names is None else [out / name for name in names]:
        pair = (
            ("1", "4") if folder.name == "done" else ("/".join(map(str, k)) for k in (first, last))
        )
        source, target = (folder / "c" / each for each in pair)
        if source.is_file() and target.is_file():
            shutil.copyfile(source, target)
    assert files(out) != files(small[0])
    found = status(out)
    assert list(found["damaged"].items()) == [
        ("4", "its values differ from those that were written for its points")
    ]
    assert found["done"] == found["blocks"] - 1
    with pytest.raises(InvalidRequest, match="block 4: its values differ from those"):
        dynamics.load(out)
    again(out)
    assert files(out) == files(small[0])


def test_other_places_are_refused(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    (tmp_path / "file").write_text("x")
    for name, message in [("mine", "holds foreign files"), ("file", "is not a folder")]:
        with pytest.raises(InvalidRequest, match=message):
            dynamics.sweep(SYSTEM, GIVEN, tmp_path / name, workers=0)
    short = dynamics.descend(SYSTEM.ReducedPopulation(SYSTEM.Parameters(D=8, C=2)), 0.01, 5)
    dynamics.save(short, tmp_path / "run")
    with pytest.raises(InvalidRequest, match="holds a trajectory, not a sweep"):
        dynamics.sweep(SYSTEM, GIVEN, tmp_path / "run", workers=0)
    with pytest.raises(InvalidRequest, match="holds no sweep"):
        status(tmp_path / "nothing")


def test_two_sweeps_do_not_share_a_store(small):
    out, found = small
    with SweepStore(out, found.plan).open(), pytest.raises(InvalidRequest, match="is writing"):
        again(out)


def test_a_block_that_was_begun_is_not_there(small, out):
    """Killed between two of its arrays: its points are still to be run, not results."""
    (out / "done" / "c" / "3").unlink()
    chunk = small[1].plan.blocks[3]
    out.joinpath("risk", "c", *map(str, chunk)).unlink()
    assert not status(out)["damaged"]
    data = dynamics.load(out).dataset
    begun = data["outcome"].values == PENDING
    assert begun.any()
    assert np.isnan(data["G"].values[begun]).all()


def entries(folder):
    """Every file and folder in a folder, with its contents."""
    return {path: path.is_file() and path.read_bytes() for path in folder.rglob("*")}


@pytest.mark.parametrize("name", ["results.partial", "risk/notes/c.txt"])
def test_a_store_with_a_file_of_the_user_is_refused_and_not_touched(out, name):
    (out / "pictures").mkdir()
    (out / name).parent.mkdir(exist_ok=True)
    (out / name).write_text("precious")
    (out / f"risk/c.{32 * 'a'}.partial").write_bytes(b"x")
    (out / "done" / "c" / "3").unlink()
    before = entries(out)
    with pytest.raises(InvalidRequest, match=rf"holds foreign files \({name}\)") as caught:
        again(out)
    assert "\n" not in str(caught.value)
    assert entries(out) == before


def test_a_wrong_request_leaves_a_store_as_it_is(out, files):
    """Also one whose damage the same command with right numbers mends."""
    whole = files(out)
    (out / "newly").mkdir()
    for name in ("zarr", "risk/zarr", "risk/c", "risk/c/0", "G/c/0/1/1"):
        (out / f"{name}.{32 * 'a'}.partial").write_bytes(b"x")
    (out / "done" / "c" / "3").write_bytes(b"x")
    (out / "G" / "zarr.json").write_text("garbage")
    before = entries(out)
    for wrong in ({"steps": "nan"}, {"time": "nan"}, {"q": "1.2,1.4"}, {"nothing": 1}):
        with pytest.raises(InvalidRequest):
            dynamics.sweep(SYSTEM, GIVEN | wrong, out, workers=0, trajectory=5)
    assert entries(out) == before
    with pytest.raises(InvalidRequest, match=r"G.*cannot be read|G:"):
        dynamics.load(out)
    again(out)
    assert files(out) == whole
    assert (out / "newly").exists()
