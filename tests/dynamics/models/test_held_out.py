"""A held-out law: its risk and averages at every entry, beside those of training."""

import itertools
import json

import numpy as np
import pytest
from node import needs_node, problem_of

import dynamics
from dynamics import cli
from dynamics.explorer import own_points
from dynamics.explorer.own_model import page_model
from dynamics.validation import InvalidRequest

TILTED = """
import numpy as np


def start():
    return {"w": np.full(4, 0.1)}


def law(q=0.3):
    for sign, chance in ((1.0, q), (-1.0, 1 - q)):
        yield chance, {"x": np.full(4, sign), "y": sign}


def held_out(q, tilt=0.5):
    yield q, {"x": np.array([3.0, 0, 0, 0]), "y": tilt}
    yield 1 - q, {"x": np.array([0, tilt, 0, -1.0]), "y": 1.0}


def loss(theta, sample, xp):
    return (theta["w"] @ sample["x"] - sample["y"]) ** 2 / 2


def observe(theta, sample, xp):
    return {"answer": theta["w"] @ sample["x"]}
"""


@pytest.fixture(scope="module")
def tilted(tmp_path_factory):
    path = tmp_path_factory.mktemp("held_out") / "tilted.py"
    path.write_text(TILTED, encoding="utf-8")
    return dynamics.load_system(path)


def slow_tilted(w, q, tilt):
    first, second = w @ [3.0, 0, 0, 0], w @ [0, tilt, 0, -1.0]
    risk = q * (first - tilt) ** 2 / 2 + (1 - q) * (second - 1) ** 2 / 2
    return risk, q * first + (1 - q) * second


@pytest.mark.parametrize("view", ["ReducedPopulation", "FullPopulation"])
def test_a_law_without_the_symmetry_of_training_is_evaluated_at_every_entry(tilted, view):
    parameters = tilted.Parameters(q=0.2, tilt=0.7)
    closure = tilted.closure(parameters)
    assert (closure.scalars, closure.grade) == (1, "proved")
    problem = getattr(tilted, view)(parameters)
    at = problem.observables(np.full(problem.layout.size, 0.4))
    risk, answer = slow_tilted(np.full(4, 0.4), 0.2, 0.7)
    assert at["held_out_risk"] == pytest.approx(risk, rel=1e-14)
    assert at["held_out_answer"] == pytest.approx(answer, rel=1e-14)
    np.testing.assert_allclose(at["answer"], 4 * 0.4 * (0.2 - 0.8), rtol=1e-14)


@pytest.mark.parametrize(("dtype", "off"), [("float64", 1e-12), ("float32", 1e-5)])
def test_draws_record_them_beside_fresh_samples(tilted, dtype, off):
    how = {"samples": 20, "seed": 1, "batch": 5, "dtype": dtype, "test_samples": 10}
    run = dynamics.descend(tilted.FullEmpirical(tilted.Parameters(), **how), 0.1, 20)
    kinds = itertools.product(("", "held_out_", "test_"), ("risk", "answer"))
    assert set(map("".join, kinds)) <= set(run.observables)
    found = [run[f"held_out_{name}"][-1] for name in ("risk", "answer")]
    assert found == pytest.approx(slow_tilted(run.final_state, 0.3, 0.5), rel=off)


DECLARED = {"reduced": abs, "sizes": {"w": 1}, "configurations": list, "names": {"w": ("w",)}}


def problem(given, **parts):
    parts = parts or {
        "law": lambda: [(1.0, {"x": 1.0})],
        "loss": lambda theta, sample, xp: (theta["w"] - sample["x"]) ** 2,
    }
    model = dynamics.Model(start=lambda: {"w": 0.1}, held_out=lambda: given, **parts)
    return model.ReducedPopulation(model.Parameters())


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (lambda: problem([(0.5, {"x": 1.0})]), "the probabilities of held_out sum to 0.5, not to"),
        (lambda: problem([(1.0, {"z": 1.0})]), "held_out gives z; a sample has x"),
        (lambda: problem([(1.0, {"x": [1.0, 2.0]})]), "held_out, x gives the shape (1, 2) for 1"),
        (lambda: problem([]), "held_out gives no sample"),
        (lambda: problem(3), "gives int; held_out can yield (probability, sample) pairs"),
        (lambda: problem([], risk=abs), "a risk in closed form; leave one of them out"),
        (lambda: problem([], law=list, loss=abs, **DECLARED), "a declared reduction; leave one of"),
    ],
)
def test_a_wrong_law_is_refused_in_one_line(request_, message):
    with pytest.raises(InvalidRequest) as caught:
        request_()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_run_compare_and_describe_have_them(tilted, tmp_path, capsys):
    words = ["--steps", "30", "--eta", "0.1", "--force", "--out", str(tmp_path / "out")]
    path = tilted.origin.path
    assert cli.main(["compare", path, *words, "--json"]) == 0
    final = json.loads(capsys.readouterr().out)["final"]
    for name in ("held_out_risk", "held_out_answer"):
        assert final["reduced"][name] == pytest.approx(final["full"][name], rel=1e-12)
    assert cli.main(["run", path, *words]) == 0
    assert "held_out_risk=" in capsys.readouterr().out
    assert cli.main(["describe", path]) == 0
    described = " ".join(capsys.readouterr().out.split())
    assert "2 samples of a held-out law, not used in training" in described


@needs_node
def test_a_page_moves_the_constants_of_the_held_out_law(tilted, monkeypatch):
    monkeypatch.setattr(own_points, "MOST_TRIED", 0)
    script = page_model(tilted, tilted.Parameters()).script
    page = problem_of(script, {"q": 0.2, "tilt": 0.7}, [[0.4]])
    risk, answer = slow_tilted(np.full(4, 0.4), 0.2, 0.7)
    found = dict(zip(page["names"], page["values"][0][2], strict=True))
    assert found["held_out_risk"] == pytest.approx(risk, rel=1e-13)
    assert found["held_out_answer"] == pytest.approx(answer, rel=1e-13)
