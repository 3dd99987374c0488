"""Files and commands that are wrong, and runs that go wrong: one clear line and an exit code."""

import json
from pathlib import Path

import numpy as np
import pytest
from faulty_models import BASE, DRAWN, FIRST, LINE, OTHER_LINE, SWAP, WEIGHTS, bent, lost

import dynamics
from dynamics import cli
from dynamics.validation import InvalidRequest
from theory.model import RESERVED, SHARED


def test_the_model_itself_is_right(here):
    for name, text in (("plain", BASE), ("finite", BASE + SWAP), ("drawn", DRAWN + SWAP)):
        Path(f"{name}.py").write_text(text)
        found = dynamics.load_system(f"{name}.py").closure()
        assert (found.scalars, list(found.sizes)) == (2, [2, 1]), name


def swapped(old, new):
    return bent(more=SWAP.replace(old, new))


FILES = {
    f"ZeroDivisionError: division by zero (my.py, line {OTHER_LINE})": bent(more="x = 1 / 0\n"),
    f"SyntaxError: invalid syntax (my.py, line {OTHER_LINE})": bent(more="def f(:\n"),
    "my.py defines no model: it has no function start(...)": "",
    "cannot be run: SystemExit": bent(more="raise SystemExit(0)\n"),
    "start: w has an entry that is not finite": bent((WEIGHTS, "np.array([0.1, np.nan])")),
    "start raises SystemExit": bent((WEIGHTS, "exit()")),
    "'w' is in start and in fixed": bent(more='def fixed():\n    return {"w": np.zeros(2)}\n'),
    "the probabilities of law sum to 0.98, not to 1": bent(("yield 1 - q", "yield 0.98 - q")),
    "law raises ZeroDivisionError": bent(("    yield q,", "    1 / 0\n    yield q,")),
    "my.py: sample needs symmetry": DRAWN,
    "sample, x: the shape of a sample changes":
        DRAWN.replace("normal(n)", "normal(rng.integers(2, 4))") + SWAP,
    "generator 0 (i: 1 0) changes its gradient": bent((FIRST, "3 * np.eye(n)[0]"), more=SWAP),
    "generator 0 (i: 1 0) changes":
        DRAWN.replace("a * xp.sum(", "a * xp.sum(xp.array([1.0, 3.0]) * ") + SWAP,
    "the start is not symmetric: generator 0": bent((WEIGHTS, "np.array([0.1, 0.2])"), more=SWAP),
    "axes does not name the array b": swapped(', "b": ()', ""),
    "axes of b are ('i',), but the array has 0": swapped('"b": ()', '"b": ("i",)'),
    "generator 0 of symmetry is not a permutation": swapped("(1, 0)", "(1, 1)"),
    "generator 0 of symmetry permutes 'j', not in axes": swapped('{"i"', '{"j"'),
    "symmetry raises TypeError": swapped('[{"i": (1, 0)}]', "3"),
}  # fmt: skip
LOSSES = {
    "loss returns float64 of shape (2,); it must be one real": 'return theta["w"] * a',
    "loss returns int64": 'return xp.round(theta["b"]).astype(int)',
    "loss returns complex128": 'return theta["b"] * 1j',
    "loss returns NoneType": 'theta["b"] ** 2',
    "use xp.where": 'if theta["b"] > 0:\n        return a\n    return theta["b"]',
    "use xp.where, or make the constant": 'if a > 0:\n        return a\n    return theta["b"]',
    "needs the value of a traced number": 'return float(theta["b"])',
    "xp.summ is unknown; nearest: xp.sum": 'return xp.summ(theta["w"])',
    "use the same function of xp": 'return np.sum(np.exp(theta["w"]))',
    "indexes by a traced condition": 'return xp.sum(theta["w"][theta["w"] > a])',
    "loss raises KeyError: 'z'": 'return sample["z"] * a',
    "incompatible shapes": 'return xp.sum(theta["w"] + xp.zeros(3))',
    "loss raises SystemExit: 0": "raise SystemExit(0)",
    "loss raises Own": "raise type('Own', (BaseException,), {})",
    "loss has a whole number of 2^63 or more": f"return theta['b'] * {2**63}",
    "loss raises RecursionError": "return loss(theta, sample, xp, a)",
    "gradient at the start is not finite: inf for b": 'return a * xp.sqrt(theta["b"] - 0.2)',
    "not finite: inf for w[1]": 'return a * xp.sqrt(theta["w"][1] - 0.1)',
    "risk at the start is not finite: nan": 'return a * xp.log(-1 - theta["b"] ** 2)',
    "nothing moves: the gradient of my vanishes": 'return a * (theta["b"] - 0.2) ** 2',
    "nothing moves": 'return xp.sign(theta["b"]) * a',
}


