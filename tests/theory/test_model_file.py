"""A model from a file: what it holds, what is refused, and nothing that stays behind."""

import sys

import pytest

from theory.law import ModelError
from theory.model_file import read_model

FILE = """\"\"\"A title.

More.
\"\"\"
import numpy as np

SOURCE = "A paper"
steps = 7

def start(n=2):
    return {"w": np.full(n, 0.5)}

def risk(theta, xp):
    return xp.sum(theta["w"] ** 2)
"""


@pytest.fixture
def written(tmp_path):
    def write(text, name="my.py"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_a_file_is_a_model(written):
    path = written(FILE)
    model = read_model(path)
    assert (model.name, model.title, model.source) == ("my", "A title", "A paper")
    assert (model.path, model.steps, model.constants) == (path, 7, {"n": 2})
    assert [p.name for p in path.parent.iterdir()] == ["my.py"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "my.py defines no model: it has no function start"),
        (FILE + "1 / 0\n", r"cannot be run: ZeroDivisionError: division .* \(my\.py, line 15\)"),
        (FILE + "def f(:\n", r"cannot be run: SyntaxError: invalid syntax \(my\.py, line 15\)$"),
        ("import nonesuch_at_all\n" + FILE, r"No module named 'nonesuch_at_all' \(my\.py, line 1"),
        (FILE + "def f():\n    f()\nf()\n", "RecursionError"),
        (FILE.replace("n=2", "n"), "my.py: constant 'n' of start has no default"),
    ],
)
def test_files_that_hold_no_model(written, text, message):
    path = written(text)
    with pytest.raises(ModelError, match=message) as caught:
        read_model(path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).count("line") <= 1
    assert [p.name for p in path.parent.iterdir()] == ["my.py"]


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "my.py").write_bytes(b"\xff\xfe\x00")
    for name, why in (("none.py", "no such file"), ("my.py", "not text")):
        with pytest.raises(ModelError, match=rf"cannot be read \({why}"):
            read_model(tmp_path / name)


@pytest.mark.parametrize("error", ["SystemExit(0)", "GeneratorExit", "BaseException('own')"])
def test_any_error_of_a_function_is_that_of_the_file(written, error):
    model = read_model(written(FILE.replace("    return {", f"    raise {error}\n    return {{")))
    with pytest.raises(ModelError, match=r"start raises .*\(my\.py, line 11\)"):
        model.starting_arrays({"n": 2})
    with pytest.raises(ModelError, match=r"cannot be run: .*\(my\.py, line 15\)"):
        read_model(written(FILE + f"raise {error}\n"))


def test_helpers_beside_a_model_are_its_own_and_leave_nothing(tmp_path):
    text = "from helper import SCALE\n" + FILE.replace("0.5", "SCALE")
    folders = {name: tmp_path / name for name in ("one", "two")}
    for scale, folder in enumerate(folders.values(), 1):
        folder.mkdir()
        (folder / "my.py").write_text(text)
        (folder / "helper.py").write_text(f"SCALE = {scale}.0\n")

    def seen(name):
        return read_model(folders[name] / "my.py").starting_arrays({"n": 1})["w"][0]

    assert (seen("one"), seen("two")) == (1.0, 2.0)
    assert sorted(p.name for p in folders["one"].iterdir()) == ["helper.py", "my.py"]
    assert "helper" not in sys.modules
