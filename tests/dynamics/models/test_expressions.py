"""Risk and recursion of models as programs, expressions, numbers of mpmath, and files."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import mpmath
import numpy as np
import precise
import pytest
import sympy

import dynamics
from dynamics.cli import main
from dynamics.models.engine.expressions import exact_weights, expressions_of
from dynamics.models.engine.problem import ModelProblem
from dynamics.models.engine.reduced_risk import ReducedRisk
from dynamics.validation import InvalidRequest
from theory.program import field, run_floats, symbolic
from theory.program.evaluate import gross

MODELS = Path(__file__).resolve().parents[2] / "support" / "models"
LIBRARY = (
    "deep_linear", "induction_head", "markov_attention", "memory_spikes", "scan_and_snap",
    "softmax_icl", "topic_model",
)  # fmt: skip
README = str(MODELS / "positional.py")
FILES = Path(dynamics.__file__).parent / "models"
VIT, MIM = str(FILES / "shallow_vit.py"), str(FILES / "masked_image_modeling.py")
SIZES = {MIM: {"areas": "0,0,0,0,1,1,2,2;0,0,1,1,0,2,0,2", "masked": 4}}


@cache
def expressions(name):
    system = dynamics.load_system(name)
    return system, expressions_of(system.ReducedPopulation.definition)


@cache
def reduced(name):
    system = dynamics.load_system(name)
    return system.ReducedPopulation(system.Parameters(**SIZES.get(name, {})))


@pytest.mark.parametrize(
    "name",
    [
        "linear_icl", "single_location", "softmax_icl", "topic_model", "merged_staircase",
        *(pytest.param(name, marks=pytest.mark.long) for name in (README, VIT, MIM)),
    ],
)  # fmt: skip
def test_gradient_of_a_program_is_that_of_jax(name):
    problem = reduced(name)
    data = problem.payload[0]
    risk = ReducedRisk(problem.realization.program, data, problem.embedding, problem.scalars)
    program = risk.program({"risk": [risk.risk], "gradient": risk.gradient})
    numbers, generator = risk.numbers(data), np.random.default_rng(2)
    start = problem.initial_state
    scales = generator.choice([0.01, 0.1, 0.5, 1.0], (200, 1))
    states = start + scales * generator.standard_normal((200, start.size))
    for state in states:
        found = run_floats(program, np.concatenate([state, numbers]))
        allowed = 1e-12 * gross(program, found)
        expected = ModelProblem.gradient(problem, state)
        places = program.outputs["gradient"]
        assert (np.abs(found[places] - expected) <= allowed[places]).all()
        np.testing.assert_allclose(problem.gradient(state), found[places], rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("name", [pytest.param("induction_head", marks=pytest.mark.long), README])
def test_records_and_derivatives_are_those_of_jax(name):
    problem = reduced(name)
    generator = np.random.default_rng(3)
    states = problem.initial_state + 0.3 * generator.standard_normal((5, problem.layout.size))
    expected = ModelProblem.observables_along(problem, states)
    for quantity, values in problem.observables_along(states).items():
        np.testing.assert_allclose(values, expected[quantity], rtol=1e-11, atol=1e-13)
    slopes = [problem.order_parameters(state) for state in states]
    wanted = [ModelProblem.order_parameters(problem, state) for state in states]
    np.testing.assert_allclose(slopes, wanted, rtol=1e-11, atol=1e-13)
    for state in states[:2]:
        matrix = ModelProblem.jacobian(problem, state)
        allowed = 1e-12 * np.abs(matrix).max()
        np.testing.assert_allclose(problem.jacobian(state), matrix, rtol=1e-10, atol=allowed)


@pytest.mark.parametrize("name", [*LIBRARY, README])
def test_sympy_and_mpmath_read_the_risk_that_is_trained(name):
    """To 1e-45 at 50 digits, and to 1e-13 of the gross of what is computed in floats."""
    system, found = expressions(name)
    problem = system.ReducedPopulation(system.Parameters(), coordinates="classes")
    table = found.table
    roots = [table.risk, *found.slopes()]
    reals = {k: field.simplest(found.made.reals[n]) for n, k in table.reals.items()}
    weights = exact_weights(found.given_numbers[len(table.reals) :])
    given = reals | dict(zip(table.weights.tolist(), weights, strict=True))
    if found.operations <= symbolic.LONG:
        parts, written = [], symbolic.expressions(table.values, roots, found.given)
    else:
        parts, written = symbolic.named_parts(table.values, roots, found.given, problem.scalars)
    letters = [sympy.Symbol(n, real=True) for n in (*problem.scalars, *table.reals)]
    with mpmath.workdps(50):
        compute = sympy.lambdify(letters, written, "mpmath", cse=lambda _: (parts, written))
        for state in np.random.default_rng(0).standard_normal((3, len(problem.scalars))) / 2:
            scalars = dict(zip(table.scalars.tolist(), state.tolist(), strict=True))
            numbers = precise.evaluated(table.values, roots, given | scalars, 60)
            symbolic_ones = compute(*map(mpmath.mpf, state), *map(precise.number, reals.values()))
            for root, one in zip(roots, symbolic_ones, strict=True):
                assert abs(one - numbers[root]) <= 1e-45 * (1 + abs(numbers[root]))
            size = precise.gross(table.values, numbers, table.risk)
            assert abs(problem.risk(state) - numbers[table.risk]) <= 1e-13 * size
            slopes = np.array([float(numbers[root]) for root in roots[1:]])
            np.testing.assert_allclose(problem.gradient(state), slopes, rtol=1e-9, atol=1e-13)


def test_risks_are_what_a_theorist_reads():
    s, u = sympy.symbols("s u", real=True)
    system = dynamics.load_system("linear_icl")
    assert system.risk() == 72 * s**2 * u**2 / 31 - 4 * s * u + 2
    eta = sympy.Symbol("eta", real=True)
    assert sympy.expand(system.recursion()["s"] - (s - eta * (36 * s * u**2 / 31 - u))) == 0
    w = sympy.symbols("w1:5", real=True)
    strengths = [4, 2, 1, sympy.Rational(1, 2)]
    pairs = zip(w, strengths, strict=True)
    risk = sum((a**2 - b) ** 2 for a, b in pairs) / 2
    assert sympy.expand(dynamics.load_system("deep_linear").risk() - risk) == 0
    given = system.risk(system.Parameters(D=2, N=10))
    assert given == sympy.Rational(13, 10) * s**2 * u**2 - 2 * s * u + 1
    _, found = expressions(README)
    assert {str(x) for x in found.risk().free_symbols} == {"v_0", "A_0_1", "A_0_3", "beta", "nu"}
    assert sum(exact_weights(np.array([1 / 3, 1 / 3 + 1e-16, 1 / 3]))) == 1


def test_draws_and_papers_have_no_expression():
    with pytest.raises(InvalidRequest, match="can only be sampled"):
        dynamics.load_system("single_location_gaussian").risk()
    with pytest.raises(InvalidRequest, match="need a model file"):
        dynamics.load_system("positional_attention").recursion()


def test_what_has_no_program_is_named(capsys, tmp_path):
    mine, start = tmp_path / "mine.py", "def start():\n    return {'w': [0.1, 0.1]}\n\n"
    mine.write_text(
        f"{start}def risk(theta, xp):\n    return xp.sum(xp.sort(theta['w'])[0] - 1) ** 2\n"
    )
    with pytest.raises(InvalidRequest, match=r"'sort' of numbers .*mine.py, line 5"):
        dynamics.load_system(mine).risk()
    assert main(["derive", str(mine)]) == 0
    assert "no program: 'sort'" in capsys.readouterr().out
    assert main(["derive", str(mine), "--as", "python"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_field_that_is_trained_is_printed():
    samples = [(0.25, {"x": 1.0, "y": 1.0}), (0.75, {"x": 2.0, "y": -0.5})]

    def held(theta, sample, xp, lam=0.1):
        w, v = xp.sum(theta["w"]), theta["v"][0]
        target = xp.stop_gradient(xp.tanh(v * sample["x"]))
        return (w * sample["x"] - target - sample["y"]) ** 2 / 2 + lam * (v - w) ** 2

    start = {"w": np.full(2, 0.3), "v": np.full(1, 0.2)}
    system = dynamics.Model(start=lambda: start, law=lambda: samples, loss=held)
    problem = system.ReducedPopulation(system.Parameters())
    text, steps = system.derivation().as_text(), system.recursion()
    assert "a step follows no gradient of R" in text
    assert "dR/d" not in text
    state, eta = np.array([0.4, -0.7]), 0.1
    here = dict(zip(("w_0", "v_0"), state, strict=True)) | {"lam": 0.1, "eta": eta}
    after = [float(steps[n].subs({sympy.Symbol(k, real=True): x for k, x in here.items()}))
             for n in problem.scalars]  # fmt: skip
    np.testing.assert_allclose(after, state - eta * problem.gradient(state), rtol=1e-12)
    for page in (text, str(system.describe())):
        for name, value in zip(problem.scalars, after, strict=True):
            line = next(x for x in page.splitlines() if x.strip().startswith(f"{name}' = "))
            printed = sympy.sympify(line.split(" = ", 1)[1])
            assert float(printed.subs(here)) == pytest.approx(value, rel=1e-12)


def test_conserved_combinations_are_put_in(capsys):
    assert main(["derive", "linear_icl", "--eliminate"]) == 0
    text = capsys.readouterr().out
    assert "    u = 2*s\n" in text
    assert "    R = 288*s**4/31 + 2 - 8*s**2\n" in text
    assert "u' = " not in text
    assert main(["derive", "deep_linear", "--eliminate"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


NUMPY_ALONE = """
import sys, importlib.abc

