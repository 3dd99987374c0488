"""The collector of garbage, and the threads of BLAS, while something is done, and after it."""

import gzip
import subprocess
import sys
from functools import partial

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from dynamics.process_settings import COLLECTIONS, one_blas_thread


@pytest.mark.parametrize(("program", "own"), [("attdyn", True), ("script.py", False)])
def test_a_command_collects_less_and_a_script_as_before(program, own):
    code = (
        f"import gc, sys; sys.argv = [{program!r}]; before = gc.get_threshold(); import dynamics; "
        "print(before == gc.get_threshold(), *gc.get_threshold())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    same, *thresholds = done.stdout.split()
    assert same == str(not own)
    if own:
        assert tuple(map(int, thresholds)) == COLLECTIONS


LEFT = """
import atexit, gzip
class Garbage:
    def __del__(self):
        print("found")
garbage = Garbage()
garbage.itself = garbage
del garbage
log = gzip.open("kept.gz", "wt")
log.write("whole")
"""


@pytest.mark.parametrize(("program", "own"), [("attdyn", True), ("script.py", False)])
def test_a_command_looks_for_no_garbage_at_its_end(program, own, tmp_path):
    code = f"import sys; sys.argv = [{program!r}]; import dynamics{LEFT}atexit.register(print, 1)"
    run = partial(subprocess.run, cwd=tmp_path, capture_output=True, text=True, check=True)
    done = run([sys.executable, "-c", code])
    assert done.stdout.split() == ["1"] + ["found"] * (not own)


def test_files_that_a_model_leaves_open_are_whole_after_a_command(tmp_path):
    model = "def start(): return {'w': 1.0}\ndef risk(theta, xp): return theta['w'] ** 2\n"
    (tmp_path / "model.py").write_text(LEFT + model)
    run = partial(subprocess.run, cwd=tmp_path, capture_output=True, text=True, check=True)
    run([sys.executable, "-m", "dynamics", "describe", "model.py"])
    with gzip.open(tmp_path / "kept.gz", "rt") as file:
        assert file.read() == "whole"


def numbers():
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


@pytest.fixture
def two_threads():
    with threadpool_limits(2, "blas"):
        if numbers() != {2}:
            pytest.skip("this BLAS does not take two threads")
        yield


def test_there_is_one_within_and_what_was_before_after(two_threads):
    with one_blas_thread():
        assert numbers() == {1}
    assert numbers() == {2}
