"""Notation and events of Li, Wang, Liu, Chen, "A theoretical understanding of shallow ViTs".

Patterns are numbered from 1. Patterns 1 and 2 are discriminative; k and l denote two other
patterns. In the name of a pair the key comes first: ``B_1k`` is the score of key 1 for a query of
pattern k.

`EVENTS` are rules on the order parameters of the training set:

- ``t_fit``: all training samples are correctly classified.
- ``t_zero``: every training sample has reached the margin. From ``t_zero`` on, the gradient of the
  hinge loss is zero, and full-batch descent stops.
- ``mass_50``, ``mass_75``, ``mass_90``: the attention to label-relevant tokens, averaged over the
  queries of all training samples, reaches 50, 75 or 90 % (Proposition 2 claims nearly 100 %).

For ``data="fixed"`` without noise, the two samples of the law are both training and test set.
"""

from __future__ import annotations

from collections.abc import Iterator

import sympy

from theory.events import Crossing, EventRule
from theory.notation import INTEGER, NATURAL, POSITIVE, REAL, Notation, Row, word

PAIRS = ("11", "12", "1k", "k1", "kk", "kl")
"""Names of the classes of ordered pairs of patterns (see `symmetry`); the key comes first."""
EVEN_PAIRS = ("11", "12", "1k", "kk", "kl")
"""Names of the classes of unordered pairs of patterns."""


def _pair_rows(code: str, latex: str, what: str, pairs: tuple[str, ...]) -> Iterator[Row]:
    """Notation for the entries ``<code>_<pair>`` of a matrix that is constant on pair classes."""
    for pair in pairs:
        yield f"{code}_{pair}", f"{code}{pair}", rf"{latex}_{{{pair}}}", f"{what}, pair {pair}"


