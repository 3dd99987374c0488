"""Masked image modelling as a system: its problems, claims and default runs."""

from __future__ import annotations

from dynamics.default_runs import DefaultRun
from dynamics.papers.masked_image_modeling import reduced
from dynamics.papers.masked_image_modeling.empirical import FullEmpirical
from dynamics.papers.masked_image_modeling.full import FullPopulation
from dynamics.papers.masked_image_modeling.parameters import Parameters
from dynamics.papers.masked_image_modeling.presentation import PRESENTATION
from dynamics.system import Derivation, System
from theory.papers.masked_image_modeling.claims import CLAIMS

ONE = {"family": "one_cluster"}
"""Parameters that select the family of partitions of the default runs."""
COMPARED = {"P": 12, "C_global": 8, "C_local": 2, "masked": 3}
DRAWN = {"P": 64, "C_global": 32, "C_local": 4}
SYSTEM = System(
    name="masked_image_modeling",
    presentation=PRESENTATION,
    claims=CLAIMS,
    derivation=Derivation(reduced.derivation),
    Parameters=Parameters,
    ReducedPopulation=reduced.ReducedPopulation,
    FullPopulation=FullPopulation,
    FullEmpirical=FullEmpirical,
    default_runs={
        "run": DefaultRun({}, eta=1.0, steps=4000),
        "compare": DefaultRun(COMPARED, eta=1.0, steps=3000, presumes=ONE),
        "empirical": DefaultRun(DRAWN, eta=4.0, steps=300, samples=500, presumes=ONE),
    },
    expectations=("counts", "contour", "auto"),
)
