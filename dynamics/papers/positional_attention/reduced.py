"""Idealised problem (P), reduced to the three scalars (alpha, gamma, rho)."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt

import numpy as np
import sympy
from numpy.typing import ArrayLike

from dynamics.expectations import Expectation
from dynamics.expectations.spectral_sum import SpectralSum
from dynamics.models import positional_attention as file
from dynamics.papers.positional_attention import configurations, weighted_sum
from dynamics.papers.positional_attention.parameters import Parameters
from dynamics.papers.positional_attention.presentation import PositionalProblem
from dynamics.parameter_fields import check_parameters
from dynamics.problem import ExpectedProblem, FloatArray, Layout, record_of
from dynamics.validation import (
    check_cost,
    integer,
    known_word,
    real,
    refuse,
)
from theory.page import Page
from theory.papers.positional_attention import recursion
from theory.papers.positional_attention.data_law import bayes_error

EXPECTATIONS = ("auto", "exact", "spectral", "sampled")
SECONDS_PER_SUM, SECONDS_PER_TYPE = 1.4e-5, 2.8e-7
"""Seconds of a spectral gradient for each sum z of the random sets, and in addition for each type
of set at each z (fit to 20 problems)."""
MOST_PATCHES = 2**14
"""Maximum number of patches D; at this D the law of sums z takes seconds, which grow as D^2."""
MOST_NUMBERS = 85_000_000
"""Maximum count of numbers in all spectral tables (680 MB); a gradient then takes up to 1 s."""
TABLES, SPREAD = 10, 33.0
"""Number of spectral tables, with a number per type of set and sum z of the random sets; number of
sums z of probability above 1e-60, divided by the square root of the number of their patches."""
LAYOUT = Layout(("alpha", "gamma", "rho"), ((), (), ()), groups=("v", "A", "A"))


def derivation(parameters: Parameters | None = None) -> Page:
    """Page of the derivation; if parameters are given, written out for their degree p and law."""
    from theory.papers.positional_attention.derivation import page

    return page() if parameters is None else page(parameters.p, parameters.random_sets)


def formulas(parameters: Parameters | None = None) -> Mapping[str, sympy.Expr]:
    """Name -> formula of each observable; if parameters are given, for their degree p."""
    return recursion.observables(*(() if parameters is None else (parameters.p,)))


class ReducedPopulation(PositionalProblem, ExpectedProblem):
    """Idealised problem (P) on the symmetric manifold: exact descent on (alpha, gamma, rho).

    `expectation` names the method for the random sets: ``"exact"`` sums over all multisets of
    types, ``"spectral"`` is accurate to a tolerance at any size, ``"sampled"`` draws from the law,
    ``"auto"`` takes the cheaper of exact and spectral. `tolerance` is the error of ``"spectral"``
    and ``"auto"``, relative to the gross gradient (see Notes). `samples` and `seed` set the draws
    of ``"sampled"``. Raises InvalidRequest for an unknown expectation, or for a size at which the
    method is impossible.

    Notes
    -----
    The gradient is per entry: dR/dalpha, dR/dgamma / (D (C-1)), dR/drho / (D (D-C)).

    The gross of a gradient component is the sum of absolute contributions of all sets. On the slow
    manifold the net gradient of alpha is 1e-9 to 1e-15 of its gross, so errors are measured
    relative to the gross.
    """

    view = "reduced population"
    layout = LAYOUT

    def __init__(
        self,
        parameters: Parameters,
        expectation: str = "auto",
        tolerance: float = 1e-10,
        samples: int = 10_000,
        seed: int = 0,
    ) -> None:
        check_parameters(parameters, Parameters)
        _check_size(parameters)
        self.parameters = parameters
        self.bayes_error = bayes_error(parameters.set_law, parameters.L)
        self.expectation = _expectation(
            parameters, self.initial_state, expectation, tolerance, samples, seed
        )
        self.settings = dict(self.expectation.settings)

    @property
    def initial_state(self) -> FloatArray:
        """Start (alpha0, 0, 0), Parametrization 3.1, idealised case."""
        return np.array([self.parameters.alpha0, 0.0, 0.0])

    @property
    def multiplicities(self) -> FloatArray:
        """Numbers of trained entries with the value alpha, gamma and rho, shape (3,)."""
        counts = file.sizes(self.parameters.D, self.parameters.C)
        return np.array([*counts.values()], dtype=float)

    def observables(self, state: ArrayLike) -> dict[str, float]:
        """Name -> observable at a state, such as attention, G, risk, errors, patch association."""
        return record_of(self.observables_along(self.layout.flatten(state)[None, :]), 0)

    def observables_along(self, states: FloatArray) -> dict[str, FloatArray]:
        """Name of an observable -> its values at states of shape (records, 3), shape (records,)."""
        states = np.ascontiguousarray(states)
        slopes, measured = self.expectation.observe(states)
        with np.errstate(all="ignore"):
            derived = derived_observables(states, slopes, self.parameters)
        alpha, gamma, rho = states.T
        return {
            **derived,
            **measured,
            "bayes_error": np.full(len(states), self.bayes_error),
            "patch_association": (np.minimum(self.parameters.beta, gamma) > rho).astype(float),
            "cosine": np.sign(alpha),
        }

    def error_estimate(self, state: ArrayLike) -> dict[str, FloatArray]:
        """Gradient and risk at a state (3,), with their estimated errors, shape (4,) each.

        ``value`` has the gradient per entry for each scalar, then the risk; ``gross`` has the sums
        of absolute contributions of all sets. The estimated error is ``estimate`` for the exact and
        the spectral expectation, ``standard_error`` for the sampled expectation.
        """
        return self.expectation.error_estimate(self.layout.flatten(state))

    def gradient_error(self, state: ArrayLike) -> FloatArray | None:
        """Estimated error of the gradient at a state, or None for the sampled expectation."""
        error = self.error_estimate(state).get("estimate")
        return None if error is None else error[:3]


def _check_size(parameters: Parameters) -> None:
    """Raise InvalidRequest if the spectral tables exceed `MOST_NUMBERS`, or D `MOST_PATCHES`."""
    patches, set_size = parameters.D, parameters.C
    kinds, sizes = (set_size + 1) * (set_size + 2) // 2, range(set_size, patches, set_size)

    def numbers(D: int) -> float:
        return TABLES * kinds * min(2 * (D - set_size) + 1, SPREAD * sqrt(D - set_size))

    check_cost("D", patches, lambda D: D, MOST_PATCHES, "patches", sizes)
    check_cost("D", patches, numbers, MOST_NUMBERS, "numbers in tables", sizes)


def derived_observables(
    states: FloatArray, slopes: FloatArray, parameters: Parameters
) -> dict[str, FloatArray]:
    """Attention entries, G, alpha G and polylog factors of Lemma 4.3, from states and gradients."""
    D, C, p, (alpha, gamma, rho) = parameters.D, parameters.C, parameters.p, states.T
    logits = parameters.scale * np.stack([np.full_like(gamma, parameters.beta), gamma, rho])
    weights = np.exp(logits - logits.max(axis=0))
    own, mate, other = weights / (np.array([1, C - 1, D - C]) @ weights)
    G = D * (own + (C - 1) * mate)
    increment = alpha**p * mate * G ** (p - 1)
    growth = np.where(rho == 0, np.abs(slopes[:, 2]), -np.sign(rho) * slopes[:, 2])
    return {
        "Lambda": own,
        "Gamma": mate,
        "Xi": other,
        "G": G,
        "alpha_G": alpha * G,
        "polylog_gamma": -slopes[:, 1] / increment,
        "polylog_rho": growth * D / (alpha**p + increment),
    }


def _expectation(
    parameters: Parameters,
    state: FloatArray,
    expectation: str,
    tolerance: float,
    samples: int,
    seed: int,
) -> Expectation:
    """Expectation of a given name; ``auto`` takes the cheapest one that is valid at the state."""
    known_word("expectation", expectation, EXPECTATIONS)
    tolerance = real("tolerance", tolerance, at_least=1e-12, at_most=1e-2)
    samples = integer("samples", samples, at_least=2, at_most=10**8)
    seed = integer("seed", seed, at_least=0, at_most=2**63 - 1)
    if expectation == "exact":
        return _exact(parameters)
    if expectation == "sampled":
        rows = configurations.sample(parameters.D, parameters.set_law, samples, seed)
        made = {"expectation": "sampled", "samples": samples, "seed": seed}
        return weighted_sum.Sampled(parameters, rows, made, samples)
    if expectation == "spectral":
        return _spectral(parameters, tolerance)
    return _cheapest(parameters, tolerance, state)


def _exact(parameters: Parameters) -> Expectation:
    """Sum over all configurations; raises InvalidRequest for too many configurations."""
    rows = configurations.enumeration(parameters.D, parameters.set_law)
    number, most = len(rows.probability), configurations.MAX_DEGREES
    if number * parameters.p > most:
        problem = f"gives too many terms with {number:,} configurations"
        allowed = f"at most {most // number} under the exact expectation at this size"
        refuse("p", parameters.p, problem, allowed, "the spectral expectation")
    return weighted_sum.Exact(parameters, rows, {"expectation": "exact"})


def _spectral(parameters: Parameters, tolerance: float) -> SpectralSum:
    law = parameters.set_law
    return SpectralSum(
        parameters.D, parameters.C, parameters.p, parameters.nu, parameters.beta,
        parameters.scale, law.types, law.probabilities, tolerance, law.rounding,
    )  # fmt: skip


def _cheapest(parameters: Parameters, tolerance: float, state: FloatArray) -> Expectation:
    """Spectral expectation, or the exact sum if this is cheaper or alone valid at the state."""
    costs = predicted_seconds(parameters)
    name, other = sorted(costs, key=costs.__getitem__)
    result: Expectation | None = None
    if name == "spectral":
        result = _spectral(parameters, tolerance)
        if np.isfinite(costs["exact"]) and result.failure(state):
            name, other, result = other, name, None
    result = result or _exact(parameters)
    why = (
        f"{_milliseconds(costs[name])} a gradient (predicted), "
        f"{other} {_milliseconds(costs[other])}"
    )
    result.settings = {**result.settings, "auto": why}
    return result


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.2g} ms" if np.isfinite(seconds) else "impossible"


def predicted_seconds(parameters: Parameters) -> dict[str, float]:
    """Predicted seconds of one gradient by the exact and by the spectral expectation."""
    return {
        "exact": configurations.predicted_seconds(parameters),
        "spectral": _spectral_seconds(parameters),
    }


def _spectral_seconds(parameters: Parameters) -> float:
    """Predicted seconds of a spectral gradient: seconds per sum z of sets, times likely sums."""
    widest = 2.0 * (parameters.D - parameters.C)
    columns = min(6.0 * sqrt(0.5 * widest * parameters.q), widest) + 1.0  # mean z +- 3 std
    kinds = (parameters.C + 1) * (parameters.C + 2) // 2
    return (SECONDS_PER_SUM + SECONDS_PER_TYPE * kinds) * columns
