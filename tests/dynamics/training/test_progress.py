import io

import pytest

import dynamics
from dynamics.training import progress


class Clock:
    """Time that passes only as the test says: ``tick`` seconds at every look, from 0 on."""

    def __init__(self):
        self.now, self.tick = 0.0, 0.0

    def __call__(self):
        self.now += self.tick
        return self.now


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("tqdm.std.time", clock)
    return clock


def stderr(monkeypatch, stream):
    monkeypatch.setattr("sys.stderr", stream)
    return stream


@pytest.fixture
def problem(system):
    return system.ReducedPopulation(system.Parameters(D=8, C=2))


def test_long_runs_show_a_bar_on_a_terminal(monkeypatch, clock, problem):
    shown = stderr(monkeypatch, Terminal())
    dynamics.descend(problem, 0.02, 20_000)
    assert shown.getvalue() == ""  # a short one
    clock.tick = 0.4
    dynamics.descend(problem, 0.02, 20_000)
    assert all(
        word in shown.getvalue() for word in ("reduced population: ", "k/20.0k [", "steps/s]")
    )
    assert shown.getvalue().endswith("\r")
    dynamics.flow(problem, 1.0)
    assert "flow, reduced population: " in shown.getvalue()


def test_on_a_pipe_there_is_a_line_every_half_minute(monkeypatch, clock):
    shown = stderr(monkeypatch, io.StringIO())
    with progress.bar("full empirical", 100) as bar:
        for _ in range(100):
            clock.now += 1.0
            bar.say("none diverged")
            bar.update()
    lines = shown.getvalue().splitlines()
    assert [line.split(" [")[0] for line in lines] == [
        f"full empirical:  {n}% {n}.0/100" for n in (30, 60, 90)
    ]
    assert "01:30<00:10" in lines[-1]
    assert lines[-1].endswith("none diverged]")
    assert shown.getvalue().endswith("\n")