ROWS: tuple[Row, ...] = (
    ("M", "M", "M", "number of patterns", NATURAL),
    ("L", "L", "L", "number of tokens", NATURAL),
    ("m", "m", "m", "number of neurons", NATURAL),
    ("alpha_star", "α*", r"\alpha_*", "share of label-relevant tokens"),
    ("alpha_confusion", "α#", r"\alpha_\#", "share of confusion tokens"),
    ("sigma", "σ", r"\sigma", "error of the initial value vectors"),
    ("delta", "δ", r"\delta", "error of the initial keys and queries"),
    ("xi", "ξ", r"\xi", "spread of the initial entries of W_O"),
    ("noise", "c0", "c_0", "noise of a token, per coordinate"),
    word("data", "which counts vary: fixed, fixed_disc, iid"),
    ("output_weights", "a", "a", "weights a: shared, or per_position", REAL, "m or m x L"),
    ("margin", "γ", r"\gamma", "margin that a sample must reach", POSITIVE),
    ("loss", "ℓ", r"\ell", "loss of a sample: hinge or linear"),
    word("frozen", "not trained: none, attention, values"),
    ("d", "d", "d", "dimension of tokens, keys, values", NATURAL),
    ("eta", "η", r"\eta", "learning rate", POSITIVE),
    ("time", "τ", r"\tau", "time, eta times steps"),
    ("n_star", "n*", "n_*", "label-relevant tokens of a sample", NATURAL),
    ("n_confusion", "n#", r"n_\#", "confusion tokens of a sample", POSITIVE),
    ("n_other", "n∘", r"n_\circ", "tokens of each other pattern in a sample", POSITIVE),
    ("y", "y", "y", "label, 1 or -1", INTEGER),
    ("w", "w", "w", "weight of a sample", POSITIVE),
    ("c", "c", "c", "tokens of each pattern in a sample", POSITIVE, "M"),
    ("a", "a", "a", "output weights, never trained", REAL, "m"),
    ("g", "g", "g", "minus y / L where the sample is below the margin, else 0"),
    ("mu", "μ", r"\mu", "patterns", REAL, "d x M"),
    ("Gamma", "Γ", r"\Gamma", "inner products of the patterns, mu^T mu", REAL, "M x M"),
    ("W_O", "W_O", "W_O", "hidden weights of the perceptron", REAL, "m x d"),
    ("W_V", "W_V", "W_V", "value weights", REAL, "d x d"),
    ("W_K", "W_K", "W_K", "key weights", REAL, "d x d"),
    ("W_Q", "W_Q", "W_Q", "query weights", REAL, "d x d"),
    ("V", "V", "V", "values of the patterns, W_V mu: the paper's p_j(t)", REAL, "d x M"),
    ("K", "K", "K", "keys of the patterns, W_K mu: the paper's q_j(t)", REAL, "d x M"),
    ("Q", "Q", "Q", "queries of the patterns, W_Q mu: the paper's r_j(t)", REAL, "d x M"),
    ("H", "H", "H", "response of neurons to patterns, W_O V", REAL, "m x M"),
    ("B", "B", "B", "scores, K^T Q: keys in rows, queries in columns", REAL, "M x M"),
    ("G_V", "G_V", "G_V", "inner products of the values, V^T V", REAL, "M x M"),
    ("G_K", "G_K", "G_K", "inner products of the keys, K^T K", REAL, "M x M"),
    ("G_Q", "G_Q", "G_Q", "inner products of the queries, Q^T Q", REAL, "M x M"),
    ("J", "J", "J", "inner products of the neurons, W_O W_O^T", REAL, "m x m"),
    ("P", "P", "P", "attention of a query to all keys of a pattern", REAL, "M x M"),
    ("U", "U", "U", "preactivations of the neurons, H P", REAL, "m x M"),
    ("E", "E", "E", "derivative of the loss by H", REAL, "m x M"),
    ("rho", "ρ", r"\rho", "derivative of the loss by P", REAL, "M x M"),
    ("T", "T", "T", "derivative of the loss by B", REAL, "M x M"),
    ("F", "F", "F", "output of the network"),
    *_pair_rows("B", "B", "score of a key for a query", PAIRS),
    *_pair_rows("G_K", "G^K", "inner product of keys", EVEN_PAIRS),
    *_pair_rows("G_Q", "G^Q", "inner product of queries", EVEN_PAIRS),
    *_pair_rows("t", "t", "derivative of the loss by one score", PAIRS),
    ("risk", "R/γ", r"R/\gamma", "training loss, mean over samples, over the margin"),
    ("active", "active", r"P(yF < \gamma)", "share of training samples below the margin"),
    ("error", "err", r"P(yF \leq 0)", "training error"),
    ("test_loss", "test", r"R_{\mathrm{test}}/\gamma", "test hinge loss over the margin"),
    ("test_error", "err", r"P_{\mathrm{test}}(yF \leq 0)", "test error"),
    ("relevant", "P*", "P_*", "attention to label-relevant tokens, mean of all queries"),
    (
        "relevant_by_relevant",
        "P**",
        "P_{**}",
        "attention of label-relevant queries to label-relevant tokens",
    ),
    (
        "relevant_by_confusion",
        "P*#",
        r"P_{*\#}",
        "attention of confusion queries to label-relevant tokens",
    ),
    (
        "relevant_by_other",
        "P*o",
        r"P_{*\circ}",
        "attention of all other queries to label-relevant tokens",
    ),
    ("q1_norm2", "|q1|²", r"\|q_1\|^2", "squared length of the key of pattern 1"),
    ("lucky_W", "|W|", r"|\mathcal{W}|", "neurons with a > 0 open to + at query 1"),
    ("lucky_U", "|U|", r"|\mathcal{U}|", "neurons with a < 0 open to - at query 2"),
    (
        "lucky_angle",
        "|W|θ",
        r"|\mathcal{W}_\theta|",
        "neurons within the angle sigma of p_1 (Definition 2)",
    ),
    ("gate_classes", "classes", r"\#", "distinct (sign, gates) among the neurons"),
    ("symmetry", "asym", r"\Delta B", "largest difference of B inside a class"),
    ("odds", "odds", r"\Delta_{\mathrm{odds}}", "largest error of the odds identity"),
)
"""Each row holds code name, letter of the paper, LaTeX, meaning, sympy assumptions and shape."""

NOTATION = Notation("Li, Wang, Liu, Chen (2023)", ROWS)


ORDER_PARAMETERS = ("risk", "active", "error", "relevant")
"""Symbols that the rules of events use; every problem of this system reports them at every step."""

RATES = ("risk",)
"""A run oscillates if a quantity listed here alternates in sign; the risk never does."""

SHARES = (50, 75, 90)
"""Thresholds, in percent, for the attention to label-relevant tokens."""

active, error, relevant = NOTATION.symbols("active error relevant")

EVENTS: tuple[EventRule, ...] = (
    Crossing(
        name="t_fit",
        meaning="no training sample is misclassified",
        latex=r"yF > 0 \text{ on all training samples}",
        expression=-error,
    ),
    Crossing(
        name="t_zero",
        meaning="zero training loss: every training sample has reached the margin",
        latex=r"yF \geq \gamma \text{ on all training samples}",
        expression=-active,
    ),
    *(
        Crossing(
            name=f"mass_{share}",
            meaning=f"{share} % of the attention is on label-relevant tokens",
            latex=rf"P_* \geq {share} \%",
            expression=relevant - sympy.Rational(share, 100),
        )
        for share in SHARES
    ),
)
