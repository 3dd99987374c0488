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
WORDS = ["sweep", "my.py", "--json", *(f"--{name}={value}" for name, value in GIVEN.items())]
TEXT = (
    MODEL
    + """

def observables(theta, xp):
    return {"spread": xp.max(theta["Q"]) - xp.min(theta["Q"])}


events = {"apart": "spread >= 0.05", "never": "spread >= 1000"}
"""
)
SWITCH = """def start():
    return {"u": 1.0}


def risk(theta, xp, steep=True, rate=0.5):
    return rate * theta["u"] ** 2 * (2.0 if steep else 1.0)
"""


def put(folder, text=TEXT):
    (folder / "my.py").write_text(text, encoding="utf-8")
    return folder / "my.py"


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A sweep in this process that nothing interrupts."""
    folder = tmp_path_factory.mktemp("swept")
    mine = put(folder)
    return mine, folder / "s.zarr", dynamics.sweep(mine, GIVEN, folder / "s.zarr", workers=0)


@pytest.fixture
def mine(swept, monkeypatch):
    """The model of the sweep, in the folder of its store; put back afterwards."""
    monkeypatch.chdir(swept[0].parent)
    yield swept[0]
    put(swept[0].parent)


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
    words = ["--quantity", "risk", "--x", "p1", "--y", "K"]
    commands = [["systems"], ["status", str(swept[1])], ["phase", str(swept[1]), *words]]
    code = "import sys; from dynamics.cli import main; "
    code += f"sys.exit(any(map(main, {commands})) or 'jax' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, stdout=-3)


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("** 2) / 2", "** 2) / 3", "loss"), ("spread >= 0.05", "spread >= 0.06", "events"),
        ("yield (first, *rest)", "yield (first, *rest)  # the rest", None),
    ],
)  # fmt: skip
def test_a_file_that_was_changed_after_the_sweep_began(mine, capsys, old, new, part):
    assert TEXT.count(old) == 1
    put(mine.parent, TEXT.replace(old, new))
    os.utime(mine, ns=(1, time.time_ns()))
    code = cli.main([*WORDS, "--out", "s.zarr", "--workers", "0"])
    out, err = capsys.readouterr()
    if part is None:
        assert (code, err, json.loads(out)["complete"]) == (0, "", True)
    else:
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert f"{part} of the model: " in err


def test_data_of_the_law_that_were_changed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tilted = TEXT.replace("    p = [", '    p1 = p1 * np.load("tilt.npy")[0]\n    p = [')
    mine = put(tmp_path, tilted)
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
        with pytest.raises(InvalidRequest, match="is in this process only"):
            dynamics.sweep(small, given, tmp_path / "n.zarr", **how)
    assert not (tmp_path / "n.zarr").exists()


def test_points_without_a_problem_are_left_out_for_the_same_reasons_each_time(tmp_path, capsys):
    start = "def start(D=2, c=1.0):\n    return {'u': c * (D - 3)}\n\n"
    mine = put(tmp_path, f"{start}def risk(theta, xp):\n    return theta['u'] ** 2 / 2\n")
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
    put(tmp_path, TEXT.replace("** 2) / 2", "** 2) / 3"))
    with pytest.raises(InvalidRequest, match=r"^model 'my\.py' was changed since .*: loss$"):
        dynamics.sweep(system, GIVEN, "s.zarr", workers=1)
    assert status("s.zarr")["done"] == 0


def test_a_file_that_was_moved_away(mine, capsys):
    mine.rename(mine.with_name("other.py"))
    assert cli.main([*WORDS, "--out", "s.zarr"]) == 2
    assert "system='my.py' is missing" in capsys.readouterr().err
    assert status("s.zarr")["done"] == status("s.zarr")["blocks"]
    words = ["--quantity", "risk", "--x", "p1", "--y", "K", "--out", "p.png"]
    assert cli.main(["phase", "s.zarr", *words]) == 0


def test_a_switch_is_an_axis_however_it_is_written(tmp_path, capsys):
    mine, span = put(tmp_path, SWITCH), 1.5
    for given in ("true,false", np.array([True, False])):
        found = dynamics.sweep(mine, {"steep": given, "time": span}, tmp_path / "s", workers=0)
        assert found.dataset["steep"].values.tolist() == [1, 0]
        ends = found.dataset["u"].values
        np.testing.assert_allclose(ends, np.exp([-2 * span, -span]), rtol=1e-6)
    with pytest.raises(InvalidRequest, match="another sweep"):
        dynamics.sweep(mine, {"steep": "0:1:2", "time": span}, tmp_path / "s", workers=0)
    for wrong, words in (
        ({"steep": "maybe"}, "steep='maybe' needs maybe"), ({"rate": True}, "rate=True is not a"),
    ):  # fmt: skip
        with pytest.raises(InvalidRequest, match=words):
            dynamics.sweep(mine, wrong | {"time": span}, workers=0)
    found = dynamics.sweep(mine, {"steep": "1,2", "time": span}, workers=0)
    assert "steep=2" in found.reasons[1,]
    (tmp_path / "off.toml").write_text(f"steep = false\ntime = {span}\n", encoding="utf-8")
    words = ["run", str(mine), "--config", str(tmp_path / "off.toml"), "--json"]
    assert cli.main([*words, "--out", str(tmp_path / "run")]) == 0
    assert json.loads(capsys.readouterr().out)["parameters"]["steep"] is False
