"""Notation of Jelassi, Sander, Li, "Vision Transformers provably learn spatial structure"."""

from __future__ import annotations

from theory.notation import Letter, Notation

POSITIVE = (("positive", True),)
NATURAL = (("integer", True), ("positive", True))
INTEGER = (("integer", True),)
COUNT = (("integer", True), ("nonnegative", True))

NOTATION = Notation(
    "Jelassi, Sander, Li (2022)",
    (
        Letter("D", "D", "D", "number of patches", assumptions=NATURAL),
        Letter("C", "C", "C", "patches in each set", assumptions=NATURAL),
        Letter("L", "L", "L", "number of sets, D/C", assumptions=NATURAL),
        Letter("q", "q", "q", "chance that a patch of a random set carries a feature"),
        Letter("p", "p", "p", "odd degree of the activation", assumptions=NATURAL),
        Letter("nu", "ν", r"\nu", "linear part of the activation", assumptions=POSITIVE),
        Letter("beta", "β", r"\beta", "diagonal of A, never trained (sigma_A)"),
        Letter("scale", "s", "s", "factor in the exponent of the softmax", assumptions=POSITIVE),
        Letter("d", "d", "d", "dimension of a patch", assumptions=NATURAL),
        Letter("sigma", "σ", r"\sigma", "noise of a patch, per coordinate", assumptions=POSITIVE),
        Letter("omega", "ω", r"\omega", "spread of a random start", assumptions=POSITIVE),
        Letter("alpha0", "α⁰", r"\alpha^{(0)}", "alpha at the start, nu^(1/(p-1))"),
        Letter("eta", "η", r"\eta", "learning rate", assumptions=POSITIVE),
        Letter("time", "τ", r"\tau", "time, eta times steps"),
        Letter("A", "A", "A", "attention matrix, before the softmax", "D x D"),
        Letter("S", "S", "S", "attention after the softmax", "D x D"),
        Letter("v", "v", "v", "value vector", "d"),
        Letter("alpha", "α", r"\alpha", "component of v along the feature w*"),
        Letter("gamma", "γ", r"\gamma", "entry of A inside a set, off the diagonal"),
        Letter("rho", "ρ", r"\rho", "entry of A between different sets"),
        Letter("Lambda", "Λ", r"\Lambda", "entry of S on the diagonal"),
        Letter("Gamma", "Γ", r"\Gamma", "entry of S inside a set"),
        Letter("Xi", "Ξ", r"\Xi", "entry of S between different sets"),
        Letter("G", "G", "G", "D times the attention that falls inside the own set"),
        Letter("alpha_G", "αG", r"\alpha G", "signal strength that reaches the loss"),
        Letter("d_alpha", "α̇", r"\dot\alpha", "rate of alpha, minus its gradient"),
        Letter("d_gamma", "γ̇", r"\dot\gamma", "rate of gamma, minus its per-entry gradient"),
        Letter("d_rho", "ρ̇", r"\dot\rho", "rate of rho, minus its per-entry gradient"),
        Letter("d_G", "Ġ", r"\dot G", "rate of G"),
        Letter(
            "association_margin",
            "m",
            "m",
            "least entry of A inside a set minus greatest outside, worst row",
        ),
        Letter(
            "x", "x", "x", "value of a patch along the feature: 1, 0 or -1", assumptions=INTEGER
        ),
        Letter("z", "z", "z", "sum of the values of the patch's own set", assumptions=INTEGER),
        Letter("Z", "Z", "Z", "sum of the values of all patches", assumptions=INTEGER),
        Letter("a", "a", "a", "patches at +1 in a set", assumptions=COUNT),
        Letter("b", "b", "b", "patches at -1 in a set", assumptions=COUNT),
        Letter("y", "y", "y", "label, 1 or -1", assumptions=INTEGER),
        Letter("F", "F", "F", "output of the model"),
        Letter(
            "sig", "ς", r"\varsigma", "E of 1/(1+exp(F)): mean weight of a sample in the gradient"
        ),
        Letter("risk", "R", "R", "population risk: E log(1 + exp(-yF))"),
        Letter("error", "err", r"P(yF \leq 0)", "population error"),
        Letter("bayes_error", "err*", r"\mathrm{err}^\star", "irreducible error of the law"),
        Letter("polylog_gamma", "κγ", r"\kappa_\gamma", "the hidden polylog of Lemma 4.3, gamma"),
        Letter("polylog_rho", "κρ", r"\kappa_\rho", "least constant in Lemma 4.3, rho"),
    ),
)
