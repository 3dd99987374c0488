"""Verdicts are measured: a wrong update, another law, another noise give other ones."""

import dataclasses
import json
import signal

import numpy as np
import pytest
from verdicts import moved, verdict_of, verdicts

import dynamics
from dynamics.cli import main
from dynamics.models.engine.program import on_device
from dynamics.papers.positional_attention.empirical import FullEmpirical
from dynamics.papers.positional_attention.full import FullPopulation
from dynamics.training.progress import interruption
from dynamics.validation import InvalidRequest
from dynamics.verdicts import positional_attention as table
from dynamics.verdicts import verify
from dynamics.verdicts.positional_attention import lemmas, phases
from dynamics.verdicts.verify import checks

SYSTEM = dynamics.load_system("positional_attention")
AT, SMALL = SYSTEM.Parameters(D=20, C=4, q=0.5), SYSTEM.Parameters(D=8, C=2, q=0.5)


class Lopsided(FullPopulation):
    """Patch 0 carries no feature half as often: the sets are no longer alike."""

    def __init__(self, parameters):
        super().__init__(parameters)
        tilted = self.expectation.data.chances * np.where(
            self.expectation.data.values[:, 0] == 0, 0.5, 1.0
        )
        self.expectation.data = self.expectation.data._replace(chances=tilted / tilted.sum())


