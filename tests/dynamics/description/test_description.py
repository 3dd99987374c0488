"""``attdyn describe`` and ``system.describe()``: every symbol of every system has a meaning."""

import dataclasses
import json
import re

import pytest

import dynamics
from dynamics.cli import main
from dynamics.description.model_file import LISTED
from dynamics.library import library_names

AUTOMATIC = re.compile(
    r"^(constant of|trained array|array \(|value of entry|common value of|observable$|observable,"
    r"|first step)"
)
"""Beginnings of generated meanings, for symbols that a model file does not document."""
OWN = '''"""A net of two weights.

Its risk is :math:`R = (w^2 - t)^2`.

:target: product of the weights
:w: weights
"""


def start(w0=0.1):
    return {"w": [w0, w0]}


def risk(theta, xp, target=1.0):
    return (theta["w"][0] * theta["w"][1] - target) ** 2 / 2


limits = ("w0 > 0",)
events = {"half": "w_0 >= target/2", "still": "w_0 stops growing after half"}


def observables(theta, xp):
    return {"product": theta["w"][0] * theta["w"][1]}
'''


@pytest.fixture(scope="module")
def described():
    return {name: dynamics.load_system(name).describe() for name in dynamics.system_names()}


def test_observables_are_neither_scalars_nor_rates(described):
    names = {one.name for one in described["positional_attention"].observables}
    assert {"G", "risk"} <= names
    assert not {"alpha", "gamma", "rho", "d_alpha"} & names


@pytest.mark.parametrize("name", dynamics.system_names())
def test_no_symbol_is_without_a_meaning(name, described):
    """All that a run can report, all that a rule speaks of, and all that a page uses, is told."""
    system, description = dynamics.load_system(name), described[name]
    told = {one.name: one.meaning for one in description.symbols}
    told |= {one.name: one.words for one in (*description.observables, *description.events)}
    assert all(told.values())
    constants = {field.name for field in dataclasses.fields(system.Parameters)}
    problem = system.ReducedPopulation(system.Parameters())
    reported = set(problem.observables(problem.initial_state))
    if system.model is None or problem.closure.scalars <= LISTED:
        reported |= set(problem.state_names)
    rates = {entry for entry in reported if entry.startswith("d_")}
    assert constants | (reported - rates) | {rule.name for rule in problem.events} <= set(told)
    spoken = {str(s) for rule in problem.events for e in rule.expressions for s in e.free_symbols}
    assert {s for s in spoken if not s.startswith("d_")} <= set(told)


@pytest.mark.parametrize("name", library_names())
def test_models_of_the_library_say_what_their_symbols_mean(name, described):
    description = described[name]
    for symbol in description.symbols:
        several = ", ..., " in symbol.name  # unnamed scalars, told by their array
        assert several or not AUTOMATIC.match(symbol.meaning), symbol
    for one in (*description.observables, *description.events):
        assert not AUTOMATIC.match(one.words), one
    rows = (*description.symbols, *description.observables, *description.events)
    names, model = {one.name for one in rows}, dynamics.load_system(name).model
    others = {*model.start(D=2, rank=1)} if name == "linear_icl" else {"c*"}
    others |= {*model.start()} if model.reduced is not None else set()
    for key in set(model.documented.fields) - others:
        beginning = key.rstrip("*")
        assert any(n == key or (key != beginning and n.startswith(beginning)) for n in names), key


def test_a_file_of_ones_own_is_described(tmp_path, capsys):
    own = tmp_path / "own.py"
    own.write_text(OWN)
    description = dynamics.load_system(own).describe()
    rows = {one.name: one for one in description.symbols}
    assert rows["target"].meaning == "product of the weights"
    assert (rows["w0"].meaning, rows["w0"].default) == ("constant of start", "0.1")
    assert rows["w0"].allowed == "a finite number; w0 > 0"
    assert rows["w_0"].meaning == "common value of w[0] and 1 equal entry"
    (_, product) = description.observables
    assert product.code == "theta['w'][0] * theta['w'][1]"
    half, still = description.events
    assert (half.code, half.words) == ("w_0 >= target/2", "first step at which it holds")
    assert still.words.endswith("sought from `half` on")
    assert "Its risk is R = (w^2 − t)^2." in str(description)
    assert main(["describe", str(own), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [event["name"] for event in document["events"]] == ["half", "still"]
    assert document["model"][-1]["equations"][0]["right"].startswith("w_{0} - \\frac{\\eta}{2}")
    for wrong in ([str(own), "--json", "--latex"], ["positional"], [str(own), "--w0", "-1"]):
        assert main(["describe", *wrong]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
    assert "w0 > 0" in error


def test_latex_is_a_whole_document(capsys):
    assert main(["describe", "shallow_vit", "--standalone"]) == 0
    latex = capsys.readouterr().out
    assert latex.startswith("\\documentclass")
    for name in ("align*", "description", "document"):
        assert latex.count(rf"\begin{{{name}}}") == latex.count(rf"\end{{{name}}}") > 0
    assert latex.count("$") % 2 == 0
