r"""The idealised problem (P), reduced to three scalars.

`ReducedPopulation` iterates the derived recursion on (alpha, gamma, rho); how the expectation over
the random sets is taken is chosen in `expectation`. Its oracle is `brute.FullPopulation`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from dynamics.problem import CompiledProblem, FloatArray, Layout
from dynamics.systems.positional_attention.expectation import configurations, sample, spectral
from dynamics.systems.positional_attention.expectation import enumerate as exact
from dynamics.systems.positional_attention.parameters import Parameters
from dynamics.validation import integer, real, refuse
from theory.reduction import ReducedSystem
from theory.systems.positional_attention import recursion
from theory.systems.positional_attention.data_law import bayes_error
from theory.systems.positional_attention.events import EVENTS, ORDER_PARAMETERS
from theory.systems.positional_attention.notation import NOTATION

EXPECTATIONS = ("auto", "exact", "spectral", "sampled")
ENUMERATED = 20_000
"""Configurations up to which enumeration is faster than the spectral expectation (measured)."""
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
        ``"spectral"`` is exact to a tolerance at any size; ``"auto"`` takes the faster of these;
        ``"sampled"`` draws from the law.
    tolerance : float
        Of the spectral expectation, relative to the gross contributions.
    samples, seed : int
        Of the sampled expectation.

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

    def __init__(
        self,
        parameters: Parameters,
        expectation: str = "auto",
        tolerance: float = 1e-10,
        samples: int = 10_000,
        seed: int = 0,
    ) -> None:
        if expectation not in EXPECTATIONS:
            refuse("expectation", expectation, "is unknown", ", ".join(EXPECTATIONS), "exact")
        tolerance = real("tolerance", tolerance, at_least=1e-12, at_most=1e-2)
        if expectation == "auto":
            few = exact.count(parameters.L, parameters.C) <= ENUMERATED
            expectation = "exact" if few else "spectral"
        self.parameters = parameters
        self.reduction = recursion.derive(parameters.p)
        size = (parameters.D, parameters.C, parameters.q)
        self.settings = {"expectation": expectation}
        if expectation == "spectral":
            self.settings |= {"tolerance": tolerance}
            module = spectral.compiled(parameters.p)
            data = spectral.arrays(self.reduction, parameters, tolerance)
        else:
            if expectation == "exact":
                self.configurations = exact.configurations(*size)
            else:
                samples = integer("samples", samples, at_least=2, at_most=10**8)
                seed = integer("seed", seed, at_least=0, at_most=2**63 - 1)
                self.settings |= {"samples": samples, "seed": seed}
                self.configurations = sample.configurations(*size, samples, seed)
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
        known = {"risk": float(risk)}
        if self.settings["expectation"] != "spectral":
            known["error"] = float(error)
        return (
            dict(zip(self.reduction.observables, map(float, out), strict=True))
            | known
            | {
                "bayes_error": bayes_error(self.parameters.L, self.parameters.C, self.parameters.q),
                "patch_association": float(min(self.parameters.beta, gamma) > rho),
                "cosine": float(np.sign(alpha)),
            }
        )

    def error_bound(self, state: ArrayLike) -> dict[str, FloatArray]:
        """Gradient and risk, and what is known of their error.

        Parameters
        ----------
        state : float array, shape (3,)

        Returns
        -------
        dict
            ``value``, shape (4,): per-entry gradient, then risk. Under the spectral expectation
            ``gross`` and a ``bound``; under the exact and the sampled ones ``gross`` and a
            ``standard_error``, zero where nothing is sampled.
        """
        flat = self.layout.flatten(state)
        value = np.append(self.gradient(flat), self.risk(flat))
        if self.settings["expectation"] == "spectral":
            gross, bound = self._data[5][3].copy(), self._data[5][4].copy()
            share = np.append(self._data[1], 1.0)
            return {"value": value, "gross": gross * share, "bound": bound * share}
        terms = configurations.contributions(self.module, self._data, flat)
        weight = self._data[4][1]
        spread = np.sqrt(np.maximum(terms**2 @ weight - (terms @ weight) ** 2, 0.0))
        drawn = self.settings.get("samples", np.inf)
        gross = np.abs(terms) @ weight
        return {"value": value, "gross": gross, "standard_error": spread / np.sqrt(drawn - 1)}

    def failure(self) -> str:
        """What the spectral expectation would have needed, where that is above its budget."""
        if self.settings["expectation"] != "spectral" or self._data[5][5][1] == 0.0:
            return ""
        nodes = self._data[5][5][0]
        return (
            f"the spectral expectation needs more than {nodes:.1e} nodes for one gradient here, "
            f"above its budget of {spectral.BUDGET:.1e}; loosen the tolerance or start elsewhere"
        )
