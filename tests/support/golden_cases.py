"""Problems of the golden set, and what they are given in place of what they would draw.

States, starts, samples and sampled configurations are made here once, of three decimals, and stay
in ``golden.json``: no number hangs on a random stream of the package.
"""

from collections.abc import Callable
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

FEW = 20
"""Entries of a state that is small."""

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
    """A problem, by its parameters and options, and by what makes its random numbers."""

    system: str
    view: str
    parameters: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)
    drawn: tuple[Callable[..., Any], ...] = ()

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

    def made(self):
        """Inputs: random numbers, and states away from the start, one of them large."""
        generator = np.random.default_rng(0)
        parameters = dynamics.load_system(self.system).Parameters(**self.parameters)
        given = {}
        for draw in self.drawn:
            given |= draw(parameters, generator)
        problem = self.problem(given)
        start, given["states"] = problem.initial_state, []
        for spread in (0.3, 0.1)[: 1 if start.size > FEW else 2]:
            moved = start + spread * generator.standard_normal(start.size)
            trained = problem.gradient(moved) != 0
            given["states"].append(rounded(np.where(trained, moved, start)))
        return given


def rounded(values):
    return np.round(values, 3).tolist()


def draw_patches(parameters, generator, samples=20):
    size, axis = parameters.D, np.eye(parameters.d)[0]
    y = generator.choice((-1.0, 1.0), samples)
    signal = generator.integers(parameters.L, size=samples)
    x = generator.integers(-1, 2, (samples, size))
    x = np.where(np.arange(size) // parameters.C == signal[:, None], y[:, None], x)
    noise = parameters.sigma * generator.standard_normal((samples, size, parameters.d))
    X = rounded(x[:, :, None] * axis + noise * (1 - axis))
    return {"feature": axis.tolist(), "patches": {"X": X, "y": y.tolist()}}


def draw_configurations(parameters, generator, samples=60):
    chances = parameters.set_law.probabilities
    shape = samples, parameters.L - 1
    drawn = generator.choice(chances.size, shape, p=chances / chances.sum())
    return {"configurations": drawn.tolist()}


def draw_images(parameters, generator, samples=50):
    areas = parameters.area_ids
    cluster = generator.integers(len(areas), size=samples)
    z = generator.choice(parameters.z, (samples, areas.max() + 1), p=parameters.odds)
    latent = np.take_along_axis(z, areas[cluster], axis=1)
    order = np.argsort(generator.random(latent.shape), axis=1)
    masked = np.sort(order[:, : parameters.masked], axis=1)
    given = {"cluster": cluster, "latent": latent, "masked": masked}
    return {"images": {name: part.tolist() for name, part in given.items()}}


def draw_weights(parameters, generator):
    depth, neurons = parameters.d, parameters.m
    given = {"signs": generator.choice((-1.0, 1.0), neurons).tolist()}
    given["W_O"] = rounded(0.3 * generator.standard_normal((neurons, depth)))
    for name in ("W_V", "W_K", "W_Q"):
        given[name] = rounded(np.eye(depth) + 0.1 * generator.standard_normal((depth, depth)))
    return {"weights": given}


def draw_counts(parameters, generator, samples=16):
    shares, others = parameters.shares, parameters.M - 2
    labels = np.where(np.arange(samples) % 2, -1.0, 1.0)
    own = np.array([[shares.n_star, shares.n_confusion]])
    own = np.where(labels[:, None] > 0, own, own[:, ::-1])
    rest = generator.multinomial(parameters.L - own.sum(1), np.full(others, 1 / others))
    return {"counts": {"counts": np.hstack([own, rest]).tolist(), "labels": labels.tolist()}}


def draw_tokens(parameters, generator):
    drawn = draw_counts(parameters, generator)["counts"]
    kinds = np.arange(parameters.M)
    patterns = [generator.permutation(np.repeat(kinds, row)).tolist() for row in drawn["counts"]]
    exact = np.eye(parameters.d)[patterns]
    values = rounded(exact + parameters.noise * generator.standard_normal(exact.shape))
    return {"tokens": {"values": values, "patterns": patterns, "labels": drawn["labels"]}}


def positional_cases():
    least, small, large = {"D": 6, "C": 2}, {"D": 8, "C": 2}, {"D": 16, "C": 4, "nu": 0.01}
    mixed = {"D": 9, "C": 3, "q": 0.3, "nu": 0.1, "beta": 0.5, "scale": 1.5, "random_sets": "mixed"}
    sampled = {"expectation": "sampled", "samples": 60}
    for size in (small, mixed, large):
        yield Case(PA, "reduced", size, {"expectation": "exact"})
        yield Case(PA, "reduced", size, {"expectation": "spectral", "tolerance": 1e-12})
        yield Case(PA, "reduced", size, sampled, (draw_configurations,))
    for size in (least, small, mixed):
        yield Case(PA, "full", size)
    own = {"start": "symmetric", "samples": 20}
    yield Case(PA, "realistic", least | {"d": 3, "nu": 0.1}, own, (draw_patches,))
    yield Case(PA, "realistic", mixed | {"d": 3}, own | {"diagonal": True}, (draw_patches,))


def masked_cases():
    one = {"P": 6, "C_global": 2, "C_local": 2, "masked": 3}
    latents = {"P": 5, "C_global": 3, "C_local": 2, "masked": 2, "z": "0.5,1.5", "odds": "0.3,0.7"}
    several = {"family": "custom", "areas": "0,0,1,1;0,1,1,0", "masked": 2}
    for size in (one, latents, several):
        yield Case(MIM, "reduced", size, {"expectation": "counts"})
        yield Case(MIM, "reduced", size, {"expectation": "contour"})
        yield Case(MIM, "full", size, {"basis": None})
    for size in (latents, several):
        yield Case(MIM, "realistic", size, {"samples": 50}, (draw_images,))


def vit_cases():
    fixed = {"M": 3, "L": 10, "m": 6, "d": 3, "alpha_confusion": 0.1}
    disc = {"M": 5, "L": 12, "m": 4, "d": 5, "alpha_confusion": 0.1, "data": "fixed_disc"}
    free = {"M": 3, "L": 7, "m": 6, "d": 3, "data": "iid", "margin": 2.0}
    for view in ("reduced", "full"):
        for size in (fixed, disc, free):
            yield Case(VIT, view, size, {"expectation": "exact"}, (draw_weights,))
        sampled = {"expectation": "sampled", "samples": 16}
        yield Case(VIT, view, free, sampled, (draw_weights, draw_counts))
    for size in (fixed, free | {"loss": "linear"}):
        drawn = draw_weights, draw_tokens
        yield Case(VIT, "realistic", size | {"noise": 0.1}, {"samples": 16}, drawn)


CASES = [*positional_cases(), *masked_cases(), *vit_cases()]
