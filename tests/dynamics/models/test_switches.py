"""Constants that are True or False, in a sweep and from a file of parameters."""

import json

import numpy as np
import pytest

import dynamics
from dynamics import cli
from dynamics.sweep import load
from dynamics.validation import InvalidRequest

TEXT = '''"""A parabola, and a steeper one."""


def start():
    return {"u": 1.0}


def risk(theta, xp, steep=True, rate=0.5):
    return rate * theta["u"] ** 2 * (2.0 if steep else 1.0)
'''
TIME = 1.5


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(TEXT, encoding="utf-8")
    return path


def ends(found):
    return found.dataset["u"].values


@pytest.mark.parametrize("given", ["true,false", "1,0", [True, False], np.array([True, False])])
def test_a_switch_is_an_axis(mine, given):
    found = dynamics.sweep(mine, {"steep": given, "time": TIME}, workers=0)
    assert found.dataset["steep"].values.tolist() == [1, 0]
    np.testing.assert_allclose(ends(found), np.exp([-2 * TIME, -TIME]), rtol=1e-6)


@pytest.mark.parametrize(
    ("given", "rate"), [({}, 2), ({"steep": False}, 1), ({"steep": "no"}, 1), ({"steep": 1}, 2)]
)
def test_a_switch_is_held_fixed(mine, given, rate):
    found = dynamics.sweep(mine, {"rate": "0.5,1", "time": TIME, **given}, workers=0)
    np.testing.assert_allclose(ends(found), np.exp([-rate * TIME, -2 * rate * TIME]), rtol=1e-6)


def test_a_store_goes_on_however_a_switch_is_written(mine, tmp_path):
    for given in ("true,false", [True, False], "0:1:2"):
        if given == "0:1:2":
            with pytest.raises(InvalidRequest, match="of another sweep"):
                dynamics.sweep(mine, {"steep": given, "time": TIME}, tmp_path / "s", workers=0)
        else:
            dynamics.sweep(mine, {"steep": given, "time": TIME}, tmp_path / "s", workers=0)
    assert load(tmp_path / "s").complete


def test_what_is_no_switch_is_refused(mine):
    with pytest.raises(InvalidRequest, match="steep='maybe' needs maybe"):
        dynamics.sweep(mine, {"steep": "maybe", "time": TIME}, workers=0)
    with pytest.raises(InvalidRequest, match="rate=True is not a number"):
        dynamics.sweep(mine, {"rate": True, "time": TIME}, workers=0)
    found = dynamics.sweep(mine, {"steep": "1,2", "time": TIME}, workers=0)
    assert "steep=2" in found.reasons[1,]


def test_a_switch_that_is_off_in_a_file_of_parameters(mine, capsys):
    (mine.parent / "off.toml").write_text(f"steep = false\ntime = {TIME}\n", encoding="utf-8")
    words = ["run", str(mine), "--config", str(mine.parent / "off.toml"), "--json"]
    assert cli.main([*words, "--out", str(mine.parent / "run")]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["parameters"]["steep"] is False
