r"""Notation and events of Huang, Wen, Chi, Liang, "Feature-Position Correlations ..." (2024).

Areas of a cluster are numbered from 0, the global area; the paper numbers them from 1.

`EVENTS` are the phases of training, as rules on the order parameters of a local patch p and of a
global patch. Let m be the area of p, and 0 the global area. :math:`\rho = |\alpha_0|/\alpha_m` is
the ratio of the rates of Phi_0 and Phi_m, the correlations of p with the features of these areas
(Lemma 5.1):

- ``E0``: training starts in Phase I, because :math:`\rho > 1`. A run with E0 (always at time 0) has
  two phases; a run without E0 has one.
- ``E1``: Phase I, stage 1, ends with :math:`\Phi_0 \leq -(\Delta_{\mathrm{eff}}/2 - 0.01) \ln P /
  U`. ``E1p`` has the paper's Delta in place of :math:`\Delta_{\mathrm{eff}}`.
- ``E2``: the rate of Phi_m reaches that of Phi_0 in size, :math:`\rho \leq 1` (Lemma 5.3).
- ``E3``: Phase I, stage 2, ends; the constant c of its threshold is 0.1, by convention.
- ``E4``: rapid growth ends; half of p's attention is on unmasked patches of area m. ``E4p`` uses
  the paper's threshold, :math:`\Phi_m \geq (1 - \kappa_s) \ln P / L`.
- ``E5``: training converges, after E4: the loss of p is at most :math:`2 \gamma` `EPSILON` above
  its floor. The factor :math:`\gamma` is the probability that p is masked; if p is not masked, it
  adds nothing to the loss.
- ``E4_global`` and ``E5_global``: E4 and E5 hold for the global patch and its own area.

Rules are evaluated from the start of training, or from the event that ``after`` names. A rule
counts only while its ``guard`` is positive, because otherwise it could hold at time 0.
"""

from __future__ import annotations

from collections.abc import Iterable

import sympy

from theory.events import Crossing, EventRule
from theory.notation import (
    COUNT,
    NATURAL,
    POSITIVE,
    REAL,
    Notation,
    NotationEntry,
    Row,
    word,
)


def row_in_latex(row: str) -> str:
    """Name of a row type in LaTeX, with spaces in place of underscores."""
    return row.replace("_", r"\ ")


def entries_of_row(row: str, ups: Iterable[str], phi: Iterable[str]) -> tuple[NotationEntry, ...]:
    """Notation of ``<row>_Ups_<class>``, ``<row>_Phi_<class>`` and their rates ``d_<row>_...``."""
    kinds = (("Ups", "Υ", r"\Upsilon", "positions", ups), ("Phi", "Φ", r"\Phi", "features", phi))
    letters: list[NotationEntry] = []
    for code, letter, latex, what, names in kinds:
        for name in names:
            word = name.replace("_", r"\ ").replace("-", r"\,/\,")
            entry = f"{row}_{code}_{name.replace('-', '_')}"
            script = rf"^{{\mathrm{{{row_in_latex(row)}}}}}_{{\mathrm{{{word}}}}}"
            meaning = f"correlation of a {row.replace('_', ' ')} patch with {what}: {name}"
            short = f"{letter}({row}→{name})"
            letters += [
                NotationEntry(entry, short, latex + script, meaning),
                NotationEntry(
                    f"d_{entry}", f"d{short}", rf"\dot{latex}{script}", f"rate of the {meaning}"
                ),
            ]
    return tuple(letters)


_OWN_ATTENTION = "attention of a {} patch to its own unmasked area, if it is not empty: mean"

