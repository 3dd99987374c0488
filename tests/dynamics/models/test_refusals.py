"""Wrong on purpose: one clear line, exit code 2, nothing written; in Python an InvalidRequest."""

import subprocess
import sys
from pathlib import Path

import pytest

import dynamics
from dynamics import cli, registry
from dynamics.validation import InvalidRequest
from theory.model import RESERVED

pytest.importorskip("jax")

BASE = (Path(__file__).parents[2] / "support/models/two_samples.py").read_text(encoding="utf-8")
LOSS = '    return (a * xp.sum(theta["w"] * sample["x"]) + theta["b"] - sample["y"]) ** 2\n'
WEIGHTS, BIAS = "np.full(n, 0.1)", "np.array(0.2)"
FIRST = "np.eye(n)[0]"
SECOND = '{"x": np.eye(n)[1], "y": 1.0}'
LAW = BASE[BASE.index("def law") : BASE.index("def loss")]
OTHER_LINE = BASE.count("\n") + 2
"""Of the first line after the model."""
SWAP = 'axes = {"w": ("i",), "b": ()}\n\ndef symmetry():\n    return [{"i": (1, 0)}]\n'
LINE = BASE[: BASE.index(LOSS)].count("\n") + 1
"""Of the first line of the loss."""


def bent(*changes, more=""):
    """The model with some of its text replaced."""
    text = BASE
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text + "\n" + more


def lost(body, more=""):
    """The model with another loss."""
    return bent((LOSS, body), more=more)


DRAWN = bent(
    (LAW, 'def sample(rng, n, q=0.5):\n    return {"x": rng.standard_normal(n), "y": q}\n\n\n')
)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def refused(here, capsys):
    """Run a command on a model; everything that a refusal must be is checked here."""

    def run(text, message, *words, command="run"):
        Path("my.py").write_text(text, encoding="utf-8")
        steps = ["--steps", "5"] if command in ("run", "compare") else []
        code = cli.main([command, "my.py", *steps, *words])
        captured = capsys.readouterr()
        assert (code, captured.out) == (2, ""), captured
        assert captured.err.startswith("attdyn: ")
        assert captured.err.count("\n") == 1
        assert "Traceback" not in captured.err
        assert "site-packages" not in captured.err
        assert message in captured.err
        assert len(captured.err) < 500
        assert [p.name for p in here.iterdir()] == ["my.py"]
        return captured.err

    return run


def in_python(message, path="my.py", **options):
    def made():
        system = dynamics.load_system(path)
        return system.ReducedPopulation(system.Parameters(), steps=5, **options)

    with pytest.raises(InvalidRequest) as caught:
        made()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


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
    "empty": (bent((f'{{"w": {WEIGHTS}, "b": {BIAS}}}', "{}")), "start gives dict"),
    "object": (bent((WEIGHTS, "np.array([0.1, None])")), "start: w holds no real numbers"),
    "rows": (bent((WEIGHTS, "[[0.1], [0.1, 0.2]]")), "start: w is no array"),
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
    "for ever": ("    return loss(theta, sample, xp, a)\n", "loss raises RecursionError"),
}


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
    assert flags - {"a", "n", "q"} <= RESERVED


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--aa", "3"], "nearest: --a"),
        (["--qq=0.3"], "flag '--qq' is unknown"),
        (["--a", "x"], "a='x' is not a number"),
        (["--a", "inf"], "a=inf is not finite"),
        (["--n", "2.5"], "n=2.5 is not a whole number"),
        (["--n", "9" * 400], "is too large"),
        (["--q", "1.5"], "law gives the probability -0.5"),
        (["--n", "1"], "law raises IndexError"),
        (["--n", "0"], "w holds no real numbers"),
        (["--n", "-3"], "start raises ValueError: negative dimensions"),
        (["--coordinates", "polar"], "coordinates='polar' is unknown"),
        (["--expectation", "exact"], "flag '--expectation' is unknown"),
        (["--full", "empiric"], "nearest: empirical"),
        (["--omega", "0.1"], "omega is of --full empirical"),
        (["--full", "empirical", "--omega", "-1"], "omega=-1"),
        (["--full", "empirical", "--samples", "0"], "samples=0 is too small"),
        (["--full", "empirical", "--batch", "0"], "batch=0 is too small"),
        (["--eta", "0.1,0.2"], "eta=[0.1, 0.2] has 2 entries"),
    ],
)
def test_the_command_line(refused, words, message):
    refused(BASE, message, *words)


def test_a_risk_alone_has_nothing_to_draw_from(refused):
    text = 'import numpy as np\n\n\ndef start():\n    return {"w": np.ones(2)}\n\n\n'
    text += 'def risk(theta, xp):\n    return xp.sum(theta["w"] ** 2)\n'
    refused(text, "nothing to draw from", "--full", "empirical")
    refused(text, "nothing to draw from", "--full", "empirical", command="compare")
    refused(text, "nothing to draw from", "--full", "empirical", command="sweep")


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
        "generator 0 of symmetry is no permutation",
    ),
    "length": (bent(more=SWAP.replace("(1, 0)", "(2, 1, 0)")), "is no permutation of 0..1"),
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
        found = dynamics.load_system(f"{name}.py").closure(steps=20)
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
    "equal": (
        'names = {"on": ("w", 0), "off": ("w", 1)}\nevents = {"T": "d_off > 1"}\n',
        "event T: 'd_off' is always equal to d_on; use d_on",
    ),
    "rule": (
        'events = {"T": "b is large"}\n',
        "event T: 'b is large' is no rule; rules are 'G >= D/2'",
    ),
    "after": ('events = {"T": "b > 0.5 after S"}\n', "event T: there is no event 'S' before it"),
    "zero": ('events = {"T": "b > 1/0"}\n', "event T: '1/0' is no finite number"),
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
    "no entry": ('names = {"alpha": ()}\n', "names: alpha = () is no entry"),
    "used": ('names = {"w_0": ("b",)}\n', "names: 'w_0' is the name of two scalars"),
    "constant name": ('names = {"q": ("w", 0)}\n', "names: 'q' is the name of something else"),
    "time": ('names = {"time": ("w", 0)}\n', "names: 'time' is the name of something else"),
    "panel": ('panels = [("zz",)]\n', "panels: 'zz' is unknown; known are w_0, b, risk"),
    "no panel": ("panels = [3]\n", "panels: 3 is no panel"),
    "panels": ("panels = 3\n", "my.py: panels is int"),
    "group": ('groups = {"z": "value"}\n', "groups: there is no trained array 'z'; there are w, b"),
    "groups": ("groups = 3\n", "my.py: groups is int"),
    "claim": ('claims = ["x"]\n', "claims: 'x' is no function (system, protocol) -> Finding"),
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
    refused(BASE, "has no generated source", "--as", "source", command="derive")


