"""Masked image modelling and feature-position correlations, made to run."""

from dynamics.systems import Panel, Showcase, Story, System
from dynamics.systems.masked_image_modeling.brute import FullPopulation
from dynamics.systems.masked_image_modeling.cost import gradient_seconds
from dynamics.systems.masked_image_modeling.empirical import FullEmpirical
from dynamics.systems.masked_image_modeling.parameters import Parameters
from dynamics.systems.masked_image_modeling.population import ReducedPopulation, derivations
from theory.systems.masked_image_modeling.claims import CLAIMS
from theory.systems.masked_image_modeling.notation import NOTATION

ONE = {"family": "one_cluster"}
"""What the sizes of showcases are of: who asks for another family is not given them."""

SYSTEM = System(
    name="masked_image_modeling",
    title="Masked image modelling, feature-position correlations (Huang, Wen, Chi, Liang 2024)",
    notation=NOTATION,
    claims=CLAIMS,
    derivations=derivations,
    Parameters=Parameters,
    ReducedPopulation=ReducedPopulation,
    FullPopulation=FullPopulation,
    FullEmpirical=FullEmpirical,
    showcases={
        "run": Showcase(parameters={}, eta=1.0, steps=4000),
        "compare": Showcase(
            parameters=ONE | {"P": 12, "C_global": 8, "C_local": 2, "masked": 3},
            eta=1.0,
            steps=3000,
        ),
        "empirical": Showcase(
            parameters=ONE | {"P": 64, "C_global": 32, "C_local": 4},
            eta=4.0,
            steps=300,
            samples=500,
        ),
    },
    expectations=("counts", "contour", "auto"),
    realistic={
        "start": "zero (default) or random, of Q",
        "spread": "standard deviation of a random start (default 0.01)",
        "batch": "images of a mini-batch (default: all)",
    },
    story=Story(
        panels=(
            Panel((("Phi_m", 0), ("Phi_0", 1)), level="0"),
            Panel((("alpha_m", 0), ("alpha_0", 1)), logarithmic=True),
            Panel((("A_m", 0), ("A_g", 2)), level="1/2"),
            Panel((("gap", 0), ("gap_g", 2)), logarithmic=True),
        ),
        spans=(("Phase I", "E0", "E2"), ("Phase II", "E2", "E4"), ("convergence", "E4", None)),
        marks={"E2": "$E_2$", "E4": "$E_4$"},
        asides={"E5": "$E_5$"},
        overlaid=("Phi_m", "Phi_0", "A_m", "gap"),
        alone={"Phase II": "one phase"},
    ),
    seconds=gradient_seconds,
)
