r"""Notation and events of Jelassi, Sander, Li, "Vision Transformers provably learn ...".

`EVENTS` are the three events of training, as rules on the order parameters. The loss depends on the
signal strength :math:`\alpha G`; its logarithm grows at the sum of the rates :math:`d\log\alpha`
and :math:`d\log G`.

- Event I is driven by the value vector v, which grows while attention is constant. Event I ends at
  ``T0``, the first time with alpha > 0 and :math:`d\log G \geq d\log\alpha`. At ``T0``, attention
  contributes at least as much to the growth as v.
- Event II is driven by attention. Event II ends at ``T1``, when half of the attention is inside the
  true set, :math:`G \geq D/2`. In the paper, Event II ends at ``T1_paper``, when :math:`\gamma`
  exceeds the maximum of :math:`|\rho|` over the run; this time depends on the length of the run.
- Event III is a second growth of alpha. If alpha falls after ``T1``, Event III starts at the
  minimum of alpha, searched until alpha is 5 % above alpha(T1). Event III is reported only if alpha
  exceeds alpha(T1) at the end of the run.

``patch_association`` (Definition 2.2) holds if, in every row of A, all entries inside the row's own
set are greater than all entries outside this set.
"""

from __future__ import annotations

import sympy

from theory.events import RISE, Crossing, EventRule, ExceedsRunMaximum, RisesAgain
from theory.notation import COUNT, INTEGER, NATURAL, POSITIVE, REAL, Notation, Row, word

ROWS: tuple[Row, ...] = (
    ("D", "D", "D", "number of patches", NATURAL),
    ("C", "C", "C", "patches in each set", NATURAL),
    ("L", "L", "L", "number of sets, D/C", NATURAL),
    ("q", "q", "q", "chance that a patch of a random set carries a feature"),
    word("random_sets", "any, or mixed: no random set is all of one sign"),
    ("p", "p", "p", "odd degree of the activation", NATURAL),
    ("nu", "ν", r"\nu", "linear part of the activation", POSITIVE),
    ("beta", "β", r"\beta", "diagonal of A, never trained (sigma_A)"),
    ("scale", "s", "s", "factor in the exponent of the softmax", POSITIVE),
    ("d", "d", "d", "dimension of a patch", NATURAL),
    ("sigma", "σ", r"\sigma", "noise of a patch, per coordinate", POSITIVE),
    ("omega", "ω", r"\omega", "spread of a random start", POSITIVE),
    ("alpha0", "α⁰", r"\alpha^{(0)}", "alpha at the start, nu^(1/(p-1))"),
    ("eta", "η", r"\eta", "learning rate", POSITIVE),
    ("time", "τ", r"\tau", "time, eta times steps"),
    ("A", "A", "A", "attention matrix, before the softmax", REAL, "D x D"),
    ("S", "S", "S", "attention after the softmax", REAL, "D x D"),
    ("v", "v", "v", "value vector", REAL, "d"),
    ("alpha", "α", r"\alpha", "component of v along the feature w*"),
    ("gamma", "γ", r"\gamma", "entry of A inside a set, off the diagonal"),
    ("rho", "ρ", r"\rho", "entry of A between different sets"),
    ("Lambda", "Λ", r"\Lambda", "entry of S on the diagonal"),
    ("Gamma", "Γ", r"\Gamma", "entry of S inside a set"),
    ("Xi", "Ξ", r"\Xi", "entry of S between different sets"),
    ("G", "G", "G", "D times the attention that falls inside the own set"),
    ("alpha_G", "αG", r"\alpha G", "signal strength that reaches the loss"),
    ("d_alpha", "α̇", r"\dot\alpha", "rate of alpha, minus its gradient"),
    ("d_gamma", "γ̇", r"\dot\gamma", "rate of gamma, minus its per-entry gradient"),
    ("d_rho", "ρ̇", r"\dot\rho", "rate of rho, minus its per-entry gradient"),
    ("d_G", "Ġ", r"\dot G", "rate of G"),
    (
        "association_margin",
        "m",
        "m",
        "least entry of A inside a set minus greatest outside, worst row",
    ),
    ("x", "x", "x", "value of a patch along the feature: 1, 0 or -1", INTEGER),
    ("z", "z", "z", "sum of the values of the patch's own set", INTEGER),
    ("Z", "Z", "Z", "sum of the values of all patches", INTEGER),
    ("a", "a", "a", "patches at +1 in a set", COUNT),
    ("b", "b", "b", "patches at -1 in a set", COUNT),
    ("y", "y", "y", "label, 1 or -1", INTEGER),
    ("F", "F", "F", "output of the model"),
    ("sig", "ς", r"\varsigma", "E of 1/(1+exp(F)): mean weight of a sample in the gradient"),
    ("risk", "R", "R", "population risk: E log(1 + exp(-yF))"),
    ("error", "err", r"P(yF \leq 0)", "population error"),
    ("bayes_error", "err*", r"\mathrm{err}^\star", "irreducible error of the law"),
    (
        "test_error",
        "test err",
        r"P_{\mathrm{test}}(yF \leq 0)",
        "error on fresh samples, a margin of 0 counting as one",
    ),
    word("patch_association", "share of the rows of A with their own set on top (Definition 2.2)"),
    ("cosine", "cos", r"\cos(v, w^\star)", "cosine of the angle between v and the feature w*"),
    (
        "gamma_spread",
        "sd γ",
        r"\mathrm{sd}(\gamma)",
        "standard deviation of the entries of A inside the sets",
    ),
    (
        "rho_spread",
        "sd ρ",
        r"\mathrm{sd}(\rho)",
        "standard deviation of the entries of A between the sets",
    ),
    word(
        "error_estimate",
        "estimated error of the gradient over the gross gradient, largest component",
    ),
    ("polylog_gamma", "κγ", r"\kappa_\gamma", "the hidden polylog of Lemma 4.3, gamma"),
    ("polylog_rho", "κρ", r"\kappa_\rho", "least constant in Lemma 4.3, rho"),
)
"""Each row holds code name, letter of the paper, LaTeX, meaning, sympy assumptions and shape."""

