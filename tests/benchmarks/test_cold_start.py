"""What a first command compiles, function by function, with nothing compiled before."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.benchmark_run

ROW = re.compile(r" +\d+\.\d\d  ")
SYSTEM = "positional_attention"
COMMANDS = {
    "a first comparison": f"compare {SYSTEM} --D 4 --C 2 --time 100",
    "a first sweep": f"sweep {SYSTEM} --D 8 --C 2 --q 0.2:0.8:5 --time 1e4 --workers 0",
    "a first flow at D=196": f"run {SYSTEM} --D 196 --C 4 --q {16 / 196} --time 1e4",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_first_command(name, tmp_path, capsys):
    """On one core, where one process compiles all; once more; and on all cores, all anew."""
    everywhere = os.sched_getaffinity(0)

    def run(turn, cache, cores):
        script = str(Path(__file__).parent / "compiled_once.py")
        command = [sys.executable, script, *COMMANDS[name].split(), "--out", str(tmp_path / turn)]
        settings = {"ATTDYN_CACHE_DIR": str(tmp_path / cache), "NUMBA_NUM_THREADS": "1"}
        os.sched_setaffinity(0, cores)  # a process inherits it
        try:
            done = subprocess.run(
                command,
                cwd=tmp_path,
                env=os.environ | settings,
                capture_output=True,
                text=True,
                check=True,
            )
        finally:
            os.sched_setaffinity(0, everywhere)
        return [line for line in done.stderr.splitlines() if ROW.match(line)]

    first = run("first", "cache", {min(everywhere)})
    second = run("second", "cache", {min(everywhere)})
    third = run("third", "other", everywhere)
    with capsys.disabled():
        print(f"\n{name}: attdyn {COMMANDS[name]}, nothing compiled, one core")
        print(*first, f"{second[-1]}, once more", sep="\n")
        print(f"{third[-1]}, nothing compiled, all cores")
    # Machine code that is on disk is loaded, in a few milliseconds each.
    compiled = -3
    assert float(second[compiled].split()[0]) < 0.1 * float(first[compiled].split()[0])
