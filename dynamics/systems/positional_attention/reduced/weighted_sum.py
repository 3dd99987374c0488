"""The expectation as a weighted sum over configurations: all, or sampled ones.

A sampled sum is unbiased, with the standard errors that one sample shows. What is rare is missing
from it: late in training the gradient is carried by configurations of probability below 1e-7, which
a sample of any usual size does not contain, and its standard error cannot know of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dynamics import codegen
from dynamics.codegen import loops
from dynamics.problem import FloatArray
from dynamics.systems.positional_attention.kernels import reduced as kernels
from dynamics.systems.positional_attention.kernels.reduced_data import (
    Configurations,
    ReducedData,
    Work,
)
from dynamics.systems.positional_attention.kernels.reduced_hessian import hessian
from dynamics.systems.positional_attention.reduced import Expectation, compiled, rounding
from theory.papers.positional_attention import recursion

if TYPE_CHECKING:
    from dynamics.systems.positional_attention.parameters import Parameters

TAIL = 5
"""Draws in the outermost strata; whether a sum that is rare occurs at all is part of the error."""
IN_SILENCE = np.errstate(all="ignore")
"""Numbers beyond the largest are no error: what they bound is lost."""
BLOCK = 1 << 18
"""Configurations whose terms are in memory at a time."""


class WeightedSum(Expectation):
    """A sum over configurations; with a number of samples, an estimate from them.

    Parameters
    ----------
    module, data, settings
        As for `Expectation`.
    parameters : Parameters
    samples : int or None
    """

    scratch = ("work",)

    def __init__(
        self,
        module: codegen.CompiledModule,
        data: ReducedData,
        settings: Mapping[str, Any],
        parameters: Parameters,
        samples: int | None = None,
    ) -> None:
        super().__init__(module, data, settings)
        self.degree, self.samples = parameters.p, samples
        self.law_rounding = parameters.set_law.rounding

    @classmethod
    def over(
        cls,
        rows: Configurations,
        parameters: Parameters,
        settings: Mapping[str, Any],
        samples: int | None = None,
    ) -> Self:
        """The sum over given configurations, compiled, with the data of the kernels.

        Parameters
        ----------
        rows : Configurations
        parameters : Parameters
        settings : mapping
            How the configurations were made.
        samples : int, optional
            Number of draws that they are from.
        """
        grid = tuple(latent.size for latent in rows.latents)
        parts, table = np.empty((4, *grid)), np.empty((rows.sum_index.size, grid[2]))
        work = Work(
            parts=parts,
            parts_at=np.full(3, np.nan),
            flat_parts=parts.reshape(12, *grid[1:]),
            table=table,
            total=np.empty(table.size),
            weights=np.empty(grid),
            chance=np.empty(rows.probability.size),
        )
        constants = constants_and_shares(parameters)
        data = ReducedData(*constants, rows, work)
        module = _module(parameters.p, rows.cuts.size > 2)
        return cls(module, data, settings, parameters, samples)

    @property
    def configurations(self) -> Configurations:
        """The configurations and their weights."""
        return self.data.configurations

    def observe(self, states: FloatArray) -> tuple[FloatArray, dict[str, FloatArray]]:
        """Gradients, risk, population error; of samples the largest standard error over gross."""
        slopes, out = loops.summary_rows(self.addressed, states)
        measured = {"risk": out[:, 0], "error": out[:, 1]}
        if self.samples is not None:
            estimates = [self.certify(state) for state in states]
            measured["standard_error"] = np.array(
                [rounding.relative(each["standard_error"], each["gross"]) for each in estimates]
            )
        return slopes, measured

    @IN_SILENCE
    def certify(self, state: FloatArray) -> dict[str, FloatArray]:
        """Value, gross, and a bound of rounding; of samples the standard error of each.

        The value is the kernels', or that of the longer floats where these refuse one.
        """
        if self.samples is None:
            return self._certified(state)
        weight, (each, sizes) = self.configurations.probability, self.contributions(state)
        spread = self._standard_error(each)
        return {"value": each @ weight, "gross": sizes @ weight, "standard_error": spread}

    def _certified(self, state: FloatArray) -> dict[str, FloatArray]:
        """Value, gross and bound of a sum over all of its configurations."""
        table, rows = self._shares(state), self.configurations
        share = np.append(self.data.share, 1.0)
        weight, count = rows.probability, rows.index.shape[1]
        total = np.zeros((4, 4), np.longdouble)
        for first in range(0, count, BLOCK):
            block = slice(first, first + BLOCK)
            terms = rounding.terms(table, rows.index[:, block])
            for summed, part in zip(total, (*terms, np.abs(terms.values)), strict=True):
                summed += (part * weight[block]).sum(axis=1)
        value, gross, bound, size = total * share
        # Of a weight: L-1 rounded probabilities, and its own rounding.
        of_weight = len(rows.index) * (self.law_rounding + 4 * codegen.LONG_ROUNDING)
        bound += (of_weight + rounding.SUMMATION) * size
        slope = loops.gradient(self.addressed, state)
        found = np.append(slope, loops.summary(self.addressed, state)[0])
        found = np.where(np.isfinite(found), found, _short(value))
        bound = _short(bound + np.abs(found - value)) * (1 + 1e-9) + rounding.FLOOR
        return {"value": found, "gross": _short(gross), "bound": _finite(bound)}

    @IN_SILENCE
    def contributions(self, state: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What each configuration adds to per-entry gradient and risk, and its gross, (4, n)."""
        terms = rounding.terms(self._shares(state), self.configurations.index)
        share = np.append(self.data.share, 1.0)[:, None]
        return _short(terms.values * share), _short(terms.gross * share)

    def _shares(self, state: FloatArray) -> rounding.Shares:
        """Shares of the sets in longer floats."""
        rows = self.configurations
        numbers = state, self.data.constants, rows.latents[2]
        return rounding.shares(self.degree, *numbers, rows.multiples, rows.sum_index)

    def _standard_error(self, terms: FloatArray) -> FloatArray:
        """From the variance within the strata: the sums Z, and the few samples of either tail."""
        columns = self.configurations.latents[2].size
        strata = self.configurations.index[0].astype(np.int64) % columns
        weight, samples = self.configurations.probability, float(self.samples or 0)
        counts = np.rint(np.bincount(strata, weight, columns) * samples)
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


