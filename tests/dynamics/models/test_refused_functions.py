"""Functions that are wrong on purpose: one clear line, exit code 2, nothing written."""

from pathlib import Path

import numpy as np
import pytest
from faulty_models import (
    BASE,
    BIAS,
    DRAWN,
    FIRST,
    LAW,
    LINE,
    SECOND,
    SWAP,
    WEIGHTS,
    bent,
    in_python,
    lost,
)

import dynamics
from dynamics import cli
from theory.model import RESERVED, SHARED


def test_the_model_itself_is_right(here, capsys):
    """What every test here bends is refused by none of them as it is."""
    Path("my.py").write_text(BASE)
    assert cli.main(["compare", "my.py", "--steps", "5", "--out", "x"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert "closes on 2 scalars of 3 entries" in captured.out
    assert sorted(p.name for p in here.iterdir()) == ["my.py", "x"]


STARTS_AND_LAWS = {
    "sum": (
        bent(("yield 1 - q", "yield 0.98 - q")),
        "the probabilities of law sum to 0.98, not to 1",
    ),
    "nan": (bent((WEIGHTS, "np.array([0.1, np.nan])")), "start: w has an entry that is not finite"),
    "list": (bent((f'{{"w": {WEIGHTS}, "b": {BIAS}}}', "[1.0, 2.0]")), "start gives list"),
    "empty": (bent((f'{{"w": {WEIGHTS}, "b": {BIAS}}}', "{}")), "start gives an empty dict"),
    "object": (bent((WEIGHTS, "np.array([0.1, None])")), "start: w holds no real numbers"),
    "rows": (bent((WEIGHTS, "[[0.1], [0.1, 0.2]]")), "start: w is not an array"),
    "shape": (
        bent((SECOND, '{"x": np.ones(3), "y": 1.0}')),
        "law, x: the shape of a sample changes",
    ),
    "key": (bent((SECOND, '{"x": np.ones(2)}')), "law: sample 1 has other parts than sample 0"),
    "none": (bent((LAW, "def law(q=0.5):\n    return []\n\n\n")), "law gives no sample"),
    "void": (bent((LAW, "def law(q=0.5):\n    pass\n\n\n")), "law gives NoneType; law can yield"),
    "pairs": (bent((LAW, "def law(q=0.5):\n    yield 1.0\n\n\n")), "law can yield (probability, s"),
    "negative": (bent(("yield q,", "yield -q,")), "law gives the probability -0.5"),
    "complex": (bent((FIRST, "np.array([1.0, 1j])")), "law, x: sample 0 holds complex128"),
    "strings": (bent((FIRST, "'hello'")), "law, x: sample 0 holds <U5"),
    "text": (bent(("yield q,", "yield 'half',")), "law gives the probability 'half'"),
    "exits": (bent((WEIGHTS, "exit()")), "start raises SystemExit"),
    "law exits": (bent(("    yield q,", "    exit()\n    yield q,")), "law raises SystemExit"),
    "raises": (bent(("    yield q,", "    1 / 0\n    yield q,")), "law raises ZeroDivisionError"),
    "twice": (
        bent(more='def fixed():\n    return {"w": np.zeros(2)}\n'),
        "'w' is trained and fixed",
    ),
    "constant": (
        bent(("a=1.0", "b=1.0"), ("xp, a)", "xp, b)"), ("(a *", "(b *")),
        "start names an array 'b', which is the name of something else",
    ),
    "drawn shape": (
        DRAWN.replace("normal(n)", "normal(rng.integers(2, 4))") + SWAP,
        "sample, x: the shape of a sample changes",
    ),
    "drawn": (DRAWN, "my.py: sample needs symmetry"),
}


@pytest.mark.parametrize("case", STARTS_AND_LAWS)
def test_starts_and_laws(refused, case):
    text, message = STARTS_AND_LAWS[case]
    refused(text, message)
    in_python(message)


LOSSES = {
    "vector": (
        '    return theta["w"] * a\n',
        "loss gives float64 of shape (2,); loss can give one real",
    ),
    "whole": ("    return 1\n", "loss gives int64; loss can give one real number"),
    "rounded": ('    return xp.round(theta["b"]).astype(int)\n', "loss gives int64"),
    "complex": ('    return theta["b"] * 1j\n', "loss gives complex128"),
    "truth": ('    return theta["b"] > a\n', "loss gives bool"),
    "nothing": ('    theta["b"] ** 2\n', "loss gives NoneType"),
    "dict": ('    return {"loss": theta["b"]}\n', "loss gives dict"),
    "text": ('    return "0.5"\n', "loss gives str"),
    "if": ('    if theta["b"] > 0:\n        return a\n    return theta["b"]\n', "use xp.where"),
    "if real": ('    if a > 0:\n        return a\n    return theta["b"]\n', "use xp.where"),
    "max": ('    return max(theta["b"], a)\n', "use xp.where"),
    "float": ('    return float(theta["b"])\n', "needs the value of a traced number"),
    "unknown": ('    return xp.summ(theta["w"])\n', "xp.summ is unknown; nearest: xp.sum"),
    "numpy": ('    return np.sum(np.exp(theta["w"]))\n', "use the same function of xp"),
    "mask": ('    return xp.sum(theta["w"][theta["w"] > a])\n', "indexes by a traced condition"),
    "key": ('    return sample["z"] * a\n', "loss raises KeyError: 'z'"),
    "array": ('    return theta["c"] * a\n', "loss raises KeyError: 'c'"),
    "shapes": ('    return xp.sum(theta["w"] + xp.zeros(3))\n', "incompatible shapes"),
    "zero": ("    return 1 / 0\n", "loss raises ZeroDivisionError"),
    "exits": ("    raise SystemExit(0)\n", "loss raises SystemExit: 0"),
    "own": ("    raise type('Own', (BaseException,), {})\n", "loss raises Own"),
    "large": (f"    return theta['b'] * {2**63}\n", "loss has a whole number of 2^63 or more"),
    "for ever": ("    return loss(theta, sample, xp, a)\n", "loss raises RecursionError"),
}


LOSSES_THAT_CHANGE = {
    "draws": '    return a * theta["b"] * np.random.rand()\n',
    "draws an array": '    return a * xp.sum(theta["w"] * xp.array(np.random.rand(2)))\n',
    "counts": '    CALLS.append(1)\n    return a * theta["b"] * len(CALLS)\n',
}


@pytest.mark.parametrize("case", LOSSES_THAT_CHANGE)
def test_losses_that_change_from_call_to_call(refused, case):
    told = refused(lost(LOSSES_THAT_CHANGE[case], "CALLS = []\n"), "loss computes something else")
    assert "draws random numbers or counts its calls" in told


def test_whole_numbers_from_two_to_the_31():
    """Of the loss and of samples; none of them has a place in single precision."""

    def start():
        return {"w": np.full(1, 0.1)}

    def law(unit=1):
        yield 0.5, 2 * unit
        yield 0.5, 4 * unit

    def loss(theta, sample, xp, unit):
        return (theta["w"][0] - sample / unit) ** 2

    def large(theta, sample, xp):
        return (theta["w"][0] * 2**31 - sample) ** 2 / 2**62

    def law_of_large():
        return law(2**31)

    ends = []
    for given in ({"law": law, "loss": loss}, {"law": law_of_large, "loss": large}):
        system = dynamics.load_system(dynamics.Model(start=start, **given))
        problem = system.ReducedPopulation(system.Parameters())
        ends.append(dynamics.descend(problem, eta=0.1, steps=20).final_state)
    np.testing.assert_allclose(*ends, rtol=1e-14)


@pytest.mark.parametrize("case", LOSSES)
def test_losses(refused, case):
    body, message = LOSSES[case]
    told = refused(lost(body), message)
    in_python(message)
    if "gives" not in message:
        assert f"(my.py, line {LINE})" in told


NUMBERS = {
    "root": (
        '    return a * xp.sqrt(theta["b"] - 0.2)\n',
        "gradient at the start is inf for b, not finite",
    ),
    "one of many": ('    return a * xp.sqrt(theta["w"][1] - 0.1)\n', "is inf for w[1], not finite"),
    "logarithm": (
        '    return a * xp.log(-1 - theta["b"] ** 2)\n',
        "risk at the start is nan, not finite",
    ),
    "critical": (
        '    return a * (theta["b"] - 0.2) ** 2\n',
        "nothing moves: the gradient of my vanishes",
    ),
    "saddle": ('    return xp.prod(theta["w"] - 0.1) * a\n', "nothing moves"),
    "constant": ('    return 0 * theta["b"]\n', "nothing moves"),
    "steps": ('    return xp.sign(theta["b"]) * a\n', "nothing moves"),
}


@pytest.mark.parametrize("case", NUMBERS)
def test_starts_from_which_nothing_can_go(refused, case):
    body, message = NUMBERS[case]
    refused(lost(body), message)
    in_python(message)


CONSTANTS = {
    "two": (
        bent(("xp, a)", "xp, a=2.0)")),
        "constant 'a' has two defaults, 1.0 in start and 2.0 in loss",
    ),
    "none": (bent(("xp, a)", "xp, a, c)")), "constant 'c' of loss has no default anywhere"),
    "list": (bent(("n=2", "n=[2]")), "constant 'n' has the default [2]"),
    "huge": (bent(("n=2", f"n={10**30}")), "is too large"),
    "args": (bent(("xp, a)", "xp, *a)")), "loss takes *a; constants are named arguments"),
}


@pytest.mark.parametrize("case", CONSTANTS)
def test_constants(refused, case):
    text, message = CONSTANTS[case]
    refused(text, message)
    if case != "huge":  # refused where it is used
        in_python(message)


@pytest.mark.parametrize("name", ["eta", "samples", "time", "coordinates", "sizes", "trajectory"])
def test_a_constant_named_like_a_flag(refused, name):
    text = bent(("xp, a)", f"xp, a, {name}=1.0)"))
    refused(text, f"constant '{name}' of loss has the name of a setting")
    refused(text, f"rename it, as {name}_0", command="sweep")


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


def test_a_constant_owns_the_flag_of_its_name(here, capsys):
    Path("my.py").write_text(OWNED)
    constants = ["--omega", "0.2", "--seed", "5"]
    for command in ("run", "compare"):
        words = [command, "my.py", *constants, "--steps", "5", "--out", command]
        assert cli.main(words) == 0, capsys.readouterr()
    assert dynamics.load("run").parameters == {"omega": 0.2, "seed": 5}
    sweep = ["sweep", "my.py", "--omega", "0.1,0.2", "--seed", "2:3:2", "--steps", "5"]
    assert cli.main([*sweep, "--eta", "0.02", "--workers", "0", "--out", "s.zarr"]) == 0
    found = dynamics.load("s.zarr").dataset
    assert found.sizes["omega"] == found.sizes["seed"] == 2
    assert float(found["w_0"].sel(omega=0.2, seed=3)) > 0.2
    assert "out" in capsys.readouterr().out
