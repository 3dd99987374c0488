"""Parameters, hypothesis and curves that claims on the idealised problem share.

At finite size, Assumption 2 is read as C = 4 and q (D - C) = 14, near C^2, with growing D; the
error of sign(Z) is then above 1/8 (Theorem 3.1). The grid varies every parameter around these laws.
"""

from __future__ import annotations

from functools import partial
from math import isclose
from typing import Any

from dynamics.verdicts.cases import Case
from dynamics.verdicts.claim import claim as any_claim
from dynamics.verdicts.findings import Undecided
from theory.papers.positional_attention.data_law import MIXED

SHOWN = ("D", "C", "q", "p", "nu", "beta")
"""Names of the parameters that verdicts and pictures show."""
LINEAR = ("linear", "linear")
"""Scales of the horizontal and the vertical axis of a picture."""


def law(D: int, spread: float, C: int = 4, **others: Any) -> dict[str, Any]:
    """Parameters with q (D - C) equal to `spread`."""
    return {"D": D, "C": C, "q": spread / (D - C), **others}


REGIME = tuple(law(D, 14.0) for D in (32, 64, 128))
GRID = (
    *REGIME, law(32, 22.4), law(16, 9.6), law(128, 42.0), law(128, 64.0),
    law(128, 64.0, nu=1e-5), law(64, 14.0, nu=1e-5), law(64, 14.0, nu=0.1),
    law(64, 14.0, beta=0.3), law(64, 14.0, beta=5.0),
)  # fmt: skip
"""Laws that vary D, q (D - C), nu and beta; at D = 128, q (D - C) reaches C^3 = 64."""
THOROUGH = tuple(
    law(D, spread, nu=nu, beta=beta)
    for D in (32, 64, 128, 256) for spread in (7.0, 14.0, 28.0) for nu in (1e-5, 1e-3, 0.1)
    for beta in (0.3, 1.0, 5.0)
)  # fmt: skip


def hypothesis(parameters: Any) -> None:
    """Raise Undecided unless Assumption 1 and the start of Parametrization 3.1 are met."""
    if parameters.random_sets == MIXED:
        raise Undecided("the claim assumes Assumption 1, not random_sets=mixed", "law")
    if not isclose(parameters.alpha0, parameters.nu ** (1 / (parameters.p - 1))):
        raise Undecided("the claim assumes alpha0 = nu^(1/(p-1)), Parametrization 3.1", "law")


claim = partial(any_claim, shown=SHOWN, require=hypothesis)


def along(case: Case, values: Any, records: Any = slice(None)) -> dict[str, Any]:
    """Row with a curve of values against the time of a run; the start is left out."""
    return {"curves": {case.label: (case.run.time[records][1:], values[1:])}}
