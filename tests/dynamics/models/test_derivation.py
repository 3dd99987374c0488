"""The derivation of a model as a page, multiplicities over sizes, and the proof."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import sympy

import dynamics
from dynamics.cli import main
from dynamics.models.engine.derivation import size_table

MODELS = Path(__file__).resolve().parents[2] / "support" / "models"


SQUARE = """
import numpy as np

def start(n=3):
    return {"W": np.zeros((n, n))}

def risk(theta, xp, n):
    return xp.sum((theta["W"] - 1 - xp.eye(n)) ** 2)
"""


def test_the_page_says_what_stays_equal_and_what_is_kept():
    system = dynamics.load_system(MODELS / "softmax_icl.py")
    text = system.derivation().as_text()
    assert system.closure().summary() in text
    assert "Q_0_0 = Q[0, 0] = Q[1, 1] = Q[2, 2]   (3 entries)" in text
    assert "Q_0_0 + 2*Q_0_1 = 0" in text
    assert "    R = " in text
    assert "Q_0_1' = Q_0_1 - eta*(" in text
    assert "    eta: learning rate; ': the next step" in text


def test_latex_has_the_letters_of_the_model():
    system = dynamics.Model(
        start=lambda: {"v": np.full(2, 0.1)},
        risk=lambda theta, xp, beta=0.5: xp.sum((theta["v"] - beta) ** 2),
        names={"alpha": ("v", 0)},
    )
    latex = dynamics.load_system(system).derivation().as_latex()
    assert r"\alpha' &= \alpha - \eta \left(2 \alpha - 2 \beta\right)" in latex
    assert latex.count(r"\begin{align*}") == latex.count(r"\end{align*}")


def test_a_size_with_an_accidental_coincidence_is_pointed_out():
    """At n = 2 the two targets of this model happen to be equal."""

    def start(n=3):
        return {"a": np.zeros(n)}

    def risk(theta, xp, n):
        target = xp.where(xp.arange(n) == 0, n**2 / 2, 2.0)
        return xp.sum((theta["a"] - target) ** 2)

    own = dynamics.Model(start=start, risk=risk).ReducedPopulation.definition
    section = size_table(own, {"n": [2, 3, 4, 5]}, {})
    assert any("n=2 has fewer scalars" in line for line in section.sentences)


def test_draws_have_no_proof_and_are_said_to_be_draws(capsys):
    assert main(["derive", "single_location_gaussian", "--prove"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "estimated from 4000 draws" in error
    assert main(["derive", "single_location_gaussian"]) == 0
    assert "R is the mean loss over the drawn samples" in capsys.readouterr().out


def test_the_command_prints_pages_and_documents(capsys, tmp_path):
    file = str(MODELS / "softmax_icl.py")
    assert main(["derive", file, "--as", "latex"]) == 0
    assert r"\paragraph{What stays equal}" in capsys.readouterr().out
    assert main(["derive", file, "--json", "--prove"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["entries"], document["scalars"], document["free"]) == (9, 2, 1)
    assert document["grade"] == "proved"
    assert document["scope"] == "for any law with the same equal weights"
    other = tmp_path / "square.py"
    other.write_text(SQUARE)
    assert main(["derive", str(other), "--sizes", "n=2:5:4"]) == 0
    printed = capsys.readouterr().out
    assert "n(W_0_0) = n\n" in printed
    assert "n(W_0_1) = n*(n - 1)" in printed
    for wrong in (["--sizes", "p1=0.1:0.3:3"], ["--sizes", "K=2"], ["--as", "source"]):
        assert main(["derive", file, *wrong]) == 2
        assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_the_linear_space_is_printed_to_the_digits_that_it_has():
    def start():
        return {"a": np.zeros(3), "c": np.full(1, 0.1)}

    def risk(theta, xp):
        part = theta["a"] - xp.mean(theta["a"])
        return (xp.sum(part * np.array([1.0, -0.3, 0.7])) * theta["c"][0] - 1) ** 2

    system = dynamics.Model(start=start, risk=risk)
    reduced = system.ReducedPopulation(system.Parameters(), coordinates="linear")
    run = dynamics.descend(reduced, eta=0.05, steps=100)
    text = system.derivation().as_text()
    letters = dict(zip(reduced.scalars, map(float, run.final_state), strict=True))
    entries = dict(zip(reduced.closure.names, reduced.lift(run.final_state), strict=True))
    assert len(letters) < len(entries)
    for name in entries:
        printed = re.search(rf"^    {name} = (.*z_.*)$", text, re.MULTILINE)[1]
        assert float(sympy.sympify(printed).subs(letters)) == pytest.approx(
            entries[name], abs=1e-13
        )
        at_start = dict.fromkeys(letters, 0.0)
        assert float(sympy.sympify(printed).subs(at_start)) == (0.1 if name == "c_0" else 0.0)


def test_an_event_that_names_minus_another_scalar_is_of_that():
    def start():
        return {"a": np.array([0.1, -0.1])}

    def risk(theta, xp):
        return (theta["a"][0] - theta["a"][1] - 1) ** 2

    names = {"on": ("a", 0), "off": ("a", 1)}
    system = dynamics.Model(start=start, risk=risk, names=names)
    closure = system.ReducedPopulation(system.Parameters(), coordinates="classes").closure
    assert "names: off stays equal to minus on, whose name is used" in closure.remarks
    events = {"attends": "off <= -0.4", "same": "on >= 0.4"}
    named = dynamics.Model(start=start, risk=risk, names=names, events=events)
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
