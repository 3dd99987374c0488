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


def start(K=2):
    return {"a": np.full(K, 0.1)}


def risk(theta, xp, K):
    return pull(xp.sum((theta["a"] - 1) ** 2), K)
"""
HELPER = """
import jax

from deeper import SCALE

TABLE = (1.0, 2.0)


@jax.jit
def scaled(x):
    return TABLE[0] * x


def pull(x, K):
    return SCALE * scaled(x) if K < 3 else 5.0 * x
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes files into a folder of which Python knows, as with PYTHONPATH."""
    folder = tmp_path / "helpers"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))

    def write(**texts):
        for name, text in texts.items():
            (folder / f"{name}.py").write_text(text)

    write(helper=HELPER, deeper="SCALE = 1.0\n")
    model = tmp_path / "model.py"
    model.write_text(MODEL)
    return write, model


def slope(system):
    problem = system.ReducedPopulation(system.Parameters())
    return problem.gradient(problem.initial_state)[0]


@pytest.mark.parametrize(
    ("changed", "factor"),
    [
        ({"helper": HELPER.replace("(1.0, 2.0)", "(3.0, 2.0)")}, 3.0),
        ({"helper": HELPER.replace("5.0 * x", "7.0 * x")}, 1.0),
        ({"deeper": "SCALE = 2.0\n"}, 2.0),
    ],
)
def test_a_helper_that_is_edited_makes_another_model(write, changed, factor):
    """A table of a jitted helper, a branch for other constants, and what a helper imports."""
    write, model = write
    before = dynamics.load_system(model)
    digests, at_first = dict(before.digests), slope(before)
    assert dynamics.load_system(model) is before
    write(**changed)
    after = dynamics.load_system(model)
    assert after is not before
    assert slope(after) == pytest.approx(factor * at_first)
    assert "imports" in {part for part in digests if digests[part] != after.digests[part]}
    with pytest.raises(InvalidRequest, match="imports"):
        registry.load_unchanged(str(model), digests)
    write(helper=HELPER, deeper="SCALE = 1.0\n")
    assert registry.load_unchanged(str(model), digests)


def test_a_helper_that_was_imported_before_is_run_again_and_kept(write):
    write, model = write
    import helper  # type: ignore[import-not-found]

    write(deeper="SCALE = 2.0\n")
    assert slope(dynamics.load_system(model)) < 0
    assert dynamics.load_system(model).model.imported.keys() == {
        str(model.parent / "helpers" / f"{name}.py") for name in ("helper", "deeper")
    }
    assert sys.modules.pop("helper") is helper
    assert helper.SCALE == 1.0
    sys.modules.pop("deeper")


INSIDE = """
import numpy as np


def start(K=2):
    return {"a": np.full(K, 0.1)}


def risk(theta, xp, K):
    if K > 2:
        from parts.rare import pull
    else:
        from beside import pull
    return pull(xp.sum((theta["a"] - 1) ** 2))
"""


@pytest.mark.parametrize("changed", ["beside", "deeper", "rare"])
def test_a_helper_imported_inside_a_function_makes_another_model(tmp_path, changed):
    """Beside the file; by a function of a helper; where only other constants go."""
    model, parts = tmp_path / "model.py", tmp_path / "parts"
    parts.mkdir()
    files = {name: tmp_path / f"{name}.py" for name in ("beside", "deeper")}
    files["rare"] = parts / "rare.py"
    model.write_text(INSIDE)
    files["beside"].write_text("def pull(x):\n    from deeper import SCALE\n    return SCALE * x\n")
    files["deeper"].write_text("SCALE = 1.0\n")
    files["rare"].write_text("def pull(x):\n    return 5.0 * x\n")
    before = dynamics.load_system(model)
    digests, at_first = dict(before.digests), slope(before)
    assert dynamics.load_system(model) is before
    text = files[changed].read_text()
    files[changed].write_text(text.replace("1.0", "3.0").replace("x\n", "x * 3.0\n"))
    after = dynamics.load_system(model)
    assert slope(after) == pytest.approx(at_first * (1.0 if changed == "rare" else 3.0))
    with pytest.raises(InvalidRequest, match="began: imports"):
        registry.load_unchanged(str(model), digests)
    assert not {"beside", "deeper", "parts"} & sys.modules.keys()


def test_the_version_of_jax_identifies_a_model(write, monkeypatch):
    _, model = write
    digests = dict(dynamics.load_system(model).digests)
    monkeypatch.setattr(fingerprint.jax, "__version__", "0.0.1")
    os.utime(model, (0, 0))  # so that it is loaded again
    with pytest.raises(InvalidRequest, match="began: version of JAX"):
        registry.load_unchanged(str(model), digests)
