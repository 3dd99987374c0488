"""One problem object in several threads, copied, and sent to another process."""

import copy
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import dynamics

MASKED = {"P": 5, "C_global": 3, "C_local": 2, "masked": 2}
POSITIONAL = {"D": 6, "C": 2}
VIT = {"m": 6, "M": 3, "L": 10, "d": 3, "alpha_confusion": 0.1}
CASES = {
    "contour": ("masked_image_modeling", "ReducedPopulation", MASKED, {"expectation": "contour"}),
    "images": ("masked_image_modeling", "FullEmpirical", MASKED, {"samples": 12, "batch": 5}),
    "spectral": ("positional_attention", "ReducedPopulation", POSITIONAL,
                 {"expectation": "spectral"}),
    "patches": ("positional_attention", "FullPopulation", POSITIONAL, {}),
    "patterns": ("shallow_vit", "ReducedPopulation", VIT, {}),
    "noisy tokens": ("shallow_vit", "FullEmpirical", VIT, {"samples": 12, "batch": 5}),
    "own model": ("linear_icl", "ReducedPopulation", {}, {}),
    "draws": ("topic_model", "FullEmpirical", {}, {"samples": 12, "batch": 5}),
}  # fmt: skip


@pytest.fixture(params=CASES)
def problem(request):
    name, kind, parameters, options = CASES[request.param]
    system = dynamics.load_system(name)
    return getattr(system, kind)(system.Parameters(**parameters), **options)


def run(problem, number):
    """Records of a descent and, of the first two, a flow; observables at states, of this number."""
    states = np.random.default_rng(number).normal(size=(6, problem.layout.size))
    made = dynamics.descend(problem, eta=0.02 * (number + 1), steps=20, record=4)
    found = [made.states.tolist(), [problem.observables(state) for state in states]]
    if problem.flows and problem.autonomous and problem.layout.size < 50 and number < 2:
        found.append(dynamics.flow(problem, time=0.1 * (number + 1)).states.tolist())
    return found


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
