"""attdyn sweep, status and phase, as they are typed."""

import csv
import json

import numpy as np
import pytest

import dynamics
from dynamics.cli import main

POINTS = [
    *("sweep", "positional_attention", "--D", "8", "--C", "2,3,4", "--q", "0.2:0.8:4"),
    *("--nu", "1e-3:1e-1:3:log", "--time", "60", "--workers", "0"),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    out = tmp_path_factory.mktemp("commands") / "s.zarr"
    assert main([*POINTS, "--out", str(out)]) == 0
    return out


def test_sweep_tells_what_was_swept_and_left_out(store, call):
    code, out, _ = call(*POINTS, "--out", store)
    assert code == 0
    for part in ("24  reached horizon", "12  invalid", "C=3 does not divide D=8"):
        assert part in out
    code, out, _ = call(*POINTS, "--out", store, "--json")
    document = json.loads(out)
    assert document["complete"] is True
    assert len(document["invalid"][0]["points"]) == 12
    assert document["request"]["axes"]["C"] == [2, 3, 4]


def test_formulas_letters_and_files(tmp_path, call):
    config = 'D = [8, 16]\nC = 4\nq = "m/(D-C)"\nlet = ["m=1:2:2"]\ntime = 10\nworkers = 0\n'
    (tmp_path / "sweep.toml").write_text(config)
    words = ["sweep", "positional_attention", "--config", tmp_path / "sweep.toml"]
    code, out, _ = call(*words, "--out", tmp_path / "f.zarr")
    assert code == 0
    assert "q          = m/(D-C)" in out
    data = dynamics.load(tmp_path / "f.zarr").dataset
    assert data["q"].dims == ("D", "m")
    assert float(data["q"].sel(D=16, m=2)) == 2 / 12


def test_a_sweep_of_no_point_leaves_no_store(elsewhere, call):
    words = ["sweep", "positional_attention", "--D", "20000", "--C", "2", "--q", "0.4,0.6"]
    code, out, _ = call(*words, "--time", "1", "--workers", "0")
    assert code == 2
    assert "left out: q=0.4 and 1 more: D=20000" in out
    assert not list(elsewhere.iterdir())


@pytest.mark.parametrize(
    "words",
    [
        ["--quantity", "risk", "--x", "q", "--y", "nu", "--facet", "C"],
        ["--quantity", "time_T1_paper", "--at", "C=2", "--contours", "T1_paper"],
        ["--quantity", "risk", "--at", "C=2", "--boundary", "error<0.05"],
        ["--quantity", "error<0.05", "--at", "C=2", "--slices"],
        ["--quantity", "risk", "--at", "C=2", "--fit", "q,nu"],
    ],
)
def test_pictures(store, words, tmp_path, call):
    picture = tmp_path / "p.png"
    code, out, _ = call("phase", store, *words, "--out", picture)
    assert code == 0
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert f"written  {picture}" in out
    assert [path.name for path in tmp_path.iterdir()] == ["p.png"]
    code, out, _ = call("phase", store, *words, "--out", picture, "--json")
    assert json.loads(out)["files"] == [str(picture)]


def test_refine(store, tmp_path, call):
    words = ["phase", store, "--quantity", "error<0.05", "--at", "C=2", "--refine", "--json"]
    words += ["--cells", "8", "--coarse", "3", "--workers", "0", "--out", tmp_path / "r.pdf"]
    code, out, _ = call(*words)
    assert code == 0
    found = json.loads(out)
    assert np.shape(found["values"]) == (9, 9)
    assert found["runs"] + found["known"] < 81
    assert found["boundary"]
    assert found["missed"] == 0


def test_exports_read_back_the_same_numbers(store, tmp_path, call):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    words = ["phase", store, "--at", "C=2", "--out", tmp_path / "p.svg"]
    words += ["--csv", tmp_path / "t.csv", "--netcdf", tmp_path / "t.nc"]
    assert call(*words)[0] == 0
    data = dynamics.load(store).dataset
    with (tmp_path / "t.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12
    assert {row["C"] for row in rows} == {"2"}
    for row in rows:
        point = data.sel(C=int(row["C"]), q=float(row["q"]), nu=float(row["nu"]))
        risk = float(point["risk"])
        assert row["risk"] == ("" if np.isnan(risk) else repr(risk))
    with xarray.open_dataset(tmp_path / "t.nc", engine="h5netcdf") as again:
        np.testing.assert_array_equal(again["risk"].values, data["risk"].values)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--quantity", "rsk"], "rsk"),
        (["--at", "C=5"], "at C=5 is not in the sweep"),
        (["--out", "picture.doc"], "can end in .png, .svg, .pdf"),
        (["--quantity", "risk", "--refine", "--at", "C=2"], "refine needs a yes or no"),
        (["--facet", "C", "--refine"], "exclude each other"),
        (["--at", "C=2", "--quantity", "risk", "--fit", "p"], "p"),
        (["--at", "C=2", "--slices", "--contours", "T1"], "contours and slices exclude each other"),
        (["--cells", "9"], "cells needs --refine"),
    ],
)
def test_wrong_pictures_are_one_line(store, words, message, call, tmp_path):
    code, out, error = call("phase", store, *words)
    assert (code, out) == (2, "")
    assert message in error
    assert error.count("\n") == 1
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
