"""Signals end a command promptly: while it is imported, while it compiles, between its chunks."""

import signal
import subprocess
import sys
import time

import pytest
from numba import njit
from numba.core import event

from dynamics.training.progress import interruption, termination

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


SLOW_LAW = """
def start(w=1.0):
    return {"v": w}
def law(r=0.5):
    chance = 1 - r
    while True:
        yield chance, 1.0
        chance *= r
def loss(theta, sample, xp):
    return theta["v"] ** 2
"""


@pytest.mark.long
@pytest.mark.parametrize(
    "words",
    [
        ["describe", "model.py"],
        ["run", "positional_attention", "--D", "4096", "--C", "16", "--eta", "1e-10"],
        ["run", "masked_image_modeling", "--P", "8192"],
    ],
)
def test_large_requests_end_soon_after_a_signal(words, tmp_path):
    (tmp_path / "model.py").write_text(SLOW_LAW)
    command = [sys.executable, "-m", "dynamics", *words]
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
