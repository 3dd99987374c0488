"""Notation of Li, Wang, Liu, Chen, "A theoretical understanding of shallow Vision Transformers".

Patterns are numbered from 1: 1 and 2 are discriminative, k and l stand for two of the others. In a
pair the key comes first: ``B_1k`` is the score of key 1 for a query of pattern k.
"""

from __future__ import annotations

from theory.notation import Letter, Notation

POSITIVE = (("positive", True),)
NATURAL = (("integer", True), ("positive", True))
SIGN = (("integer", True),)

PAIRS = ("11", "12", "1k", "k1", "kk", "kl")
"""Classes of ordered pairs of patterns (`symmetry`), key first."""
EVEN_PAIRS = ("11", "12", "1k", "kk", "kl")
"""Classes of unordered pairs of patterns."""


def entries(code: str, latex: str, what: str, pairs: tuple[str, ...]) -> tuple[Letter, ...]:
    """Letters of the entries of a matrix on classes of pairs, ``<code>_<pair>``."""
    return tuple(
        Letter(f"{code}_{pair}", f"{code}{pair}", rf"{latex}_{{{pair}}}", f"{what}, pair {pair}")
        for pair in pairs
    )


NOTATION = Notation(
    "Li, Wang, Liu, Chen (2023)",
    (
        Letter("M", "M", "M", "number of patterns", assumptions=NATURAL),
        Letter("L", "L", "L", "number of tokens", assumptions=NATURAL),
        Letter("m", "m", "m", "number of neurons", assumptions=NATURAL),
        Letter("alpha_star", "α*", r"\alpha_*", "share of label-relevant tokens"),
        Letter("alpha_confusion", "α#", r"\alpha_\#", "share of confusion tokens"),
        Letter("sigma", "σ", r"\sigma", "error of the initial value vectors"),
        Letter("delta", "δ", r"\delta", "error of the initial keys and queries"),
        Letter("xi", "ξ", r"\xi", "spread of the initial entries of W_O"),
        Letter("noise", "c0", "c_0", "noise of a token, per coordinate"),
        Letter("data", "data", r"\mathrm{data}", "which counts vary: fixed, fixed_disc, iid"),
        Letter("output_weights", "a", "a", "weights a: shared, or per_position", "m or m x L"),
        Letter("margin", "γ", r"\gamma", "margin that a sample must reach", assumptions=POSITIVE),
        Letter("loss", "ℓ", r"\ell", "loss of a sample: hinge or linear"),
        Letter("frozen", "frozen", r"\mathrm{frozen}", "not trained: none, attention, values"),
        Letter("d", "d", "d", "dimension of tokens, keys, values", assumptions=NATURAL),
        Letter("eta", "η", r"\eta", "learning rate", assumptions=POSITIVE),
        Letter("time", "τ", r"\tau", "time, eta times steps"),
        Letter("n_star", "n*", "n_*", "label-relevant tokens of a sample", assumptions=NATURAL),
        Letter("n_confusion", "n#", r"n_\#", "confusion tokens of a sample", assumptions=POSITIVE),
        Letter("y", "y", "y", "label, 1 or -1", assumptions=SIGN),
        Letter("w", "w", "w", "weight of a sample", assumptions=POSITIVE),
        Letter("c", "c", "c", "tokens of each pattern in a sample", "M", assumptions=POSITIVE),
        Letter("a", "a", "a", "output weights, never trained", "m"),
        Letter("g", "g", "g", "minus y / L where the sample is below the margin, else 0"),
        Letter("mu", "μ", r"\mu", "patterns", "d x M"),
        Letter("Gamma", "Γ", r"\Gamma", "inner products of the patterns, mu^T mu", "M x M"),
        Letter("W_O", "W_O", "W_O", "hidden weights of the perceptron", "m x d"),
        Letter("W_V", "W_V", "W_V", "value weights", "d x d"),
        Letter("W_K", "W_K", "W_K", "key weights", "d x d"),
        Letter("W_Q", "W_Q", "W_Q", "query weights", "d x d"),
        Letter("V", "V", "V", "values of the patterns, W_V mu: the paper's p_j(t)", "d x M"),
        Letter("K", "K", "K", "keys of the patterns, W_K mu: the paper's q_j(t)", "d x M"),
        Letter("Q", "Q", "Q", "queries of the patterns, W_Q mu: the paper's r_j(t)", "d x M"),
        Letter("H", "H", "H", "response of neurons to patterns, W_O V", "m x M"),
        Letter("B", "B", "B", "scores, K^T Q: keys in rows, queries in columns", "M x M"),
        Letter("G_V", "G_V", "G_V", "inner products of the values, V^T V", "M x M"),
        Letter("G_K", "G_K", "G_K", "inner products of the keys, K^T K", "M x M"),
        Letter("G_Q", "G_Q", "G_Q", "inner products of the queries, Q^T Q", "M x M"),
        Letter("J", "J", "J", "inner products of the neurons, W_O W_O^T", "m x m"),
        Letter("P", "P", "P", "attention of a query to all keys of a pattern", "M x M"),
        Letter("U", "U", "U", "preactivations of the neurons, H P", "m x M"),
        Letter("E", "E", "E", "derivative of the loss by H", "m x M"),
        Letter("rho", "ρ", r"\rho", "derivative of the loss by P", "M x M"),
        Letter("T", "T", "T", "derivative of the loss by B", "M x M"),
        Letter("F", "F", "F", "output of the network"),
        *entries("B", "B", "score of a key for a query", PAIRS),
        *entries("G_K", "G^K", "inner product of keys", EVEN_PAIRS),
        *entries("G_Q", "G^Q", "inner product of queries", EVEN_PAIRS),
        *entries("t", "t", "derivative of the loss by one score", PAIRS),
        Letter("risk", "R/γ", r"R/\gamma", "training loss, mean over samples, over the margin"),
        Letter("active", "active", r"P(yF < \gamma)", "share of training samples below the margin"),
        Letter("error", "err", r"P(yF \leq 0)", "training error"),
        Letter("test_loss", "test", r"R_{\mathrm{test}}/\gamma", "test hinge loss over the margin"),
        Letter("test_error", "err", r"P_{\mathrm{test}}(yF \leq 0)", "test error"),
        Letter("relevant", "P*", "P_*", "attention to label-relevant tokens, mean of all queries"),
        Letter("relevant_by_relevant", "P**", "P_{**}", "the same, of label-relevant queries"),
        Letter("relevant_by_confusion", "P*#", r"P_{*\#}", "the same, of confusion queries"),
        Letter("relevant_by_other", "P*o", r"P_{*\circ}", "the same, of the other queries"),
        Letter("q1_norm2", "|q1|²", r"\|q_1\|^2", "squared length of the key of pattern 1"),
        Letter("lucky_W", "|W|", r"|\mathcal{W}|", "neurons with a > 0 open to + at query 1"),
        Letter("lucky_U", "|U|", r"|\mathcal{U}|", "neurons with a < 0 open to - at query 2"),
        Letter(
            "lucky_angle",
            "|W|θ",
            r"|\mathcal{W}_\theta|",
            "neurons within the angle sigma of p_1 (Definition 2)",
        ),
        Letter("gate_classes", "classes", r"\#", "distinct (sign, gates) among the neurons"),
        Letter("symmetry", "asym", r"\Delta B", "largest difference of B inside a class"),
        Letter("odds", "odds", r"\Delta_{\mathrm{odds}}", "largest error of the odds identity"),
    ),
)
