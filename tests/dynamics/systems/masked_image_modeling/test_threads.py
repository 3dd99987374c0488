"""One problem object in several threads, copied, and sent to another process."""

import copy
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import dynamics

KINDS = {
    "counts": lambda system, small: system.ReducedPopulation(small, "counts"),
    "contour": lambda system, small: system.ReducedPopulation(small, "contour"),
    "population": lambda system, small: system.FullPopulation(small),
    "empirical": lambda system, small: system.FullEmpirical(small, 12, seed=3, batch=5),
}


@pytest.fixture(params=KINDS)
def problem(request, system):
    small = system.Parameters(P=5, C_global=3, C_local=2, masked=2)
    return KINDS[request.param](system, small)


def run(problem, number):
    """Records of a descent, and observables at states of this number."""
    states = np.random.default_rng(number).normal(size=(6, problem.layout.size))
    made = dynamics.descend(problem, eta=0.5 * (number + 1), steps=20, record=4)
    return made.states.tolist(), [problem.observables(state) for state in states]


def test_threads_that_share_a_problem_have_the_bits_of_one_alone(problem):
    alone = [run(problem, number) for number in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda number: run(problem, number), range(4)))
    finally:
        sys.setswitchinterval(interval)
    assert repr(found) == repr(alone)


def test_copies_have_its_bits(problem):
    for made in (copy.deepcopy(problem), pickle.loads(pickle.dumps(problem))):
        assert repr(run(made, 1)) == repr(run(problem, 1))
