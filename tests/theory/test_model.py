"""A model as it is written, in a file or in functions; what is refused, in one line each."""

import itertools
import sys
from fractions import Fraction

import numpy as np
import pytest

from theory.law import ModelError
from theory.model import Model, check_name
from theory.model_file import read_model

TWO, HALF = np.int64(2), np.float64(0.5)


def start(n=TWO, scale=HALF):
    return {"w": np.full(n, scale)}


def law(q=0.25):
    yield q, {"x": np.array([1.0, 0.0]), "y": 1}
    yield 1 - q, {"x": np.array([0.0, 1.0]), "y": -1}


def loss(theta, sample, xp, n, q, beta=1.0):
    return theta["w"][0] * beta


def risk(theta, xp):
    return theta["w"][0] ** 2


DOORS = {"law": law, "loss": loss}


def test_constants_are_the_keyword_arguments_in_the_order_of_the_functions():
    model = Model(start=start, **DOORS)
    assert model.constants == {"n": 2, "scale": 0.5, "q": 0.25, "beta": 1.0}
    assert list(model.constants) == ["n", "scale", "q", "beta"]
    assert [type(value) for value in model.constants.values()] == [int, float, float, float]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda theta, sample, xp, eta=1: 0, "constant 'eta' of loss.*rename it, e.g. eta_0"),
        (lambda theta, sample, xp, q=0.5: 0, r"'q' has two defaults, 0\.25 in law and 0\.5 in l"),
        (lambda theta, sample, xp, n=2.0: 0, r"'n' has two defaults, 2 in start and 2\.0 in loss"),
        (lambda theta, sample, xp, c: 0, "'c' of loss has no default anywhere"),
        (lambda theta, sample, xp, c=[1]: 0, r"'c' has the default \[1\]"),
        (lambda theta, sample, xp, c=float("nan"): 0, "'c' has the default nan"),
        (lambda theta, sample, xp, *args: 0, r"loss takes \*args"),
        (lambda theta: 0, r"loss\(theta\) can be loss\(theta, sample, xp, \.\.\.\)"),
    ],
)
def test_constants_that_cannot_be(function, message):
    test_doors_and_tables({"law": law, "loss": function}, message)


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ({}, "needs law and loss, or risk, or sample, loss and symmetry"),
        ({"loss": loss, "sample": lambda rng: 0}, "sample needs symmetry"),
        ({"risk": risk, "law": law}, "a law or a closed risk, not both"),
        ({"risk": risk, "observe": lambda theta, sample, xp: {}}, "averaged over a law"),
        (DOORS | {"symmetry": list}, "symmetry needs axes"),
        (DOORS | {"start": 3}, "start is int, not a function"),
        (DOORS | {"eta": 0}, "eta must be a positive number"),
        (DOORS | {"steps": 0.5}, "steps a whole number"),
        (DOORS | {"names": ["alpha"]}, "names is list; names can be a dict"),
        (DOORS | {"events": "w > 1"}, "events is str; events can be a dict"),
        (DOORS | {"groups": ("w",)}, "groups is tuple; groups can be a dict"),
        (DOORS | {"groups": {"w": 3}}, "groups: 3 of 'w' is not a word"),
    ],
)
def test_doors_and_tables(functions, message):
    with pytest.raises(ModelError, match=message) as caught:
        Model(**({"start": start} | functions))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1.0], "start gives list; start can give a dict of arrays"),
        ({"w w": 1.0}, "names an array 'w w'"),
        ({"w": [0.1, None]}, "w holds no real numbers"),
        ({"w": [[1.0], [1.0, 2.0]]}, "start: w is not an array"),
        ({"w": [1.0, np.nan]}, "w has an entry that is not finite"),
        ({"q": 1.0}, "names an array 'q', a reserved name or a constant"),
        ({"u": 1.0}, "groups: no trained array is named 'w'; names: u"),
    ],
)
def test_starts_that_cannot_be(given, message):
    model = Model(start=lambda: given, **DOORS | {"loss": lambda theta, sample, xp: 0},
                  groups={"w": "value"})  # fmt: skip
    with pytest.raises(ModelError, match=message) as caught:
        model.starting_arrays(model.constants)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["al pha", 3, "", "a", "risk", "time", "d_w", "time_T1", "path_x", "R", "eta"]
)
def test_names_that_something_else_has(name):
    with pytest.raises(ModelError):
        check_name("names", name, {"a": 1.0})
    check_name("names", "alpha", {"a": 1.0})


