"""Constants that are True or False, in a sweep and from a file of parameters."""

import json

import numpy as np
import pytest

import dynamics
from dynamics import cli
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


def test_a_switch_is_an_axis_however_it_is_written(mine, tmp_path):
    for given in ("true,false", np.array([True, False])):
        found = dynamics.sweep(mine, {"steep": given, "time": TIME}, tmp_path / "s", workers=0)
        assert found.dataset["steep"].values.tolist() == [1, 0]
        ends = found.dataset["u"].values
        np.testing.assert_allclose(ends, np.exp([-2 * TIME, -TIME]), rtol=1e-6)
    with pytest.raises(InvalidRequest, match="another sweep"):
        dynamics.sweep(mine, {"steep": "0:1:2", "time": TIME}, tmp_path / "s", workers=0)


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
