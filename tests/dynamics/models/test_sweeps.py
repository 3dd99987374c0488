"""Sweeps of own models: arrays by name, killed and resumed, on workers, changed meanwhile."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import dynamics
from dynamics import cli
from dynamics.sweep import load, status
from dynamics.validation import InvalidRequest

MODEL = (Path(__file__).parents[2] / "support/models/softmax_icl.py").read_text(encoding="utf-8")
GIVEN = {"K": "2,3", "p1": "0.25:0.45:3", "N": 3, "eta": 0.5, "steps": 100}
WORDS = [
    *("sweep", "my.py", "--K", "2,3", "--p1", "0.25:0.45:3", "--N", "3"),
    *("--eta", "0.5", "--steps", "100", "--json"),
]
OBSERVED = """

def observables(theta, xp):
    return {"spread": xp.max(theta["Q"]) - xp.min(theta["Q"])}


events = {"apart": "spread >= 0.05", "never": "spread >= 1000"}
"""
TEXT = MODEL.replace("import numpy as np\n", "import numpy as np\n\nfrom weights import TILT\n")
TEXT = TEXT.replace("** 2) / 2", "** 2) * TILT / 2") + OBSERVED
"""The model, with numbers from a file beside it."""


def hashed(store):
    return {
        str(path.relative_to(store)): path.read_bytes()
        for path in sorted(store.rglob("*"))
        if path.is_file()
    }


def put(folder):
    (folder / "my.py").write_text(TEXT, encoding="utf-8")
    (folder / "weights.py").write_text("import numpy as np\n\nTILT = np.float64(1.0)\n")
    return folder / "my.py"


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A sweep in this process that nothing interrupts."""
    folder = tmp_path_factory.mktemp("swept")
    mine = put(folder)
    return mine, folder / "s.zarr", dynamics.sweep(mine, GIVEN, folder / "s.zarr", workers=0)


@pytest.fixture
def copied(swept, monkeypatch):
    """The sweep again, in a folder where its model may be changed; put back afterwards."""
    mine, store, _ = swept
    before = hashed(store)
    monkeypatch.chdir(mine.parent)
    yield mine
    put(mine.parent)
    assert hashed(store) == before


def test_points_with_different_numbers_of_scalars(swept):
    mine, _, found = swept
    data, system = found.dataset, dynamics.load_system(mine)
    assert found.outcomes == {"reached horizon": 6}
    assert data["scalars"].dims == ("K", "p1")
    three = data["Q_1_2"].sel(K=3)
    assert np.isnan(data["Q_1_2"].sel(K=2)).all()
    assert np.isfinite(three.values).sum() == (data["scalars"].sel(K=3) == 5).values.sum() > 0
    assert set(data["scalars"].sel(K=2).values) == {2.0}
    assert np.isfinite(data["Q_1_0"].sel(K=2)).all()
    problem = system.ReducedPopulation(system.Parameters(K=3, p1=0.45, N=3))
    run = dynamics.descend(problem, eta=0.5, steps=100)
    point = data.sel(K=3, p1=0.45, method="nearest")
    assert int(point["scalars"]) == len(run.layout.names)
    for name in (*run.layout.names, "risk", "spread"):
        assert float(point[name]) == run[name][-1]
    assert float(point["time_apart"]) == run.events["apart"].time
    assert np.isnan(data["time_never"]).all()


def test_looking_at_what_is_there_does_not_import_jax(swept, tmp_path):
    commands = [
        ["systems"],
        ["status", str(swept[1])],
        ["phase", str(swept[1]), "--quantity", "risk", "--x", "p1", "--y", "K"],
    ]
    code = "import sys; from dynamics.cli import main; "
    code += f"sys.exit(any(map(main, {commands})) or 'jax' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, stdout=-3)


