"""The statements of Jelassi, Sander, Li (2022), each worded as the paper words it."""

from __future__ import annotations

from theory.claims import Claim
from theory.systems.positional_attention import lemmas

PARAMETRIZATION = (
    r"(GD) on (P) with Parametrization 3.1: $v^{(0)} = \nu^{1/(p-1)} w^\star$, "
    r"$A^{(0)}_{ij} = 0$ for $i \neq j$, $A_{ii} = \sigma_A$."
)

CLAIMS = (
    Claim(
        source="Lemma 4.1",
        statement=(
            r"There exist $\beta = \sigma_A$, $\gamma^{(t)}, \rho^{(t)} \in \mathbb{R}$ such that "
            r"for all $t \geq 0$: $A^{(t)}_{ii} = \beta$; $A^{(t)}_{ij} = \gamma^{(t)}$ for $i, j$ "
            r"in one set $S_\ell$; $A^{(t)}_{ij} = \rho^{(t)}$ for $i \in S_\ell$, $j \in S_m$, "
            r"$\ell \neq m$."
        ),
        hypothesis=PARAMETRIZATION,
        falsified_by="two entries of A in one orbit with different population gradients",
        proof=lemmas.lemma_4_1,
    ),
    Claim(
        source="Lemma 4.2",
        statement=(
            r"For all $t \in [T]$, there exists $\alpha^{(t)} \in \mathbb{R}$ such that "
            r"$v^{(t)} = \alpha^{(t)} w^\star$."
        ),
        hypothesis=PARAMETRIZATION,
        falsified_by="a non-zero expected gradient by v orthogonal to w*, at v in span(w*)",
        proof=lemmas.lemma_4_2,
    ),
    Claim(
        source="Lemma 4.3",
        statement=(
            r"Let $t \leq T$. $\gamma^{(t+1)} = \gamma^{(t)} + \eta\,\mathrm{polylog}(d)\,"
            r"(\alpha^{(t)})^p\,\Gamma^{(t)} (G^{(t)})^{p-1}$ and "
            r"$|\rho^{(t+1)}| \leq |\rho^{(t)}| + \eta\,\mathrm{polylog}(d)\,(\alpha^{(t)})^p "
            r"\left(\frac1D + \frac1D \Gamma^{(t)} (G^{(t)})^{p-1}\right)$."
        ),
        hypothesis=PARAMETRIZATION + r" Assumption 2: $C = \mathrm{polylog}(d)$, $q = poly(C)/D$.",
        falsified_by=(
            "a step with polylog_gamma <= 0, or max over the run of polylog_gamma growing like a "
            "power of d along the regime of Assumption 2"
        ),
        proof=lemmas.lemma_4_3,
    ),
    Claim(
        source="Section 4.2",
        statement=(
            r"We show that $\hat A^{(T)}$ and $\hat v^{(T)}$ are close to their semi-realistic "
            r"counterparts."
        ),
        hypothesis=(
            r"Parametrization 3.1, realistic case: $\hat v^{(0)} \sim N(0, \omega^2 I)$, "
            r"$\hat A^{(0)}_{ij} \sim N(0, \omega^2)$ for $i \neq j$, "
            r"$\omega = 1/\mathrm{poly}(d)$."
        ),
        falsified_by=(
            "a random start of spread omega whose deviation from the three scalars grows to order "
            "one (omega * Phi_max not small) and loses the association that the symmetric start has"
        ),
    ),
)
