"""Gradients, runs, sweeps and verdicts of the three papers are those of ``golden.json``."""

from math import isfinite, isnan, nan

import golden
import naive
import noisy_vit
import numpy as np
import pytest
from golden_cases import CASES, MIM, PA, VIT

STORED = golden.stored()


def differences(stored, found, tolerance, where="found", floor=0.0):
    """What differs, a line each: numbers beyond their tolerance, an event beyond its error."""
    if isinstance(stored, dict | list) and type(stored) is type(found):
        old, new = (part if isinstance(part, dict) else dict(enumerate(part)) for part in
                    (stored, found))  # fmt: skip
        if list(old) != list(new):
            return [f"{where}: stored {list(old)}, found {list(new)}"]
        errors = [part.get("uncertainty", 0.0) for part in (old, new)]
        numbers = [abs(x) for x in old.values() if isinstance(x, float) and isfinite(x)]
        floor = max(tolerance[1] * max(numbers, default=0.0), *(e for e in errors if e > 0), 0.0)
        return [
            line
            for name in old
            if name != "uncertainty"
            for line in differences(old[name], new[name], tolerance, f"{where}, {name}", floor)
        ]
    if isinstance(stored, float) and isinstance(found, float):
        near = abs(found - stored) <= tolerance[0] * abs(stored) + floor
        same = near or stored == found or (isnan(stored) and isnan(found))
    else:
        same = stored == found
    return [] if same else [f"{where}: stored {stored!r}, found {found!r}"]


def test_every_entry_is_stored_and_every_stored_one_is_an_entry():
    assert list(STORED["entries"]) == list(golden.ENTRIES)
    assert golden.FILE.stat().st_size < 220_000


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.long] if entry["long"] else [])
        for name, entry in STORED["entries"].items()
    ],
)
def test_golden(name):
    found = golden.found(name, STORED["given"])
    stored = STORED["entries"][name]["found"]
    lines = differences(stored, found, golden.ENTRIES[name].tolerance)
    assert not lines, "\n".join([name, *lines[:20]])


@pytest.mark.parametrize(
    ("stored", "found", "same"),
    [
        ([1.0, 2.0], [1.0, 2.0 * (1 + 1e-9)], False),
        ([1.0, 2.0], [1.0, 2.0 * (1 + 1e-11)], True),
        ([1.0, 1e-15], [1.0, 2e-15], True),
        ([1.0, 1e-9], [1.0, 2e-9], False),
        ([1.0, nan], [1.0, nan], True),
        ([1.0, nan], [1.0, 2.0], False),
        ([1.0], [1.0, 2.0], False),
        ({"risk": 1.0}, {"loss": 1.0}, False),
        ({"time": 5.0, "uncertainty": 0.1}, {"time": 5.15, "uncertainty": 0.2}, True),
        ({"time": 5.0, "uncertainty": 0.1}, {"time": 5.15, "uncertainty": 0.1}, False),
        ({"time": 5.0, "uncertainty": nan}, {"time": nan, "uncertainty": nan}, False),
        ({"step": 7, "time": 0.7}, {"step": 8, "time": 0.7}, False),
        ({"holds": True, "measured": 0.5}, {"holds": None, "measured": 0.5}, False),
    ],
)
def test_what_counts_as_a_difference(stored, found, same):
    assert (not differences(stored, found, golden.EXACT)) == same


def softmax(scores):
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def positional_risk(parameters, given, state):
    data = (np.array(given["patches"][name]) for name in "Xy")
    v, A = np.split(state, [parameters.d])
    return naive.empirical(parameters, data, v, A.reshape(2 * (parameters.D,)))[0]


def masked_risk(parameters, given, state):
    """Mean over images of half the squares of what masked patches miss."""
    size, depth = parameters.P, parameters.d
    axes, areas, lost = np.eye(depth), parameters.area_ids, []
    first = np.cumsum([size, *(row.max() + 1 for row in areas)])
    parts = (given["images"][name] for name in ("cluster", "latent", "masked"))
    for k, latent, masked in zip(*parts, strict=True):
        whole = np.array(latent)[:, None] * axes[first[k] + areas[k]]
        seen = np.where(np.isin(np.arange(size), masked)[:, None], 0.0, whole)
        tokens = seen + axes[:size]
        weights = softmax(tokens @ state.reshape(depth, depth) @ tokens.T)
        lost.append(((weights @ seen - whole)[masked] ** 2).sum() / 2)
    return np.mean(lost)


def vit_risk(parameters, given, state):
    depth, neurons = parameters.d, parameters.m
    weights = [state[: neurons * depth].reshape(neurons, depth)]
    weights += list(state[neurons * depth :].reshape(3, depth, depth))
    a = np.array(given["weights"]["signs"]) / np.sqrt(neurons)
    samples = list(zip(given["tokens"]["values"], given["tokens"]["labels"], strict=True))
    lost = noisy_vit.loss(weights, a, samples, parameters.margin, parameters.loss)
    return lost / parameters.margin


RISKS = {PA: positional_risk, MIM: masked_risk, VIT: vit_risk}


@pytest.mark.parametrize("case", [c for c in CASES if c.view == "realistic"], ids=lambda c: c.name)
def test_realistic_values_are_those_of_the_given_samples(case):
    """By a formula that shares nothing with the package, and along a direction its differences."""
    given = STORED["given"][case.name]
    found = STORED["entries"][f"{case.name}: values"]["found"]["state 1"]
    parameters, state = case.problem(given).parameters, np.array(given["states"][0])

    def risk(state):
        return RISKS[case.system](parameters, given, state)

    assert risk(state) == pytest.approx(found["risk"], rel=1e-13)
    slope, step = np.array(found["gradient"]), 1e-5
    unit = slope / np.linalg.norm(slope)
    rate = (risk(state + step * unit) - risk(state - step * unit)) / (2 * step)
    scale = parameters.margin if case.system == VIT else 1.0
    assert scale * rate == pytest.approx(np.linalg.norm(slope), rel=1e-7)