@pytest.mark.parametrize(
    ("file", "old", "new", "part"),
    [
        ("my.py", "** 2) * TILT / 2", "** 2) * TILT / 3", "loss"),
        ("weights.py", "np.float64(1.0)", "np.float64(1.5)", "loss"),
        ("my.py", "spread >= 0.05", "spread >= 0.06", "events"),
        ("my.py", "yield (first, *rest)", "yield (first, *rest)  # the rest", None),
    ],
)
def test_a_file_that_was_changed_after_the_sweep_began(copied, capsys, file, old, new, part):
    path = copied.parent / file
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    os.utime(path, ns=(1, time.time_ns()))
    os.utime(copied, ns=(1, time.time_ns()))
    code = cli.main([*WORDS, "--out", "s.zarr", "--workers", "0"])
    out, err = capsys.readouterr()
    if part is None:
        assert (code, err, json.loads(out)["complete"]) == (0, "", True)
    else:
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert f"{part} of the model: " in err


def test_data_of_the_law_that_were_changed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    mine = put(tmp_path)
    mine.write_text(TEXT.replace("    p = [", '    p1 = p1 * np.load("tilt.npy")[0]\n    p = ['))
    words = ["sweep", "my.py", "--K", "2", "--p1", "0.3,0.4", "--N", "3", "--steps", "5"]
    for tilt, code in ((1.0, 0), (0.9, 2)):
        np.save("tilt.npy", [tilt])
        os.utime(mine, ns=(1, time.time_ns()))
        assert cli.main([*words, "--workers", "0", "--out", "s.zarr"]) == code
    assert "law of the model: " in capsys.readouterr().err


def test_a_model_without_a_file_sweeps_in_this_process_only(tmp_path):
    small = dynamics.Model(
        start=lambda n=2, scale=0.5: {"w": np.full(n, scale)},
        risk=lambda theta, xp, a=1.0: xp.sum((theta["w"] - a) ** 2) / 2,
    )
    given = {"n": "1,2", "a": "0.5,1.0,2.0", "eta": 0.1, "steps": 10}
    found = dynamics.sweep(small, given, tmp_path / "m.zarr")
    assert found.outcomes == {"reached horizon": 4, "invalid": 2}
    expected = 2.0 - 1.5 * 0.9**10
    assert float(found.dataset["w_0"].sel(n=2, a=2.0)) == pytest.approx(expected, rel=1e-14)
    for how in ({"workers": 2}, {"scheduler": "tcp://127.0.0.1:9"}):
        with pytest.raises(InvalidRequest, match="is in this one only"):
            dynamics.sweep(small, given, tmp_path / "n.zarr", **how)
    assert not (tmp_path / "n.zarr").exists()


def test_points_without_a_problem_are_left_out_for_the_same_reasons_each_time(tmp_path, capsys):
    mine = tmp_path / "mine.py"
    mine.write_text(
        "def start(D=2, c=1.0):\n    return {'u': c * (D - 3)}\n\n\n"
        "def risk(theta, xp):\n    return theta['u'] ** 2 / 2\n"
    )
    given = {"D": "2:4:3", "time": 1.0}
    first, again = (dynamics.sweep(mine, given, tmp_path / "s", workers=0) for _ in range(2))
    assert list(first.reasons) == [(1,)]
    assert "nothing moves" in first.reasons[1,]
    assert first.reasons == again.reasons == load(tmp_path / "s").reasons
    words = ["--D", "3", "--c", "1,2", "--time", "1", "--workers", "0"]
    assert cli.main(["sweep", str(mine), *words]) == 2
    assert ": nothing moves" in capsys.readouterr().out


def test_workers_refuse_a_file_that_is_changed_while_the_sweep_goes_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mine = put(tmp_path)
    system = dynamics.load_system(mine)
    assert dict(system.digests)
    mine.write_text(TEXT.replace("TILT / 2", "TILT / 3"))
    with pytest.raises(InvalidRequest, match=r"^model 'my\.py' was changed since .*: loss$"):
        dynamics.sweep(system, GIVEN, "s.zarr", workers=1)
    assert status("s.zarr")["done"] == 0


def test_a_file_that_was_moved_away(copied, capsys):
    moved = copied.rename(copied.with_name("other.py"))
    assert cli.main([*WORDS, "--out", "s.zarr"]) == 2
    assert "system='my.py' is missing" in capsys.readouterr().err
    assert status("s.zarr")["done"] == status("s.zarr")["blocks"]
    words = ["--quantity", "risk", "--x", "p1", "--y", "K", "--out", "p.png"]
    assert cli.main(["phase", "s.zarr", *words]) == 0
    moved.unlink()
    Path("p.png").unlink()
