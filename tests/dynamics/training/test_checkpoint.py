import signal
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from runs import same

import dynamics
from dynamics.training import checkpoint, descent
from dynamics.training.checkpoint import Checkpoint
from dynamics.validation import InvalidRequest


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch):
    monkeypatch.setattr(descent, "LARGEST_CHUNK", 512)


@contextmanager
def cut(chunk, how):
    """Do something after so many chunks of what runs inside."""
    advance, count = descent.Run.advance, iter(range(10**6))

    def counted(self):
        remark = advance(self)
        if next(count) == chunk and not self.diverged:
            how()
        return remark

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(descent.Run, "advance", counted)
        yield


interrupt = partial(signal.raise_signal, signal.SIGINT)


def in_pieces(generator, most, run):
    """Run to the end with an interruption at random chunks; the result, and how often it ended."""
    for pieces in range(1, 100):
        number = signal.SIGTERM if pieces % 2 else signal.SIGINT
        with cut(int(generator.integers(0, most)), partial(signal.raise_signal, number)):
            result = run()
        if not result.interrupted:
            return result, pieces
    raise AssertionError("the run never ends")


CASES = {
    "exact": ("ReducedPopulation", (8, 2, 0.5), (), 0.02, 20_000, "log"),
    "oscillating": ("ReducedPopulation", (16, 4, 0.5), (), 0.04, 30_000, "log"),
    "precision lost": ("ReducedPopulation", (8, 2, 0.5), ("spectral", 1e-6), 0.3, 2000, 1),
    "diverged": ("ReducedPopulation", (8, 2, 0.5), (), 0.3, 2000, 1),
    "batches": ("FullEmpirical", (8, 2, 0.5), (110, 3), 0.02, 3000, "log"),
    "memory": ("FullPopulation", (6, 2, 0.5), (), 0.01, 3000, 50),
}


@pytest.mark.parametrize("case", CASES)
def test_an_interrupted_run_ends_bitwise_like_one_that_was_not(system, tmp_path, case):
    view, (size, set_size, q), how, eta, steps, record = CASES[case]
    rule = "adam" if case == "memory" else "gd"
    named = {"batch": 30} if case == "batches" else {}
    problem = getattr(system, view)(system.Parameters(D=size, C=set_size, q=q), *how, **named)
    path, generator = tmp_path / "run.checkpoint", np.random.default_rng(1)
    reference = dynamics.descend(problem, eta, steps, rule, record=record)

    def descend():
        again = getattr(system, view)(problem.parameters, *how, **named)
        return dynamics.descend(again, eta, steps, rule, record=record, checkpoint=path)

    run, pieces = in_pieces(generator, 1 if case in ("precision lost", "diverged") else 12, descend)
    assert pieces > 1
    same(run, reference)
    assert list(tmp_path.iterdir()) == []
    assert case != "exact" or all(run.events[name] for name in ("T0", "T1", "T1_paper"))
    if case in ("oscillating", "precision lost", "diverged"):
        assert run.outcome.kind == case


def test_interruption_while_observables_are_computed_can_be_resumed(system, tmp_path, monkeypatch):
    problem = system.ReducedPopulation(system.Parameters(D=8, C=2))

    class Slow:
        def __getattr__(self, name):
            return getattr(problem, name)

        def observables_along(self, states):
            interrupt()
            return problem.observables_along(states)

    monkeypatch.setattr(descent, "RECORDS_AT_ONCE", 0)  # one record after the other
    monkeypatch.setattr(descent, "AFTER_SIGNAL", 0.0)
    path = tmp_path / "run"
    run = dynamics.descend(Slow(), 0.3, 3000, record=1, checkpoint=path)
    assert run.outcome.kind == "interrupted"
    assert "checkpoint" in run.outcome.remedy
    again = dynamics.descend(problem, 0.3, 3000, record=1, checkpoint=path)
    same(again, dynamics.descend(problem, 0.3, 3000, record=1))


