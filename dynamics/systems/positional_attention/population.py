r"""The idealised problem (P), reduced to three scalars.

`ReducedPopulation` iterates the derived recursion on (alpha, gamma, rho); how the expectation over
the random sets is taken is chosen in `expectation`. Its oracle is `brute.FullPopulation`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from dynamics.problem import CompiledProblem, FloatArray, Layout
from dynamics.systems.positional_attention.expectation import configurations, enumerate
from dynamics.systems.positional_attention.parameters import Parameters
from dynamics.validation import refuse
from theory.reduction import ReducedSystem
from theory.systems.positional_attention import recursion
from theory.systems.positional_attention.data_law import bayes_error
from theory.systems.positional_attention.events import EVENTS, ORDER_PARAMETERS
from theory.systems.positional_attention.notation import NOTATION

EXPECTATIONS = ("auto", "exact")
LAYOUT = Layout(("alpha", "gamma", "rho"), ((), (), ()), groups=("v", "A", "A"))


def derivations(parameters: Parameters | None = None) -> Mapping[str, ReducedSystem]:
    """The exact reduction and its leading order; with parameters, for their degree p."""
    degree = None if parameters is None else parameters.p
    return {"exact": recursion.derive(degree), "leading order": recursion.leading_order()}


class ReducedPopulation(CompiledProblem):
    """(P) on the symmetric manifold: gradient descent on (alpha, gamma, rho), exact.

    Parameters
    ----------
    parameters : Parameters
    expectation : str
        How the expectation over the random sets is taken: ``"exact"`` sums all multisets of types;
        ``"auto"`` picks what fits.

    Raises
    ------
    InvalidRequest
        For an unknown expectation, or a size that cannot be enumerated.

    Notes
    -----
    The gradient is per entry: dR/dalpha, dR/dgamma / (D (C-1)), dR/drho / (D (D-C)).
    """

    system = "positional_attention"
    view = "reduced population"
    notation = NOTATION
    events = EVENTS
    order_names = ORDER_PARAMETERS

    def __init__(self, parameters: Parameters, expectation: str = "auto") -> None:
        if expectation not in EXPECTATIONS:
            refuse("expectation", expectation, "is unknown", ", ".join(EXPECTATIONS), "exact")
        self.parameters = parameters
        self.settings = {"expectation": "exact"}
        self.reduction = recursion.derive(parameters.p)
        self.configurations = enumerate.configurations(parameters.D, parameters.C, parameters.q)
        module = configurations.compiled(parameters.p, self.configurations.threaded)
        data = configurations.arrays(self.configurations, self.reduction, parameters)
        super().__init__(module, data, LAYOUT)

    @property
    def initial_state(self) -> FloatArray:
        """(alpha0, 0, 0), Parametrization 3.1, idealised case."""
        return np.array([self.parameters.alpha0, 0.0, 0.0])

    def observables(self, state: ArrayLike) -> dict[str, float]:
        """Entries of S, G, alpha G, risk, errors, patch association, hidden polylogs at a state."""
        flat = self.layout.flatten(state)
        alpha, gamma, rho = flat
        out = np.empty(len(self.reduction.observables))
        self.module.reported(flat, -self.gradient(flat), self._data[0], out)
        risk, error = self._summary(flat)
        return dict(zip(self.reduction.observables, map(float, out), strict=True)) | {
            "risk": float(risk),
            "error": float(error),
            "bayes_error": bayes_error(self.parameters.L, self.parameters.C, self.parameters.q),
            "patch_association": float(min(self.parameters.beta, gamma) > rho),
            "cosine": float(np.sign(alpha)),
        }
