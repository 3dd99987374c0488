"""Notation of Huang, Wen, Chi, Liang, "Feature-Position Correlations in Masked Image Modeling".

Areas of a cluster are numbered from 0, the global one; the paper numbers them from 1.
"""

from __future__ import annotations

from collections.abc import Iterable

from theory.notation import Letter, Notation

POSITIVE = (("positive", True),)
NATURAL = (("integer", True), ("positive", True))
COUNT = (("integer", True), ("nonnegative", True))


def row_in_latex(row: str) -> str:
    """Name of a row inside upright letters; types are numbered as ``local_1``."""
    return row.replace("_", r"\ ")


def entries_of_row(row: str, ups: Iterable[str], phi: Iterable[str]) -> tuple[Letter, ...]:
    """Letters of the scalars of one row, ``<row>_Ups_<class>`` and ``<row>_Phi_<class>``.

    And of their rates, ``d_<row>_...``.

    Parameters
    ----------
    row : str
        Name of the row type.
    ups, phi : iterable of str
        Names of the classes of positions and of features.
    """
    kinds = (("Ups", "Υ", r"\Upsilon", "positions", ups), ("Phi", "Φ", r"\Phi", "features", phi))
    letters: list[Letter] = []
    for code, letter, latex, what, names in kinds:
        for name in names:
            word = name.replace("_", r"\ ").replace("-", r"\,/\,")
            entry = f"{row}_{code}_{name.replace('-', '_')}"
            place = rf"^{{\mathrm{{{row_in_latex(row)}}}}}_{{\mathrm{{{word}}}}}"
            meaning = f"correlation of a {row.replace('_', ' ')} patch with {what}: {name}"
            short = f"{letter}({row}→{name})"
            letters += [
                Letter(entry, short, latex + place, meaning),
                Letter(f"d_{entry}", f"d{short}", rf"\dot{latex}{place}", f"rate of the {meaning}"),
            ]
    return tuple(letters)


NOTATION = Notation(
    "Huang, Wen, Chi, Liang (2024)",
    (
        Letter("family", "family", r"\mathrm{family}", "family of partitions"),
        Letter("areas", "P_ka", r"\mathcal{P}_{k,a}", "area of each patch, cluster by cluster"),
        Letter("P", "P", "P", "number of patches", assumptions=NATURAL),
        Letter("K", "K", "K", "number of clusters", assumptions=NATURAL),
        Letter("C_global", "C_g", "C_g", "patches of the global area", assumptions=NATURAL),
        Letter("C_local", "C_s", "C_s", "patches of a local area", assumptions=NATURAL),
        Letter("b11", "B11", "|B_{11}|", "patches global in both clusters", assumptions=COUNT),
        Letter("b10", "B10", "|B_{10}|", "patches global in the first alone", assumptions=COUNT),
        Letter("T", "T", "T", "grids of C_s x C_s patches local in both", assumptions=COUNT),
        Letter("masked", "M", "M", "number of masked patches", assumptions=NATURAL),
        Letter("gamma", "γ", r"\gamma", "share of masked patches, M/P", assumptions=POSITIVE),
        Letter("z", "z", "z", "latent of an area", assumptions=POSITIVE),
        Letter("odds", "P(z)", "P(z)", "probabilities of the values of z", assumptions=POSITIVE),
        Letter("L", "L", "L", "least value of a latent", assumptions=POSITIVE),
        Letter("U", "U", "U", "greatest value of a latent", assumptions=POSITIVE),
        Letter("d", "d", "d", "dimension of a patch", assumptions=NATURAL),
        Letter("kappa_c", "κc", r"\kappa_c", "exponent of the global area, ln C_g / ln P"),
        Letter("kappa_s", "κs", r"\kappa_s", "exponent of a local area, ln C_s / ln P"),
        Letter("Delta", "Δ", r"\Delta", "information gap (1 - kappa_s) - 2 (1 - kappa_c)"),
        Letter("Delta_eff", "Δeff", r"\Delta_{\mathrm{eff}}", "ln rho(0) / ln P"),
        Letter("eta", "η", r"\eta", "learning rate", assumptions=POSITIVE),
        Letter("time", "τ", r"\tau", "time, eta times steps"),
        Letter("Q", "Q", "Q", "query-key matrix", "d x d"),
        Letter("Phi", "Φ", r"\Phi", "feature-position correlation, e_p^T Q v", "P x features"),
        Letter("Ups", "Υ", r"\Upsilon", "position-position correlation, e_p^T Q e_q", "P x P"),
        Letter("Phi_m", "Φm", r"\Phi_m", "correlation of a local patch with its own feature"),
        Letter("Phi_0", "Φ0", r"\Phi_0", "correlation of a local patch with the global feature"),
        Letter("alpha_m", "αm", r"\alpha_m", "rate of Phi_m (Lemma 5.1)"),
        Letter("alpha_0", "α0", r"\alpha_0", "rate of Phi_0 (Lemma 5.1)"),
        Letter("rho", "ρ", r"\rho", "|alpha_0| / alpha_m: which effect dominates"),
        Letter("rho0", "ρ0", r"\rho_0", "rho at the start"),
        Letter(
            "A_m",
            "Am",
            "A_m",
            "attention of a local patch to its own unmasked area, if it is not empty: mean",
        ),
        Letter(
            "A_g",
            "Ag",
            "A_g",
            "attention of a global patch to its own unmasked area, if it is not empty: mean",
        ),
        Letter("A_i", "Ai", "A_i", "attention to the unmasked patches of another area"),
        Letter("A_0", "A0", "A_0", "attention of a local patch to the unmasked global area: mean"),
        Letter("gap", "Lp-L*", r"L_p - L_p^\star", "loss of a local patch above its floor"),
        Letter("gap_g", "Lg-L*", r"L_g - L_g^\star", "loss of a global patch above its floor"),
        Letter("risk", "R", r"\mathcal{L}", "population loss of all patches"),
        Letter("floor", "L*", r"\mathcal{L}^\star", "unavoidable error of all patches"),
        Letter("u", "u", "u_q", "attention to one key", assumptions=POSITIVE),
        Letter("z_m", "zm", "z_m", "latent of the own area", assumptions=POSITIVE),
        Letter("z_i", "zi", "z_i", "latent of another area", assumptions=POSITIVE),
        Letter("r", "r", "r", "sum of u_q b_q: z_m^2 A_m (1 - A_m) minus z^2 A^2 of other areas"),
        Letter("Sigma", "S", "S", "sum of z^2 A^2 over all areas but two"),
        *entries_of_row("local", ("self", "own", "global", "other"), ("target", "global", "other")),
        *entries_of_row("global", ("self", "own", "local"), ("own", "local")),
    ),
)
