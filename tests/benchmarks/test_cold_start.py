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
    script = str(Path(__file__).parent / "compiled_once.py")
    words = COMMANDS[name].split()
    environment = os.environ | {
        "ATTDYN_CACHE_DIR": str(tmp_path / "cache"),
        "NUMBA_NUM_THREADS": "1",
    }
    tables = []
    for turn in ("first", "second"):
        command = [sys.executable, script, *words, "--out", str(tmp_path / turn)]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        tables.append([line for line in done.stderr.splitlines() if ROW.match(line)])
    first, second = tables
    with capsys.disabled():
        print(f"\n{name}: attdyn {COMMANDS[name]}, nothing compiled")
        print(*first, f"{second[-1]}, once more", sep="\n")
    # Machine code that is on disk is loaded, in a few milliseconds each.
    assert float(second[-2].split()[0]) < 0.1 * float(first[-2].split()[0])
