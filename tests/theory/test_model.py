"""A model as it is written: its constants, its doors, and what is refused, in one line each."""

import sys
from fractions import Fraction

import numpy as np
import pytest

from theory.law import Law, ModelError, stacked
from theory.model import RESERVED, Model, check_name, read_model

THREE, HALF = np.int64(3), np.float64(0.5)


def start(n=2, scale=0.5):
    return {"w": np.full(n, scale)}


def law(q=0.25):
    yield q, {"x": np.array([1.0, 0.0]), "y": 1}
    yield 1 - q, {"x": np.array([0.0, 1.0]), "y": -1}


def loss(theta, sample, xp, n, q, beta=1.0):
    return theta["w"][0] * beta


def risk(theta, xp):
    return theta["w"][0] ** 2


DOORS = {"law": law, "loss": loss}


def refused(message, **functions):
    with pytest.raises(ModelError, match=message) as caught:
        Model(**({"start": start} | functions))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_constants_are_the_keyword_arguments_in_the_order_of_the_functions():
    model = Model(start=start, **DOORS)
    assert model.constants == {"n": 2, "scale": 0.5, "q": 0.25, "beta": 1.0}
    assert list(model.constants) == ["n", "scale", "q", "beta"]
    assert [type(value) for value in model.constants.values()] == [int, float, float, float]


def test_one_default_is_enough_and_two_equal_ones_are_one():
    model = Model(start=start, law=law, loss=lambda theta, sample, xp, q=0.25, n=2: 0)
    assert model.constants["q"] == 0.25


def test_numpy_defaults_are_plain():
    model = Model(start=lambda n=THREE, a=HALF: {}, **DOORS | {"loss": (
        lambda theta, sample, xp: 0)})  # fmt: skip
    assert {name: type(value) for name, value in model.constants.items()} == {
        "n": int, "a": float, "q": float,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            lambda theta, sample, xp, q=0.5: 0,
            r"'q' has two defaults, 0\.25 in law and 0\.5 in loss",
        ),
        (lambda theta, sample, xp, n=2.0: 0, r"'n' has two defaults, 2 in start and 2\.0 in loss"),
        (lambda theta, sample, xp, c: 0, "'c' of loss has no default anywhere"),
        (lambda theta, sample, xp, c=[1]: 0, r"'c' has the default \[1\]"),
        (lambda theta, sample, xp, c=float("nan"): 0, "'c' has the default nan"),
        (lambda theta, sample, xp, c=float("-inf"): 0, "'c' has the default -inf"),
        (lambda theta, sample, xp, c=1j: 0, "'c' has the default 1j"),
        (lambda theta, sample, xp, *args: 0, r"loss takes \*args"),
        (lambda theta, sample, xp, **more: 0, r"loss takes \*more"),
        (lambda theta: 0, r"loss\(theta\) can be loss\(theta, sample, xp, \.\.\.\)"),
    ],
)
def test_constants_that_cannot_be(function, message):
    refused(message, law=law, loss=function)


