"""Masked image modelling and feature-position correlations, made to run."""

from dynamics.models.engine.sampled import BATCH, DTYPE
from dynamics.registry import DefaultRun, System
from dynamics.systems.masked_image_modeling.cost import gradient_seconds
from dynamics.systems.masked_image_modeling.empirical import FullEmpirical
from dynamics.systems.masked_image_modeling.full import FullPopulation
from dynamics.systems.masked_image_modeling.parameters import Parameters
from dynamics.systems.masked_image_modeling.presentation import PRESENTATION
from dynamics.systems.masked_image_modeling.reduced import (
    ReducedPopulation,
    derivation,
    derivations,
)
from theory.papers.masked_image_modeling.claims import CLAIMS

ONE = {"family": "one_cluster"}
"""The family that the sizes of the default runs belong to."""

SYSTEM = System(
    name="masked_image_modeling",
    title=PRESENTATION.title,
    notation=PRESENTATION.notation,
    claims=CLAIMS,
    derivation=derivation,
    derivations=derivations,
    Parameters=Parameters,
    ReducedPopulation=ReducedPopulation,
    FullPopulation=FullPopulation,
    FullEmpirical=FullEmpirical,
    default_runs={
        "run": DefaultRun(parameters={}, eta=1.0, steps=4000),
        "compare": DefaultRun(
            parameters={"P": 12, "C_global": 8, "C_local": 2, "masked": 3},
            eta=1.0,
            steps=3000,
            presumes=ONE,
        ),
        "empirical": DefaultRun(
            parameters={"P": 64, "C_global": 32, "C_local": 4},
            eta=4.0,
            steps=300,
            samples=500,
            presumes=ONE,
        ),
    },
    expectations=("counts", "contour", "auto"),
    empirical_options={
        "start": "start of Q: zero (default) or random",
        "spread": "standard deviation of a random start (default 0.01)",
        "batch": BATCH,
        "dtype": DTYPE,
    },
    plot_description=PRESENTATION.plot,
    cost_model=gradient_seconds,
)
