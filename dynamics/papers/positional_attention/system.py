"""Positional attention and patch association as a system: its problems, claims, default runs."""

from __future__ import annotations

from dynamics.default_runs import Contrast, DefaultRun
from dynamics.papers.positional_attention import reduced
from dynamics.papers.positional_attention.empirical import FullEmpirical
from dynamics.papers.positional_attention.full import FullPopulation
from dynamics.papers.positional_attention.parameters import Parameters
from dynamics.papers.positional_attention.presentation import PRESENTATION
from dynamics.system import Derivation, System
from theory.papers.positional_attention.claims import CLAIMS
from theory.papers.positional_attention.separability import criterion

SHOWN = {"D": 9, "C": 3, "random_sets": "mixed"}
"""Smallest tested size at which all three events occur with sets of three patches."""
REMARKS = {
    "random_sets": "its law is the mixed one, a toy law: no random set has a single sign; "
    "the paper's law is --random_sets any"
}


def what_decides(parameters: Parameters) -> str:
    """Remark for mixed sets: some state classifies every sample if (L-1)(1-1/C)^p is below 1."""
    number = criterion(parameters.set_law, parameters.L, parameters.p)
    return (
        f"(L-1)(1-1/C)^p = {number:.3f} < 1: in this toy law, without random sets of one sign, "
        "some state classifies every sample; under the paper's law no state does. Whether training "
        f"reaches one depends on q, nu and beta, here {parameters.q:g}, {parameters.nu:g} and "
        f"{parameters.beta:g}"
    )


CONTRAST = Contrast({"random_sets": "any"}, ("alpha", "G", "risk"), what_decides)
SYSTEM = System(
    name="positional_attention",
    presentation=PRESENTATION,
    claims=CLAIMS,
    derivation=Derivation(reduced.derivation, reduced.formulas),
    Parameters=Parameters,
    ReducedPopulation=reduced.ReducedPopulation,
    FullPopulation=FullPopulation,
    FullEmpirical=FullEmpirical,
    default_runs={
        "run": DefaultRun(SHOWN, eta=0.02, steps=100_000, remarks=REMARKS),
        "compare": DefaultRun(SHOWN, eta=0.03, steps=40_000, contrast=CONTRAST, remarks=REMARKS),
        "empirical": DefaultRun({"q": 0.25}, eta=0.02, steps=10_000, samples=8000),
    },
    expectations=("exact", "spectral", "sampled", "auto"),
)
