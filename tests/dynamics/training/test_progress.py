import io
import multiprocessing

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
    monkeypatch.setattr(progress, "clock", clock)
    return clock


def stderr(monkeypatch, stream):
    monkeypatch.setattr("sys.stderr", stream)
    return stream


@pytest.fixture
def problem(system):
    return system.ReducedPopulation(system.Parameters(D=8, C=2))


def test_long_runs_show_a_bar_on_a_terminal(monkeypatch, clock, problem):
    shown = stderr(monkeypatch, Terminal())
    clock.tick = 0.4
    dynamics.descend(problem, 0.02, 20_000)
    text = shown.getvalue()
    assert "reduced population: " in text
    assert "k/20.0k [" in text
    assert " steps/s]" in text
    assert text.endswith("\r")
    dynamics.flow(problem, 1.0)
    assert "flow, reduced population: " in shown.getvalue()
    assert " of 1]" in shown.getvalue()


def test_short_runs_show_nothing(monkeypatch, clock, problem):
    for stream in (Terminal(), io.StringIO()):
        shown = stderr(monkeypatch, stream)
        dynamics.descend(problem, 0.02, 20_000)
        dynamics.flow(problem, 1.0)
        assert shown.getvalue() == ""


def test_short_runs_make_no_bar_and_long_ones_one_that_counts_from_the_start(monkeypatch, clock):
    made, make = [], progress._tqdm
    counted = lambda **request: made.append(request) or make(**request)  # noqa: E731
    monkeypatch.setattr(progress, "_tqdm", counted)
    shown = stderr(monkeypatch, Terminal())
    with progress.bar("steps", 1000, done=100) as bar:
        for _ in range(4):
            clock.now += 0.1
            bar.update(50)
        assert (bar.n, made) == (300, [])
        clock.now += 1.6
        bar.update(100)
        assert bar.n == 400
    assert len(made) == 1
    assert "400/1.00k [00:02<00:04, 150 steps/s]" in shown.getvalue()


def test_what_is_compiled_with_the_first_steps_counts_for_no_speed(monkeypatch, clock):
    shown = stderr(monkeypatch, Terminal())
    with progress.bar("steps", 10_000) as bar:
        bar.update(0)
        clock.now += 12.0
        bar.update(16)
        for _ in range(4):
            clock.now += 0.5
            bar.update(1000)
    assert "2.02k/10.0k [00:01<00:03, 2.00k steps/s]" in shown.getvalue()
    assert ":00:00" not in shown.getvalue()


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


def test_the_processes_of_a_sweep_write_no_lines(monkeypatch, clock):
    shown = stderr(monkeypatch, io.StringIO())
    monkeypatch.setattr(multiprocessing, "parent_process", object)
    with progress.bar("reduced population", 100) as bar:
        clock.now += 100.0
        bar.update()
    assert shown.getvalue() == ""