class Refused(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        first = name.partition(".")[0]
        if first not in sys.stdlib_module_names and first != "numpy":
            raise ImportError(name)

sys.meta_path.insert(0, Refused())
import numpy as np
for file in sys.argv[1:]:
    space = {}
    exec(compile(open(file).read(), file, "exec"), space)
    state = space["START"]
    for _ in range(100):
        state = space["step"](state)
    many = space["risk"](np.stack([state, space["START"]]))
    assert many.shape == (2,) and space["gradient"](state).shape == state.shape
    np.savetxt(file + ".txt", np.append(state, many[0]), fmt="%.17g")
"""


def test_a_printed_function_file_runs_on_numpy_alone(capsys, tmp_path):
    names = [*LIBRARY, README, VIT]
    files = [tmp_path / f"{Path(name).stem}.py" for name in names]
    for name, file in zip(names, files, strict=True):
        assert main(["derive", name, "--as", "python"]) == 0
        file.write_text(capsys.readouterr().out)
    words = [sys.executable, "-I", "-c", NUMPY_ALONE, *map(str, files)]
    result = subprocess.run(words, check=False, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    for name, file in zip(names, files, strict=True):
        system, found = expressions(name)
        problem = system.ReducedPopulation(system.Parameters(), coordinates="classes")
        run = dynamics.descend(problem, eta=found.eta, steps=100)
        *state, risk = np.loadtxt(f"{file}.txt")
        np.testing.assert_allclose(state, run.final_state, rtol=1e-13, atol=1e-15)
        assert risk == pytest.approx(run["risk"][-1], rel=1e-13)


def test_a_program_in_json_gives_the_risk(capsys):
    assert main(["derive", "softmax_icl", "--as", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    program = document["program"]
    numbers = [*document["start"], *document["given"], *program["constants"]]
    place = 0
    operations = {
        "sum": lambda x, c: np.dot(x, c), "exp": lambda x, c: np.exp(x[0]),
        "mul": lambda x, c: x[0] * x[1], "div": lambda x, c: x[0] / x[1],
        "integer_pow": lambda x, c: x[0] ** c[0],
    }  # fmt: skip
    for code, first, last, length in program["instructions"]:
        for _ in range(first, last):
            part = slice(place, place := place + length)
            row = [numbers[k] for k in program["index"][part]]
            numbers.append(operations[program["operations"][code]](row, program["count"][part]))
    system = dynamics.load_system("softmax_icl")
    problem = system.ReducedPopulation(system.Parameters())
    (risk,) = program["outputs"]["risk"]
    assert numbers[risk] == pytest.approx(problem.risk(problem.initial_state), rel=1e-14)
    slopes = [numbers[k] for k in program["outputs"]["gradient"]]
    np.testing.assert_allclose(slopes, problem.gradient(problem.initial_state), rtol=1e-13)