NOTATION = Notation("Jelassi, Sander, Li (2022)", ROWS)


ORDER_PARAMETERS = ("alpha", "gamma", "rho", "G", "d_alpha", "d_G", "association_margin")
"""Symbols that the rules of events use; every problem of this system reports them at every step."""

RATES = ("d_alpha", "d_G")
"""Order parameters computed from the gradient; if d_alpha alternates in sign, a run oscillates."""

alpha, gamma, rho, G, d_alpha, d_G, margin = NOTATION.symbols(" ".join(ORDER_PARAMETERS))
D = NOTATION.symbol("D")

EVENTS: tuple[EventRule, ...] = (
    Crossing(
        name="T0",
        meaning="end of Event I: attention takes over the growth of the signal",
        latex=r"\frac{d \log G}{d\tau} \geq \frac{d \log \alpha}{d\tau}",
        expression=d_G / G - d_alpha / alpha,
        guard=alpha,
    ),
    Crossing(
        name="T1",
        meaning="end of Event II: half of the attention falls inside the true set",
        latex=r"G \geq D/2",
        after="T0",
        expression=G - D / 2,
    ),
    ExceedsRunMaximum(
        name="T1_paper",
        meaning="end of Event II as the paper puts it, for this horizon",
        latex=r"\gamma > \max_t |\rho|",
        after="T0",
        note="gamma exceeds the largest |rho| of the whole run, of later times too: a longer run "
        "can move this time, and how much attention falls inside the set is another matter (T1)",
        quantity=gamma,
        bound=sympy.Abs(rho),
    ),
    RisesAgain(
        name="event_III",
        meaning="start of Event III: alpha, which fell after T1, grows beyond alpha(T1)",
        latex=r"\alpha \text{ rises again}",
        after="T1",
        quantity=alpha,
        relative=RISE,
    ),
    Crossing(
        name="patch_association",
        meaning="every row puts its own set on top (Definition 2.2)",
        latex=r"\mathrm{Top}_C(A_{i\cdot}) = S_{\ell(i)}\ \forall i",
        note="an order of the entries of A, however small their differences: from a symmetric "
        "start, gamma = rho = 0, it is reached with gamma > rho, which one step can do; when half "
        "of the attention is on the own set is T1",
        expression=margin,
        strict=True,
    ),
)
