"""Expectation as a weighted sum over all configurations, or over sampled configurations.

The loss of one configuration is `reduced` of the model file `dynamics.models.positional_attention`.
A sum over all configurations is compiled to a reduced program
(`dynamics.models.engine.reduced_risk`). Sampled configurations stay JAX arrays, since building a
program for each draw takes longer than a run. A sampled sum is unbiased, with standard errors
estimated from the sample. Late in training the gradient comes from configurations of probability
below 1e-7, which a sample of usual size lacks, so its standard error is too small.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.cache import compiled_program, jax
from dynamics.expectations import Expectation, relative_error
from dynamics.loops import Updates
from dynamics.models import positional_attention as file
from dynamics.models.engine.functions import Columns, Embedding, class_embedding, functions_of
from dynamics.models.engine.program import (
    Data,
    Program,
    data_of,
    evaluated,
    on_device,
    program_of,
)
from dynamics.models.engine.reduced_risk import CompiledRisk, reduced_risk
from dynamics.models.engine.tracing import namespace
from dynamics.papers.positional_attention.configurations import Configurations
from dynamics.problem import FloatArray
from theory.closure.partition import EntryClasses
from theory.law import Law
from theory.model import Model
from theory.papers.positional_attention.notation import ORDER_PARAMETERS

if TYPE_CHECKING:
    from dynamics.papers.positional_attention.parameters import Parameters

TAIL = 5
"""Strata of rare sums of patch values are merged until they have at least this number of draws."""
SCALARS = ("alpha", "gamma", "rho")
COLUMNS: Columns = (
    *(("state", k) for k in range(len(SCALARS))),
    ("observable", "G"),
    ("rate", 0),
    ("observable_rate", "G"),
    ("observable", "association_margin"),
)
"""Column of each order parameter, in the order of `ORDER_PARAMETERS`."""
assert len(COLUMNS) == len(ORDER_PARAMETERS)
BATCH = 1 << 13
"""Number of configurations for which terms are computed at a time."""
ROUNDINGS = 8
"""Approximate number of roundings of an attention share; p further roundings come from the
degree."""
PLACES = 4
"""Sample sizes are padded to this number of leading binary digits, to share compiled code."""


def _start(
    D: int = 16, C: int = 4, p: int = 3, nu: float = 1e-3, beta: float = 1.0, scale: float = 1.0
) -> dict[str, float]:
    return dict.fromkeys(SCALARS, 0.0)


def _observables(
    scalars: Any, xp: Any, D: int, C: int, beta: float, scale: float
) -> dict[str, Any]:
    """Observables of the model file, and the margin of patch association."""
    margin = xp.minimum(beta, scalars["gamma"]) - scalars["rho"]
    return {
        **file.reduced_observables(scalars, xp, D, C, beta, scale),
        "association_margin": margin,
    }


@cache
def _model() -> Model:
    """Model of the model file, with the scalars as entries and configurations as samples."""
    return Model(
        start=_start, law=lambda: (), loss=file.reduced, path=Path(file.__file__),
        observables=_observables, observe=file.reduced_observe,
    )  # fmt: skip


class WeightedSum(Expectation):
    """Base of the sums over weighted configurations; `settings` identifies a sum."""

    def __init__(
        self, parameters: Parameters, rows: Configurations, settings: Mapping[str, Any]
    ) -> None:
        self.settings, self.configurations, self.name = settings, rows, settings["expectation"]
        self._entries = tuple(file.sizes(parameters.D, parameters.C).values())
        self._statics = tuple((name, getattr(parameters, name)) for name in ("D", "C", "p"))
        self._reals = {name: float(getattr(parameters, name)) for name in ("nu", "beta", "scale")}

    @property
    def source(self) -> str:
        """Text of the model file."""
        return Path(file.__file__).read_text(encoding="utf-8")

    @cached_property
    def traced(self) -> Program:
        """Traced functions of the model file."""
        return program_of(_model(), self._statics, tuple((name, ()) for name in SCALARS))

    @property
    def embedding(self) -> Embedding:
        """Embedding of three entries of the model file, one representative for each scalar."""
        three = np.arange(3), np.ones(3), np.zeros(3)
        return class_embedding(EntryClasses(*three, declared=self._entries))

    def data_of(self, rows: Configurations) -> Data:
        """Configurations and weights as data of the traced functions."""
        data = on_device(data_of(Law(rows.probability, rows.counts), {}, self._reals))
        self.traced.check(data)
        return data

    def contributions(self, state: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Arrays (4, n): contributions to gradient and risk, their gross, their rounding errors."""
        samples = self.configurations.counts
        many = _padded(len(samples))
        whole = np.concatenate([samples, np.repeat(samples[-1:], many - len(samples), axis=0)])
        function = _terms(*(value for _, value in self._statics))
        found = evaluated(function, np.asarray(state, dtype=float), whole, self._reals)
        share = 1.0 / np.array([*self._entries, 1])
        values, gross, rounded = ((part[: len(samples)] * share).T for part in found)
        return values, gross, rounded


