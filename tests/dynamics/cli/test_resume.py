import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from runs import same

import dynamics
from dynamics.cli import main

LAW = ["positional_attention", "--D", "8", "--C", "2", "--random_sets", "any"]
RUN = ["run", *LAW, "--steps", "20000"]


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


@pytest.fixture(scope="module")
def reference():
    system = dynamics.load_system("positional_attention")
    problem = system.ReducedPopulation(system.Parameters(D=8, C=2))
    return dynamics.descend(problem, system.default_runs["run"].eta, 20_000)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_a_run_goes_on_after_a_signal(elsewhere, reference, number, code):
    moment = np.random.default_rng(int(number)).uniform(0.0, 0.8)
    err, ended = signalled(RUN, number, moment)
    assert ended == code
    assert Path(".x.checkpoint").exists()
    # A writer that was killed half way leaves this; the file itself is whole.
    Path(".x.checkpoint.partial").write_bytes(Path(".x.checkpoint").read_bytes()[:100])
    if number == signal.SIGKILL:
        assert (err, Path("x").exists()) == ("", False)
    else:
        assert 0 < dynamics.load("x").outcome.step < 20_000
        assert dynamics.load("x").outcome.kind == "interrupted"
        assert "with --resume goes on from there (checkpoint .x.checkpoint)" in err
        assert err.count("\n") == 1
    assert main([*RUN, "--out", "x", "--resume"]) == 0
    same(dynamics.load("x"), reference)
    assert [p.name for p in elsewhere.iterdir()] == ["x"]


def test_a_checkpoint_elsewhere_and_a_changed_request(capsys, interrupted):
    words = [*RUN, "--out", "x", "--checkpoint", "far/off"]
    assert main(words) == 130
    capsys.readouterr()
    assert main([*words, "--resume", "--eta", "0.01"]) == 2
    assert "eta: stored [0.02, 0.02], requested [0.01, 0.01]" in capsys.readouterr().err
    Path("mine.toml").write_text('resume = true\ncheckpoint = "far/off"\nout = "x"\n')
    assert main([*RUN, "--config", "mine.toml"]) == 0
    assert list(Path("far").iterdir()) == []


def test_a_signal_while_the_result_is_written(capsys, interrupted, monkeypatch):
    from dynamics.results import storage

    def late(*_):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(1)

    assert main([*RUN, "--out", "x"]) == 130
    with monkeypatch.context() as patch:
        patch.setattr(storage, "write_groups", late)
        assert main([*RUN, "--out", "x", "--resume"]) == 130
    assert "--resume goes on" in capsys.readouterr().err
    assert main([*RUN, "--out", "x", "--resume"]) == 0
    assert dynamics.load("x").outcome.kind == "reached horizon"


def test_a_request_that_is_refused_leaves_an_earlier_checkpoint(call, elsewhere, interrupted):
    compare = ["compare", *LAW, "--steps", "1500", "--json", "--out", "x"]
    code, out, err = call(*compare)
    assert (code, json.loads(out)["outcome"]) == (130, "interrupted")
    assert "with --resume goes on" in err
    before = sorted(p.name for p in elsewhere.iterdir())
    assert any("checkpoint" in name for name in before)
    assert call(*compare[:2], "--D", "16", "--C", "4", "--out", "x")[0] == 2
    assert sorted(p.name for p in elsewhere.iterdir()) == before
    code, out, _ = call(*compare, "--resume")
    assert (code, json.loads(out)["outcome"]) == (0, "reached horizon")
    assert [p.name for p in elsewhere.iterdir()] == ["x"]
