import dynamics
from dynamics.cli import report


def notes(system):
    return {rule.name: rule.note for rule in system.ReducedPopulation.events if rule.note}


def test_times_that_mislead_have_a_footnote_in_the_words_of_the_theory(system):
    problem = system.ReducedPopulation(system.Parameters(D=8, C=2))
    run = dynamics.descend(problem, 0.03, 1100)
    first = run.events["patch_association"]
    assert first.step == 1
    assert 0 < first.state[1] - first.state[2] < 1e-4  # gamma above rho, and hardly
    words = " ".join(report.table(system, run).split())
    assert {"patch_association", "T1_paper"} == set(notes(system))
    for name, note in notes(system).items():
        assert words.count(f"{name}: {note}") == 1


def test_a_condition_that_is_lost_again_is_said_beside_its_first_time(system):
    problem = system.ReducedPopulation(system.Parameters(D=9, C=3, beta=0.3, random_sets="mixed"))
    run = dynamics.descend(problem, 1.0, 3000)
    lines = report.table(system, run).splitlines()
    (line,) = [line for line in lines if line.startswith("patch_association  ")]
    assert " ".join(line.split()) == "patch_association 1 1 (no longer at the end)"
    (end,) = [line for line in lines if line.startswith("at the end")]
    assert end.endswith(", patch_association=0")
    assert report.document(run)["final"]["patch_association"] == 0
    kept = dynamics.descend(system.ReducedPopulation(system.Parameters(D=8, C=2)), 0.03, 1100)
    assert "no longer" not in report.table(system, kept)