class Exact(WeightedSum):
    """Sum over all configurations, compiled as a reduced program."""

    def __init__(
        self, parameters: Parameters, rows: Configurations, settings: Mapping[str, Any]
    ) -> None:
        super().__init__(parameters, rows, settings)
        data = self.data_of(rows)
        risk = reduced_risk(self.traced, data, self.embedding, SCALARS)
        self._compiled = CompiledRisk(risk, COLUMNS, data)
        self.data = self._compiled.data

    def _rows(self, states: FloatArray) -> dict[str, FloatArray]:
        rows = self._compiled.rows(states)
        return dict(zip(self._compiled.names, np.ascontiguousarray(rows.T), strict=True))

    def value(self, state: FloatArray) -> float:
        """Risk at a state."""
        return float(self._rows(state[None, :])["risk"][0])

    def observe(self, states: FloatArray) -> tuple[FloatArray, dict[str, FloatArray]]:
        """Gradients at states, and their risk and population error."""
        rows = self._rows(states)
        slopes = np.array([self.gradient(state) for state in states]).reshape(states.shape)
        return slopes, {name: rows[name] for name in ("risk", "error")}

    def error_estimate(self, state: FloatArray) -> dict[str, FloatArray]:
        """Gradient and risk; sums of their absolute terms (``gross``); their rounding errors."""
        _, gross, rounded = (
            part @ self.configurations.probability for part in self.contributions(state)
        )
        value = np.append(self.gradient(state), self.value(state))
        return {"value": value, "gross": gross, "estimate": rounded}


class Sampled(WeightedSum):
    """Mean over drawn configurations, with the standard error of the mean."""

    def __init__(
        self,
        parameters: Parameters,
        rows: Configurations,
        settings: Mapping[str, Any],
        samples: int,
    ) -> None:
        super().__init__(parameters, rows, settings)
        self.samples = samples
        more = _padded(rows.probability.size) - rows.probability.size
        counts = np.concatenate([rows.counts, np.repeat(rows.counts[-1:], more, axis=0)])
        filled = rows._replace(counts=counts, probability=np.pad(rows.probability, (0, more)))
        self._payload = self.data_of(filled), on_device(self.embedding)
        self._functions = functions_of(self.traced, True, COLUMNS, len(SCALARS))

    def gradient(self, state: FloatArray) -> FloatArray:
        """Gradient per entry for each scalar at a state, shape (3,)."""
        return np.asarray(evaluated(self._functions.compiled_slope, state, self._payload))

    def order_parameters(self, state: FloatArray, slope: FloatArray, count: int) -> FloatArray:
        """Order parameters at a state, given its gradient, shape (count,)."""
        return np.asarray(evaluated(self._functions.compiled_row, state, slope, self._payload))

    def hessian(self, state: FloatArray) -> FloatArray:
        """Jacobian matrix of the gradient, shape (3, 3)."""
        return np.asarray(evaluated(self._functions.compiled_jacobian, state, self._payload))

    def advance(
        self, state: FloatArray, updates: Updates, first: int, last: int, buffers: tuple[Any, ...]
    ) -> int:
        """Take steps first, ..., last - 1 in place; see `dynamics.loops.kernels.advance`."""
        loop = self._functions.loop
        return loop.advance(state, updates, (first, last), buffers, self._payload)

    def value(self, state: FloatArray) -> float:
        """Estimated risk at a state."""
        return float(self._observed(state[None, :])["risk"][0])

    def _observed(self, states: FloatArray) -> dict[str, FloatArray]:
        found = self._functions.observed(states, self._payload)
        return {"risk": found["risk"], "error": found["observables"]["error"]}

    def observe(self, states: FloatArray) -> tuple[FloatArray, dict[str, FloatArray]]:
        """Gradients at states; risk, error, largest (standard error / sum of absolute terms)."""
        slopes = np.array([self.gradient(state) for state in states]).reshape(states.shape)
        known = [self.error_estimate(state) for state in states]
        ratios = [relative_error(each["standard_error"], each["gross"]) for each in known]
        return slopes, {**self._observed(states), "standard_error": np.array(ratios)}

    def error_estimate(self, state: FloatArray) -> dict[str, FloatArray]:
        """Gradient and risk, with their gross and their standard error."""
        weight, (each, sizes, _) = self.configurations.probability, self.contributions(state)
        spread = self._standard_error(each)
        return {"value": each @ weight, "gross": sizes @ weight, "standard_error": spread}

    def _standard_error(self, terms: FloatArray) -> FloatArray:
        """Standard error from the variance within strata of equal sums, merged in the tails."""
        totals = (self.configurations.counts @ np.array([1.0, -1.0])).sum(axis=1)
        strata = (totals - totals.min()).astype(np.int64)
        weight, samples = self.configurations.probability, float(self.samples)
        counts = np.rint(np.bincount(strata, weight) * samples)
        low = int(np.searchsorted(np.cumsum(counts), TAIL))
        high = counts.size - 1 - int(np.searchsorted(np.cumsum(counts[::-1]), TAIL))
        strata = np.clip(strata, low, max(low, high))
        counts = np.rint(np.bincount(strata, weight) * samples)
        variance = np.zeros(4)
        for stratum in np.flatnonzero(counts):
            rows = strata == stratum
            inside = weight[rows] / weight[rows].sum()
            mean = terms[:, rows] @ inside
            spread = ((terms[:, rows] - mean[:, None]) ** 2) @ inside
            variance += counts[stratum] * spread * counts[stratum] / max(counts[stratum] - 1, 1)
        return np.sqrt(variance) / samples