ROWS: tuple[Row, ...] = (
    word("family", "family of partitions"),
    ("areas", "P_ka", r"\mathcal{P}_{k,a}", "area of each patch, cluster by cluster"),
    ("P", "P", "P", "number of patches", NATURAL),
    ("K", "K", "K", "number of clusters", NATURAL),
    ("C_global", "C_g", "C_g", "patches of the global area", NATURAL),
    ("C_local", "C_s", "C_s", "patches of a local area", NATURAL),
    ("b11", "B11", "|B_{11}|", "patches global in both clusters", COUNT),
    ("b10", "B10", "|B_{10}|", "patches global in the first alone", COUNT),
    ("T", "T", "T", "grids of C_s x C_s patches local in both", COUNT),
    ("masked", "M", "M", "number of masked patches", NATURAL),
    ("gamma", "γ", r"\gamma", "share of masked patches, M/P", POSITIVE),
    ("z", "z", "z", "latent of an area", POSITIVE),
    ("odds", "π(z)", r"\pi(z)", "probabilities of the values of z", POSITIVE),
    ("L", "L", "L", "least value of a latent", POSITIVE),
    ("U", "U", "U", "greatest value of a latent", POSITIVE),
    ("d", "d", "d", "dimension of a patch", NATURAL),
    ("kappa_c", "κc", r"\kappa_c", "exponent of the global area, ln C_g / ln P"),
    ("kappa_s", "κs", r"\kappa_s", "exponent of a local area, ln C_s / ln P"),
    ("Delta", "Δ", r"\Delta", "information gap (1 - kappa_s) - 2 (1 - kappa_c)"),
    ("Delta_eff", "Δeff", r"\Delta_{\mathrm{eff}}", "ln rho(0) / ln P"),
    ("eta", "η", r"\eta", "learning rate", POSITIVE),
    ("time", "τ", r"\tau", "time, eta times steps"),
    ("Q", "Q", "Q", "query-key matrix", REAL, "d x d"),
    ("Phi", "Φ", r"\Phi", "feature-position correlation, e_p^T Q v", REAL, "P x features"),
    ("Ups", "Υ", r"\Upsilon", "position-position correlation, e_p^T Q e_q", REAL, "P x P"),
    ("Phi_m", "Φm", r"\Phi_m", "correlation of a local patch with its own feature"),
    ("Phi_0", "Φ0", r"\Phi_0", "correlation of a local patch with the global feature"),
    ("alpha_m", "αm", r"\alpha_m", "rate of Phi_m (Lemma 5.1)"),
    ("alpha_0", "α0", r"\alpha_0", "rate of Phi_0 (Lemma 5.1)"),
    ("rho", "ρ", r"\rho", "|alpha_0| / alpha_m: which effect dominates"),
    ("rho0", "ρ0", r"\rho_0", "rho at the start"),
    ("A_m", "Am", "A_m", _OWN_ATTENTION.format("local")),
    ("A_g", "Ag", "A_g", _OWN_ATTENTION.format("global")),
    ("A_i", "Ai", "A_i", "attention to the unmasked patches of another area"),
    ("A_0", "A0", "A_0", "attention of a local patch to the unmasked global area: mean"),
    ("gap", "Lp-L*", r"L_p - L_p^\star", "loss of a local patch above its floor"),
    ("gap_g", "Lg-L*", r"L_g - L_g^\star", "loss of a global patch above its floor"),
    ("risk", "R", r"\mathcal{L}", "population loss of all patches"),
    ("floor", "L*", r"\mathcal{L}^\star", "unavoidable error of all patches"),
    word(
        "patch_association",
        "share of the patches with half of their attention on their own unmasked area",
    ),
    ("u", "u", "u_q", "attention to one key", POSITIVE),
    ("z_m", "zm", "z_m", "latent of the own area", POSITIVE),
    ("z_i", "zi", "z_i", "latent of another area", POSITIVE),
    ("r", "r", "r", "sum of u_q b_q: z_m^2 A_m (1 - A_m) minus z^2 A^2 of other areas"),
    ("Sigma", "S", "S", "sum of z^2 A^2 over all areas but two"),
)
"""Each row holds code name, letter of the paper, LaTeX, meaning, sympy assumptions and shape."""

NOTATION = Notation(
    "Huang, Wen, Chi, Liang (2024)",
    (
        *ROWS,
        *entries_of_row("local", ("self", "own", "global", "other"), ("target", "global", "other")),
        *entries_of_row("global", ("self", "own", "local"), ("own", "local")),
    ),
)


ORDER_PARAMETERS = ("rho", "alpha_m", "alpha_0", "Phi_m", "Phi_0", "A_m", "gap", "A_g", "gap_g")
"""Symbols that the rules of events use; every problem of this system reports them at every step.
`symmetry.reference` selects a cluster with the global area 0, a local patch in its area m for
``A_m`` and ``gap``, and a global patch for ``A_g`` and ``gap_g``. ``A_m`` and ``A_g`` are means
over the masks that hide the selected patch but not its whole area; they are NaN if there is no such
mask. If all areas are global, only ``A_g`` and ``gap_g`` are finite."""

