"""A function is compiled by one process at a time; the others wait for what it leaves."""

import subprocess
import sys
import threading
import time

import pytest

from dynamics import codegen
from dynamics.codegen import compile_lock

HOLDER = """
import sys
from pathlib import Path
from dynamics.codegen import compile_lock
for function in sys.argv[2:]:
    compile_lock.acquire(Path(sys.argv[1]), function)
print("locked", flush=True)
sys.stdin.read()
"""
PARTS = ["@kernel\ndef f(x):\n    return x + 1.0\n"]


@pytest.fixture
def holding():
    """Lock functions in another process, which ends when its stdin does."""
    started = []

    def start(folder, *functions):
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(folder), *functions],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(process)
        assert process.stdout.readline() == "locked\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def called():
    """Build and call f as a new process does: its value, hits and misses of the cache."""
    module = codegen.build("Locked.", ("x",), PARTS)
    del sys.modules[module.functions.__name__]
    value, stats = module.f(3.0), module.f.stats
    return value, sum(stats.cache_hits.values()), sum(stats.cache_misses.values())


def test_what_another_process_compiles_is_waited_for(tmp_path, monkeypatch, holding):
    cache, aside = tmp_path / "cache", tmp_path / "aside"
    aside.mkdir()
    monkeypatch.setenv("ATTDYN_CACHE_DIR", str(cache))
    assert called() == (4.0, 0, 1)
    assert called() == (4.0, 1, 0)
    files = [*cache.rglob("*.nb[ic]")]
    (index,) = [path for path in files if path.suffix == ".nbi"]
    for path in files:
        path.rename(aside / path.name)
    holder = holding(index.parent, index.stem)

    def finish():
        for path in files:
            (aside / path.name).rename(path)
        holder.stdin.close()

    timer = threading.Timer(0.5, finish)
    timer.start()
    assert called() == (4.0, 1, 0)
    timer.join()


@pytest.mark.parametrize("end", ["kill", "exit"])
def test_a_process_that_ends_gives_its_functions_back(tmp_path, holding, end):
    holder = holding(tmp_path, "f", "g")
    assert not compile_lock.acquire(tmp_path, "h")
    threading.Timer(0.3, holder.kill if end == "kill" else holder.stdin.close).start()
    assert compile_lock.acquire(tmp_path, "f")
    assert not compile_lock.acquire(tmp_path, "f")  # has it already


def test_one_that_lives_and_does_not_compile_is_not_waited_for_for_ever(
    tmp_path, holding, monkeypatch
):
    monkeypatch.setattr(compile_lock, "LONGEST", 0.3)
    holding(tmp_path, "f")
    began = time.monotonic()
    assert compile_lock.acquire(tmp_path, "f")
    assert time.monotonic() - began >= 0.3


def test_what_was_released_is_free_at_once(tmp_path, holding):
    compile_lock.acquire(tmp_path, "f")
    compile_lock.acquire(tmp_path, "g")
    compile_lock.release(tmp_path, "f")
    holding(tmp_path, "f")


def test_a_folder_that_cannot_be_locked_costs_nothing(tmp_path):
    assert not compile_lock.acquire(tmp_path / "not there", "f")
    compile_lock.release(tmp_path / "not there", "f")


def test_a_compilation_that_fails_keeps_nobody_waiting(tmp_path, monkeypatch, holding):
    from numba import float64

    from dynamics.codegen.machine_code import compiled_entry

    monkeypatch.setenv("ATTDYN_CACHE_DIR", str(tmp_path))
    module = codegen.build("Failing.", ("x",), ["@kernel\ndef short(x):\n    return x\n"])
    locked = []
    acquire = compile_lock.acquire
    monkeypatch.setattr(
        compile_lock, "acquire", lambda *lock: locked.append(lock) or acquire(*lock)
    )
    with pytest.raises(TypeError, match="Signature mismatch"):
        compiled_entry(module.functions.short.py_func, float64)
    holding(*locked[0])
