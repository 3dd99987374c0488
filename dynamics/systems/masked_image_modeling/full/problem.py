r"""What problems with all of Q have in common: masked images, a basis, and how they are read.

The state is Q (d, d), flat. Features v_{k,a} and positions e_p are rows of an orthonormal basis, in
which the live entries are :math:`e_p^\top Q e_q` and :math:`e_p^\top Q v`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from dynamics.problem import CompiledProblem, FloatArray, Layout
from dynamics.systems.masked_image_modeling.empirical.sampling import Images
from dynamics.systems.masked_image_modeling.full.projection import Rows, rows_of
from dynamics.systems.masked_image_modeling.parameters import Parameters
from dynamics.systems.masked_image_modeling.presentation import PRESENTATION
from dynamics.systems.masked_image_modeling.reduced.population import ReducedPopulation, observed
from theory.systems.masked_image_modeling.notation import EVENTS, ORDER_PARAMETERS


class FullProblem(CompiledProblem):
    """Training of all entries of Q on weighted masked images.

    Parameters
    ----------
    parameters : Parameters
    images : Images
    module : dynamics.codegen.CompiledModule
    basis : float array, shape (d, d), or None
        Orthonormal rows: e_p for every patch, then the features; the unit vectors where None.
    """

    system = "masked_image_modeling"
    presentation = PRESENTATION
    events = EVENTS
    order_names = ORDER_PARAMETERS
    rates = ReducedPopulation.rates

    def __init__(
        self, parameters: Parameters, images: Images, module: Any, basis: FloatArray | None = None
    ) -> None:
        self.parameters = parameters
        self.rows: Rows = rows_of(parameters)
        self.presentation = replace(PRESENTATION, notation=self.rows.notation)
        size, depth, features = parameters.P, parameters.d, parameters.features
        axes = np.eye(depth) if basis is None else np.ascontiguousarray(basis)
        self.positions, self.features = axes[:size], axes[size : size + features]
        areas = parameters.area_ids
        first = np.concatenate([[0], np.cumsum(areas.max(axis=1) + 1)])[:-1]
        owner = np.ascontiguousarray(areas + first[:, None])
        whole = np.array([[0, images.weight.size]])
        batches = (whole, np.ones(1), np.zeros(1, np.int64), np.zeros(1, np.int64))
        kind = np.empty(size, dtype=np.int64)
        for r, row in enumerate(self.rows.types):
            kind[row.patches] = r
        target, remote, local, far = self.rows.references
        kinds = (
            kind,
            self.rows.pairs(int(local), int(target)),
            self.rows.pairs(int(local), int(remote)),
            np.array([0, 1, local, far], dtype=np.int64),
            np.empty((len(self.rows.types), 2)),
        )
        work = (
            np.empty((size, depth)),
            np.empty((size, 4)),
            np.full(depth * depth, np.nan),
            np.full(1, -1, dtype=np.int64),
        )
        data = (
            (self.positions, self.features, owner),
            (images.cluster, images.latent, images.hidden, images.weight),
            batches,
            kinds,
            work,
        )
        layout = Layout(("Q",), ((depth, depth),), groups=("Q",))
        super().__init__(module, data, layout)

    @property
    def initial_state(self) -> FloatArray:
        """Q = 0."""
        return np.zeros(self.layout.size)

    @cached_property
    def rho0(self) -> float:
        """Ratio of the increments of Phi_0 and Phi_m at the start."""
        names = dict(zip(self.order_names, self.order_parameters(self.initial_state), strict=True))
        return float(names["rho"])

    def orbit_values(self, states: FloatArray) -> Mapping[str, FloatArray]:
        """Reduced state -> the entries it stands for, shape (records, entries)."""
        queries = self.positions @ self.layout.part(states, "Q")
        return self.rows.orbit_values(queries @ self.positions.T, queries @ self.features.T)

    def observables(self, state: ArrayLike) -> dict[str, float]:
        """Means over the entries of each class, their largest spread, gaps, risk at a state.

        ``dead`` is the largest entry v^T Q, which never moves.
        """
        flat = self.layout.flatten(state)
        slope = self.gradient(flat)
        order = dict(zip(self.order_names, self.order_parameters(flat, slope), strict=True))
        risk, excess = self._summary(flat)
        numbers = np.empty((len(self.rows.types), 2))
        self.module.row_numbers(self._data, numbers)
        values = self.orbit_values(flat[None, :])
        moved = self.orbit_values(slope[None, :])
        return (
            {name: float(entries.mean()) for name, entries in values.items()}
            | {f"d_{name}": -float(entries.mean()) for name, entries in moved.items()}
            | observed(self.rows, order, numbers, (float(risk), float(excess)))
            | {
                "rho0": self.rho0,
                "spread": max(float(np.ptp(entries)) for entries in values.values()),
                "dead": float(np.abs(self.features @ self.layout.part(flat, "Q")).max()),
            }
        )


def random_basis(depth: int, generator: Generator) -> FloatArray:
    """Orthonormal rows in general position, shape (d, d)."""
    found, upper = np.linalg.qr(generator.standard_normal((depth, depth)))
    return np.ascontiguousarray((found * np.sign(np.diag(upper))).T)