@pytest.mark.parametrize("name", ["eta", "samples", "time", "coordinates", "risk", "scalars"])
def test_a_constant_with_the_name_of_a_setting_or_a_result(name):
    told = refused(f"constant '{name}' of start", start=eval(f"lambda {name}=1: {{}}"), **DOORS)
    assert f"rename it, as {name}_0" in told
    assert name in RESERVED


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ({}, "needs law and loss, or risk, or sample, loss and symmetry"),
        ({"law": law}, "needs law and loss"),
        ({"loss": loss}, "needs law and loss"),
        ({"loss": loss, "sample": lambda rng: 0}, "sample needs symmetry"),
        ({"risk": risk, "law": law}, "a law or a closed risk, not both"),
        ({"risk": risk, "observe": lambda theta, sample, xp: {}}, "averaged over a law"),
        (DOORS | {"symmetry": list}, "symmetry needs axes"),
        (DOORS | {"start": 3}, "start is int, not a function"),
        (DOORS | {"observables": {}}, "observables is dict, not a function"),
        (DOORS | {"law": [(1.0, 0)]}, "law is list, not a function"),
        (DOORS | {"eta": 0}, "eta is a positive number"),
        (DOORS | {"eta": float("inf")}, "eta is a positive number"),
        (DOORS | {"eta": "fast"}, "eta is a positive number"),
        (DOORS | {"eta": True}, "eta is a positive number"),
        (DOORS | {"steps": 0.5}, "steps a whole number"),
        (DOORS | {"steps": True}, "steps a whole number"),
        (DOORS | {"names": ["alpha"]}, "names is list; names can be a dict"),
        (DOORS | {"events": "w > 1"}, "events is str; events can be a dict"),
        (DOORS | {"panels": "w"}, "panels is str; panels can be a tuple or a list"),
        (DOORS | {"claims": 3}, "claims is int; claims can be a tuple or a list"),
        (DOORS | {"axes": 3}, "axes is int; axes can be a dict"),
        (DOORS | {"groups": ("w",)}, "groups is tuple; groups can be a dict"),
        (DOORS | {"groups": {"w": 3}}, "groups: 3 of 'w' is no word"),
    ],
)
def test_doors_and_tables(functions, message):
    refused(message, **functions)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1.0], "start gives list; start can give a dict of arrays"),
        (None, "start gives NoneType"),
        ({}, "start gives dict"),
        ({"w w": 1.0}, "names an array 'w w'"),
        ({1: 1.0}, "names an array 1"),
        ({"w": [0.1, None]}, "w holds no real numbers"),
        ({"w": "many"}, "w holds no real numbers"),
        ({"w": 1j}, "w holds no real numbers"),
        ({"w": []}, "w holds no real numbers"),
        ({"w": [[1.0], [1.0, 2.0]]}, "start: w is no array"),
        ({"w": [1.0, np.nan]}, "w has an entry that is not finite"),
        ({"w": np.inf}, "w has an entry that is not finite"),
        ({"q": 1.0}, "names an array 'q', which is the name of something else"),
        ({"time": 1.0}, "names an array 'time', which is the name of something else"),
        ({"u": 1.0}, "groups: there is no trained array 'w'; there are u"),
    ],
)
def test_starts_that_cannot_be(given, message):
    model = Model(start=lambda: given, **DOORS | {"loss": lambda theta, sample, xp: 0},
                  groups={"w": "value"})  # fmt: skip
    with pytest.raises(ModelError, match=message) as caught:
        model.starting_arrays(model.constants)
    assert "\n" not in str(caught.value)


def one(value=1.0):
    return {"x": value}


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([(0.5, one()), (0.48, one())], r"sum to 0\.98, not to 1"),
        ([(0.5, one()), (0.5 + 1e-11, one())], r"sum to 1\.00000000001, not to 1"),
        ([], "law gives no sample"),
        ([(0.0, one())], "law gives no sample"),
        (None, r"law gives NoneType; law can yield \(probability, sample\) pairs"),
        (3, "law gives int"),
        ([1.0], "law can yield"),
        (["ab"], "law can yield"),
        ([(1.0, one(), 3)], "law can yield"),
        ([(-0.5, one()), (1.5, one())], r"the probability -0\.5"),
        ([(float("nan"), one())], "the probability nan"),
        ([(float("inf"), one())], "the probability inf"),
        ([("0.5", one()), (0.5, one())], "the probability '0.5'"),
        ([(1j, one())], "the probability 1j"),
        ([(np.array([0.5, 0.5]), one())], "the probability"),
        ([(0.5, one()), (0.5, {"z": 1.0})], "sample 1 has other parts than sample 0"),
        ([(0.5, one()), (0.5, {})], "sample 1 has other parts"),
        ([(0.5, one()), (0.5, 1.0)], "sample 1 has other parts"),
        ([(0.5, (1.0, one())), (0.5, (1.0,))], "sample 1 has other parts"),
        ([(0.5, one()), (0.5, one(np.ones(2)))], r"law, x: the shape .* from \(\) to \(2,\)"),
        ([(0.5, one()), (0.5, one("a"))], "law, x: sample 1 holds <U1"),
        ([(0.5, one()), (0.5, one(1j))], "law, x: sample 1 holds complex128"),
        ([(0.5, one()), (0.5, one(None))], "law, x: sample 1 holds object"),
        ([(1.0, one(np.nan))], "law, x: a sample holds a number that is not finite"),
        ([(1.0, one(([1.0], [1.0, 2.0]))), (0.0, one())], None),
    ],
)
def test_laws_that_cannot_be(pairs, message):
    model = Model(start=start, law=lambda: pairs, loss=lambda theta, sample, xp: 0)
    if message is None:
        assert model.enumerated_law({}).size == 1
        return
    with pytest.raises(ModelError, match=message) as caught:
        model.enumerated_law({})
    assert "\n" not in str(caught.value)


