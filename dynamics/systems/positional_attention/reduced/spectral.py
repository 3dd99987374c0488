r"""The spectral expectation: exact to a requested tolerance, polynomial in D for every q.

The sum over types is replaced, for each sum z of the random sets, by one contour integral (for the
logistic) and one discrete Fourier transform (for the coupling through z); the formulas are in
`dynamics.systems.positional_attention.kernels.spectral`. All choices are automatic. The tolerance
is relative to the *gross* contributions, in which every term counts with its absolute value: on the
slow manifold the net gradient of alpha is smaller than its gross by 1e-9 to 1e-15, so a tolerance
relative to the net would mean nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics import codegen
from dynamics.codegen import loops
from dynamics.problem import FloatArray
from dynamics.systems.positional_attention.kernels import spectral as kernels
from dynamics.systems.positional_attention.kernels import spectral_data as records
from dynamics.systems.positional_attention.kernels.grid_weights import ABOVE, BELOW, GRAIN
from dynamics.systems.positional_attention.kernels.saddle_points import LARGEST_TILT, scan_group
from dynamics.systems.positional_attention.kernels.spectral_weights import weigh_sums
from dynamics.systems.positional_attention.reduced import constants_of, rounding, shares_of
from dynamics.systems.positional_attention.reduced.configurations import multiples
from dynamics.systems.positional_attention.reduced.printed import PrintedExpectation, compiled
from theory.papers.positional_attention.data_law import SetLaw

if TYPE_CHECKING:
    from dynamics.systems.positional_attention.parameters import Parameters

BUDGET = 3e9
"""Largest number of nodes (omega times zeta) of one gradient, times the types of a set; some tenths
of a second, so that a Hessian and the observables take a second each and a run ends soon when it is
interrupted."""
SECONDS_PER_SUM, SECONDS_PER_TYPE = 1.4e-5, 2.8e-7
"""Predicted time of what is done at one sum, and there of one type; fitted to 20 problems on one
core, of which it predicts the time of a gradient within a factor of 1.6."""
THREADED_FROM = 3e-3
"""Predicted time of a gradient from which its sums are worth sharing among threads: below, two
threads gain a fifth, and their code takes twice as long to compile."""
NEGLIGIBLE = 1e-60
"""Sums less likely than this are left out."""
COARSE = 1e-6
"""Tolerance of the gradients that a flow corrects afterwards, at least."""


FAULTS = {
    2: "the integrals of the spectral expectation overflow here: |F| is too large with both signs; "
    "take the exact expectation or start elsewhere",
    3: "the integrals of the spectral expectation cancel here until no digit is left; take the "
    "exact or the sampled expectation or start elsewhere",
}
"""What a status of the kernels means."""


def contours() -> tuple[FloatArray, int, int]:
    """The grid of kappa, with the poles -1, 0, 1 in it, and the range that may carry a contour.

    Returns
    -------
    kappas : float array
    first, last : int
        Positions of the first and the last contour.
    """
    grid = np.array([*(-k for k in BELOW), 0.0, *ABOVE]) / round(1.0 / GRAIN)
    return grid, int(np.argmax(grid > -1.0)), int(np.argmax(grid >= 1.0)) - 1


def sum_law(sets: int, law: SetLaw) -> FloatArray:
    """Law of the sum of so many random sets, from -sets C to sets C.

    Parameters
    ----------
    sets : int
    law : SetLaw
        Of each of them.
    """
    whole, step = np.array([1.0]), law.sum_law
    while sets:
        if sets % 2:
            whole = np.convolve(whole, step)
        step = np.convolve(step, step)
        sets //= 2
    return whole


class Spectral(PrintedExpectation):
    """The spectral expectation of one problem.

    Parameters
    ----------
    module, data, settings
        As for `PrintedExpectation`.
    parameters : Parameters
    """

    scratch = ("parts", "tables", "columns", "values", "gross", "bounds", "report")

    def __init__(
        self,
        module: codegen.CompiledModule,
        data: records.SpectralData,
        settings: Mapping[str, Any],
        parameters: Parameters,
    ) -> None:
        super().__init__(module, data, settings)
        self.parameters = parameters

    @property
    def addressed(self) -> codegen.AddressedModel:
        """Gradient, Hessian and order parameters on the data, for the compiled loops."""
        model = super().addressed
        if model.coarse is None:
            coarse = max(COARSE, self.data.tolerance)
            model.coarse = model.with_data(self.data._replace(tolerance=coarse))
        return model

    def observe(self, states: FloatArray) -> tuple[FloatArray, dict[str, FloatArray]]:
        """Gradients, risk, and the bound relative to the gross."""
        known = [self.certify(state) for state in states]
        values = np.array([each["value"] for each in known])
        ratios = [rounding.relative(each["bound"], each["gross"]) for each in known]
        return values[:, :3], {"risk": values[:, 3], "certificate": np.array(ratios)}

    def certify(self, state: FloatArray) -> dict[str, FloatArray]:
        """Value, gross and bound, from one set of weights: of the integrals, and of rounding."""
        value, data = np.empty(4), self.data
        numbers = state, data.constants, data.latents[2]
        exact = rounding.shares(self.parameters.p, *numbers, data.multiples, data.sum_index)
        value[:3] = loops.gradient(self.addressed, state)
        value[3] = np.nan if data.report[1] else data.values[3]
        share, bound = np.append(data.share, 1.0), np.full(4, np.inf)
        if np.isfinite(value).all():
            bound = share * (data.bounds + rounding_bound(data, exact) + self._left_out(state))
            bound = np.where(np.isfinite(bound), bound, np.inf) + rounding.FLOOR
        return {"value": value, "gross": data.gross * share, "bound": bound}

    def _left_out(self, state: FloatArray) -> FloatArray:
        """What the sums below `NEGLIGIBLE` may add: no entry of S x is larger than 1."""
        given, alpha = self.parameters, abs(state[0])
        inner = given.D * alpha
        steep = given.D * (given.p * inner ** (given.p - 1) + given.nu)
        turn = steep * inner * given.scale / 2.0
        loss = 1.0 + given.D * (inner**given.p + given.nu * inner)
        size = np.array([steep * given.D, turn, turn, loss])
        return columns_left_out(given.set_law, given.L - 1) * size

    def failure(self, state: FloatArray) -> str:
        """Why there is no number: cancellation, overflow, or nodes above the budget."""
        loops.gradient(self.addressed, state)
        nodes, status = self.data.report
        if status == 1:
            return (
                f"the spectral expectation needs more than {nodes:.1e} nodes for one gradient here,"
                f" above its budget of {self.data.budget:.1e}; loosen the tolerance or start "
                "elsewhere"
            )
        return FAULTS.get(int(status), "")


def rounding_bound(data: records.SpectralData, exact: rounding.Shares) -> FloatArray:
    r"""What the roundings of the shares change in E[s dF] and the risk, summed over z, shape (4,).

    With e the errors of h, :math:`s \le e^{-\kappa F}` for 0 <= kappa <= 1, and s (1 - s) for
    |kappa| <= 1, turn the bounds (1) of `rounding` into means under the tilted laws (3) of the
    kernels, of products of sums over the sets. Of every z two kappas are tried: those of least
    height e^psi, of all and of those from 0 on. In the tests all would take off a quarter at most.

    Parameters
    ----------
    data : SpectralData
        After a gradient.
    exact : Shares
        At the same state.
    """
    law, columns = data.law, data.columns
    used, scanned = np.abs(law.kappas) <= 1.0, columns.scanned
    kappas, count = law.kappas[used], law.count
    lam, psi = (grid[np.ix_(scanned, used)] for grid in (columns.lam, columns.psi))
    errors = np.abs(data.tables - exact.values).astype(np.float64) + exact.errors
    sizes = np.abs(data.tables) + errors
    # The largest sums over sets that any configuration has, by component and z.
    most, trivial = (part[:, -1] + count * part.max(axis=1) for part in (errors, sizes))
    total = (8.0 + count) * rounding.ROUNDING * data.gross
    total += (most[[1, 2, 3, 0]] * law.chance)[:, ~scanned].sum(axis=1)
    chance, errors, sizes = law.chance[scanned], errors[:, :, scanned], sizes[:, :, scanned]
    most, trivial, h = most[:, scanned], trivial[:, scanned], data.tables[0][:, scanned]
    with np.errstate(all="ignore"):
        far = np.abs(kappas) * np.abs(h).max(axis=0)[:, None] + np.abs(lam) * law.sums.max()
        far = count * far + np.abs(lam * law.z[scanned, None])
        height = psi + 8.0 * rounding.ROUNDING * far
        known = np.where(np.isnan(height), np.inf, height)
        zero = int(np.searchsorted(kappas, 0.0))
        best = np.stack([known.argmin(axis=1), zero + known[:, zero:].argmin(axis=1)], axis=1)
        lam, height = (np.take_along_axis(grid, best, axis=1) for grid in (lam, height))
        height, kappas = np.exp(height), kappas[best]
        tilt = lam[:, :, None] * law.sums - kappas[:, :, None] * h.T[:, None]
        tilt[:, :, law.probability == 0.0] = -np.inf
        tilted = law.probability * np.exp(tilt - tilt.max(axis=2, keepdims=True))
        tilted *= count / tilted.sum(axis=2, keepdims=True)

        def inside(part: FloatArray) -> FloatArray:
            """Tilted mean of the sum over the random sets, by z and kappa."""
            return np.asarray(np.einsum("csk,kc->cs", tilted, part))

        def least(bounds: FloatArray, otherwise: FloatArray, first: int) -> float:
            """The best kappa at each z, from the first on, summed."""
            found = np.fmin.reduce((height * bounds)[:, first:], axis=1)
            return float(np.fmin(found, otherwise * chance).sum())

        wrong = inside(errors[0]) + errors[0, -1][:, None]
        grown = np.where(most[0] > 0.0, np.expm1(most[0]) / most[0], 1.0)[:, None]
        for i in (1, 2, 3):
            steep = wrong * (inside(sizes[i]) + sizes[i, -1][:, None]) + inside(
                errors[0] * sizes[i]
            )
            slope = inside(errors[i]) + errors[i, -1][:, None]
            total[i - 1] += least(steep * grown, trivial[i], 0) + least(slope, most[i], 1)
        total[3] += least(wrong * grown, most[0], 1)
    return total


def predicted_seconds(parameters: Parameters) -> float:
    """Time of one gradient, from the number of sums within three standard deviations."""
    spread = 3.0 * np.sqrt((parameters.D - parameters.C) * parameters.q)
    columns = min(2.0 * spread + 1.0, 2.0 * (parameters.D - parameters.C) + 1.0)
    kinds = (parameters.C + 1) * (parameters.C + 2) // 2
    return float((SECONDS_PER_SUM + SECONDS_PER_TYPE * kinds) * columns)


def spectral(parameters: Parameters, tolerance: float) -> Spectral:
    """The spectral expectation of a problem, ready to run.

    Parameters
    ----------
    parameters : Parameters
    tolerance : float
        Relative to the gross contributions.
    """
    size, law = parameters.C, law_of_sums(parameters.set_law, parameters.L - 1)
    many, types = law.z.size, law.sums.size
    set_sums = np.arange(-size, size + 1.0)
    data = records.SpectralData(
        constants=constants_of(parameters),
        share=shares_of(parameters),
        latents=(np.array([1.0, -1.0, 0.0]), set_sums, law.z + float(size)),
        composition=parameters.set_law.types.astype(float),
        multiples=multiples(parameters.set_law),
        sum_index=(law.sums + size).astype(np.uint64),
        law=law,
        budget=BUDGET / types,
        tolerance=tolerance,
        parts=np.empty((4, 3, set_sums.size, many)),
        tables=np.empty((4, types, many)),
        columns=new_columns(many, types, law.kappas.size),
        values=np.empty(4),
        gross=np.empty(4),
        bounds=np.empty(4),
        report=np.empty(2),
    )
    settings = {"expectation": "spectral", "tolerance": tolerance}
    module = _module(parameters.p, predicted_seconds(parameters) >= THREADED_FROM)
    return Spectral(module, data, settings, parameters)


@lru_cache(maxsize=16)
def columns_left_out(law: SetLaw, sets: int) -> float:
    """Probability of the sums that are left out.

    Parameters
    ----------
    law : SetLaw
        Of a random set.
    sets : int
        Number L-1 of random sets.
    """
    whole = sum_law(sets, law)
    return float(whole[whole <= NEGLIGIBLE].sum())


def new_columns(many: int, types: int, contours: int) -> records.Columns:
    """Room for what is computed at every sum.

    Parameters
    ----------
    many, types, contours : int
        Number of sums, of types, and of kappa.
    """
    return records.Columns(
        psi=np.empty((many, contours)),
        lam=np.empty((many, contours)),
        reach=np.empty((many, 4, contours)),
        upper=np.empty((many, 4)),
        scanned=np.empty(many, dtype=np.bool_),
        contour=np.empty(many, dtype=np.int64),
        step=np.empty(many),
        window=np.empty(many),
        log_bound=np.empty(many),
        error=np.empty(many),
        crossed=np.empty(many, dtype=np.bool_),
        length=np.empty(many, dtype=np.int64),
        first=np.empty((many, types)),
        second=np.empty((many, types)),
        pairs=np.empty((many, 6)),
        risks=np.empty(many),
        errors=np.empty(many),
        noise=np.empty((many, 4)),
    )


@lru_cache(maxsize=16)
def law_of_sums(law: SetLaw, sets: int) -> records.SumLaw:
    """The law of types and sums as the kernels read it, and where contours may lie.

    Parameters
    ----------
    law : SetLaw
        Of a random set.
    sets : int
        Number L-1 of random sets.
    """
    set_size, probability, sums = law.C, law.probabilities, law.sums
    whole, less = sum_law(sets, law), sum_law(sets - 1, law)
    likely = np.flatnonzero(whole > NEGLIGIBLE)
    z = likely - sets * set_size
    position = z[:, None] - sums[None, :] + (sets - 1) * set_size
    inside = (position >= 0) & (position < less.size)
    others = np.where(inside, less[np.clip(position, 0, less.size - 1)], 0.0)
    kappas, first, last = contours()
    return records.SumLaw(
        probability=probability,
        sums=sums,
        z=z,
        chance=whole[likely],
        chance_less=others * probability,
        outward=np.argsort(-whole[likely], kind="stable"),
        tilt=np.array([tilt_of(law, each / sets) for each in z]),
        kappas=kappas,
        first=first,
        last=last,
        count=sets,
        # Of sums of products, doubled again and again.
        law_error=8.0 * rounding.ROUNDING * (set_size * sets + 8.0) + sets * law.rounding,
    )


def tilt_of(law: SetLaw, mean: float) -> float:
    """The lambda at which the tilted mean of a set's sum is a number, at kappa 0.

    Parameters
    ----------
    law : SetLaw
    mean : float
    """
    from scipy.optimize import brentq

    possible = law.sum_law > 0.0
    chances, away = law.sum_law[possible], np.arange(-law.C, law.C + 1.0)[possible] - mean

    def excess(tilt: float) -> float:
        weights = np.log(chances) + tilt * away
        return float(np.exp(weights - weights.max()) @ away)

    if excess(-LARGEST_TILT) >= 0.0:
        return -LARGEST_TILT
    if excess(LARGEST_TILT) <= 0.0:
        return LARGEST_TILT
    return float(brentq(excess, -LARGEST_TILT, LARGEST_TILT))


@cache
def _module(degree: int, threaded: bool) -> codegen.CompiledModule:
    """The generated file for one p, with or without threads."""
    functions = (kernels.derivatives, kernels.order_parameters)
    parallel = (scan_group, weigh_sums) if threaded else ()
    return compiled(degree, functions, (records.SpectralData,), parallel)
