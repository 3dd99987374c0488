"""Scaling laws: power laws fitted to a quantity of a sweep as a function of the parameters.

The fit (`dynamics.results.power_law`) uses all runs with a positive quantity and positive factors.
The quantity of a run has no noise, so a standard error measures the deviation from a power law.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.phase_diagrams.quantities import (
    OUTCOME,
    Quantity,
    complete,
    everywhere,
    json_attribute,
    kinds,
    numbers,
    outcomes,
    presentation_of,
    variables,
)
from dynamics.phase_diagrams.selection import hold
from dynamics.presentation import Presentation
from dynamics.problem import FloatArray
from dynamics.results.expression import Expression
from dynamics.results.outcome import INVALID, PENDING
from dynamics.results.power_law import PowerLaw, power_law
from dynamics.validation import InvalidRequest, known_word, refuse
from theory.summary import summarized

if TYPE_CHECKING:
    import xarray

FLAT = 1e-9
"""A factor counts as constant if its logarithm has a smaller standard deviation than this."""
COLLINEAR = 1e-7
"""Minimum ratio of the smallest to the largest singular value of the scaled logarithms of the
factors; below it the factors are collinear."""
TAKES_PART = 0.1
EXPLAINED = 0.8
"""Minimum coefficient of determination R^2 of a fit that is called a power law."""


@summarized
@dataclass(frozen=True, kw_only=True)
class Scaling(PowerLaw):
    """A power law of a quantity of a sweep; see `dynamics.results.power_law.PowerLaw`.

    The `presentation` has the labels of the dataset; `factors` are names or formulas. The mapping
    `left_out` gives the number of excluded runs for each reason. The array `measured`, shape
    (used,), holds the quantity in the fitted runs, and `levels`, shape (used, factors), the
    factors. For one factor x, `logarithmic` is a, b and R^2 of the fit ``a + b log(1/x)``, else
    None. Parameters in `held` are equal in all runs; `derived` has formulas of derived parameters.
    """

    system: str
    presentation: Presentation
    quantity: Quantity
    factors: tuple[str, ...]
    left_out: Mapping[str, int]
    measured: FloatArray
    levels: FloatArray
    logarithmic: tuple[float, float, float] | None
    held: Mapping[str, Any]
    derived: Mapping[str, str]

    @property
    def logarithmic_text(self) -> str:
        """Text of the fit ``a + b log(1/x)`` in the only factor x; empty for several factors."""
        if self.logarithmic is None:
            return ""
        a, b, r2 = self.logarithmic
        factor = self.factors[0] if self.factors[0].isidentifier() else f"({self.factors[0]})"
        law = f"{a:.4g} {'+' if b >= 0 else '-'} {abs(b):.4g} log(1/{factor})"
        return f"{self.quantity.text} = {law}, R^2 = {r2:.4f}"

    @property
    def used(self) -> int:
        """Number of fitted runs."""
        return len(self.measured)

    @property
    def remark(self) -> str:
        """Warning that R^2 is too small for a power law; empty otherwise."""
        if self.r2 >= EXPLAINED:
            return ""
        return f"no power law in {', '.join(self.factors)}: R^2 is below {EXPLAINED:g}"

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
    """Fit a quantity of the runs of a sweep, over a grid or paired, by a power law in `factors`.

    The `quantity` is a variable; `factors` are parameters, variables or formulas, such as ``["D",
    "q*(D-C)"]``. Only runs at the values in `at` (dimension -> value) are fitted. Raises
    InvalidRequest if a name is unknown, the quantity is a yes or no, a factor is constant, factors
    are collinear, or the fitted runs are too few.

    Examples
    --------
    >>> import xarray
    >>> dataset = xarray.Dataset(
    ...     {"risk": ("D", [12.0, 48.0, 192.0]), "outcome": ("D", [1, 1, 1])}, {"D": [2, 4, 8]}
    ... )
    >>> law = scaling(dataset, "risk", ["D"])
    >>> round(law.exponent, 6), round(law.prefactor, 6)
    (2.0, 3.0)
    """
    target = Quantity.read(quantity, dataset)
    if target.yes_no:
        refuse("quantity", quantity, "is a yes or no", "a number of each run", target.name)
    if isinstance(factors, str) or not len(factors):
        refuse("factors", factors, "is not a list of names", "one or more formulas", '["D"]')
    positions, held = hold(dataset, at or {})
    dims = dataset[OUTCOME].dims
    cut = tuple(positions.get(str(dim), slice(None)) for dim in dims)
    values, outcome = target.of(dataset)[cut].ravel(), outcomes(dataset)[cut].ravel()
    levels = np.stack([_factor(dataset, text)[cut].ravel() for text in factors], axis=1)
    reasons = _reasons(target, values, outcome, kinds(dataset))
    for text, level in zip(factors, levels.T, strict=True):
        reasons[(reasons == "") & ~((level > 0) & np.isfinite(level))] = f"{text} is not positive"
    used = reasons == ""
    names, counts = np.unique(reasons[~used], return_counts=True)
    left_out = dict(zip(names.tolist(), counts.tolist(), strict=True))
    if used.sum() < len(factors) + 2:
        why = ", ".join(f"{count} {name}" for name, count in left_out.items()) or "none left out"
        raise InvalidRequest(
            f"{quantity}: {used.sum()} runs are too few to fit {len(factors)} exponents; at least "
            f"{len(factors) + 2} are needed; left out: {why}"
        )
    _check_factors(np.log(levels[used]), tuple(factors))
    return Scaling(
        system=str(dataset.attrs.get("system", "")),
        presentation=presentation_of(dataset),
        quantity=target,
        factors=tuple(factors),
        left_out=left_out,
        measured=values[used],
        levels=levels[used],
        logarithmic=_logarithmic(levels[used], values[used]),
        held={**json_attribute(dataset, "fixed"), **held},
        derived=json_attribute(dataset, "derived"),
        **vars(power_law(levels[used], values[used])),
    )


def _logarithmic(levels: FloatArray, values: FloatArray) -> tuple[float, float, float] | None:
    """Least squares a, b and R^2 of ``a + b log(1/x)`` in the only factor x; None for several."""
    if levels.shape[1] != 1:
        return None
    slope, constant = np.polyfit(-np.log(levels[:, 0]), values, 1)
    residuals = values - constant + slope * np.log(levels[:, 0])
    total = float(((values - values.mean()) ** 2).sum())
    r2 = 1.0 - float(residuals @ residuals) / total if total > 0 else float("nan")
    return float(constant), float(slope), r2


def _factor(dataset: xarray.Dataset, text: str) -> FloatArray:
    """Values of a formula of dimensions, variables and fixed numbers, shaped like ``outcome``."""
    formula = Expression(text, "factor")
    fixed = numbers(json_attribute(dataset, "fixed"))
    there = [*map(str, dataset[OUTCOME].dims), *variables(dataset)]
    allowed = [*there, *(name for name in fixed if name not in there)]
    values: dict[str, Any] = {}
    for name in formula.names:
        known_word("factor", name, allowed, "is not in the dataset")
        values[name] = everywhere(dataset, name) if name in there else fixed[name]
    level = np.asarray(formula.value(values), dtype=np.float64)
    return np.broadcast_to(level, dataset[OUTCOME].shape)


def _reasons(
    target: Quantity, values: FloatArray, outcome: np.ndarray, names: Sequence[str]
) -> np.ndarray:
    """Reason why each run is excluded from the fit; empty if it is used."""
    reasons = np.full(values.shape, "", dtype=object)
    for code in np.unique(outcome):
        word = {INVALID: "not a valid combination", PENDING: "not computed yet"}
        here = (outcome == code) & ~np.isfinite(values)
        reasons[here] = word.get(int(code)) or names[int(code)]
    unreached = complete(outcome, names) & ~np.isfinite(values)
    reasons[unreached] = "not reached" if target.is_time else "not a number"
    reasons[np.isfinite(values) & (values <= 0)] = "not positive"
    return reasons


def _check_factors(logs: FloatArray, factors: tuple[str, ...]) -> None:
    """Raise InvalidRequest for factors that are constant or collinear in the fitted runs."""
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
        together = [t for t, p in zip(factors, parts, strict=True) if p > TAKES_PART * parts.max()]
        refuse(
            "factors", ", ".join(factors),
            f"are collinear: {', '.join(together)} vary together",
            "formulas that vary independently", f"the fit without {together[-1]}",
        )  # fmt: skip
