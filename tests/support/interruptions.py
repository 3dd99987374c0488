"""Commands that are interrupted: in this process after some chunks, or in another by a signal."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from dynamics.training import descent as run

SLOWLY = """
import sys, time
from dynamics import cli
from dynamics.cli import folders
from dynamics.training import checkpoint, progress
from dynamics.training import descent as run
progress.DELAY = 0.0
checkpoint.SECONDS = checkpoint.SHARE = 0.0
run.LARGEST_CHUNK = 256
write = checkpoint.Checkpoint.write
def slow(*arguments):
    write(*arguments)
    time.sleep(0.03)
checkpoint.Checkpoint.write = slow
folders._draw = lambda *_: []
sys.exit(cli.main(sys.argv[1:]))
"""


def interrupt_soon(monkeypatch):
    """Interrupt the next command after some chunks."""
    advance, count = run.Run.advance, iter(range(10**6))

    def counted(self):
        if next(count) == 25:
            os.kill(os.getpid(), signal.SIGTERM)
        return advance(self)

    monkeypatch.setattr(run, "LARGEST_CHUNK", 256)
    monkeypatch.setattr(run.Run, "advance", counted)


def signalled(words, number, moment=0.0):
    """Errors and exit code of a slow run, signalled some time after its first checkpoint."""
    command = [sys.executable, "-c", SLOWLY, *words, "--out", "x"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    begun = time.monotonic()
    while not Path(".x.checkpoint").exists() and time.monotonic() < begun + 60:
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(moment)
    process.send_signal(number)
    return process.communicate(timeout=60)[1], process.returncode