def test_a_remark_is_kept_and_told_again_when_a_run_goes_on(system, tmp_path):
    problem, file = system.ReducedPopulation(system.Parameters()), tmp_path / "near"
    told = pytest.warns(dynamics.TrainingWarning, match="stability limit")
    with told as first, cut(100, interrupt):
        cut_off = dynamics.descend(problem, 0.033, 60_000, checkpoint=file)
    assert cut_off.outcome.kind == "interrupted"
    with pytest.warns(dynamics.TrainingWarning, match="stability limit") as again:
        whole = dynamics.descend(problem, 0.033, 60_000, checkpoint=file)
    assert str(again[0].message) == str(first[0].message)
    assert whole.remarks == cut_off.remarks == (str(first[0].message),)


def test_both_runs_of_a_comparison_go_on(system, tmp_path):
    parameters = system.Parameters(D=8, C=2)
    problems = system.ReducedPopulation(parameters), system.FullPopulation(parameters)
    reference = dynamics.compare(*problems, 0.02, 1500)

    def compare():
        return dynamics.compare(*problems, 0.02, 1500, checkpoint=tmp_path / "both")

    result, pieces = in_pieces(np.random.default_rng(2), 20, compare)
    assert pieces > 2
    same(result.reduced, reference.reduced)
    same(result.full, reference.full)
    assert result.deviation == reference.deviation
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def left(system, tmp_path, monkeypatch):
    """A problem, and the checkpoint of an interrupted run, by a path that no message shortens."""
    monkeypatch.chdir(tmp_path)
    problem, path = system.ReducedPopulation(system.Parameters(D=8, C=2)), Path("left.run")
    with cut(8, interrupt):
        run = dynamics.descend(problem, 0.02, 5000, checkpoint=path)
    assert run.interrupted
    return problem, path


def test_a_changed_request_is_refused_with_the_difference(left, system):
    problem, path = left
    before, parameters = path.read_bytes(), system.Parameters
    spectral = system.ReducedPopulation(parameters(D=8, C=2), "spectral")
    changed = [
        (problem, {"eta": 0.01}, r"eta: stored \[0.02, 0.02\], requested \[0.01, 0.01\]"),
        (problem, {"record": 7}, "record: stored 267 states"),
        (problem, {"rule": "sign"}, "another run"),
        (problem, {"initial": (0.1, 0.0, 0.0)}, "initial: stored state"),
        (system.ReducedPopulation(parameters(D=12, C=2)), {}, "D: stored 8, requested 12"),
        (system.FullPopulation(parameters(D=8, C=2)), {}, "view: stored reduced population, re"),
        (spectral, {}, "problem.expectation: stored exact, requested spectral"),
    ]
    for other, settings, message in changed:
        with pytest.raises(InvalidRequest, match=message) as refused:
            dynamics.descend(other, **({"eta": 0.02, "steps": 5000} | settings), checkpoint=path)
        assert str(path) in str(refused.value)
        assert "\n" not in str(refused.value)
        assert path.read_bytes() == before


def test_a_damaged_checkpoint_is_refused_in_one_line(left, tmp_path):
    problem, path = left
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[whole.index(b'"request"') + 100] ^= 1
    foreign = tmp_path / "foreign.npz"
    np.savez(foreign, thesis=np.ones(3))
    for damaged in (b"", b"\n", whole[:100], whole[:-30], bytes(flipped), foreign.read_bytes()):
        path.write_bytes(damaged)
        with pytest.raises(InvalidRequest, match=r"cannot be read .*; remove the file") as refused:
            dynamics.descend(problem, 0.02, 5000, checkpoint=path)
        assert str(path) in str(refused.value)
        assert "\n" not in str(refused.value)
        assert path.read_bytes() == damaged
    path.write_bytes(whole)
    assert not dynamics.descend(problem, 0.02, 5000, checkpoint=path).interrupted


def test_a_disk_that_cannot_be_written_does_not_end_the_run(left, monkeypatch, caplog):
    problem, path = left
    before = path.read_bytes()
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "SHARE", 0.0)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint.os, "fsync", full)
    store = Checkpoint(path, keep=True)
    assert not dynamics.descend(problem, 0.02, 5000, checkpoint=store).interrupted
    told = [r.message for r in caplog.records if "no space left" in r.message]
    assert len(told) == 1
    assert path.read_bytes() == before
    store.discard()
    assert list(path.parent.iterdir()) == []
