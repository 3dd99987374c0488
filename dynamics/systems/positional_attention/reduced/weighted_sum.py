"""An expectation that is a weighted sum over configurations, and the file compiled around it.

Which configurations there are, and how they are weighted, is decided by `enumerate` (all of them),
`truncate` (the most probable) and `sample` (drawn ones).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynamics import codegen
from dynamics.codegen.kernels.advance import advance
from dynamics.systems.positional_attention.kernels import reduced as kernels
from dynamics.systems.positional_attention.kernels import truncated as truncate_kernels
from dynamics.systems.positional_attention.reduced.configurations import Configurations
from dynamics.systems.positional_attention.reduced.expectation import Expectation
from theory.systems.positional_attention import recursion

if TYPE_CHECKING:
    from dynamics.systems.positional_attention.parameters import Parameters
    from theory.reduction import ReducedSystem

FloatArray = NDArray[np.float64]

SECONDS_PER_ENTRY, GROWTH, SECONDS_PER_CELL, OVERHEAD = 0.34e-9, 0.05e-9, 1.9e-9, 3e-6
"""Predicted time of a gradient, fitted to measurements on one core; see `predicted_seconds`."""
TAIL = 5
"""Draws in the outermost strata; whether a sum that is rare occurs at all is part of the error."""
ROUNDING = 8 * 2.3e-16
"""Error of a sum of terms, relative to their gross."""


@dataclass
class WeightedSum(Expectation):
    """A sum over given configurations; with a number of draws, an estimate from them."""

    configurations: Configurations
    drawn: int | None = None

    def observe(self, state: FloatArray) -> tuple[FloatArray, dict[str, float]]:
        """Gradient, risk, population error; of draws the standard error relative to the gross."""
        slope, out = np.empty(3), np.empty(2)
        self.module.gradient(state, self.data, slope)
        self.module.summary(state, self.data, out)
        known = {"risk": float(out[0]), "error": float(out[1])}
        if self.drawn is not None:
            found = self.certify(state)
            spread, gross = found["standard_error"][:3], found["gross"][:3]
            ratio = np.divide(spread, gross, out=np.zeros(3), where=gross > 0)
            known["standard_error"] = float(ratio.max())
        return slope, known

    def certify(self, state: FloatArray) -> dict[str, FloatArray]:
        """Value, gross, rounding bound; the standard error of each where they were drawn."""
        weight = self.configurations.probability
        terms, gross_terms = self.contributions(state)
        value, gross = terms @ weight, gross_terms @ weight
        if self.drawn is None:
            return {"value": value, "gross": gross, "bound": ROUNDING * gross}
        return {"value": value, "gross": gross, "standard_error": self._standard_error(terms)}

    def _standard_error(self, terms: FloatArray) -> FloatArray:
        """From the variance within the strata: the sums Z, and the few draws of either tail."""
        chosen = self.configurations
        strata = chosen.index[0].astype(np.int64) % chosen.totals.size
        weight, drawn = chosen.probability, float(self.drawn or 0)
        counts = np.rint(np.bincount(strata, weight, chosen.totals.size) * drawn)
        low = int(np.searchsorted(np.cumsum(counts), TAIL))
        high = counts.size - 1 - int(np.searchsorted(np.cumsum(counts[::-1]), TAIL))
        strata = np.clip(strata, low, max(low, high))
        counts = np.rint(np.bincount(strata, weight) * drawn)
        variance = np.zeros(4)
        for stratum in np.flatnonzero(counts):
            rows = strata == stratum
            inside = weight[rows] / weight[rows].sum()
            mean = terms[:, rows] @ inside
            spread = ((terms[:, rows] - mean[:, None]) ** 2) @ inside
            variance += counts[stratum] * spread * counts[stratum] / max(counts[stratum] - 1, 1)
        return np.sqrt(variance) / drawn

    def contributions(self, state: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What each configuration adds to per-entry gradient and risk, and its gross, (4, n)."""
        constants, share, latents, types, laid_out, work = self.data[:6]
        patch, index = work[0], laid_out[0]
        self.module.patch_table(state, constants, latents, patch)
        sums, gross = np.empty((4, index.shape[1])), np.empty((4, index.shape[1]))
        for k in range(4):
            self.module.set_table(patch[k], types, work[1])
            parts = work[1].ravel()[index]
            sums[k], gross[k] = parts.sum(axis=0), np.abs(parts).sum(axis=0)
        with np.errstate(over="ignore"):
            weight = 1.0 / (1.0 + np.exp(sums[0]))
        risk = np.logaddexp(0.0, -sums[:1])
        scale = weight * share[:, None]
        return (
            np.concatenate([-sums[1:] * scale, risk]),
            np.concatenate([gross[1:] * scale, risk]),
        )


