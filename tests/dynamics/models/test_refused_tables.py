"""Symmetries, tables and claims that are wrong on purpose: one clear line, exit code 2."""

from pathlib import Path

import pytest
from faulty_models import BASE, DRAWN, FIRST, SWAP, WEIGHTS, bent, in_python

import dynamics
from dynamics import cli
from dynamics.validation import InvalidRequest

SYMMETRIES = {
    "finite": (
        bent((FIRST, "3 * np.eye(n)[0]"), more=SWAP),
        "generator 0 (i: 1 0) changes its gradient",
    ),
    "drawn": (
        DRAWN.replace("a * xp.sum(", "a * xp.sum(xp.array([1.0, 3.0]) * ") + SWAP,
        "generator 0 (i: 1 0) changes its gradient",
    ),
    "start": (
        bent((WEIGHTS, "np.array([0.1, 0.2])"), more=SWAP),
        "the start is not symmetric: generator 0",
    ),
    "no axes": (bent(more="def symmetry():\n    return []\n"), "my.py: symmetry needs axes"),
    "array": (bent(more=SWAP.replace(', "b": ()', "")), "axes does not name the array b"),
    "axis": (
        bent(more=SWAP.replace('"b": ()', '"b": ("i",)')),
        "axes of b are ('i',), and it has 0",
    ),
    "twice": (
        bent(more=SWAP.replace("(1, 0)", "(1, 1)")),
        "generator 0 of symmetry is not a permutation",
    ),
    "length": (bent(more=SWAP.replace("(1, 0)", "(2, 1, 0)")), "is not a permutation of 0..1"),
    "set": (
        bent(more=SWAP.replace('{"i"', '{"j"')),
        "generator 0 of symmetry moves 'j', which axes lacks",
    ),
    "number": (bent(more=SWAP.replace('[{"i": (1, 0)}]', "3")), "symmetry raises TypeError"),
}


@pytest.mark.parametrize("case", SYMMETRIES)
def test_symmetries_that_are_none(refused, case):
    text, message = SYMMETRIES[case]
    refused(text, message)
    in_python(message)


def test_symmetries_that_are(here):
    """Stated for the finite law and for the drawn one, and the same classes as are found."""
    for name, text in (("plain", BASE), ("finite", BASE + SWAP), ("drawn", DRAWN + SWAP)):
        Path(f"{name}.py").write_text(text)
        found = dynamics.load_system(f"{name}.py").closure()
        assert (found.scalars, list(found.sizes)) == (2, [2, 1]), name


