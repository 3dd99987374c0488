"""Positional attention and patch association, made to run."""

from dynamics.systems import Panel, Showcase, Story, System
from dynamics.systems.positional_attention.brute import FullPopulation
from dynamics.systems.positional_attention.cost import gradient_seconds
from dynamics.systems.positional_attention.empirical import FullEmpirical
from dynamics.systems.positional_attention.parameters import Parameters
from dynamics.systems.positional_attention.population import ReducedPopulation, derivations
from theory.systems.positional_attention.claims import CLAIMS
from theory.systems.positional_attention.notation import NOTATION

SYSTEM = System(
    name="positional_attention",
    title="Positional attention and patch association (Jelassi, Sander, Li 2022)",
    notation=NOTATION,
    claims=CLAIMS,
    derivations=derivations,
    Parameters=Parameters,
    ReducedPopulation=ReducedPopulation,
    FullPopulation=FullPopulation,
    FullEmpirical=FullEmpirical,
    showcases={
        "run": Showcase(parameters={}, eta=0.02, steps=100_000),
        "compare": Showcase(parameters={"D": 9, "C": 3}, eta=0.03, steps=20_000),
        "empirical": Showcase(parameters={"q": 0.25}, eta=0.02, steps=10_000, samples=8000),
    },
    expectations=("exact", "truncated", "spectral", "sampled", "auto"),
    realistic={
        "partition": "true sets: contiguous (default), grid or random",
        "start": "random (default) or symmetric, as in the idealised case",
        "batch": "samples of a mini-batch (default: all)",
        "dtype": "float64 (default) or float32, of samples and their sums",
        "diagonal": "1 to train the diagonal of A too",
    },
    story=Story(
        panels=(
            Panel((("alpha", 0),)),
            Panel((("gamma", 1), ("rho", 2)), level="0"),
            Panel((("G", 3), ("alpha_G", 4)), logarithmic=True, level="D/2"),
            Panel((("risk", 5),), logarithmic=True),
        ),
        spans=(
            ("Event I", None, "T0"),
            ("Event II", "T0", "T1"),
            ("Event III", "event_III", None),
        ),
        marks={"T0": "$T_0$", "T1": "$T_1$"},
        asides={"T1_paper": r"$T_1$ (paper)"},
        overlaid=("alpha", "gamma", "rho", "risk"),
    ),
    seconds=gradient_seconds,
)
