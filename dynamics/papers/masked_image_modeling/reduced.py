"""Reduced population problem: exact descent on correlations Ups and Phi of all types of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from dynamics import loops
from dynamics.expectations import contour
from dynamics.expectations.masks import MaskExpectation
from dynamics.papers.masked_image_modeling.parameters import Parameters
from dynamics.papers.masked_image_modeling.presentation import PRESENTATION
from dynamics.papers.masked_image_modeling.sizes import rows_of
from dynamics.parameter_fields import check_parameters
from dynamics.problem import ExpectedProblem, FloatArray, Layout, record_of
from theory.page import Page
from theory.papers.masked_image_modeling import recursion
from theory.papers.masked_image_modeling.notation import EVENTS, ORDER_PARAMETERS
from theory.papers.masked_image_modeling.rows import Rows

RATES = ("alpha_m", "alpha_0", "rho")
"""Names of the order parameters that are computed from the gradient."""


def derivation(parameters: Parameters | None = None) -> Page:
    """Page of the derivation; if parameters are given, written out for their types of rows."""
    from theory.papers.masked_image_modeling.derivation import page

    if parameters is None:
        return page()
    rows = rows_of(parameters)
    named = zip(rows.names, rows.types, strict=True)
    return page({name: recursion.slots_of(row) for name, row in named}, rows.notation)


class ReducedPopulation(ExpectedProblem):
    """Gradient descent on the scalars shared by equal entries of Q.

    `expectation` names the method for the mean over masks and latents; each is exact to rounding.
    ``"counts"`` sums over the numbers of unmasked patches of each class; ``"contour"`` integrates
    over two variables, at a cost independent of the numbers of unmasked patches. ``"auto"`` takes,
    for each type of rows, the method with the smaller predicted time. Raises InvalidRequest for an
    unknown expectation, or for a sum over counts that is too long.

    Notes
    -----
    The state has one scalar for each class of entries in each type of rows, see `rows`. The
    gradient by a scalar is the derivative of the risk by one entry of Q.
    """

    system = "masked_image_modeling"
    presentation = PRESENTATION
    view = "reduced population"
    events = EVENTS
    order_names = ORDER_PARAMETERS
    rates = RATES

    def __init__(self, parameters: Parameters, expectation: str = "auto") -> None:
        check_parameters(parameters, Parameters)
        self.parameters = parameters
        self.rows: Rows = rows_of(parameters)
        self.presentation = replace(PRESENTATION, notation=self.rows.notation)
        self.expectation: MaskExpectation = MaskExpectation(self.rows, expectation)
        names = self.rows.scalars
        self.layout = Layout(names, ((),) * len(names), groups=("Q",) * len(names))
        self.settings = self.expectation.settings

    @property
    def initial_state(self) -> FloatArray:
        """Start of training, Q = 0."""
        return np.zeros(self.layout.size)

    @property
    def multiplicities(self) -> FloatArray:
        """Number of entries of Q that share a scalar, for each scalar."""
        rows = self.rows
        return np.repeat(rows.many, np.diff(rows.starts)) * rows.sizes

    @cached_property
    def rho0(self) -> float:
        """Ratio rho(0) of the first increments of Phi_0 (global feature), Phi_m (own feature)."""
        return float(self._named(self.initial_state)["rho"])

    @cached_property
    def gap_here(self) -> float:
        """Information gap at finite size, Delta_eff = ln rho(0) / ln P."""
        return self.parameters.Delta_eff

    def _named(self, state: FloatArray) -> dict[str, float]:
        values = self.order_parameters(state)
        return {n: float(v) for n, v in zip(self.order_names, values, strict=True)}

    def observables(self, state: ArrayLike) -> dict[str, float]:
        """Map names to observables at a state.

        ``d_<scalar>`` is the rate of a scalar. For a masked patch of the kind ``<row>``,
        ``<row>_A_<class>`` is the attention to the unmasked patches in a class of areas,
        ``<row>_masked`` the attention to masked patches, ``<row>_gap`` the loss minus its floor.
        """
        return record_of(self.observables_along(self.layout.flatten(state)[None, :]), 0)

    def observables_along(self, states: FloatArray) -> dict[str, FloatArray]:
        """Map names to observables, shape (records,), at `states`, shape (records, n)."""
        records, rho0 = len(states), self.rho0
        slopes, mass, risk = *np.empty((2, *states.shape)), np.empty((records, 2))
        order, rows = np.empty((records, 9)), np.empty((records, len(self.rows.types), 2))
        floor = float(self.expectation.data.reading.floors @ self.rows.many)
        data, everything = self.expectation.data, loops.compiled(contour.everything)
        for k, state in enumerate(np.array(states, dtype=float)):
            everything(state, data, slopes[k], mass[k], rows[k])
            order[k] = self.order_parameters(state, slopes[k])
            excess = float(rows[k, :, 0] @ self.rows.many)
            risk[k] = floor + excess, excess
        rates = {f"d_{n}": -rate for n, rate in zip(self.state_names, slopes.T, strict=True)}
        sizes = {"rho0": rho0, "Delta": self.parameters.Delta, "Delta_eff": self.gap_here}
        named = dict(zip(self.order_names, order.T, strict=True))
        return (
            rates
            | self.rows.attention(mass / self.parameters.K)
            | row_observables(self.rows, named, rows, risk)
            | {name: np.full(records, value) for name, value in sizes.items()}
        )


def row_observables(
    rows: Rows, order: Mapping[str, FloatArray], numbers: FloatArray, risk: FloatArray
) -> dict[str, FloatArray]:
    """Name -> values, shape (records,), of the observables that all problems of this system share.

    `order` has the order parameters, shape (records,) each. `numbers`, shape (records, rows, 2),
    has the loss L_p minus its floor L*_p for each type of rows, and the attention to the own area
    if another patch of that area is unmasked. `risk`, shape (records, 2), has the risk, and the
    risk minus its floor, the sum of L*_p.
    """
    values = dict(order)
    for name, row in zip(rows.names, numbers.swapaxes(0, 1), strict=True):
        values |= {f"{name}_gap": row[:, 0], f"{name}_own_attention": row[:, 1]}
    attending = np.where(numbers[:, :, 1] >= 0.5, rows.many, 0).sum(axis=1) / rows.many.sum()
    return values | {
        "risk": risk[:, 0],
        "floor": risk[:, 0] - risk[:, 1],
        "excess": risk[:, 1],
        "patch_association": attending,
    }
