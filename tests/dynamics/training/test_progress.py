"""Progress of a run, and signals: while it is imported, compiles, or is between its chunks."""

import io
import signal
import subprocess
import sys
import time

import pytest
from numba import njit
from numba.core import event

import dynamics
from dynamics.training import progress
from dynamics.training.progress import interruption, termination


class Clock:
    """Time passes by ``tick`` seconds at every look, and as the test says."""

    now = tick = 0.0

    def __call__(self):
        self.now += self.tick
        return self.now


def seen(monkeypatch):
    """A clock, and what is shown."""
    clock, shown = Clock(), io.StringIO()
    monkeypatch.setattr("tqdm.std.time", clock)
    monkeypatch.setattr("sys.stderr", shown)
    return clock, shown


def test_long_runs_show_a_bar_on_a_terminal(monkeypatch, system):
    clock, shown = seen(monkeypatch)
    shown.isatty = lambda: True
    problem = system.ReducedPopulation(system.Parameters(D=8, C=2))
    dynamics.descend(problem, 0.02, 20_000)
    assert shown.getvalue() == ""  # a short one
    clock.tick = 0.4
    dynamics.descend(problem, 0.02, 20_000)
    for word in ("reduced population: ", "k/20.0k [", "steps/s]"):
        assert word in shown.getvalue()
    dynamics.flow(problem, 1.0)
    assert "flow, reduced population: " in shown.getvalue()


def test_on_a_pipe_there_is_a_line_every_half_minute(monkeypatch):
    clock, shown = seen(monkeypatch)
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


IMPORTS = """
import signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            signal.raise_signal(signal.{number})

sys.meta_path.insert(0, Interrupting())
sys.argv = ["attdyn", "run", "positional_attention", "--D", "4", "--C", "2", "--steps", "1"]
from dynamics.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize(("module", "number"), [("numpy", "SIGINT"), ("numba", "SIGTERM")])
def test_a_signal_during_the_imports_ends_a_command_in_one_line(module, number, tmp_path):
    code = IMPORTS.format(module=module, number=number)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=tmp_path)
    assert done.stderr == b"attdyn: interrupted\n"
    assert done.returncode == 130
    assert done.stdout == b""
    assert not list(tmp_path.iterdir())


def test_an_import_by_another_program_changes_no_handler():
    code = "import signal; old = signal.getsignal(2); import dynamics; assert old is "
    code += "signal.getsignal(2); assert signal.getsignal(15) == signal.SIG_DFL"
    subprocess.run([sys.executable, "-c", code], check=True)


class Signalling(event.Listener):
    """Sends a signal when a compilation begins."""

    def on_start(self, event):
        signal.raise_signal(signal.SIGTERM)

    def on_end(self, event):
        pass


def test_a_signal_during_a_compilation_is_not_put_off():
    compiled = njit(lambda x: x + 1)
    with (
        termination(),
        interruption() as interrupted,
        event.install_listener("numba:compile", Signalling()),
        pytest.raises(KeyboardInterrupt),
    ):
        compiled(1)
    assert interrupted.is_set()
    assert compiled.signatures == []


class Interrupted:
    """Is interrupted while it is removed."""

    def __del__(self):
        signal.raise_signal(signal.SIGINT)


def test_a_signal_in_a_destructor_is_not_lost(capsys):
    def wait():
        Interrupted()
        time.sleep(60)

    with termination(), pytest.raises(KeyboardInterrupt):
        wait()
    assert capsys.readouterr().err == ""


def test_a_signal_during_a_computation_is_put_off_and_a_second_one_ends_it():
    with termination(), interruption() as interrupted:
        signal.raise_signal(signal.SIGINT)
        assert interrupted.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)


@pytest.mark.long
@pytest.mark.parametrize(
    "words",
    ["positional_attention --D 4096 --C 16 --eta 1e-10", "masked_image_modeling --P 8192"],
)
def test_large_requests_end_soon_after_a_signal(words, tmp_path):
    command = [sys.executable, "-m", "dynamics", "run", *words.split()]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        time.sleep(2.5)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        said = process.communicate(timeout=60)[1].splitlines()
        seconds = time.monotonic() - began
    assert process.returncode == 130
    # A machine that trains by then keeps the run.
    assert said[-1].startswith(("attdyn: interrupted", "attdyn: the same command with --resume"))
    assert seconds < 2
