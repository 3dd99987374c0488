"""The notation table of a model, from the names that it gives to its scalars and constants."""

from __future__ import annotations

import re

from theory.model import Model
from theory.notation import Letter, Notation

GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "zeta": "ζ",
    "eta": "η", "theta": "θ", "iota": "ι", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν",
    "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "upsilon": "υ", "phi": "φ",
    "chi": "χ", "psi": "ψ", "omega": "ω",
}  # fmt: skip


def latex_of(name: str) -> str:
    r"""A code name as LaTeX: ``alpha0`` is ``\alpha_{0}``, ``A_0_1`` is ``A_{0,1}``."""
    base, *below = name.split("_")
    digits = re.fullmatch(r"([A-Za-z]+?)(\d+)", base)
    if digits:
        base, below = digits[1], [digits[2], *below]
    folded = base.lower()
    if folded in GREEK:
        capital = base[0].isupper() and folded not in ("alpha", "beta", "epsilon", "zeta", "eta")
        letter = "\\" + (folded.capitalize() if capital else folded)
    elif len(base) == 1:
        letter = base
    else:
        letter = rf"\mathrm{{{base}}}"
    parts = [part if part.isdigit() or len(part) == 1 else rf"\mathrm{{{part}}}" for part in below]
    return letter + (f"_{{{','.join(filter(None, parts))}}}" if any(parts) else "")


def notation_of(model: Model, scalars: tuple[str, ...], seen: tuple[str, ...]) -> Notation:
    """The table of constants, scalars, rates and observables of a model."""
    rows = [_row(name, "constant of the model") for name in model.constants]
    rows += [_row(name, "scalar of the reduction") for name in scalars]
    rows += [_row(name, "observable of the model") for name in seen]
    for name in (*scalars, *seen):
        latex = rf"\dot{{{latex_of(name)}}}"
        rows.append(Letter(f"d_{name}", f"d_{name}", latex, f"rate of {name}, per unit of time"))
    rows += [
        Letter("risk", "R", "R", "population risk"),
        Letter("outside", "outside", r"\mathrm{outside}", "largest distance from the closed space"),
    ]
    unique = {row.name: row for row in rows}
    return Notation(model.source or model.title or model.name, tuple(unique.values()))


def _row(name: str, meaning: str) -> Letter:
    return Letter(name, GREEK.get(name, name), latex_of(name), meaning)
