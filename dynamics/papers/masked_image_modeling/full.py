r"""Training with every entry of Q, and the population problem on all masked images.

The state is the flattened matrix Q, shape (d, d). Features v_{k,a} of area a in cluster k and
positions e_p are rows of an orthonormal basis; in this basis only the entries :math:`e_p^\top Q
e_q` and :math:`e_p^\top Q v` move. The loss of the model file
`dynamics.models.masked_image_modeling` uses no reduction. Agreement of full problems with
`ReducedPopulation` is evidence for the reduction and for both methods of its expectation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, cached_property
from math import comb
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from dynamics.models import masked_image_modeling as file
from dynamics.models.engine.functions import Columns, Embedding
from dynamics.models.engine.program import on_device, program_of
from dynamics.models.engine.sampled import Training
from dynamics.models.engine.traced_problem import TracedProblem, hash_of_file
from dynamics.papers.masked_image_modeling.parameters import Parameters
from dynamics.papers.masked_image_modeling.presentation import PRESENTATION
from dynamics.papers.masked_image_modeling.reduced import ReducedPopulation, row_observables
from dynamics.papers.masked_image_modeling.sizes import check_matrices, rows_of
from dynamics.parameter_fields import check_parameters
from dynamics.problem import FloatArray, Layout, record_of
from dynamics.training.minibatches import MiniBatches, fingerprint
from dynamics.validation import integer, refuse
from theory.closure.regime import Regime
from theory.law import Law
from theory.model import Model
from theory.papers.masked_image_modeling.images import (
    Images,
    all_images,
    image_count,
    image_digits,
    latent_choices,
)
from theory.papers.masked_image_modeling.notation import EVENTS, ORDER_PARAMETERS
from theory.papers.masked_image_modeling.rows import Rows
from theory.papers.masked_image_modeling.symmetry import feature_offsets

MOST_DIGITS = 15.0


class FullProblem(TracedProblem):
    """Training of all entries of Q on weighted masked images.

    `images` are weighted masked images. `basis`, shape (d, d), has orthonormal rows: the position
    e_p of every patch, then the features; by default unit vectors. `minibatches` selects the images
    of every step, by default all.
    """

    system = "masked_image_modeling"
    events = EVENTS
    order_names = ORDER_PARAMETERS
    rates = ReducedPopulation.rates
    training = Training()

    def __init__(
        self,
        parameters: Parameters,
        images: Images,
        basis: FloatArray | None = None,
        minibatches: MiniBatches | None = None,
    ) -> None:
        self.parameters, self.images = parameters, images
        self.rows: Rows = rows_of(parameters)
        self.presentation = replace(PRESENTATION, notation=self.rows.notation, unused=())
        size, depth = parameters.P, parameters.d
        self._axes = (np.eye(depth) if basis is None else basis)[: size + parameters.features]
        self.positions, self.features = self._axes[:size], self._axes[size:]
        offsets = feature_offsets(parameters.area_ids)[images.cluster]
        samples = {
            "feature": parameters.area_ids[images.cluster] + offsets[:, None],
            "z": images.latent,
            "masked": images.masked,
        }
        patches = [np.isin(np.arange(size), row.patches) for row in self.rows.types]
        fixed = {"basis": self._axes, "rows": np.array(patches) / self.rows.many[:, None]}
        layout = Layout(("Q",), ((depth, depth),), groups=("Q",))
        program = program_of(_model(), (), (("Q", (depth, depth)),))
        data = self.training.data(Law(images.weight, samples), fixed, {})
        super().__init__(
            program,
            (data, on_device(self._references())),
            layout,
            self._columns(),
            minibatches=minibatches,
        )

    def _references(self) -> Embedding:
        """Embedding whose scalars are the means of the entries of Phi_m and of Phi_0."""
        own, remote, local, _ = map(int, self.rows.references)
        pairs = [self.rows.pairs(local, index) for index in (own, remote)]
        means = [
            (self.positions[p].T @ self.features[v]).ravel() for p, v in (each.T for each in pairs)
        ]
        share = np.array([1 / len(each) if len(each) else np.nan for each in pairs])
        nothing = np.zeros(0)
        return Embedding(
            np.zeros(self.parameters.d**2), np.stack(means, 1), nothing, nothing, share
        )

    def _columns(self) -> Columns:
        """Pairs (kind, key) of the order parameters, in the order of `order_names`."""
        local, far = map(int, self.rows.references[2:])

        def numbers(row: int) -> list[tuple[str, Any]]:
            if row < 0:
                return [("state", 0)] * 2  # without a local patch: Phi_m, which is NaN
            attention = ("observable", f"own_{row}"), ("observable", f"in_sight_{row}")
            return [("ratio", attention), ("observable", f"gap_{row}")]

        rates, states = ([(kind, 0), (kind, 1)] for kind in ("rate", "state"))
        return (("ratio", tuple(rates[::-1])), *rates, *states, *numbers(local), *numbers(far))

    @property
    def identity(self) -> Mapping[str, Any]:
        """Settings, hashes of model file and random numbers; a resumed run must have the same."""
        seed = 0 if self.minibatches is None else self.minibatches.seed
        drawn = fingerprint([*self.images, self.initial_state, self._axes, np.array([seed])])
        return {**self.settings, "code": hash_of_file(file), "random_numbers": drawn}

    def moving(self, start: FloatArray) -> NDArray[np.bool_]:
        """Mask of trained entries of Q; in the unit basis these are only the rows of positions."""
        every = np.ones(self.layout.size, dtype=bool)
        if (np.abs(self._axes).sum(axis=1) == 1).all():
            self.layout.part(every, "Q")[self.parameters.P :] = False
        return every

    @property
    def initial_state(self) -> FloatArray:
        """Start of training, Q = 0."""
        return np.zeros(self.layout.size)

    @cached_property
    def rho0(self) -> float:
        """Ratio rho(0) of the first increments of Phi_0 (global feature), Phi_m (own feature)."""
        order = self.order_parameters(self.initial_state)
        return float(order[self.order_names.index("rho")])

    def orbit_values(self, states: FloatArray) -> Mapping[str, FloatArray]:
        """Reduced scalar -> entries of Q compared with it, shape (records, entries)."""
        return self.class_entries(states)

    def class_entries(self, states: FloatArray) -> Mapping[str, FloatArray]:
        """Reduced scalar -> entries of Q that share it, shape (records, entries)."""
        queries = self.positions @ self.layout.part(states, "Q")
        return self.rows.orbit_values(queries @ self.positions.T, queries @ self.features.T)

    def risk(self, state: ArrayLike) -> float:
        """Risk over all images."""
        return float(self.observed(self.layout.flatten(state)[None])["risk"][0])

    def observables(self, state: ArrayLike) -> dict[str, float]:
        """Name -> observable at a state; ``dead``, the largest of v^T Q for features v, stays 0."""
        flat = self.layout.flatten(state)
        slope, seen = self.gradient(flat), self.observed(flat[None])
        order = self.order_parameters(flat, slope)[:, None]
        kinds, found = range(len(self.rows.types)), seen["observables"]
        gaps = np.array([found[f"gap_{row}"] for row in kinds])
        with np.errstate(invalid="ignore"):  # 0/0 if no other patch of an area is ever unmasked
            own = [found[f"own_{row}"] / found[f"in_sight_{row}"] for row in kinds]
        numbers = np.stack([gaps, own], axis=-1).swapaxes(0, 1)
        risk = np.stack([seen["risk"], self.rows.many @ gaps], axis=-1)
        named = dict(zip(self.order_names, order, strict=True))
        values, moved = self.class_entries(flat[None]), self.class_entries(slope[None])
        return (
            {name: float(entries.mean()) for name, entries in values.items()}
            | {f"d_{name}": -float(entries.mean()) for name, entries in moved.items()}
            | record_of(row_observables(self.rows, named, numbers, risk), 0)
            | {
                "rho0": self.rho0,
                "spread": max(float(np.ptp(entries)) for entries in values.values()),
                "dead": float(np.abs(self.features @ self.layout.part(flat, "Q")).max()),
            }
        )


def _observe(theta: Any, sample: Any, xp: Any) -> dict[str, Any]:
    """Means of the observables over all rows of Q of a type, for one masked image."""
    part = file.of_masked(theta, sample, xp)
    patches = {
        "gap": part["loss"] - part["floor"],
        "own": part["own"],
        "in_sight": part["in_sight"],
    }
    means = {name: theta["rows"][:, sample["masked"]] @ values for name, values in patches.items()}
    return {f"{name}_{row}": mean[row] for name, mean in means.items() for row in range(len(mean))}


@cache
def _model() -> Model:
    """Model of the model file, with observables averaged over each type of rows."""
    return Model(start=file.start, law=file.law, loss=file.loss, observe=_observe)


class FullPopulation(FullProblem):
    """Training of every entry of Q over all masked images, in a random orthonormal basis.

    `max_configurations` is the maximum number of masked images. `basis` is the seed of the random
    basis, or None for unit vectors. Raises InvalidRequest for more masked images than the maximum,
    with their number, or if Q exceeds memory.
    """

    view = "full population"

    def __init__(
        self,
        parameters: Parameters,
        max_configurations: int = 200_000,
        basis: int | None = 0,
    ) -> None:
        check_parameters(parameters, Parameters)
        check_matrices(parameters)
        needed = _enumerable(parameters, max_configurations)
        self.settings = {"images": needed, "basis": "unit" if basis is None else basis}
        axes = None
        if basis is not None:
            seed = integer("basis", basis, at_least=0, at_most=2**62)
            axes = random_basis(parameters.d, np.random.default_rng(seed))
        super().__init__(parameters, all_images(parameters), axes)

    def under(self, regime: Regime) -> FullPopulation:
        """The problem for a regime; rules that act entry by entry get the basis of unit vectors."""
        if regime.spaces or self.settings["basis"] == "unit":
            return self
        return type(self)(*self._arguments, **{**self._options, "basis": None})


def random_basis(depth: int, generator: Generator) -> FloatArray:
    """Random orthonormal rows, shape (d, d)."""
    orthogonal, upper = np.linalg.qr(generator.standard_normal((depth, depth)))
    return np.ascontiguousarray((orthogonal * np.sign(np.diag(upper))).T)


def _enumerable(parameters: Parameters, limit: int) -> int:
    """Number of masked images; raises InvalidRequest if the number exceeds the limit."""
    # A number with more digits is slow to compute and is printed as a power of ten.
    few = image_digits(parameters) < MOST_DIGITS
    needed = image_count(parameters) if few else None
    if needed is not None and needed <= limit:
        return needed
    masked = 0
    while comb(parameters.P, masked + 1) * latent_choices(parameters) <= limit:
        masked += 1
    number = f"{needed:,}" if few else f"about 1e{image_digits(parameters):.0f}"
    refuse(
        "masked",
        parameters.masked,
        f"needs {number} masked images in the full population problem at P={parameters.P}",
        f"a number with at most {limit:,} masked images (the reduced problem has no such limit)",
        masked or "a smaller P",
    )