class Drifting(FullEmpirical):
    """The noise has a mean, y times a direction orthogonal to w* (without y it would cancel)."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        data, embedding = self.payload
        patches, labels = (np.array(data.samples[name]) for name in "Xy")
        patches[:, :, 1] += 0.1 * self.parameters.sigma * labels[:, None]
        moved = on_device({"X": patches, "y": labels})
        self.payload = data._replace(samples=moved), embedding


def backwards(slope):
    return slope * (1.0, -1.0, 1.0)


@pytest.mark.parametrize(
    ("wrong", "parameters", "expected"),
    [
        (moved(SYSTEM, backwards), AT, {"Lemma 4.3": None, "Theorem 4.1": True, "Event II": True}),
        (dataclasses.replace(SYSTEM, FullPopulation=Lopsided), None, {"Lemma 4.1": True}),
        (dataclasses.replace(SYSTEM, FullEmpirical=Drifting), SMALL, {"Lemma 4.2": True}),
    ],
)
def test_what_is_broken_flips_what_rests_on_it(wrong, parameters, expected, monkeypatch):
    monkeypatch.setattr(lemmas, "COUNTS", lemmas.COUNTS[:3])
    assert verdicts(SYSTEM, *expected, parameters=parameters) == [*expected.values()]
    assert verdicts(wrong, *expected, parameters=parameters) == [False] * len(expected)


@pytest.mark.parametrize("name", ["positional_attention", "masked_image_modeling", "shallow_vit"])
def test_every_claim_has_a_check_and_nothing_else_has(name):
    system = dynamics.load_system(name)
    assert set(checks(system)) == {claim.source for claim in system.claims}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"D": 24, "C": 4}, {"Event I": True, "Event III": False, "Lemma 4.1": None}),
        ({"D": 8, "C": 2, "q": 0.5}, {"Theorem 3.1": True}),
        ({"D": 64, "C": 4, "q": 0.1}, {"Theorem 3.2": True}),
        ({"D": 4096, "C": 4, "q": 0.5}, {"Theorem 3.2": None}),  # takes too long
        ({"D": 16, "C": 4}, {"Event II": None}),  # depends on the horizon
        ({"D": 8, "C": 4, "q": 0.1}, {"Theorem 4.1": None, "Theorem 3.2": None}),  # no room
        ({"D": 9, "C": 3, "q": 0.6, "beta": 0.7}, {"Lemma 4.3": False}),  # gamma falls
    ],
)
def test_verdicts_at_a_size(given, expected):
    parameters = SYSTEM.Parameters(**given)
    assert verdicts(SYSTEM, *expected, parameters=parameters) == [*expected.values()]


@pytest.mark.parametrize(
    ("claim", "given", "word", "reason"),
    [
        # From alpha0 = 5 steps of 0.02 are far above the stability limit: A grows to 1e14.
        ("Lemma 4.1", {"C": 2, "alpha0": 5.0}, "at this step size", "has diverged at step"),
        # One random set without zeros.
        ("Event I", {"C": 4, "q": 1.0}, "to this time",
         "attention never takes over the growth of the signal"),
    ],
)  # fmt: skip
def test_what_diverges_or_does_not_come_decides_nothing(claim, given, word, reason):
    found = verdict_of(SYSTEM, claim, SYSTEM.Parameters(D=8, **given))
    assert found.word.startswith(f"not decidable {word}")
    assert reason in found.evidence["reason"]
    assert "sensitive to rounding" not in found.evidence["reason"]


def test_event_one_shows_the_number_that_contradicts_it_and_needs_clear_errors(monkeypatch):
    """G has not moved at all: it is the error at T0, or alpha, that does."""
    for given, quantity, measured in (({"beta": 3.0}, "share of the gap", 0.3065),
                                      ({"nu": 0.1}, "least step of alpha", 0.0)):  # fmt: skip
        found = verdict_of(SYSTEM, "Event I", SYSTEM.Parameters(D=8, C=2, **given))
        assert found.holds is False
        assert found.evidence["quantity"].startswith(quantity)
        assert found.measured == pytest.approx(measured, rel=0.02)
        assert found.evidence["table"][0]["value"] < 1e-4
    draws = phases.sampled_error
    monkeypatch.setattr(phases, "sampled_error", lambda *given: (draws(*given)[0], 0.1))
    assert verdict_of(SYSTEM, "Event I", AT).holds is None


def test_command_prints_a_table_and_one_json_document(tmp_path, capsys):
    words = ["verify", "positional_attention", "--claims", "theorem 3.1,Lemma 4.1"]
    assert main([*words, "--out", str(tmp_path / "one")]) == 0
    assert "does not hold here" in capsys.readouterr().out
    assert (tmp_path / "one" / "lemma_4_1.png").stat().st_size > 10_000
    assert main([*words, "--json", "--out", str(tmp_path / "one")]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["claim"] for row in document["claims"]] == ["Theorem 3.1", "Lemma 4.1"]
    assert {"claim", "holds", "measured", "bound", "evidence"} <= set(document["claims"][0])
    assert main([*words[:-1], "Lema 4.1", "--out", str(tmp_path / "x")]) == 2
    assert "nearest: Lemma 4.1" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_an_interrupted_check_is_not_a_verdict(tmp_path, monkeypatch, capsys):
    def stopped(system, protocol):
        signal.raise_signal(signal.SIGINT)
        raise ValueError("what a run that was cut short may lead to")

    monkeypatch.setattr(table, "CHECKS", dict(table.CHECKS) | {"Event I": stopped})
    out = tmp_path / "v"
    words = ["verify", "positional_attention", "--out", str(out), "--claims"]
    assert main([*words, "Theorem 3.1,Event I,Event II"]) == 130
    said = capsys.readouterr()
    assert "interrupted after 1 claims" in said.err
    document = json.loads((out / "summary.json").read_text())
    assert document["interrupted"]
    assert [row["claim"] for row in document["claims"]] == ["Theorem 3.1"]
    assert main([*words, "Event I"]) == 130
    assert json.loads((out / "summary.json").read_text()) == document


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_an_interrupted_check_of_a_script_ends_it(number, monkeypatch):
    def stopped(system, protocol):
        with interruption():  # as a run does
            signal.raise_signal(getattr(signal, number))
        return dynamics.Finding(True, "what is left of a run", 0.06, 0.05, "none")

    monkeypatch.setattr(table, "CHECKS", dict(table.CHECKS) | {"Event I": stopped})
    with pytest.raises(KeyboardInterrupt):
        dynamics.verify("positional_attention", claims=["Event I"])


def test_a_check_that_cannot_be_made_there_does_not_stop_the_others(monkeypatch):
    def refused(system, protocol):
        raise InvalidRequest("D=7 is too small")

    changed = dict(checks(SYSTEM)) | {"Lemma 4.1": refused}
    monkeypatch.setattr(verify, "checks", lambda system: changed)
    first, second = dynamics.verify(SYSTEM, AT, ["Lemma 4.1", "Section 4.1, gamma and rho"])
    assert first.holds is None
    assert "D=7 is too small" in first.evidence["reason"]
    assert second.holds
    with pytest.raises(InvalidRequest):
        dynamics.verify(SYSTEM, None, ["Lemma 4.1"])
