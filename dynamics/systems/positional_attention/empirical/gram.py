r"""The realistic problem with positional encodings: v and P trained, A = P^T P."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from dynamics.problem import FloatArray, Layout
from dynamics.process_settings import one_blas_thread
from dynamics.systems.positional_attention.empirical import FullEmpirical
from dynamics.systems.positional_attention.parameters import Parameters
from dynamics.systems.positional_attention.presentation import PositionalProblem
from dynamics.validation import check_parameters, random_stream, refuse


class GramEmpirical(PositionalProblem):
    r"""(E) with v and the positional encodings P trained, A = P^T P.

    Column i of P is the encoding :math:`p_i` of patch i, so
    :math:`A_{ij} = \langle p_i, p_j\rangle`, as in the transformer before Simplification 3.1 of the
    paper takes A itself as the parameter. With :math:`G = \partial R / \partial A`, its diagonal
    included,

    .. math::
       dR = \langle G, dP^\top P + P^\top dP\rangle
       \quad\Rightarrow\quad \frac{\partial R}{\partial P} = P\,(G + G^\top).

    A stays symmetric and positive semidefinite, its diagonal moves, and a row cannot attend to a
    set without being attended from it: another model than (T) with A free, which may learn other
    things.
    The start is the remark after Parametrization 3.1: entries of P from N(0, sigma_A / D), so that
    :math:`A_{ii} \approx \sigma_A` and :math:`A_{ij} = O(\sigma_A / \sqrt D)`.

    Parameters
    ----------
    parameters : Parameters
        Its beta is sigma_A, the mean squared length of an encoding at the start; not negative.
    samples : int
        N.
    seed : int or numpy Generator
        With one seed, samples, feature, start of v and test data are those of `FullEmpirical`.
    **options
        ``partition``, ``law``, and the training options of `FullEmpirical` but ``diagonal``.

    Raises
    ------
    InvalidRequest
        As `FullEmpirical` does; for a negative beta; for the batches that `FullEmpirical` takes.

    Notes
    -----
    The state is (v, P), flat, P row by row. Observables, order parameters and orbit values are
    those of the full problem at A = P^T P; association counts the diagonal, as Definition 2.2 does.
    """

    view = "full empirical, A = P^T P"

    def __init__(
        self,
        parameters: Parameters,
        samples: int = 1000,
        seed: int | Generator = 0,
        **options: Any,
    ) -> None:
        check_parameters(parameters, Parameters)
        if parameters.beta < 0:
            refuse("beta", parameters.beta, "is a mean squared length here", "at least 0", 0.0)
        if options.get("batch") is not None:
            refuse("batch", options["batch"], "is not for A = P^T P", "None", None)
        generator = random_stream(seed)
        self.inner = FullEmpirical(parameters, samples, generator, diagonal=True, **options)
        self.parameters = parameters
        self.partition, self.law = self.inner.partition, self.inner.law
        size, depth = parameters.D, parameters.d
        # Another stream than those that the inner problem has spawned.
        noise = generator.spawn(1)[0].standard_normal((size, size))
        value = self.inner.layout.part(self.inner.initial_state, "v")
        self._start = np.concatenate([value, sqrt(parameters.beta / size) * noise.ravel()])
        self.settings = dict(self.inner.settings) | {
            "seed": seed if isinstance(seed, int) else "generator",
            "parametrization": "gram",
        }
        layout = Layout(("v", "P"), ((depth,), (size, size)), groups=("v", "P"))
        super().__init__(self.inner.module, (), layout)

    @property
    def identity(self) -> Mapping[str, Any]:
        """That of the full problem: the same seed gives the same P."""
        return {**self.inner.identity, "parametrization": "gram"}

    @property
    def initial_state(self) -> FloatArray:
        """The start of v of Parametrization 3.1, and P of its remark."""
        return self._start.copy()

    @np.errstate(over="ignore", invalid="ignore")
    def matrix(self, state: ArrayLike) -> FloatArray:
        """A = P^T P, shape (D, D)."""
        encodings = self.layout.part(self.layout.flatten(state), "P")
        return encodings.T @ encodings

    def full_state(self, state: ArrayLike) -> FloatArray:
        """The state (v, A) of `FullEmpirical` that a state (v, P) stands for, flat."""
        flat = self.layout.flatten(state)
        return np.concatenate([self.layout.part(flat, "v"), self.matrix(flat).ravel()])

    @one_blas_thread()
    def gradient(self, state: ArrayLike) -> FloatArray:
        """Gradient of the empirical risk by v and P, flat."""
        return self._slope(self.layout.flatten(state))

    def _slope(self, flat: FloatArray) -> FloatArray:
        inner = self.inner.gradient(self.full_state(flat))
        by_matrix = self.inner.layout.part(inner, "A")
        by_encodings = self.layout.part(flat, "P") @ (by_matrix + by_matrix.T)
        return np.concatenate([self.inner.layout.part(inner, "v"), by_encodings.ravel()])

    def risk(self, state: ArrayLike) -> float:
        """Empirical risk at a state."""
        return self.inner.risk(self.full_state(state))

    @property
    def costly_passes(self) -> float:  # type: ignore[override]
        """Those of `FullEmpirical`."""
        return self.inner.costly_passes

    def observables(self, state: ArrayLike) -> dict[str, float]:
        """Those of `FullEmpirical` at A = P^T P."""
        return self.inner.observables(self.full_state(state))

    @one_blas_thread()
    def observables_of_records(
        self, states: FloatArray, noted: FloatArray, costly: NDArray[np.bool_]
    ) -> dict[str, FloatArray]:
        """Those of `FullEmpirical` at A = P^T P, at the records of gradient descent."""
        full = np.stack([self.full_state(state) for state in states])
        return self.inner.observables_of_records(full, noted, costly)

    @one_blas_thread()
    def order_parameters(self, state: ArrayLike, gradient: FloatArray | None = None) -> FloatArray:
        """Those of `FullEmpirical` at A = P^T P, with the rates that A has while P moves."""
        flat = self.layout.flatten(state)
        return self._orders(flat, self._slope(flat) if gradient is None else gradient)

    def _orders(self, flat: FloatArray, slope: FloatArray) -> FloatArray:
        encodings = self.layout.part(flat, "P")
        product = self.layout.part(slope, "P").T @ encodings
        change = np.concatenate([self.layout.part(slope, "v"), (product + product.T).ravel()])
        return self.inner.order_parameters(self.full_state(flat), change)

    @one_blas_thread()
    def orbit_values(self, states: FloatArray) -> Mapping[str, FloatArray]:
        """Reduced state -> what is compared with it: <v, w*>, orbit means of A; (records, 1)."""
        return self.inner.orbit_values(np.stack([self.full_state(state) for state in states]))

    @one_blas_thread()
    def advance(
        self, state: FloatArray, eta: FloatArray, first: int, last: int, buffers: tuple[Any, ...]
    ) -> int:
        """Steps first, ..., last - 1 in place; the loop of `dynamics.codegen.kernels.advance`."""
        tracked, due, records = buffers
        shares = eta / eta.max()  # rates are per unit of time: the largest eta times steps
        for step in range(first, last):
            records[due == step] = state
            slope = self._slope(state)
            tracked[step - first] = self._orders(state, slope * shares)
            proposal = state - eta * slope
            if not np.isfinite(proposal).all():
                return step
            state[:] = proposal
        return last
