"""Shallow Vision Transformers trained with hinge loss, made to run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynamics.models.engine.sampled import BATCH, DTYPE
from dynamics.registry import DefaultRun, System
from dynamics.systems.shallow_vit.empirical import FullEmpirical
from dynamics.systems.shallow_vit.parameters import Parameters
from dynamics.systems.shallow_vit.presentation import PRESENTATION
from dynamics.systems.shallow_vit.problems import FullPopulation, ReducedPopulation
from theory.page import Page
from theory.papers.shallow_vit import recursion
from theory.papers.shallow_vit.claims import CLAIMS
from theory.papers.shallow_vit.data_law import support_size

PER_STEP = 3e-5
"""Seconds of a step, however small."""
PER_PAIR = 5e-10
"""Seconds for each neuron and pair of patterns of a count vector."""
PER_TOKEN = 7e-9
"""Seconds for each neuron and token of a sample."""


def derivation(parameters: Parameters | None = None) -> Page:
    """The page of the derivation; with parameters, for their law, loss and frozen weights."""
    from theory.papers.shallow_vit.derivation import page

    if parameters is None:
        return page()
    return page(parameters.data, parameters.loss, parameters.frozen)


def gradient_seconds(parameters: Parameters, full: str | None, options: Mapping[str, Any]) -> float:
    """Predicted time of one gradient; see `dynamics.registry.System`.

    Parameters
    ----------
    parameters : Parameters
    full : str or None
        ``"empirical"``, ``"population"``; None for the reduced problem.
    options : mapping
        Options of the problem.
    """
    vectors = float(support_size(parameters.shares, parameters.data))
    samples = float(options.get("samples") or vectors)
    per_position = parameters.output_weights == "per_position"
    many = samples if per_position else min(samples, vectors)
    if full is not None:
        many = samples if full == "empirical" else many
        return PER_STEP + PER_TOKEN * many * parameters.L * parameters.m
    pairs = many * parameters.M**2 + 2 * parameters.d * parameters.M
    return PER_STEP + PER_PAIR * pairs * parameters.m


SYSTEM = System(
    name="shallow_vit",
    title=PRESENTATION.title,
    notation=PRESENTATION.notation,
    claims=CLAIMS,
    derivation=derivation,
    derivations=recursion.derivations,
    Parameters=Parameters,
    ReducedPopulation=ReducedPopulation,
    FullPopulation=FullPopulation,
    FullEmpirical=FullEmpirical,
    default_runs={
        "run": DefaultRun(parameters={"margin": 31.6}, eta=0.1, steps=300),
        "compare": DefaultRun(parameters={"m": 120, "margin": 11.0}, eta=0.1, steps=300),
        "empirical": DefaultRun(parameters={"m": 300}, eta=0.1, steps=150, samples=200),
    },
    expectations=("exact", "sampled", "auto"),
    empirical_options={
        "start": "another seed, for the weights alone; or symmetric (without noise)",
        "batch": BATCH,
        "dtype": DTYPE,
        "sparsify": "tokens that go first: random, irrelevant or noisiest (default: none)",
        "removed": "share of the tokens that go (default 0)",
        "noisy_share": "share of tokens with other noise (default 0)",
        "noisy_std": "standard deviation of that noise (default 1)",
        "test_samples": "fresh samples of the test set (default 1000)",
    },
    plot_description=PRESENTATION.plot,
    cost_model=gradient_seconds,
    sampling_options=("samples", "seed", "start", "batch"),
)  # fmt: skip