CONSTANTS = ("P", "gamma", "L", "U", "kappa_s", "Delta", "Delta_eff")
"""Parameters that the rules of events use."""

EPSILON = sympy.Rational(1, 1000)
"""Allowed excess of the loss over its floor at convergence, if half of the patches are masked."""

rho, alpha_m, alpha_0, Phi_m, Phi_0, A_m, gap, A_g, gap_g = NOTATION.symbols(
    " ".join(ORDER_PARAMETERS)
)
P, gamma, L, U, kappa_s, Delta, Delta_eff = NOTATION.symbols(" ".join(CONSTANTS))

SLACK = sympy.Rational(1, 100)
STAGE_2 = sympy.Rational(1, 10)
"""Constant c in the threshold for the end of Phase I, stage 2; its value is a convention."""
HALF = sympy.Rational(1, 2)
STAGE_2_GAP = (Delta / 2 + SLACK + STAGE_2 * (1 - kappa_s)) * sympy.log(P) / L
"""Phase I, stage 2, ends when Phi of the own minus Phi of the global area reaches this."""
CONVERGED = 2 * gamma * EPSILON
"""Training has converged when the loss exceeds its floor by at most this."""


def _stage_1_depth(difference: sympy.Expr) -> sympy.Expr:
    """Value of -Phi_0 at the end of Phase I, stage 1, for the information gap `difference`."""
    return (difference / 2 - SLACK) * sympy.log(P) / U


EVENTS: tuple[EventRule, ...] = (
    Crossing(
        name="E0",
        meaning="training starts with Phase I: the global feature is decoupled first",
        latex=r"\rho > 1",
        expression=rho - 1,
        strict=True,
    ),
    Crossing(
        name="E1",
        meaning="end of Phase I, stage 1, by the information gap at this size",
        latex=r"\Phi_0 \leq -(\Delta_{\mathrm{eff}}/2 - 0.01) \ln P / U",
        expression=-_stage_1_depth(Delta_eff) - Phi_0,
        guard=_stage_1_depth(Delta_eff),
    ),
    Crossing(
        name="E1p",
        meaning="end of Phase I, stage 1, as the paper puts it",
        latex=r"\Phi_0 \leq -(\Delta/2 - 0.01) \ln P / U",
        expression=-_stage_1_depth(Delta) - Phi_0,
        guard=_stage_1_depth(Delta),
    ),
    Crossing(
        name="E2",
        meaning="switch of dominant effects (Lemma 5.3): the own feature grows faster",
        latex=r"|\alpha_0| \leq \alpha_m",
        expression=1 - rho,
    ),
    Crossing(
        name="E3",
        meaning="end of Phase I, stage 2 (positive information gap)",
        latex=r"\Phi_m - \Phi_0 \geq (\Delta/2 + 0.01 + 0.1 (1 - \kappa_s)) \ln P / L",
        after="E2",
        expression=Phi_m - Phi_0 - STAGE_2_GAP,
        guard=Delta,
    ),
    Crossing(
        name="E4",
        meaning="end of rapid growth: half of the attention is on the own unmasked area",
        latex=r"A_m \geq 1/2",
        expression=A_m - HALF,
    ),
    Crossing(
        name="E4p",
        meaning="end of rapid growth as the paper puts it",
        latex=r"\Phi_m \geq (1 - \kappa_s) \ln P / L",
        expression=Phi_m - (1 - kappa_s) * sympy.log(P) / L,
    ),
    Crossing(
        name="E5",
        meaning="convergence of a local patch: its loss is near the floor",
        latex=r"L_p - L_p^\star \leq 2 \gamma 10^{-3}",
        after="E4",
        expression=CONVERGED - gap,
    ),
    Crossing(
        name="E4_global",
        meaning="half of the attention of a global patch is on its own unmasked area",
        latex=r"A_g \geq 1/2",
        expression=A_g - HALF,
    ),
    Crossing(
        name="E5_global",
        meaning="convergence of a global patch: its loss is near the floor",
        latex=r"L_g - L_g^\star \leq 2 \gamma 10^{-3}",
        after="E4_global",
        expression=CONVERGED - gap_g,
    ),
)