@pytest.mark.parametrize("message", LOSSES)
def test_losses(refused, message):
    told = refused(lost(f"    {LOSSES[message]}\n"), message)
    if not any(part in message for part in ("returns", "finite", "nothing")):
        assert f"(my.py, line {LINE})" in told


@pytest.mark.parametrize("factor", ["np.random.rand()", "len(CALLS)"])
def test_losses_that_change_from_call_to_call(refused, factor):
    body = f'    CALLS.append(1)\n    return a * theta["b"] * {factor}\n'
    refused(lost(body, "CALLS = []\n"), "draws random numbers or counts its calls")


def observables(body, name="observables(theta, xp)"):
    return f"def {name}:\n    {body}\n"


TABLES = {
    "observables: 'g' is float64 of shape (2,), not one real number":
        observables('return {"g": theta["w"]}'),
    "observables returns float64": observables('return theta["b"]'),
    "'g' is complex128": observables('return {"g": 1j * theta["b"]}'),
    "observe: 'g' is": observables('return {"g": sample["x"]}', "observe(theta, sample, xp)"),
    "observables: 'q' is a reserved name or already used": observables('return {"q": theta["b"]}'),
    "'risk' is a reserved name": observables('return {"risk": theta["b"]}'),
    "'w_0' names a scalar and": observables('return {"w_0": theta["b"]}'),
    "observe: 'g' is a reserved name or already used": observables('return {"g": theta["b"]}')
        + observables('return {"g": theta["b"]}', "observe(theta, sample, xp)"),
    "event T: 'zz' is unknown; nearest:": 'events = {"T": "zz > 1"}',
    "events raises ZeroDivisionError": "def events(n):\n    return {'T': 1 / 0}",
    "names: no trained array is named 'A'": 'names = {"alpha": ("A", 0)}',
    "names: w has shape (2,); entry (7,) does not exist": 'names = {"alpha": ("w", 7)}',
    "names: alpha = () is not an entry": 'names = {"alpha": ()}',
    "names: 'w_0' names two scalars": 'names = {"w_0": ("b",)}',
    "panels: 'zz' is unknown; known are w_0, b, risk": 'panels = [("zz",)]',
    "q=0.5 is outside the limits of my: 0 < q < .05": 'limits = ("0 < q < .05",)',
    "limits: 'b0 > 0' contains b0, which is not a constant": 'limits = ("b0 > 0",)',
    "limits: 'q >' is not a comparison such as 'K >= 2'": 'limits = ("q >",)',
    "limits: 3 is not text such as 'K >= 2'": "limits = (3,)",
    "limits is str; limits can be a tuple or a list": 'limits = "q > 0"',
    "claims: 'x' is not a function (system, protocol) -> Finding": 'claims = ["x"]',
}  # fmt: skip


FILES |= {message: bent(more=f"{text}\n") for message, text in TABLES.items()}


@pytest.mark.parametrize("message", FILES)
def test_files(refused, message):
    refused(FILES[message], message)


def test_every_flag_of_every_command_is_reserved(here):
    Path("my.py").write_text(BASE)
    system = dynamics.load_system("my.py")
    flags = set()
    for command, about in cli.COMMANDS.items():
        if about.subject == "SYSTEM":
            flags |= {*cli.parser_of(command, system).names}
    assert flags - {"a", "n", "q"} <= RESERVED | SHARED


OWNED = """def start(omega=0.1, seed=3):
    return {"w": [omega, omega]}


def risk(theta, xp, seed):
    return seed * xp.sum((theta["w"] - 1.0) ** 2)
"""


def test_a_constant_owns_the_flag_of_its_name(here):
    Path("my.py").write_text(OWNED)
    constants = ["--omega", "0.2", "--seed", "5"]
    assert cli.main(["run", "my.py", *constants, "--steps", "5", "--out", "run"]) == 0
    assert dynamics.load("run").parameters == {"omega": 0.2, "seed": 5}
    sweep = ["sweep", "my.py", "--omega", "0.1,0.2", "--seed", "2:3:2", "--steps", "5"]
    assert cli.main([*sweep, "--eta", "0.02", "--workers", "0", "--out", "s.zarr"]) == 0
    found = dynamics.load("s.zarr").dataset
    assert found.sizes["omega"] == found.sizes["seed"] == 2
    assert float(found["w_0"].sel(omega=0.2, seed=3)) > 0.2