def test_a_law_in_one_array_each_without_what_never_happens():
    pairs = [(Fraction(1, 4), (1, [1.0, 2.0])), (0.0, (5, [0.0, 0.0])), (0.75, (2, [3.0, 4.0]))]
    found = Model(start=start, law=lambda: iter(pairs), loss=lambda theta, sample, xp: 0)
    got = found.enumerated_law({})
    assert got.size == 2
    np.testing.assert_array_equal(got.weights, [0.25, 0.75])
    np.testing.assert_array_equal(got.samples[0], [1, 2])
    np.testing.assert_array_equal(got.samples[1], [[1.0, 2.0], [3.0, 4.0]])
    assert got.samples[0].dtype.kind == "i"


def test_draws_are_of_the_law_and_of_their_seed():
    model = Model(start=start, law=law, loss=lambda theta, sample, xp: 0)
    many = model.draw_samples(model.constants, 4000, 3)
    assert isinstance(many, Law)
    assert abs((many.samples["y"] == 1).mean() - 0.25) < 0.03
    assert set(many.weights) == {1 / 4000}
    again = model.draw_samples(model.constants, 4000, 3)
    np.testing.assert_array_equal(many.samples["x"], again.samples["x"])
    other = model.draw_samples(model.constants, 4000, 4)
    assert (many.samples["y"] != other.samples["y"]).any()


def test_samples_of_rows_are_arrays_and_of_parts_are_tuples():
    np.testing.assert_array_equal(stacked([[1, 2], [3, 4]], "law"), [[1, 2], [3, 4]])
    whole = stacked([(1, np.ones(2)), (3, np.ones(2))], "law")
    assert [part.shape for part in whole] == [(2,), (2, 2)]


@pytest.mark.parametrize("name", ["al pha", 3, "", "a", "risk", "time", "d_w", "time_T1", "path_x"])
def test_names_that_something_else_has(name):
    with pytest.raises(ModelError):
        check_name("names", name, {"a": 1.0})
    check_name("names", "alpha", {"a": 1.0})


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
        ("", "my.py holds no model: it has no function start"),
        ("start = None\n", "holds no model"),
        (
            FILE + "1 / 0\n",
            r"cannot be run: ZeroDivisionError: division by zero \(my\.py, line 15\)",
        ),
        (FILE + "def f(:\n", r"cannot be run: SyntaxError: invalid syntax \(my\.py, line 15\)$"),
        (
            "import nonesuch_at_all\n" + FILE,
            r"No module named 'nonesuch_at_all' \(my\.py, line 1\)",
        ),
        (FILE + "raise SystemExit(3)\n", r"cannot be run: SystemExit: 3 \(my\.py, line 15\)"),
        (FILE + "def f():\n    f()\nf()\n", "RecursionError"),
        (FILE.replace("n=2", "n"), "my.py: constant 'n' of start has no default"),
    ],
)
def test_files_that_hold_no_model(written, text, message):
    path = written(text)
    before = list(sys.path)
    with pytest.raises(ModelError, match=message) as caught:
        read_model(path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).count("line") <= 1
    assert sys.path == before
    assert [p.name for p in path.parent.iterdir()] == ["my.py"]


def test_files_that_cannot_be_read(written, tmp_path):
    with pytest.raises(ModelError, match="cannot be read \\(no such file"):
        read_model(tmp_path / "none.py")
    with pytest.raises(ModelError, match="cannot be read \\(is a directory"):
        read_model(tmp_path)
    path = written("")
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ModelError, match="cannot be read \\(not text\\)"):
        read_model(path)


def test_an_error_inside_a_function_has_its_line(written):
    model = read_model(written(FILE.replace("    return {", "    1 / 0\n    return {")))
    with pytest.raises(ModelError, match=r"start raises ZeroDivisionError.* \(my\.py, line 11\)"):
        model.starting_arrays({"n": 2})


def test_helpers_beside_a_model_are_its_own_and_leave_nothing(tmp_path):
    """Two folders with a helper of the same name; the helper of one then changes."""
    text = "from helper import SCALE\n" + FILE.replace("0.5", "SCALE")
    folders = {name: tmp_path / name for name in ("one", "two")}
    for scale, folder in enumerate(folders.values(), 1):
        folder.mkdir()
        (folder / "my.py").write_text(text)
        (folder / "helper.py").write_text(f"SCALE = {scale}.0\n")

    def seen(name):
        return read_model(folders[name] / "my.py").starting_arrays({"n": 1})["w"][0]

    assert (seen("one"), seen("two")) == (1.0, 2.0)
    (folders["one"] / "helper.py").write_text("SCALE = 10.0\n")
    assert seen("one") == 10.0
    assert sorted(p.name for p in folders["one"].iterdir()) == ["helper.py", "my.py"]
    assert "helper" not in sys.modules
