"""Realistic problem with positional encodings P: v and P are trained, and A is P^T P."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, wraps
from math import sqrt
from typing import Any

import numpy as np
from numpy.random import Generator

from dynamics.papers.positional_attention.empirical import FullEmpirical, trained_model
from dynamics.papers.positional_attention.parameters import Parameters
from dynamics.parameter_fields import check_parameters
from dynamics.problem import FloatArray
from dynamics.validation import refuse
from theory.model import Model


@cache
def gram_model() -> Model:
    """Model in which every entry of A is trained, rewritten as a model of P."""
    inner = trained_model(diagonal=True)

    def of_encodings(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def called(theta: Any, *arguments: Any, **constants: Any) -> Any:
            encodings = theta["P"]
            return function({**theta, "A": encodings.T @ encodings}, *arguments, **constants)

        return called

    roles = ("loss", "observe", "observables")
    parts: Any = {role: of_encodings(getattr(inner, role)) for role in roles}
    return replace(inner, **parts)


class GramEmpirical(FullEmpirical):
    r"""Realistic problem (E) in which v and the positional encodings P are trained, with A = P^T P.

    Column i of P is the encoding :math:`p_i` of patch i, so :math:`A_{ij} = \langle p_i,
    p_j\rangle`. The paper's transformer has such encodings before Simplification 3.1, which makes A
    itself the parameter. With :math:`G = \partial R / \partial A` of the risk R, with diagonal,

    .. math::
       dR = \langle G, dP^\top P + P^\top dP\rangle
       \quad\Rightarrow\quad \frac{\partial R}{\partial P} = P\,(G + G^\top).

    A stays symmetric and positive semidefinite, and its diagonal moves, so outcomes may differ from
    model (T), in which all entries of A are free. Training starts as in the remark after
    Parametrization 3.1: entries of P are drawn from N(0, sigma_A / D), so that :math:`A_{ii}
    \approx \sigma_A` and :math:`A_{ij} = O(\sigma_A / \sqrt D)`.

    The parameter beta is sigma_A, the mean squared length of an encoding at the start. `samples` is
    the number N. A `seed` gives the same samples, feature, start of v and test data as in
    `FullEmpirical`. `**options` are ``partition``, ``law``, and the training options of
    `FullEmpirical` except ``diagonal``. Raises InvalidRequest like `FullEmpirical`, and for a
    negative beta.

    Notes
    -----
    The flat state has v, then P row by row. Observables, order parameters and orbit values are
    computed as in the full problem at A = P^T P; patch association includes the diagonal of A, as
    in Definition 2.2.
    """

    view = "full empirical, A = P^T P"
    trained = "P"

    def __init__(
        self, parameters: Parameters, samples: int = 1000, seed: int | Generator = 0, **options: Any
    ) -> None:
        check_parameters(parameters, Parameters)
        if parameters.beta < 0:
            refuse("beta", parameters.beta, "is a mean squared length here", "at least 0", 0.0)
        super().__init__(parameters, samples, seed, diagonal=True, **options)
        self.settings = {**self.settings, "parametrization": "gram"}

    @property
    def _model(self) -> Model:
        return gram_model()

    def _initial_state(self, generator: Generator) -> FloatArray:
        parameters, size = self.parameters, self.parameters.D
        value = super()._initial_state(generator)[: parameters.d]
        noise = generator.spawn(1)[0].standard_normal((size, size))
        return np.concatenate([value, sqrt(parameters.beta / size) * noise.ravel()])

    def matrices(self, states: FloatArray) -> FloatArray:
        """Matrices A = P^T P, shape (records, D, D), of states."""
        encodings = self.layout.part(states, "P")
        return np.asarray(encodings.swapaxes(-1, -2) @ encodings)
