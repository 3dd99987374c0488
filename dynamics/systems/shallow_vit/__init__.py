"""Shallow Vision Transformers trained with hinge loss, made to run."""

from dynamics.registry import DefaultRun, System
from dynamics.systems.shallow_vit.cost import gradient_seconds
from dynamics.systems.shallow_vit.empirical.problem import FullEmpirical
from dynamics.systems.shallow_vit.full.population import FullPopulation
from dynamics.systems.shallow_vit.parameters import Parameters
from dynamics.systems.shallow_vit.presentation import PRESENTATION
from dynamics.systems.shallow_vit.reduced.population import ReducedPopulation, derivations
from theory.systems.shallow_vit.claims import CLAIMS

SYSTEM = System(
    name="shallow_vit",
    title=PRESENTATION.title,
    notation=PRESENTATION.notation,
    claims=CLAIMS,
    derivations=derivations,
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
        "batch": "samples of a mini-batch (default: all)",
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