def _padded(many: int) -> int:
    """Number of samples rounded up to `PLACES` binary digits, so that few sizes are compiled."""
    unit = 1 << max(0, many.bit_length() - PLACES)
    return -(-many // unit) * unit


@cache
def _terms(D: int, C: int, p: int) -> Any:
    r"""Compiled parts of gradient and risk, with their gross and their rounding errors.

    If rounding changes the output F by :math:`\delta`, then :math:`\varsigma = 1 / (1 + e^F)`
    changes by at most :math:`\varsigma (1 - \varsigma)(e^\delta - 1)`. The change of F is large
    where large terms of F cancel.
    """
    xp, unit = namespace(), (ROUNDINGS + p) * float(np.finfo(float).eps)

    def one(state: Any, sample: Any, reals: Any) -> tuple[Any, Any, Any]:
        def terms(at: Any) -> Any:
            scalars = dict(zip(SCALARS, at, strict=True))
            return file.moments(scalars, sample, xp, D, C, p, **reals)

        h, slopes = terms(state), jax.jacfwd(terms)(state)
        margin, delta = h.sum(), unit * abs(h).sum()
        weight, loss = jax.nn.sigmoid(-margin), jax.nn.softplus(-margin)[None]
        shares = abs(slopes.sum(axis=0)).sum(axis=0)
        # e^delta times a small `weight`, computed as one exponential to avoid overflow.
        large = xp.exp(xp.minimum(delta - abs(margin), 0.0))
        little, small = xp.expm1(xp.minimum(delta, 1.0)), delta < 1.0
        off = xp.where(small, weight * jax.nn.sigmoid(margin) * little, large)
        sizes = abs(slopes).sum(axis=(0, 1))
        # Derivatives by gamma and rho are differences of attentions; rounding acts on each one.
        by_entries = reals["scale"] * abs(state[0]) * sizes[0]
        sizes = weight * (sizes + jax.numpy.array([0.0, 1.0, 1.0]) * by_entries)
        changed = off * abs(slopes.sum(axis=(0, 1))) + unit * sizes
        of_risk = xp.where(small, weight * little, delta) + unit * loss
        return (
            jax.numpy.concatenate([-weight * slopes.sum(axis=(0, 1)), loss]),
            jax.numpy.concatenate([weight * shares, loss]),
            jax.numpy.concatenate([changed, of_risk]),
        )

    def all_of(state: Any, samples: Any, reals: Any) -> Any:
        return jax.lax.map(lambda sample: one(state, sample, reals), samples, batch_size=BATCH)

    return compiled_program(all_of)
