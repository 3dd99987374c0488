"""Shallow Vision Transformers with hinge loss as a system: its square, claims and default runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynamics.default_runs import DefaultRun
from dynamics.papers.shallow_vit import problems, sampling
from dynamics.papers.shallow_vit.empirical import FullEmpirical
from dynamics.papers.shallow_vit.parameters import Parameters
from dynamics.papers.shallow_vit.presentation import PRESENTATION
from dynamics.system import Derivation, System
from theory.page import Page
from theory.papers.shallow_vit.claims import CLAIMS
from theory.papers.shallow_vit.data_law import support_size
from theory.papers.shallow_vit.recursion import relevant_masses

PER_STEP = 3e-5
"""Seconds of a step, however small."""
PER_PAIR = 5e-10
"""Seconds for each neuron and pair of patterns of a count vector."""
PER_TOKEN = 7e-9
"""Seconds for each neuron and token of a sample."""


def gradient_seconds(parameters: Any, full: str | None, options: Mapping[str, Any]) -> float:
    """Predicted time of one gradient; see `dynamics.system.System`.

    `full`: ``"empirical"``, ``"population"``; None for the reduced problem; `options`: options of
    the problem.
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


def page(parameters: Parameters | None = None) -> Page:
    """The page of the derivation; with parameters, for their law, loss and frozen weights."""
    from theory.papers.shallow_vit.derivation import page

    own = () if parameters is None else ("data", "loss", "frozen")
    return page(*(getattr(parameters, name) for name in own))


SYSTEM = System(
    name="shallow_vit",
    presentation=PRESENTATION,
    claims=CLAIMS,
    derivation=Derivation(page, lambda parameters=None: relevant_masses()),
    Parameters=Parameters,
    ReducedPopulation=problems.ReducedPopulation,
    FullPopulation=problems.FullPopulation,
    FullEmpirical=FullEmpirical,
    default_runs={
        "run": DefaultRun({"margin": 31.6}, eta=0.1, steps=300),
        "compare": DefaultRun({"m": 120, "margin": 11.0}, eta=0.1, steps=300),
        "empirical": DefaultRun({"m": 300}, eta=0.1, steps=150, samples=200),
    },
    expectations=sampling.EXPECTATIONS,
    cost_model=gradient_seconds,
)