def test_whole_numbers_from_two_to_the_31():
    small = {
        "law": lambda unit=1: [(0.5, 2 * unit), (0.5, 4 * unit)],
        "loss": lambda theta, sample, xp, unit: (theta["w"][0] - sample / unit) ** 2,
    }
    large = {
        "law": lambda: [(0.5, 2**32), (0.5, 2**33)],
        "loss": lambda theta, sample, xp: (theta["w"][0] * 2**31 - sample) ** 2 / 2**62,
    }
    ends = []
    for given in (small, large):
        system = dynamics.load_system(dynamics.Model(start=lambda: {"w": np.full(1, 0.1)}, **given))
        problem = system.ReducedPopulation(system.Parameters())
        ends.append(dynamics.descend(problem, eta=0.1, steps=20).final_state)
    np.testing.assert_allclose(*ends, rtol=1e-14)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return 3", "claim mine returns int, not a Finding"),
        ("1 / 0", "claim mine raises ZeroDivisionError: division by zero (my.py, line"),
    ],
)
def test_claims_that_measure_nothing(refused, body, message):
    text = bent(more=f"def mine(system, protocol):\n    {body}\n\nclaims = [mine]\n")
    refused(text, message, "--json", command="verify")


@pytest.mark.parametrize(
    ("name", "constants", "message"),
    [
        ("merged_staircase", {"target": "stairs"}, "target='stairs' is outside the limits of merg"),
        ("linear_icl", {"slope": -0.5}, "least=1.0 slope=-0.5 D=4 is outside"),
    ],
)
def test_what_lies_outside_the_limits_of_constants_is_refused(name, constants, message):
    with pytest.raises(InvalidRequest, match=message):
        dynamics.load_system(name).Parameters(**constants)
    assert dynamics.load_system("linear_icl").Parameters(slope=-0.5, D=2).slope == -0.5


def test_parts_that_a_model_does_not_have_are_named():
    with pytest.raises(InvalidRequest, match="nearest: observables"):
        dynamics.Model(start=lambda: {"w": [0.1]}, observable=None)
    with pytest.raises(InvalidRequest, match="a model needs start"):
        dynamics.Model()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--aa", "3"], "nearest: --a"), (["--a", "x"], "a='x' is not a number"),
        (["--q", "1.5"], "law gives the probability -0.5"), (["--n", "1"], "law raises IndexError"),
        (["--n", "0"], "w holds no real numbers"),
        (["--n", "-3"], "start raises ValueError: negative dimensions"),
        (["--coordinates", "polar"], "coordinates='polar' is unknown"),
        (["--expectation", "exact"], "flag '--expectation' is unknown"),
        (["--omega", "0.1"], "omega needs --full empirical"),
        (["--full", "empirical", "--omega", "-1"], "omega=-1"),
        (["--full", "empirical", "--batch", "0"], "batch=0 is too small"),
        (["--eta", "0.1,0.2"], "eta=[0.1, 0.2] has 2 entries"),
    ],
)  # fmt: skip
def test_the_command_line(refused, words, message):
    refused(BASE, message, *words)


KEPT = """def start(low=0.1, high=0.3):
    return {"a": [low, high]}


def risk(theta, xp):
    return 5 * (theta["a"][0] - theta["a"][1] - 1.0) ** 2
"""


def test_a_risk_alone_has_nothing_to_draw_from(refused):
    for command in ("run", "sweep"):
        refused(KEPT, "no law to sample", "--full", "empirical", command=command)


def test_no_claims_and_no_figure(refused):
    refused(BASE, "my has no claims", command="verify")
    refused(BASE, "figure 'x' is unknown", "x", command="figure")
    refused(BASE, "as 'source' is unknown", "--as", "source", command="derive")


def test_a_run_that_diverges_has_a_remedy_and_has_kept_nothing(here, capsys):
    """Exit code 1, everything written; error estimates are of states before that."""
    Path("my.py").write_text(KEPT)
    words = ["run", "my.py", "--steps", "3000", "--out", "x", "--force", "--eta"]
    assert cli.main([*words, "0.01"]) == 0
    assert "kept: a_0 + a_1 = 0.4" in capsys.readouterr().out
    assert cli.main([*words, "3"]) == 1
    captured = capsys.readouterr()
    assert "kept: " not in captured.out
    assert "is above the stability limit 0.1 there; try eta=0.09" in captured.err
    assert "Warning" not in captured.err
    found = dynamics.load("x")
    assert found.outcome.kind == "diverged"
    assert found.settings["closure"]["residual"] < 1e-12


@pytest.mark.parametrize(
    "words", ["run --config c.toml", "sweep --json --q 0.4,0.5 --eta 0.02 --workers 0"]
)
def test_json_is_one_document_on_stdout_whatever_a_file_prints(here, capfd, words):
    said = "import os\nprint('at import')\nos.system('echo by another program')\n\n\ndef law("
    text = bent(
        ("def law(", said), ("    yield q,", "    print('in law')\n    yield q,"),
        ("xp, a):\n", "xp, a):\n    print('in loss')\n"),
    )  # fmt: skip
    Path("my.py").write_text(text)
    Path("c.toml").write_text("json = true\n")
    command, *flags = words.split()
    assert cli.main([command, "my.py", "--steps", "5", *flags]) == 0
    captured = capfd.readouterr()
    assert isinstance(json.loads(captured.out), dict)
    for said in ("at import", "by another program", "in law", "in loss"):
        assert said in captured.err
