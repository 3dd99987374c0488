"""Positional attention and patch association, made to run."""

from dynamics.models.engine.sampled import BATCH, DTYPE
from dynamics.registry import Contrast, DefaultRun, System
from dynamics.systems.positional_attention.empirical import FullEmpirical
from dynamics.systems.positional_attention.full import FullPopulation
from dynamics.systems.positional_attention.parameters import Parameters
from dynamics.systems.positional_attention.presentation import PRESENTATION
from dynamics.systems.positional_attention.reduced.population import (
    ReducedPopulation,
    derivation,
    derivations,
    gradient_seconds,
)
from theory.papers.positional_attention.claims import CLAIMS
from theory.papers.positional_attention.data_law import ANY, MIXED
from theory.papers.positional_attention.separability import criterion

SHOWN = {"D": 9, "C": 3, "random_sets": MIXED}
"""The smallest of the sizes at which all three events were seen with sets of three patches."""
REMARKS = {
    "random_sets": "its law is the mixed one, a toy law in which no random set is all of one sign; "
    "the paper's law is --random_sets any"
}


def what_decides(parameters: Parameters) -> str:
    """Whether any state classifies every sample under either law, where the criterion is below 1.

    Parameters
    ----------
    parameters : Parameters
        With mixed random sets.
    """
    number = criterion(parameters.set_law, parameters.L, parameters.p)
    return (
        f"(L-1)(1-1/C)^p = {number:.3f} < 1: in this toy law, without random sets of one sign, "
        "some state classifies every sample; under the paper's law none does. Whether training "
        f"gets there depends on q, nu and beta, here {parameters.q:g}, {parameters.nu:g} and "
        f"{parameters.beta:g}"
    )


SYSTEM = System(
    name="positional_attention",
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
        "run": DefaultRun(parameters=SHOWN, eta=0.02, steps=100_000, remarks=REMARKS),
        "compare": DefaultRun(
            parameters=SHOWN,
            eta=0.03,
            steps=40_000,
            contrast=Contrast({"random_sets": ANY}, ("alpha", "G", "risk"), what_decides),
            remarks=REMARKS,
        ),
        "empirical": DefaultRun(parameters={"q": 0.25}, eta=0.02, steps=10_000, samples=8000),
    },
    expectations=("exact", "spectral", "sampled", "auto"),
    empirical_options={
        "partition": "true sets: contiguous (default), grid or random",
        "start": "random (default) or symmetric, as in the idealised case",
        "batch": BATCH,
        "dtype": DTYPE,
        "diagonal": "1 to train the diagonal of A too",
        "test_samples": "fresh samples of the test error (default 10000)",
    },
    plot_description=PRESENTATION.plot,
    cost_model=gradient_seconds,
)
