"""Tables and summaries of runs, and the showcase laid beside another law."""

import json

import pytest

import dynamics
from dynamics.cli import report
from dynamics.papers.positional_attention.system import what_decides
from theory.papers.positional_attention.separability import criterion

SHOWCASE = ["positional_attention", "--out", "x"]


def test_times_that_mislead_have_a_footnote_and_what_is_lost_again_is_said(system):
    run = dynamics.descend(system.ReducedPopulation(system.Parameters(D=8, C=2)), 0.03, 1100)
    first = run.events["patch_association"]
    assert first.step == 1
    assert 0 < first.state[1] - first.state[2] < 1e-4  # gamma above rho, and hardly
    table = report.table(system, run)
    notes = {rule.name: rule.note for rule in system.ReducedPopulation.events if rule.note}
    assert {"patch_association", "T1_paper"} == set(notes)
    for name, note in notes.items():
        assert " ".join(table.split()).count(f"{name}: {note}") == 1
    assert "no longer" not in table
    problem = system.ReducedPopulation(system.Parameters(D=9, C=3, beta=0.3, random_sets="mixed"))
    run = dynamics.descend(problem, 1.0, 3000)
    lines = [" ".join(line.split()) for line in report.table(system, run).splitlines()]
    assert "patch_association 1 1 (no longer at the end)" in lines
    (end,) = [line for line in lines if line.startswith("at the end")]
    assert end.endswith(", patch_association=0")
    assert report.document(run)["final"]["patch_association"] == 0


def test_the_showcase_lays_assumption_1_beside_it(call, elsewhere, system):
    code, out, _ = call("compare", *SHOWCASE, "--steps", "40")
    assert code == 0
    default = system.default_runs["compare"]
    shown = system.Parameters(**default.parameters)
    assert criterion(shown.set_law, shown.L, shown.p) == pytest.approx(16 / 27)
    assert f"criterion           {what_decides(shown)}\n" in out
    assert "(L-1)(1-1/C)^p = 0.593 < 1" in out
    assert "compared with       random sets = any, reduced\n" in out
    assert "showcase            --D 9 --C 3 --random_sets mixed, where no flag is given; its" in out
    summary = json.loads((elsewhere / "x" / "summary.json").read_text())
    run = dynamics.descend(system.ReducedPopulation(system.Parameters(D=9, C=3)), default.eta, 40)
    assert summary["beside"]["parameters"] == {"random_sets": "any"}
    assert summary["beside"]["final"]["alpha"] == run["alpha"][-1]
    assert "beside.png" in summary["files"]


@pytest.mark.parametrize(
    ("command", "words", "changed"),
    [
        ("compare", "", {}),
        ("run", "--q 0.4", {"q": 0.4}),
        ("compare", "--D 6", {"D": 6}),
        ("run", "--D 9 --C 3 --random_sets any", {"random_sets": "any"}),
    ],
)
@pytest.mark.usefixtures("undrawn")
def test_a_flag_changes_its_own_parameter_of_the_showcase_only(call, command, words, changed):
    code, out, _ = call(command, *SHOWCASE, "--steps", "20", *words.split(), "--json")
    document = json.loads(out)
    shown = {"D": 9, "C": 3, "random_sets": "mixed", "q": 0.5, **changed}
    assert (code, {name: document["parameters"][name] for name in shown}) == (0, shown)
    said = "its law is the mixed one" in document.get("showcase", "")
    assert said == (shown["random_sets"] == "mixed")
    assert ("beside" in document) == (command == "compare" and not changed)