def predicted_seconds(entries: int, cells: int) -> float:
    """Time of one gradient: ``entries`` sets of configurations, ``cells`` (type, Z) of the table.

    An entry costs more where the table, and what it is scattered to, leave the nearest caches.
    """
    table, spread = np.log2(max(cells, 128) / 64), np.log2(max(entries, 1e5) / 1e5)
    each = SECONDS_PER_ENTRY * table + GROWTH * spread
    return float(each * entries + SECONDS_PER_CELL * cells + OVERHEAD)


def cells_of(parameters: Parameters) -> int:
    """Entries (type, Z) of the table of h."""
    kinds = (parameters.C + 1) * (parameters.C + 2) // 2
    return kinds * (2 * parameters.D - 2 * parameters.C + 1)


def arrays(
    chosen: Configurations, reduction: ReducedSystem, parameters: Parameters
) -> tuple[Any, ...]:
    """What the compiled functions need beside the state, in the order of `kernels.gradient`."""
    grid = (chosen.values.size, chosen.set_sums.size, chosen.totals.size)
    table = np.empty((chosen.place.size, chosen.totals.size))
    work = (
        np.empty((4, *grid)),
        table,
        np.empty(table.size),
        np.empty(grid),
        np.empty(chosen.probability.size),
    )
    laid_out = (
        chosen.index,
        chosen.probability,
        chosen.entries,
        chosen.starts,
        chosen.members,
        chosen.cuts(codegen.LANES if chosen.threaded else 1),
    )
    latents = (chosen.values, chosen.set_sums, chosen.totals)
    types = (chosen.composition, chosen.place)
    return (*constants_and_shares(reduction, parameters), latents, types, laid_out, work)


def constants_and_shares(
    reduction: ReducedSystem, parameters: Parameters
) -> tuple[FloatArray, FloatArray]:
    """Values of the reduction's parameters, and one over the number of entries of each state."""
    values = {symbol: getattr(parameters, symbol.name) for symbol in reduction.parameters}
    constants = np.array([float(value) for value in values.values()])
    share = np.array([1 / float(reduction.multiplicity[s].subs(values)) for s in reduction.state])
    return constants, share


@cache
def compiled(degree: int, threaded: bool, certified: bool = False) -> codegen.CompiledModule:
    """The generated file for one p, with or without threads, with or without a certificate."""
    reduction = recursion.derive(degree)
    first = ["patch", *(f"patch_{theta.name}" for theta in reduction.state)]
    second = [name for name in reduction.blocks if name.count("_") == 2]
    gradient = truncate_kernels.gradient if certified else kernels.gradient
    entries = (gradient, kernels.hessian, kernels.order_parameters, kernels.summary, advance)
    parts = [
        codegen.tabulate("patch_table", first, reduction),
        codegen.tabulate("curvature_table", [*first, *second], reduction),
        codegen.evaluate("order", list(reduction.order_parameters.values()), reduction),
        codegen.evaluate("reported", list(reduction.observables.values()), reduction),
        codegen.kernel_source(*entries, parallel=(kernels.weigh,) if threaded else ()),
    ]
    title = f"Positional attention, reduced population problem, p = {degree}."
    return codegen.build(title, [s.name for s in reduction.state], parts)
