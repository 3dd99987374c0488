"""What identifies a model: all source that its file imports from outside of installed packages."""

import os
import sys

import pytest

import dynamics
from dynamics import registry
from dynamics.models.engine import fingerprint
from dynamics.validation import InvalidRequest

MODEL = """
import numpy as np
from helper import pull
from parts.rare import more as rare


def start(K=2):
    return {"a": np.full(K, 0.1)}


def risk(theta, xp, K):
    risk = pull(xp.sum((theta["a"] - 1) ** 2), K)
    return risk if K < 3 else rare(risk)
"""
FILES = {
    "helper": """
import jax
from deeper import SCALE

TABLE = (1.0, 2.0)


@jax.jit
def scaled(x):
    return TABLE[0] * x


def pull(x, K):
    return SCALE * scaled(x) if K < 3 else 5.0 * x
""",
    "deeper": "SCALE = 1.0",
    "parts/rare": "def more(x):\n    return 5.0 * x",
}


@pytest.fixture
def model(tmp_path):
    (tmp_path / "parts").mkdir()
    for name, text in (FILES | {"model": MODEL}).items():
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path / "model.py"


def slope(system):
    problem = system.ReducedPopulation(system.Parameters())
    return problem.gradient(problem.initial_state)[0]


@pytest.mark.parametrize(
    ("name", "old", "new", "factor"),
    [
        ("helper", "(1.0, 2.0)", "(3.0, 2.0)", 3.0), ("helper", "5.0 * x", "7.0 * x", 1.0),
        ("deeper", "1.0", "2.0", 2.0), ("parts/rare", "5.0", "6.0", 1.0),
    ],
)  # fmt: skip
def test_an_import_that_is_edited_makes_another_model(model, name, old, new, factor):
    before = dynamics.load_system(model)
    digests, at_first = dict(before.digests), slope(before)
    assert dynamics.load_system(model) is before
    file = model.parent / f"{name}.py"
    assert old in FILES[name]
    file.write_text(FILES[name].replace(old, new))
    after = dynamics.load_system(model)
    assert slope(after) == pytest.approx(factor * at_first)
    with pytest.raises(InvalidRequest, match="began: imports"):
        registry.load_unchanged(str(model), digests)
    file.write_text(FILES[name])
    assert registry.load_unchanged(str(model), digests)
    assert not {"deeper", "helper", "parts"} & sys.modules.keys()


def test_the_version_of_jax_identifies_a_model(model, monkeypatch):
    digests = dict(dynamics.load_system(model).digests)
    monkeypatch.setattr(fingerprint.jax, "__version__", "0.0.1")
    os.utime(model, (0, 0))  # so that it is loaded again
    with pytest.raises(InvalidRequest, match="began: version of JAX"):
        registry.load_unchanged(str(model), digests)