FILES = {
    "raises": (
        bent(more="x = 1 / 0\n"),
        f"ZeroDivisionError: division by zero (my.py, line {OTHER_LINE})",
    ),
    "syntax": (bent(more="def f(:\n"), f"SyntaxError: invalid syntax (my.py, line {OTHER_LINE})"),
    "import": (
        "import nonesuch_at_all\n" + BASE,
        "No module named 'nonesuch_at_all' (my.py, line 1)",
    ),
    "empty": ("", "my.py holds no model: it has no function start(...)"),
    "loss alone": (bent(("def start", "def begin")), "holds no model"),
    "no law": (bent(("def law", "def rule")), "my.py: a model needs law and loss, or risk"),
    "exits": (bent(more="raise SystemExit(0)\n"), "cannot be run: SystemExit"),
}


@pytest.mark.parametrize("case", FILES)
@pytest.mark.parametrize("command", ["run", "derive", "sweep"])
def test_files(refused, case, command):
    text, message = FILES[case]
    refused(text, message, command=command)
    in_python(message)


def test_a_missing_file(here, capsys):
    for name in ("none.py", "far/none.py"):
        assert cli.main(["run", name]) == 2
        captured = capsys.readouterr()
        assert f"system='{name}' is missing" in captured.err
        assert (captured.out, captured.err.count("\n")) == ("", 1)
    Path("folder.py").mkdir()
    assert cli.main(["run", "folder.py"]) == 2
    assert "'folder.py' cannot be read (is a directory)" in capsys.readouterr().err.replace(
        f"{here}/", ""
    )
    assert [p.name for p in here.iterdir()] == ["folder.py"]


def test_a_start_at_random_closes_on_all_and_says_so(here, capsys):
    Path("my.py").write_text(bent((WEIGHTS, "np.random.default_rng(0).standard_normal(n)")))
    assert cli.main(["run", "my.py", "--steps", "20", "--out", "x"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert "closes on 3 of 3: no two entries stay equal" in captured.out


def test_a_run_that_diverges_has_a_remedy(here, capsys):
    """Exit code 1, everything written, no warnings; the certificate is of states before that."""
    Path("my.py").write_text(BASE)
    assert cli.main(["run", "my.py", "--eta", "3", "--steps", "3000", "--out", "x"]) == 1
    captured = capsys.readouterr()
    assert "attdyn: diverged at step " in captured.err
    assert "is above the stability limit 0.6667 there; try eta=0.6" in captured.err
    assert "Warning" not in captured.err
    found = dynamics.load("x")
    assert found.outcome.kind == "diverged"
    closure = found.settings["closure"]
    assert 0 < closure["walked"] < found.outcome.step
    assert 0 < closure["floor"] < 1e-12


@pytest.mark.parametrize("command", ["run", "compare", "sweep", "derive"])
def test_without_jax_one_line_says_how_to_get_it(here, command):
    Path("my.py").write_text(BASE)
    done = without_jax(command, "my.py")
    assert done.returncode == 2
    assert done.stderr.startswith(
        "attdyn: own models need JAX, which is not installed: pip install"
    )
    assert "[models]" in done.stderr
    assert (done.stdout, done.stderr.count("\n")) == ("", 1)
    assert [p.name for p in here.iterdir()] == ["my.py"]


def test_without_jax_the_built_in_systems_work(here):
    done = without_jax("derive", "positional_attention", "--D", "8", "--C", "2")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Gradient descent" in done.stdout
    done = without_jax("systems")
    assert (done.returncode, done.stderr) == (0, "")
    assert all(name in done.stdout for name in registry.system_names())


def without_jax(*words):
    """A command where ``import jax`` fails as it does where JAX is not installed."""
    Path("no_jax").mkdir(exist_ok=True)
    (Path("no_jax") / "jax.py").write_text("raise ModuleNotFoundError(\"No module named 'jax'\")\n")
    run = "import sys; sys.path.insert(0, 'no_jax'); sys.dont_write_bytecode = True; "
    run += "from dynamics.cli import main; sys.exit(main(sys.argv[1:]))"
    try:
        return subprocess.run(
            [sys.executable, "-c", run, *words], capture_output=True, text=True, check=False
        )
    finally:
        (Path("no_jax") / "jax.py").unlink()
        Path("no_jax").rmdir()


def test_parts_that_a_model_does_not_have_are_named():
    with pytest.raises(InvalidRequest, match="nearest: observables"):
        dynamics.Model(start=lambda: {"w": [0.1]}, observable=None)
    with pytest.raises(InvalidRequest, match="a model needs start"):
        dynamics.Model()
