"""The systems of the three papers: their model files, with problems and derivations of their own.

A paper has a model file here, its derivation and claims in `theory.papers`, and in
`dynamics.systems` what the engine does not make: parameters, problems, fast expectations.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from dynamics.default_runs import Contrast, DefaultRun
from dynamics.system import Derivation, System

if TYPE_CHECKING:
    from theory.page import Page

SHOWN = {"D": 9, "C": 3, "random_sets": "mixed"}
"""The smallest of the sizes at which all three events were seen with sets of three patches."""
REMARKS = {
    "random_sets": "its law is the mixed one, a toy law in which no random set is all of one sign; "
    "the paper's law is --random_sets any"
}
ONE = {"family": "one_cluster"}
"""The family that the sizes of the default runs of masked image modelling belong to."""


@cache
def system_of_paper(name: str) -> System:
    """The system of a paper.

    Parameters
    ----------
    name : str
        One of `dynamics.library.built_in_names`.
    """
    makers = (positional_attention, masked_image_modeling, shallow_vit)
    return {make.__name__: make for make in makers}[name]()


def positional_attention() -> System:
    """Positional attention and patch association."""
    from dynamics.systems.positional_attention.empirical import FullEmpirical
    from dynamics.systems.positional_attention.full import FullPopulation
    from dynamics.systems.positional_attention.parameters import Parameters
    from dynamics.systems.positional_attention.presentation import PRESENTATION
    from dynamics.systems.positional_attention.reduced import population
    from theory.papers.positional_attention.claims import CLAIMS

    contrast = Contrast({"random_sets": "any"}, ("alpha", "G", "risk"), what_decides)
    return System(
        name="positional_attention",
        presentation=PRESENTATION,
        claims=CLAIMS,
        derivation=Derivation(population.derivation, population.derivations),
        Parameters=Parameters,
        ReducedPopulation=population.ReducedPopulation,
        FullPopulation=FullPopulation,
        FullEmpirical=FullEmpirical,
        default_runs={
            "run": DefaultRun(SHOWN, eta=0.02, steps=100_000, remarks=REMARKS),
            "compare": DefaultRun(
                SHOWN, eta=0.03, steps=40_000, contrast=contrast, remarks=REMARKS
            ),
            "empirical": DefaultRun({"q": 0.25}, eta=0.02, steps=10_000, samples=8000),
        },
        expectations=("exact", "spectral", "sampled", "auto"),
        cost_model=population.gradient_seconds,
    )


def what_decides(parameters: Any) -> str:
    """Whether any state classifies every sample under either law, where the criterion is below 1.

    Parameters
    ----------
    parameters : Parameters
        Of positional attention, with mixed random sets.
    """
    from theory.papers.positional_attention.separability import criterion

    number = criterion(parameters.set_law, parameters.L, parameters.p)
    return (
        f"(L-1)(1-1/C)^p = {number:.3f} < 1: in this toy law, without random sets of one sign, "
        "some state classifies every sample; under the paper's law none does. Whether training "
        f"gets there depends on q, nu and beta, here {parameters.q:g}, {parameters.nu:g} and "
        f"{parameters.beta:g}"
    )


def masked_image_modeling() -> System:
    """Masked image modelling and feature-position correlations."""
    from dynamics.systems.masked_image_modeling import reduced
    from dynamics.systems.masked_image_modeling.cost import gradient_seconds
    from dynamics.systems.masked_image_modeling.empirical import FullEmpirical
    from dynamics.systems.masked_image_modeling.full import FullPopulation
    from dynamics.systems.masked_image_modeling.parameters import Parameters
    from dynamics.systems.masked_image_modeling.presentation import PRESENTATION
    from theory.papers.masked_image_modeling.claims import CLAIMS

    compared = {"P": 12, "C_global": 8, "C_local": 2, "masked": 3}
    drawn = {"P": 64, "C_global": 32, "C_local": 4}
    return System(
        name="masked_image_modeling",
        presentation=PRESENTATION,
        claims=CLAIMS,
        derivation=Derivation(reduced.derivation, reduced.derivations),
        Parameters=Parameters,
        ReducedPopulation=reduced.ReducedPopulation,
        FullPopulation=FullPopulation,
        FullEmpirical=FullEmpirical,
        default_runs={
            "run": DefaultRun({}, eta=1.0, steps=4000),
            "compare": DefaultRun(compared, eta=1.0, steps=3000, presumes=ONE),
            "empirical": DefaultRun(drawn, eta=4.0, steps=300, samples=500, presumes=ONE),
        },
        expectations=("counts", "contour", "auto"),
        cost_model=gradient_seconds,
    )


def shallow_vit() -> System:
    """Shallow Vision Transformers trained with hinge loss."""
    from dynamics.systems.shallow_vit import problems, sampling
    from dynamics.systems.shallow_vit.empirical import FullEmpirical
    from dynamics.systems.shallow_vit.parameters import Parameters
    from dynamics.systems.shallow_vit.presentation import PRESENTATION
    from theory.papers.shallow_vit.claims import CLAIMS
    from theory.papers.shallow_vit.recursion import derivations

    def page(parameters: Any = None) -> Page:
        """The page of the derivation; with parameters, for their law, loss and frozen weights."""
        from theory.papers.shallow_vit.derivation import page

        own = () if parameters is None else ("data", "loss", "frozen")
        return page(*(getattr(parameters, name) for name in own))

    return System(
        name="shallow_vit",
        presentation=PRESENTATION,
        claims=CLAIMS,
        derivation=Derivation(page, derivations),
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
        cost_model=seconds_of_tokens,
    )


PER_STEP = 3e-5
"""Seconds of a step of the shallow ViT, however small."""
PER_PAIR = 5e-10
"""Seconds for each neuron and pair of patterns of a count vector."""
PER_TOKEN = 7e-9
"""Seconds for each neuron and token of a sample."""


def seconds_of_tokens(parameters: Any, full: str | None, options: Mapping[str, Any]) -> float:
    """Predicted time of one gradient of the shallow ViT; see `dynamics.system.System`.

    Parameters
    ----------
    parameters : Parameters
    full : str or None
        ``"empirical"``, ``"population"``; None for the reduced problem.
    options : mapping
        Options of the problem.
    """
    from theory.papers.shallow_vit.data_law import support_size

    vectors = float(support_size(parameters.shares, parameters.data))
    samples = float(options.get("samples") or vectors)
    per_position = parameters.output_weights == "per_position"
    many = samples if per_position else min(samples, vectors)
    if full is not None:
        many = samples if full == "empirical" else many
        return PER_STEP + PER_TOKEN * many * parameters.L * parameters.m
    pairs = many * parameters.M**2 + 2 * parameters.d * parameters.M
    return PER_STEP + PER_PAIR * pairs * parameters.m
