"""Shallow Vision Transformers trained with hinge loss, made to run."""

from dynamics.systems import Panel, Showcase, Story, System
from dynamics.systems.shallow_vit.brute import FullPopulation
from dynamics.systems.shallow_vit.cost import gradient_seconds
from dynamics.systems.shallow_vit.empirical import FullEmpirical
from dynamics.systems.shallow_vit.parameters import Parameters
from dynamics.systems.shallow_vit.population import ReducedPopulation, derivations
from theory.systems.shallow_vit.claims import CLAIMS
from theory.systems.shallow_vit.notation import NOTATION

SYSTEM = System(
    name="shallow_vit",
    title="Shallow Vision Transformer, hinge loss (Li, Wang, Liu, Chen 2023)",
    notation=NOTATION,
    claims=CLAIMS,
    derivations=derivations,
    Parameters=Parameters,
    ReducedPopulation=ReducedPopulation,
    FullPopulation=FullPopulation,
    FullEmpirical=FullEmpirical,
    showcases={
        "run": Showcase(parameters={"margin": 31.6}, eta=0.1, steps=300),
        "compare": Showcase(parameters={"m": 120, "margin": 11.0}, eta=0.1, steps=300),
        "empirical": Showcase(parameters={"m": 300}, eta=0.1, steps=150, samples=200),
    },
    expectations=("exact", "sampled", "auto"),
    realistic={
        "start": "another seed, for the weights alone; or symmetric (without noise)",
        "batch": "samples of a mini-batch (default: all)",
        "sparsify": "tokens that go first: random, irrelevant or noisiest (default: none)",
        "removed": "share of the tokens that go (default 0)",
        "noisy_share": "share of tokens with other noise (default 0)",
        "noisy_std": "standard deviation of that noise (default 1)",
        "test_samples": "fresh samples of the test set (default 1000)",
    },
    story=Story(
        panels=(
            Panel(
                (
                    ("relevant", 5), ("relevant_by_relevant", 0), ("relevant_by_confusion", 1),
                    ("relevant_by_other", 2),
                ),
                label="attention to\nrelevant tokens",
                words=("all queries", "relevant", "confusion", "others"),
            ),
            Panel(
                (("risk", 0), ("test_loss", 1), ("active", 2), ("test_error", 4)),
                label="loss, errors",
            ),
            Panel(
                (("B_11", 0), ("B_12", 1), ("B_1k", 3), ("B_k1", 4), ("B_kk", 2), ("B_kl", 5)),
                level="0",
                label="scores, class means",
            ),
            Panel(
                (("lucky_W", 0), ("lucky_U", 1), ("gate_classes", 2)),
                label="neurons",
                words=("open to +", "open to $-$", "gate classes"),
            ),
        ),
        spans=(("below the margin", None, "t_zero"), ("zero loss", "t_zero", None)),
        marks={"t_zero": r"$t_{\mathrm{zero}}$"},
        asides={"mass_75": r"$P_* = 75\,\%$"},
        overlaid=("relevant", "test_loss", "test_error", "B_11", "lucky_W"),
    ),
    seconds=gradient_seconds,
    drawn=("samples", "seed", "start", "batch"),
)  # fmt: skip
