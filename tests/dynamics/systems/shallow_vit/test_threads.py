"""A problem is used by several threads at once, copied, and sent to another process."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

import dynamics

LAW = {"m": 24, "L": 12, "alpha_confusion": 0.1, "d": 6, "data": "fixed_disc"}
ETAS = (0.05, 0.1, 0.2, 0.3)


@pytest.mark.parametrize("batch", [None, 4])
@pytest.mark.parametrize("view", ["ReducedPopulation", "FullPopulation", "FullEmpirical"])
def test_runs_at_once_have_the_bits_of_runs_alone(system, view, batch):
    problem = getattr(system, view)(system.Parameters(**LAW), samples=9, seed=3, batch=batch)

    def run(made, eta):
        found = dynamics.descend(made, eta, 60, record=20)
        return found.states.tolist(), found["odds"].tolist()

    alone = [run(problem, eta) for eta in ETAS]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda eta: run(problem, eta), ETAS)) == alone
    for made in (copy.deepcopy(problem), pickle.loads(pickle.dumps(problem))):
        assert run(made, ETAS[0]) == alone[0]
        assert made.identity == problem.identity