def with_law(law):
    return Model(start=start, law=law, loss=lambda theta, sample, xp: 0)


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
        ([1.0], "law can yield"),
        ([(-0.5, one()), (1.5, one())], r"the probability -0\.5"),
        ([(float("nan"), one())], "the probability nan"),
        ([("0.5", one()), (0.5, one())], "the probability '0.5'"),
        ([(0.5, one()), (0.5, {"z": 1.0})], "sample 1 has different parts from sample 0"),
        ([(0.5, (1.0, one())), (0.5, (1.0,))], "sample 1 has different parts"),
        ([(0.5, one()), (0.5, one(np.ones(2)))], r"law, x: the shape .* from \(\) to \(2,\)"),
        ([(0.5, one()), (0.5, one("a"))], "law, x: sample 1 holds <U1"),
        ([(0.5, one()), (0.5, one(None))], "law, x: sample 1 holds object"),
        ([(1.0, one(np.nan))], "law, x: a sample holds a number that is not finite"),
        ([(1.0, one(([1.0], [1.0, 2.0]))), (0.0, one())], None),
    ],
)
def test_laws_that_cannot_be(pairs, message):
    model = with_law(lambda: pairs)
    if message is None:
        assert model.enumerated_law({}).size == 1
        return
    with pytest.raises(ModelError, match=message) as caught:
        model.enumerated_law({})
    assert "\n" not in str(caught.value)


def test_a_law_in_one_array_each_without_what_never_happens():
    pairs = [(Fraction(1, 4), (1, [1.0, 2.0])), (0.0, (5, [0.0, 0.0])), (0.75, (2, [3.0, 4.0]))]
    got = with_law(lambda: iter(pairs)).enumerated_law({})
    assert got.size == 2
    np.testing.assert_array_equal(got.weights, [0.25, 0.75])
    assert got.samples[0].tolist() == [1, 2]
    assert got.samples[0].dtype.kind == "i"
    assert got.samples[1].tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_draws_are_of_the_law_and_of_their_seed():
    pairs = [(0.25, {"y": 1}), (0.75, {"y": -1})]
    model = with_law(lambda: iter(pairs))
    many = model.draw_samples(model.constants, 4000, 3)
    assert abs((many.samples["y"] == 1).mean() - 0.25) < 0.03
    assert set(many.weights) == {1 / 4000}
    again = model.draw_samples(model.constants, 4000, 3)
    np.testing.assert_array_equal(many.samples["y"], again.samples["y"])
    other = model.draw_samples(model.constants, 4000, 4)
    assert (many.samples["y"] != other.samples["y"]).any()


SEEN = []


def halves():
    """Probabilities that underflow after 1,074 samples, for ever."""
    for k in itertools.count(1):
        SEEN.append(k)
        yield 0.5**k, 1.0


def large():
    return ((2e-3, {"x": [1.0, 2.0], "y": np.ones((3, 2))}) for _ in range(500))


@pytest.mark.parametrize(
    ("law", "limit", "message"),
    [
        (halves, "SAMPLES", "more than 3,000 samples, 1,074 of them"),
        (large, "NUMBERS", "8 in each sample; at most 375 samples of this size"),
    ],
)
def test_samples_that_do_not_fit_are_refused_before_all_are_there(law, limit, message, monkeypatch):
    monkeypatch.setattr(f"theory.model.MOST_{limit}", 3000)
    SEEN.clear()
    with pytest.raises(ModelError, match=message):
        with_law(law).enumerated_law({})
    assert len(SEEN) in (0, 3001)


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
