"""Problems of the golden set, and what they are given in place of what they would draw.

States, starts, samples and sampled configurations are in ``golden.json``, of three decimals: no
number hangs on a random stream of the package.
"""

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np

import dynamics
from dynamics.papers.positional_attention.configurations import assemble
from dynamics.papers.shallow_vit.sampling import Samples, Tokens
from dynamics.papers.shallow_vit.starts import Start
from theory.papers.masked_image_modeling.images import Images

PA, MIM, VIT = "positional_attention", "masked_image_modeling", "shallow_vit"
VIEWS = {"reduced": "ReducedPopulation", "full": "FullPopulation", "realistic": "FullEmpirical"}


def patches(given):
    return lambda law, depth, count, generator: (given["X"], given["y"])


def configurations(types):
    rows, times = np.unique(np.sort(types, axis=1), axis=0, return_counts=True)
    return lambda patches, law, samples, seed: assemble(law, rows, times / len(types))


def images(given):
    many = given["cluster"].size
    return lambda *_: Images(**given, weight=np.full(many, 1 / many))


def weights(given):
    """The frame p is that of the first M unit vectors."""
    arrays = {name: given[name] for name in ("W_O", "W_V", "W_K", "W_Q")}
    a = given["signs"] / np.sqrt(given["signs"].size)
    return lambda parameters, _: Start(a, **arrays, p=np.eye(parameters.d, parameters.M))


def counts(given):
    return lambda parameters, samples, generator: Samples(**given)


def tokens(given):
    many, times = given["labels"].size, np.ones(given["patterns"].shape)
    return lambda *_: Tokens(**given, times=times, weights=np.full(many, 1 / many))


STAND_INS = {
    "patches": (f"{PA}.empirical.sampling.samples", patches),
    "configurations": (f"{PA}.reduced.configurations.sample", configurations),
    "images": (f"{MIM}.empirical.sampled_images", images),
    "weights": (f"{VIT}.starts.random_start", weights),
    "counts": (f"{VIT}.sampling.count_vectors", counts),
    "tokens": (f"{VIT}.empirical.noisy_tokens", tokens),
}
"""What is drawn -> the function in `dynamics.papers` that draws it, and its stand-in."""


def arrays(given):
    """Lists as arrays, in dicts too."""
    if isinstance(given, dict):
        return {name: arrays(part) for name, part in given.items()}
    return np.array(given)


@contextmanager
def instead_of_draws(given):
    """Let problems take what is given for what they would draw."""
    with ExitStack() as stack:
        for name in STAND_INS.keys() & given.keys():
            place, stand_in = STAND_INS[name]
            stack.enter_context(patch(f"dynamics.papers.{place}", stand_in(arrays(given[name]))))
        yield


@dataclass(frozen=True)
class Case:
    """A problem, by its parameters and options."""

    system: str
    view: str
    parameters: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self):
        settings = [f"{name}={value}" for name, value in (self.options | self.parameters).items()]
        return " ".join([f"{self.system}, {self.view},", *settings])

    def problem(self, given):
        system = dynamics.load_system(self.system)
        with instead_of_draws(given):
            parameters = system.Parameters(**self.parameters)
            problem = getattr(system, VIEWS[self.view])(parameters, **self.options)
            _ = problem.initial_state  # drawn when it is first asked for
        return problem


def positional_cases():
    least, small, large = {"D": 6, "C": 2}, {"D": 8, "C": 2}, {"D": 16, "C": 4, "nu": 0.01}
    mixed = {"D": 9, "C": 3, "q": 0.3, "nu": 0.1, "beta": 0.5, "scale": 1.5, "random_sets": "mixed"}
    sampled = {"expectation": "sampled", "samples": 60}
    for size in (small, mixed, large):
        yield Case(PA, "reduced", size, {"expectation": "exact"})
        yield Case(PA, "reduced", size, {"expectation": "spectral", "tolerance": 1e-12})
        yield Case(PA, "reduced", size, sampled)
    for size in (least, small, mixed):
        yield Case(PA, "full", size)
    own = {"start": "symmetric", "samples": 20}
    yield Case(PA, "realistic", least | {"d": 3, "nu": 0.1}, own)
    yield Case(PA, "realistic", mixed | {"d": 3}, own | {"diagonal": True})


def masked_cases():
    one = {"P": 6, "C_global": 2, "C_local": 2, "masked": 3}
    latents = {"P": 5, "C_global": 3, "C_local": 2, "masked": 2, "z": "0.5,1.5", "odds": "0.3,0.7"}
    several = {"family": "custom", "areas": "0,0,1,1;0,1,1,0", "masked": 2}
    for size in (one, latents, several):
        yield Case(MIM, "reduced", size, {"expectation": "counts"})
        yield Case(MIM, "reduced", size, {"expectation": "contour"})
        yield Case(MIM, "full", size, {"basis": None})
    for size in (latents, several):
        yield Case(MIM, "realistic", size, {"samples": 50})


def vit_cases():
    fixed = {"M": 3, "L": 10, "m": 6, "d": 3, "alpha_confusion": 0.1}
    disc = {"M": 5, "L": 12, "m": 4, "d": 5, "alpha_confusion": 0.1, "data": "fixed_disc"}
    free = {"M": 3, "L": 7, "m": 6, "d": 3, "data": "iid", "margin": 2.0}
    for view in ("reduced", "full"):
        for size in (fixed, disc, free):
            yield Case(VIT, view, size, {"expectation": "exact"})
        sampled = {"expectation": "sampled", "samples": 16}
        yield Case(VIT, view, free, sampled)
    for size in (fixed, free | {"loss": "linear"}):
        yield Case(VIT, "realistic", size | {"noise": 0.1}, {"samples": 16})


CASES = [*positional_cases(), *masked_cases(), *vit_cases()]
