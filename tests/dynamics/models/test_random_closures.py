"""Small random models with planted symmetries, resting entries, spaces and laws: all are found."""

from dataclasses import dataclass

import numpy as np
import pytest

import dynamics

FUNCTIONS = ("polynomial", "tanh", "softmax", "kink")


@dataclass(frozen=True)
class Planted:
    """A model made of blocks of equal entries, and what is true of it."""

    system: dynamics.registry.System
    classes: tuple[int, ...]
    frozen: int


def planted(seed):
    """Blocks of entries that enter through their sum; some blocks never move."""
    rng = np.random.default_rng(seed)
    blocks = rng.integers(1, 4, rng.integers(2, 5))
    starts = np.round(rng.uniform(-1, 1, blocks.size), 2)
    targets = np.round(rng.uniform(0.5, 2.0, blocks.size), 2)
    kind, still = FUNCTIONS[seed % len(FUNCTIONS)], int(rng.integers(0, 3))
    owner = np.repeat(np.arange(blocks.size), blocks)
    join = (owner[None] == np.arange(blocks.size)[:, None]).astype(float)

    def start():
        return {"w": starts[owner], "rest": np.full(still, 0.5)}

    def risk(theta, xp):
        sums = join @ theta["w"]
        if kind == "tanh":
            sums = xp.tanh(sums)
        elif kind == "softmax":
            sums = xp.softmax(sums * targets)
        elif kind == "kink":
            sums = sums + xp.relu(sums - 50 * targets)
        return xp.sum((sums - targets) ** 2) + (sums[0] * sums[-1]) ** 2 / 8

    arrays = start()
    arrays = arrays if still else {"w": arrays["w"]}
    model = dynamics.Model(start=lambda: arrays, risk=risk)
    return Planted(dynamics.load_system(model), tuple(int(n) for n in blocks), still)


def counts(number):
    return [pytest.param(seed, marks=[pytest.mark.long] * (seed >= number)) for seed in range(200)]


@pytest.mark.parametrize("seed", counts(24))
def test_what_is_planted_is_found_and_holds(seed):
    case = planted(seed)
    closure = case.system.closure()
    assert closure.grade == "proved"
    assert closure.frozen >= case.frozen
    labels = closure.classes.labels[: sum(case.classes)]
    owner = np.repeat(np.arange(len(case.classes)), case.classes)
    for block in range(len(case.classes)):
        assert np.unique(labels[owner == block]).size == 1
    parameters = case.system.Parameters()
    full = case.system.FullPopulation(parameters)
    run = dynamics.descend(full, 0.02, 200)
    values = full.orbit_values(run.states)
    for entries in values.values():
        np.testing.assert_allclose(np.ptp(entries, axis=1), 0, atol=1e-12)
    scalars = run.states[:, closure.classes.first]
    for law in (law for law in closure.laws if law.degree == 1):
        np.testing.assert_allclose(law.at(scalars), law.value, rtol=1e-10, atol=1e-12)