TABLES = {
    "vector": (
        'def observables(theta, xp):\n    return {"g": theta["w"]}\n',
        "observables: 'g' is float64 of shape (2,), not one real number",
    ),
    "no dict": (
        'def observables(theta, xp):\n    return theta["b"]\n',
        "observables gives float64",
    ),
    "nothing": ("def observables(theta, xp):\n    pass\n", "observables gives NoneType"),
    "complex": (
        'def observables(theta, xp):\n    return {"g": 1j * theta["b"]}\n',
        "'g' is complex128",
    ),
    "text": ('def observables(theta, xp):\n    return {"g": "x"}\n', "observables gives str"),
    "averaged": (
        'def observe(theta, sample, xp):\n    return {"g": sample["x"]}\n',
        "observe: 'g' is",
    ),
    "seen": (
        'def observables(theta, xp):\n    return {"q": theta["b"]}\n',
        "observables: 'q' is the name of something else",
    ),
    "risk": (
        'def observables(theta, xp):\n    return {"risk": theta["b"]}\n',
        "'risk' is the name of",
    ),
    "scalar": (
        'def observables(theta, xp):\n    return {"w_0": theta["b"]}\n',
        "'w_0' is a scalar and",
    ),
    "both": (
        'def observables(theta, xp):\n    return {"g": theta["b"]}\n\n'
        'def observe(theta, sample, xp):\n    return {"g": theta["b"]}\n',
        "observe: 'g' is the name",
    ),
    "event": ('events = {"T": "zz > 1"}\n', "event T: 'zz' is unknown; nearest:"),
    "rule": (
        'events = {"T": "b is large"}\n',
        "event T: 'b is large' is not a rule; rules are 'G >= D/2'",
    ),
    "after": ('events = {"T": "b > 0.5 after S"}\n', "event T: there is no event 'S' before it"),
    "zero": ('events = {"T": "b > 1/0"}\n', "event T: '1/0' is not a finite number"),
    "events raise": (
        "def events(n):\n    return {'T': 1 / 0}\n",
        "events raises ZeroDivisionError",
    ),
    "no array": ('names = {"alpha": ("A", 0)}\n', "names: there is no trained array 'A'"),
    "range": ('names = {"alpha": ("w", 7)}\n', "names: w has the shape (2,), and no entry (7,)"),
    "axes": (
        'names = {"alpha": ("w", 0, 0)}\n',
        "names: w has the shape (2,), and no entry (0, 0)",
    ),
    "no entry": ('names = {"alpha": ()}\n', "names: alpha = () is not an entry"),
    "used": ('names = {"w_0": ("b",)}\n', "names: 'w_0' is the name of two scalars"),
    "constant name": ('names = {"q": ("w", 0)}\n', "names: 'q' is the name of something else"),
    "time": ('names = {"time": ("w", 0)}\n', "names: 'time' is the name of something else"),
    "panel": ('panels = [("zz",)]\n', "panels: 'zz' is unknown; known are w_0, b, risk"),
    "no panel": ("panels = [3]\n", "panels: 3 is not a panel"),
    "panels": ("panels = 3\n", "my.py: panels is int"),
    "group": ('groups = {"z": "value"}\n', "groups: there is no trained array 'z'; there are w, b"),
    "groups": ("groups = 3\n", "my.py: groups is int"),
    "limit not held": (
        'limits = ("0 < q < .05",)\n',
        "q=0.5 is outside the limits of my: 0 < q < .05",
    ),
    "limit of nothing": (
        'limits = ("b0 > 0",)\n',
        "limits: 'b0 > 0' speaks of b0, which is not a constant",
    ),
    "no limit": ('limits = ("q",)\n', "limits: 'q' is not a comparison, as 'K >= 2'"),
    "limit no text": ("limits = (3,)\n", "limits: 3 is not text, as 'K >= 2'"),
    "half a limit": ('limits = ("q >",)\n', "limits: 'q >' is not a comparison, as 'K >= 2'"),
    "limits": ('limits = "q > 0"\n', "limits is str; limits can be a tuple or a list"),
    "claim": ('claims = ["x"]\n', "claims: 'x' is not a function (system, protocol) -> Finding"),
    "stated": ('claims = {"x": "it grows"}\n', "claims: 'it grows' is not a function"),
    "claims": ("claims = 3\n", "my.py: claims is int"),
}


@pytest.mark.parametrize("case", TABLES)
def test_tables(refused, case):
    more, message = TABLES[case]
    refused(bent(more=more), message)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("    return 3\n", "claim mine gives int, not a Finding"),
        ("    pass\n", "claim mine gives NoneType, not a Finding"),
        ("    1 / 0\n", "claim mine raises ZeroDivisionError: division by zero (my.py, line"),
    ],
)
def test_claims_that_measure_nothing(here, capsys, body, message):
    Path("my.py").write_text(bent(more=f"def mine(system, protocol):\n{body}\nclaims = [mine]\n"))
    assert cli.main(["verify", "my.py", "--json"]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert [p.name for p in here.iterdir()] == ["my.py"]


def test_no_claims_and_no_figure(refused):
    refused(BASE, "my has no claims", command="verify")
    refused(BASE, "figure 'x' is unknown", "x", command="figure")
    refused(BASE, "as 'source' is unknown", "--as", "source", command="derive")


def test_what_lies_outside_the_limits_of_constants_is_refused():
    """Numbers by formulas of several constants, words by a list; in a sweep too, point by point."""
    system = dynamics.load_system("merged_staircase")
    with pytest.raises(InvalidRequest, match="target='stairs' is outside the limits of merged"):
        system.Parameters(target="stairs")
    system = dynamics.load_system("linear_icl")
    with pytest.raises(InvalidRequest, match=r"least=1.0 slope=-0.5 D=4 is outside"):
        system.Parameters(slope=-0.5)
    assert system.Parameters(slope=-0.5, D=2).slope == -0.5
