"""What a first command compiles, function by function, with nothing compiled before."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.benchmark_run

SYSTEM = "positional_attention"
COMMANDS = {
    "a first comparison": f"compare {SYSTEM} --D 4 --C 2 --time 100",
    "a first sweep": f"sweep {SYSTEM} --D 8 --C 2 --q 0.2:0.8:5 --time 1e4 --workers 0",
    "a first flow at D=196": f"run {SYSTEM} --D 196 --C 14 --q 0.1 --time 1e6",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_first_command(name, tmp_path, capsys):
    script = str(Path(__file__).parent / "compiled_once.py")
    words = [*COMMANDS[name].split(), "--out", str(tmp_path / "out")]
    environment = os.environ | {
        "ATTDYN_CACHE_DIR": str(tmp_path / "cache"),
        "NUMBA_NUM_THREADS": "1",
    }
    lines = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, script, *words, "--force"], cwd=tmp_path, env=environment,
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        lines.append(
            [
                line
                for line in done.stderr.splitlines()
                if line[:8].strip().replace(".", "").isdigit()
            ]
        )
    with capsys.disabled():
        print(f"\n{name}: attdyn {COMMANDS[name]}, nothing compiled")
        print("\n".join(lines[0]))
        print(f"{lines[1][-1]}, once more")
    assert float(lines[1][-2].split()[0]) == 0.0
