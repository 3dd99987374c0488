"""Update rules on the command line: several in one picture, pages, and what is refused."""

import json

import pytest

import dynamics
from dynamics.cli import main

MODEL = '''"""A model with a rule of its own."""
eta, steps = 0.05, 40


def start(u=0.3, b1=0.7):
    return {"s": [u, -u, b1], "v": [u, u]}


def risk(theta, xp):
    s, v = theta["s"], theta["v"]
    return (s[0] * s[1] * v[0] * v[1] + s[2] ** 2 - 1.0) ** 2


events = {"near": "s_2 >= 0.9"}


def step(gradient, memory, entry, step, eta, xp):
    return -eta * xp.where(gradient > 0, gradient, gradient / 2), memory
'''


@pytest.fixture
def own(tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text(MODEL)
    return "own.py"


def test_several_rules_are_one_picture(own, capsys):
    words = ["run", own, "--rule", "gd:.1,adam:.01,step:.05", "--rule.b1", "0.5", "--out", "x"]
    assert main([*words, "--csv", "x.csv", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["rules"] == ["gd", "adam, b1 = 0.5", "step"]
    assert document["eta"] == [0.1, 0.01, 0.05]
    assert document["files"] == ["overlay.png"]
    result = dynamics.load("x")
    system = dynamics.load_system(own)
    problem = system.ReducedPopulation(system.Parameters())
    for run, eta, rule in zip(
        result.runs, (0.1, 0.01, 0.05), ("gd", dynamics.rule("adam", b1=0.5), "step"), strict=True
    ):
        alone = dynamics.descend(problem, eta, 40, rule, record="log")
        assert (run.states == alone.states).all()
        assert run.events["near"] == alone.events["near"]
    assert main([*words, "--force"]) == 0
    assert "adam, b1 = 0.5, eta = 0.01" in capsys.readouterr().out


@pytest.mark.parametrize("words", ["adam --rule.b1 0.5", "momentum", ""])
def test_pages_are_of_the_rule_asked_for(own, words, capsys):
    flags = ["--rule", *words.split()] if words else []
    assert main(["derive", own, *flags]) == 0
    page = capsys.readouterr().out
    assert main(["describe", own, *flags]) == 0
    about = capsys.readouterr().out
    name = words.split()[0] if words else "step"
    count = "4 scalars" if name == "step" else "3 scalars"
    for text in (page, about):
        assert f"Update rule: {name}" in text
        assert f"closes on {count} of 5 entries" in text
        assert "Gradient descent" not in text
    assert ("s_0 = s[0] = -s[1]" in page) == (name != "step")
    assert "g(s_2) = 4*s_2*(" in page
    assert "s_1" in about or name != "step"
    if name == "adam":
        assert "b1 = 0.5" in page
        assert "m_2' = b2*m_2 + g**2*(1 - b2)" in page


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("derive {} --rule adam --as python", "rule applies to the derivation page"),
        ("derive {} --rule adam --momentum 0.5", "momentum=0.5 is not a constant of the rule adam"),
        ("derive {} --rule step --rule.b1 0.5", "b1 is not a constant of the rule step"),
        ("describe linear_icl --rule step", "needs a model file with this function"),
        ("run {} --time 3 --rule adam", "give rule (descent) or time (flow)"),
        ("run {} --rule gd:.1,adam:.1 --eta 1", "needs its own learning rate"),
        ("run {} --rule gd:.1,sign:.1 --rule.b1 .5", "rule.b1 is a constant of none of the rules"),
        ("run {} --rule gd:.1,adam:.01 --resume", "resume needs one rule"),
        ("compare {} --rule gd:.1,adam:.01", "is unknown; rule can be"),
        ("sweep {} --rule adam --eta .1 --rule.b1 .5:1", "is not a grid"),
    ],
)
def test_what_has_no_meaning_is_refused_in_a_line(own, words, message, capsys):
    assert main(words.format(own).split()) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert (err.count("\n"), out) == (1, "")


def test_a_sweep_over_a_constant_of_a_rule(own, capsys):
    words = ["sweep", own, "--rule", "adam", "--eta", "0.01", "--rule.b1", "0.5:0.9:3"]
    assert main([*words, "--steps", "20", "--workers", "0", "--json", "--out", "s.zarr"]) == 0
    assert json.loads(capsys.readouterr().out)["request"]["axes"] == {"rule.b1": [0.5, 0.7, 0.9]}
