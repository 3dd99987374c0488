"""One thread of BLAS while something is computed, and as many as before after it."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import dynamics
from dynamics.codegen.blas_threads import one_blas_thread
from dynamics.systems.positional_attention.empirical.sampling import Fresh


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


def test_two_that_overlap_leave_what_was_before(two_threads):
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert numbers() == {1}
    second.__exit__(None, None, None)
    assert numbers() == {2}


def test_an_error_within_leaves_what_was_before(two_threads):
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        _ = 1 / 0
    assert numbers() == {2}


def test_a_test_error_starts_no_threads(two_threads, monkeypatch):
    """Its threads would wait by computing, beside the first steps of the next run."""
    system = dynamics.load_system("positional_attention")
    problem = system.FullEmpirical(system.Parameters(D=8, C=2, d=8), samples=20)
    seen, projections = [], Fresh.projections

    def looked_at(*arguments, **options):
        seen.append(numbers())
        return projections(*arguments, **options)

    monkeypatch.setattr(Fresh, "projections", looked_at)
    problem.test_error(0.5, 0.1, np.full((8, 8), 1 / 8))
    assert seen
    assert all(each == {1} for each in seen)
    assert numbers() == {2}