def _short(numbers: np.ndarray) -> FloatArray:
    """The nearest float64; infinite beyond the largest."""
    return numbers.astype(np.float64)


def _finite(bound: FloatArray) -> FloatArray:
    """A bound, infinite where it is lost."""
    return np.where(np.isfinite(bound), bound, np.inf)


def constants_and_shares(parameters: Parameters) -> tuple[FloatArray, FloatArray]:
    """Values of the recursion's parameters, and one over the number of entries of each state.

    Parameters
    ----------
    parameters : Parameters

    Returns
    -------
    constants : float array
        In the order of `recursion.PARAMETERS`.
    shares : float array, shape (3,)
    """
    constants = np.array([float(getattr(parameters, s.name)) for s in recursion.PARAMETERS])
    shares = np.array([1 / count for count in _entries(parameters.D, parameters.C)])
    return constants, shares


@lru_cache(maxsize=256)
def _entries(D: int, C: int) -> tuple[float, ...]:
    """Number of entries that share each state."""
    counts, sizes = recursion.multiplicity(), {"D": D, "C": C}
    ordered = (counts[state] for state in recursion.STATE)
    return tuple(float(n.subs({s: sizes[s.name] for s in n.free_symbols})) for n in ordered)


@cache
def _module(degree: int, threaded: bool) -> codegen.CompiledModule:
    """The generated file for one p, with or without threads."""
    functions = (kernels.gradient, hessian, kernels.order_parameters, kernels.summary)
    parallel = (kernels.weigh, kernels.scatter) if threaded else ()
    return compiled(degree, functions, (ReducedData,), parallel)
