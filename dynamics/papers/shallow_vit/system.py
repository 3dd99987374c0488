"""Shallow Vision Transformers with hinge loss as a system: problems, claims, default runs."""

from __future__ import annotations

from dynamics.default_runs import DefaultRun
from dynamics.papers.shallow_vit import problems, sampling
from dynamics.papers.shallow_vit.empirical import FullEmpirical
from dynamics.papers.shallow_vit.parameters import Parameters
from dynamics.papers.shallow_vit.presentation import PRESENTATION
from dynamics.system import Derivation, System
from theory.page import Page
from theory.papers.shallow_vit.claims import CLAIMS
from theory.papers.shallow_vit.recursion import relevant_masses


def page(parameters: Parameters | None = None) -> Page:
    """Page of the derivation; if parameters are given, for their law, loss and frozen weights."""
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
)
