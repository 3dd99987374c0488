r"""Scaling laws: how a quantity of a sweep grows with the parameters.

.. math:: \log Q = \log c + \sum_k e_k \log F_k + \text{residual},

fitted by least squares over all runs in which Q and the factors :math:`F_k` are positive. The
errors of the exponents :math:`e_k` are those of independent residuals of equal spread; intervals
are Student's. In data without noise the residuals are what the law does not tell, so the errors
say how well a power law fits, not how well anything was measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.phase_diagrams.quantity import (
    OUTCOME,
    Quantity,
    complete,
    described,
    everywhere,
    kinds,
    numbers,
    outcomes,
    presentation_of,
)
from dynamics.phase_diagrams.selection import hold
from dynamics.problem import FloatArray
from dynamics.results.expression import Expression
from dynamics.results.outcome import INVALID, PENDING
from dynamics.results.presentation import Presentation
from dynamics.validation import InvalidRequest, refuse

if TYPE_CHECKING:
    import xarray

LEVEL = 0.95
FLAT = 1e-9
"""Spread of a logarithm below which a factor does not vary."""
COLLINEAR = 1e-7
"""Least singular value of the scaled factors below which they are not told apart."""
TAKES_PART = 0.1


@dataclass(frozen=True)
class Scaling:
    """A fitted power law.

    Attributes
    ----------
    system : str
    presentation : Presentation
        That of the dataset.
    quantity : Quantity
    factors : tuple of str
        Names or formulas.
    exponents, errors : float array, shape (factors,)
        And their standard errors.
    intervals : float array, shape (factors, 2)
        95 % intervals.
    prefactor : float
        c, in the unit of the quantity.
    prefactor_error : float
        Standard error of log c: a relative error of c where it is small.
    r2 : float
        Share of the variance of log Q that is explained.
    spread : float
        Standard deviation of the residuals of log Q (about the relative error of the law).
    left_out : mapping
        Why runs were left out -> how many.
    measured, fitted : float array, shape (used,)
        Q of every run that was used, and what the law gives there.
    levels : float array, shape (used, factors)
        The factors there.
    held : mapping
        What is the same in every run: name -> value.
    derived : mapping
        Parameters that follow from others: name -> formula.
    """

    system: str
    presentation: Presentation
    quantity: Quantity
    factors: tuple[str, ...]
    exponents: FloatArray
    errors: FloatArray
    intervals: FloatArray
    prefactor: float
    prefactor_error: float
    r2: float
    spread: float
    left_out: Mapping[str, int]
    measured: FloatArray
    fitted: FloatArray
    levels: FloatArray
    held: Mapping[str, Any]
    derived: Mapping[str, str]

    @property
    def used(self) -> int:
        """Number of runs that were used."""
        return len(self.measured)

    def __str__(self) -> str:
        powers = " ".join(
            f"({factor})^({exponent:.3g} +- {error:.1g})"
            for factor, exponent, error in zip(
                self.factors, self.exponents, self.errors, strict=True
            )
        )
        return f"{self.quantity.text} = {self.prefactor:.3g} {powers}, R^2 = {self.r2:.4f}"


def scaling(
    dataset: xarray.Dataset,
    quantity: str,
    factors: Sequence[str],
    at: Mapping[str, float] | None = None,
) -> Scaling:
    """Fit a power law to a quantity of a sweep, over a grid or over pairs.

    Parameters
    ----------
    dataset : xarray.Dataset
    quantity : str
        A variable.
    factors : sequence of str
        Names of parameters or variables, or formulas of them: ``["D", "q*(D-C)"]``.
    at : mapping, optional
        Dimension -> the value at which it is held, one of its own.

    Returns
    -------
    Scaling

    Raises
    ------
    InvalidRequest
        If a name is unknown, the quantity is a yes or no, a factor does not vary, factors cannot
        be told apart, or too few runs are left.
    """
    asked = Quantity.read(quantity, dataset)
    if asked.yes_no:
        refuse("quantity", quantity, "is a yes or no", "a number of each run", asked.name)
    if isinstance(factors, str) or not len(factors):
        refuse("factors", factors, "is no list of names", "one or more formulas", '["D"]')
    places, held = hold(dataset, at or {})
    dims = dataset[OUTCOME].dims
    cut = tuple(places.get(str(dim), slice(None)) for dim in dims)
    values, outcome = asked.of(dataset)[cut].ravel(), outcomes(dataset)[cut].ravel()
    levels = np.stack([_factor(dataset, text)[cut].ravel() for text in factors], axis=1)
    reasons = _reasons(asked, values, outcome, kinds(dataset))
    for text, level in zip(factors, levels.T, strict=True):
        reasons[(reasons == "") & ~((level > 0) & np.isfinite(level))] = f"{text} is not positive"
    used = reasons == ""
    names, counts = np.unique(reasons[~used], return_counts=True)
    left_out = dict(zip(names.tolist(), counts.tolist(), strict=True))
    if used.sum() < len(factors) + 2:
        why = ", ".join(f"{count} {name}" for name, count in left_out.items()) or "none left out"
        raise InvalidRequest(
            f"{quantity}: {used.sum()} runs are too few to fit {len(factors)} exponents; needed "
            f"are at least {len(factors) + 2}; left out: {why}"
        )
    logs = np.log(levels[used])
    _check_factors(logs, tuple(factors))
    fit = _least_squares(logs, np.log(values[used]))
    return Scaling(
        system=str(dataset.attrs.get("system", "")),
        presentation=presentation_of(dataset),
        quantity=asked,
        factors=tuple(factors),
        left_out=left_out,
        measured=values[used],
        levels=levels[used],
        held={**described(dataset, "fixed"), **held},
        derived=described(dataset, "derived"),
        **fit,
    )


def _factor(dataset: xarray.Dataset, text: str) -> FloatArray:
    """A formula of dimensions, variables and fixed numbers, on all dimensions."""
    formula = Expression(text, "factor")
    fixed = numbers(described(dataset, "fixed"))
    there = [str(n) for n in (*dataset[OUTCOME].dims, *dataset.data_vars) if n != OUTCOME]
    known = [*there, *(name for name in fixed if name not in there)]
    given: dict[str, Any] = {}
    for name in formula.names:
        if name not in known:
            near = get_close_matches(name, known, 1, 0.0)[0]
            what = f"needs {name}, which is not in the dataset"
            refuse("factor", text, what, f"a formula in {', '.join(known)}", near)
        given[name] = everywhere(dataset, name) if name in there else fixed[name]
    found = np.asarray(formula.value(given), dtype=np.float64)
    return np.broadcast_to(found, dataset[OUTCOME].shape)


def _reasons(
    asked: Quantity, values: FloatArray, outcome: np.ndarray, names: Sequence[str]
) -> np.ndarray:
    """Why each run cannot be used; empty where it can."""
    reasons = np.full(values.shape, "", dtype=object)
    for code in np.unique(outcome):
        word = {INVALID: "not a valid combination", PENDING: "not computed yet"}
        here = (outcome == code) & ~np.isfinite(values)
        reasons[here] = word.get(int(code)) or names[int(code)]
    unreached = complete(outcome, names) & ~np.isfinite(values)
    reasons[unreached] = "not reached" if asked.is_time else "not a number"
    reasons[np.isfinite(values) & (values <= 0)] = "not positive"
    return reasons


def _check_factors(logs: FloatArray, factors: tuple[str, ...]) -> None:
    """Refuse factors whose exponents the runs do not determine."""
    centred = logs - logs.mean(axis=0)
    spread = centred.std(axis=0)
    for text, logarithm, width in zip(factors, logs.T, spread, strict=True):
        if width < FLAT:
            refuse(
                "factor", text, f"does not vary: it is {np.exp(logarithm[0]):.6g} in every run",
                "a formula that varies", "the fit without it",
            )  # fmt: skip
    _, sizes, directions = np.linalg.svd(centred / spread, full_matrices=False)
    if sizes[-1] < COLLINEAR * sizes[0]:
        parts = np.abs(directions[-1])
        taken = [t for t, p in zip(factors, parts, strict=True) if p > TAKES_PART * parts.max()]
        refuse(
            "factors", ", ".join(factors), f"are not told apart: {', '.join(taken)} move together",
            "formulas that vary on their own", f"the fit without {taken[-1]}",
        )  # fmt: skip


def _least_squares(logs: FloatArray, target: FloatArray) -> dict[str, Any]:
    """The fields of `Scaling` that the fit gives."""
    from scipy.special import stdtrit

    middle = logs.mean(axis=0)
    centred = logs - middle
    orthogonal, triangle = np.linalg.qr(centred)
    exponents = np.linalg.solve(triangle, orthogonal.T @ target)
    constant = float(target.mean() - middle @ exponents)
    fitted = constant + logs @ exponents
    residuals = target - fitted
    free = len(target) - logs.shape[1] - 1
    variance = float(residuals @ residuals) / free
    inverse = np.linalg.inv(triangle)
    covariance = variance * inverse @ inverse.T
    errors = np.sqrt(np.diag(covariance))
    total = float(((target - target.mean()) ** 2).sum())
    half = float(stdtrit(free, (1 + LEVEL) / 2)) * errors
    return {
        "exponents": exponents,
        "errors": errors,
        "intervals": np.stack([exponents - half, exponents + half], axis=1),
        "prefactor": float(np.exp(constant)),
        "prefactor_error": float(np.sqrt(variance / len(target) + middle @ covariance @ middle)),
        "r2": 1.0 - float(residuals @ residuals) / total if total > 0 else float("nan"),
        "spread": float(np.sqrt(variance)),
        "fitted": np.exp(fitted),
    }
