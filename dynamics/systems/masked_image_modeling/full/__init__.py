r"""Training with every entry of Q, and the population problem: every masked image with its chance.

The state is Q (d, d), flat. Features v_{k,a} and positions e_p are rows of an orthonormal basis, in
which the entries that move are :math:`e_p^\top Q e_q` and :math:`e_p^\top Q v`. `FullPopulation`
shares nothing with `ReducedPopulation` but what is read off a row, so their agreement is evidence
for the reduction and for both of its expectations; its gradient is held against automatic
differentiation by `tests/dynamics/models/test_conformance.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, cached_property
from math import comb

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from dynamics import codegen
from dynamics.problem import FloatArray, Layout, record_of
from dynamics.systems.empirical_problem import ALL_SAMPLES, Batch, SampledProblem
from dynamics.systems.masked_image_modeling import cost
from dynamics.systems.masked_image_modeling.images import (
    Images,
    all_images,
    image_count,
    image_digits,
    latent_choices,
)
from dynamics.systems.masked_image_modeling.kernels import full as kernels
from dynamics.systems.masked_image_modeling.parameters import Parameters
from dynamics.systems.masked_image_modeling.presentation import PRESENTATION
from dynamics.systems.masked_image_modeling.projection import Rows, rows_of
from dynamics.systems.masked_image_modeling.reduced import ReducedPopulation, row_observables
from dynamics.training.minibatches import MiniBatches
from dynamics.validation import check_parameters, integer, refuse
from theory.papers.masked_image_modeling.notation import EVENTS, ORDER_PARAMETERS

MOST_DIGITS = 15.0


class FullProblem(SampledProblem):
    """Training of all entries of Q on weighted masked images.

    Parameters
    ----------
    parameters : Parameters
    images : Images
    basis : float array, shape (d, d), optional
        Orthonormal rows: e_p for every patch, then the features; the unit vectors by default.
    minibatches : MiniBatches, optional
        Which images every step is on; all by default.
    """

    system = "masked_image_modeling"
    presentation = PRESENTATION
    events = EVENTS
    order_names = ORDER_PARAMETERS
    rates = ReducedPopulation.rates
    reads_pass = True

    def __init__(
        self,
        parameters: Parameters,
        images: Images,
        basis: FloatArray | None = None,
        minibatches: MiniBatches | None = None,
    ) -> None:
        self.parameters = parameters
        self.rows: Rows = rows_of(parameters)
        self.presentation = replace(PRESENTATION, notation=self.rows.notation, unused=())
        size, depth, live = parameters.P, parameters.d, parameters.P + parameters.features
        axes = (np.eye(depth) if basis is None else np.ascontiguousarray(basis))[:live]
        self._images, self._axes = images, axes
        self.positions, self.features = axes[:size], axes[size:]
        areas = parameters.area_ids
        first = np.concatenate([[0], np.cumsum(areas.max(axis=1) + 1)])[:-1]
        feature = np.ascontiguousarray(areas + first[:, None])
        members = np.arange(images.weight.size)
        data = kernels.FullData(
            kernels.Basis(axes, basis is None, feature),
            images,
            Batch(ALL_SAMPLES, members, images.weight),
            self._readout(),
            kernels.Sums(np.empty((size, live)), *np.empty((4, size))),
            kernels.Room(
                np.empty((size, depth)),
                np.empty((size, live)),
                np.empty((size, live)),
                np.full(depth * depth, np.nan),
                np.full(1, ALL_SAMPLES),
            ),
        )
        layout = Layout(("Q",), ((depth, depth),), groups=("Q",))
        every_step = minibatches or MiniBatches(0, members.size, None)
        super().__init__(_module(), data, layout, every_step)

    def _readout(self) -> kernels.Readout:
        rows, size = self.rows, self.parameters.P
        kind = np.empty(size, dtype=np.int64)
        for r, row in enumerate(rows.types):
            kind[row.patches] = r
        own, remote, local, far = map(int, rows.references)
        column = np.array([0, size])
        own_pairs, remote_pairs = (
            rows.pairs(local, own) + column,
            rows.pairs(local, remote) + column,
        )
        numbers = np.empty((len(rows.types), 2))
        return kernels.Readout(kind, own_pairs, remote_pairs, local, far, numbers)

    def random_numbers(self) -> tuple[np.ndarray, ...]:
        """The images, the start and the basis."""
        return (*self._images, self.initial_state, self._axes)

    @property
    def initial_state(self) -> FloatArray:
        """Q = 0."""
        return np.zeros(self.layout.size)

    @cached_property
    def rho0(self) -> float:
        """Ratio of the increments of Phi_0 and Phi_m at the start."""
        order = self.order_parameters(self.initial_state)
        return float(order[self.order_names.index("rho")])

    def orbit_values(self, states: FloatArray) -> Mapping[str, FloatArray]:
        """Reduced state -> what is compared with it: the entries it stands for."""
        return self.class_entries(states)

    def class_entries(self, states: FloatArray) -> Mapping[str, FloatArray]:
        """Reduced state -> the entries it stands for, shape (records, entries)."""
        queries = self.positions @ self.layout.part(states, "Q")
        return self.rows.orbit_values(queries @ self.positions.T, queries @ self.features.T)

    def observables(self, state: ArrayLike) -> dict[str, float]:
        """Means over the entries of each class, their largest spread, gaps, risk at a state.

        ``dead`` is the largest entry v^T Q, which never moves.
        """
        flat = self.layout.flatten(state)
        slope = self.gradient(flat)
        order = self.order_parameters(flat, slope)[:, None]
        risk, numbers = self._summary(flat)[None], np.empty((1, len(self.rows.types), 2))
        self.module.row_numbers(self._data, numbers[0])
        named = dict(zip(self.order_names, order, strict=True))
        values = self.class_entries(flat[None, :])
        moved = self.class_entries(slope[None, :])
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


class FullPopulation(FullProblem):
    """Every entry of Q trained, over all masked images, in a random orthonormal basis.

    Parameters
    ----------
    parameters : Parameters
    max_configurations : int
        Largest number of masked images that is accepted.
    basis : int or None
        Seed of the basis; None for the unit vectors.

    Raises
    ------
    InvalidRequest
        If the enumeration is larger than that, with the number it needs; or if memory or the time
        of a gradient are too much (`cost`).
    """

    view = "full population"

    def __init__(
        self,
        parameters: Parameters,
        max_configurations: int = 200_000,
        basis: int | None = 0,
    ) -> None:
        check_parameters(parameters, Parameters)
        cost.check_matrices(parameters)
        needed = _enumerable(parameters, max_configurations)
        cost.check_images(parameters, needed, needed, "population", ("masked", parameters.masked))
        self.settings = {"images": needed, "basis": "unit" if basis is None else basis}
        axes = None
        if basis is not None:
            seed = integer("basis", basis, at_least=0, at_most=2**62)
            axes = random_basis(parameters.d, np.random.default_rng(seed))
        super().__init__(parameters, all_images(parameters), axes)


def random_basis(depth: int, generator: Generator) -> FloatArray:
    """Orthonormal rows in general position.

    Parameters
    ----------
    depth : int
        d.
    generator : numpy Generator

    Returns
    -------
    float array, shape (d, d)
    """
    orthogonal, upper = np.linalg.qr(generator.standard_normal((depth, depth)))
    return np.ascontiguousarray((orthogonal * np.sign(np.diag(upper))).T)


def _enumerable(parameters: Parameters, limit: int) -> int:
    """The number of masked images, if there are not too many."""
    # Numbers of thousands of digits are slow to make, and not for reading.
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
        f"a number with at most {limit:,} of them (the reduced problem has no such limit)",
        masked or "a smaller P",
    )


@cache
def _module() -> codegen.CompiledModule:
    names = (kernels.gradient, kernels.order_parameters, kernels.summary)
    parts = [codegen.kernel_source(*names, data=(kernels.FullData, Images, Batch))]
    return codegen.build("Masked image modelling, every entry of Q.", ("Q",), parts)
