"""The derivation of a model as a page, multiplicities over sizes, and the proof."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import sympy

import dynamics
from dynamics.cli import main

SQUARE = """
import numpy as np

def start(n=3):
    return {"W": np.zeros((n, n))}

def risk(theta, xp, n):
    return xp.sum((theta["W"] - 1 - xp.eye(n)) ** 2)
"""


def test_latex_has_the_letters_of_the_model():
    """An entry W_1[0, 0] is no entry W[1, 0, 0]."""

    def risk(theta, xp, beta=0.5):
        others = xp.sum((theta["W_1"] - xp.eye(2)) ** 2) + xp.sum((theta["V"] - 1) ** 4)
        return xp.sum((theta["v"] - beta) ** 2) + others

    start = {"v": np.full(2, 0.1), "W_1": np.zeros((2, 2)), "V": np.zeros((1, 2))}
    system = dynamics.Model(start=lambda: start, risk=risk, names={"alpha": ("v", 0)})
    latex = dynamics.load_system(system).derivation().as_latex()
    assert r"\alpha' &= \alpha - \eta \left(2 \alpha - 2 \beta\right)" in latex
    assert latex.count(r"\begin{align*}") == latex.count(r"\end{align*}")
    assert "(W_{1})_{0,0}" in latex
    assert "W_{1,0,0}" not in latex
    assert "V_{0,0}" in latex


def test_draws_have_no_proof_and_are_said_to_be_draws(capsys):
    assert main(["derive", "single_location_gaussian", "--prove"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "estimated from 4000 draws" in error
    assert main(["derive", "single_location_gaussian"]) == 0
    assert "R is the mean loss over the drawn samples" in capsys.readouterr().out


def test_the_command_prints_pages_and_documents(capsys):
    file = Path(__file__).resolve().parents[2] / "support/models/softmax_icl.py"
    assert main(["derive", str(file)]) == 0
    text, system = capsys.readouterr().out, dynamics.load_system(file)
    assert system.closure().summary() in text
    for part in (
        "Q_0_0 = Q[0, 0] = Q[1, 1] = Q[2, 2]   (3 entries)", "Q_0_0 + 2*Q_0_1 = 0", "    R = ",
        "Q_0_1' = Q_0_1 - eta*(", "    eta: learning rate; ': the next step",
    ):  # fmt: skip
        assert part in text
    assert main(["derive", str(file), "--as", "latex"]) == 0
    assert r"\paragraph{What stays equal}" in capsys.readouterr().out
    assert main(["derive", str(file), "--json", "--prove"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["entries"], document["scalars"], document["free"]) == (9, 2, 1)
    assert document["grade"] == "proved"
    assert document["scope"] == "for any law with the same equal weights"
    for wrong in (["--sizes", "p1=0.1:0.3:3"], ["--sizes", "K=2"], ["--as", "source"]):
        assert main(["derive", str(file), *wrong]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_multiplicities_are_polynomials_and_a_coincidence_is_pointed_out(capsys, tmp_path):
    """At n = 2 the two targets of the second model happen to be equal."""
    mine = tmp_path / "square.py"
    mine.write_text(SQUARE)
    assert main(["derive", str(mine), "--sizes", "n=2:5:4"]) == 0
    printed = capsys.readouterr().out
    assert "n(W_0_0) = n\n" in printed
    assert "n(W_0_1) = n*(n - 1)" in printed
    assert "fewer scalars" not in printed
    mine.write_text(SQUARE.replace("- xp.eye(n)", "- (n - 2) * xp.eye(n)"))
    assert main(["derive", str(mine), "--sizes", "n=2:5:4"]) == 0
    assert "n=2 has fewer scalars" in capsys.readouterr().out


def test_the_linear_space_is_printed_to_the_digits_that_it_has():
    def risk(theta, xp):
        part = theta["a"] - xp.mean(theta["a"])
        return (xp.sum(part * np.array([1.0, -0.3, 0.7])) * theta["c"][0] - 1) ** 2

    system = dynamics.Model(start=lambda: {"a": np.zeros(3), "c": np.full(1, 0.1)}, risk=risk)
    reduced = system.ReducedPopulation(system.Parameters(), coordinates="linear")
    run = dynamics.descend(reduced, eta=0.05, steps=100)
    text = system.derivation().as_text()
    letters = dict(zip(reduced.scalars, map(float, run.final_state), strict=True))
    entries = dict(zip(reduced.closure.names, reduced.lift(run.final_state), strict=True))
    assert len(letters) < len(entries)
    for name in entries:
        printed = re.search(rf"^    {name} = (.*z_.*)$", text, re.MULTILINE)[1]
        found, at_start = sympy.sympify(printed), dict.fromkeys(letters, 0.0)
        assert float(found.subs(letters)) == pytest.approx(entries[name], abs=1e-13)
        assert float(found.subs(at_start)) == (0.1 if name == "c_0" else 0.0)


def test_an_event_that_names_minus_another_scalar_is_of_that():
    given = {
        "start": lambda: {"a": np.array([0.1, -0.1])},
        "risk": lambda theta, xp: (theta["a"][0] - theta["a"][1] - 1) ** 2,
        "names": {"on": ("a", 0), "off": ("a", 1)},
    }
    closure = dynamics.load_system(dynamics.Model(**given)).closure()
    assert "names: off stays equal to minus on, whose name is used" in closure.remarks
    named = dynamics.Model(**given, events={"attends": "off <= -0.4", "same": "on >= 0.4"})
    problem = named.ReducedPopulation(named.Parameters(), coordinates="classes")
    run = dynamics.descend(problem, eta=0.01, steps=100)
    assert run.events["attends"].step == run.events["same"].step > 0


def test_each_group_has_its_learning_rate_in_the_printed_step(tmp_path, capsys):
    mine = tmp_path / "mine.py"
    mine.write_text(
        "import numpy as np\n\n\n"
        "def start(n=4):\n    return {'u': np.full(n, 0.1), 'v': np.full(1, 0.2)}\n\n\n"
        "def risk(theta, xp):\n    return (xp.sum(theta['u']) * theta['v'][0] - 1) ** 2 / 2\n\n\n"
        "groups = {'u': 'keys'}\n"
    )
    words = ["derive", str(mine), "--eta"]
    assert main([*words, "0.1,0.05"]) == 0
    text = capsys.readouterr().out
    assert "eta_keys: learning rate of keys, 0.1; eta_entries: learning rate of entries" in text
    assert "u_0' = u_0 - eta_keys*v_0*(4*u_0*v_0 - 1)" in text
    assert "v_0' = v_0 - 4*eta_entries*u_0*(4*u_0*v_0 - 1)" in text
    assert main([*words, "0.1"]) == 0
    assert "v_0' = v_0 - 4*eta*u_0*(" in capsys.readouterr().out
    assert main([*words, "0.1,0.05,3"]) == 2
    assert "one for each of keys, entries" in capsys.readouterr().err
