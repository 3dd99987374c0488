"""The collector of garbage: less often while numba compiles and in processes of our own."""

import gc
import subprocess
import sys
from contextlib import ExitStack

import pytest

from dynamics.garbage_collection import COLLECTIONS, fewer_collections


@pytest.mark.parametrize("before", [(700, 10, 10), (10**6, 10, 100), (0, 10, 10)])
def test_compiling_looks_for_garbage_less_often_and_leaves_the_thresholds(before):
    kept = gc.get_threshold()
    try:
        gc.set_threshold(*before)
        one, other = ExitStack(), ExitStack()
        one.enter_context(fewer_collections())
        other.enter_context(fewer_collections())
        one.close()  # as of two threads: the first that came leaves first
        within = gc.get_threshold()
        assert within == (tuple(map(max, before, COLLECTIONS)) if before[0] else before)
        other.close()
        assert gc.get_threshold() == before
        with pytest.raises(ZeroDivisionError), fewer_collections():
            1 / 0  # noqa: B018
        assert gc.get_threshold() == before
    finally:
        gc.set_threshold(*kept)


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
