"""One core for measurements that say so."""

import os

import numba
import pytest


@pytest.fixture
def one_core():
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    yield
    numba.set_num_threads(threads)
    os.sched_setaffinity(0, allowed)
