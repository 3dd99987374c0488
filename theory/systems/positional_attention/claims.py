"""The statements of Jelassi, Sander, Li (2022), each worded as the paper words it."""

from __future__ import annotations

from theory.claims import Claim
from theory.systems.positional_attention import lemmas

PARAMETRIZATION = (
    r"(GD) on (P) with Parametrization 3.1: $v^{(0)} = \nu^{1/(p-1)} w^\star$, "
    r"$A^{(0)}_{ij} = 0$ for $i \neq j$, $A_{ii} = \sigma_A$."
)

DOWNSTREAM = (
    r"$\tilde{\mathcal{D}}$ as in Assumption 1, with the sets of $\mathcal{D}$ and a feature "
    r"$\tilde w^\star$, $\|\tilde w^\star\|_2 = 1$, potentially different from $w^\star$."
)

CLAIMS = (
    Claim(
        source="Theorem 3.1",
        statement=(
            r"Let $g(X) = \phi\left(\sum_{j=1}^D \langle w_j, X_j \rangle\right)$ be a generalized "
            r"linear model. Then, $g$ does not fit the labeling function i.e. "
            r"$\Pr[f^\star(X) g(X) \leq 0] \geq 1/8$."
        ),
        hypothesis=(
            r"$\mathcal{D}$ as in Assumption 1; Assumption 2: $C = \mathrm{polylog}(d)$, "
            r"$q = poly(C)/D$. No condition on $\phi$, and none that relates $q(D-C)$ to $C^2$."
        ),
        falsified_by="a link and weights with an exact error below 1/8 on a law of Assumption 1",
    ),
    Claim(
        source="Theorem 3.2",
        statement=(
            r"There exists a (one-layer) transformer $\mathcal{M}$ so that "
            r"$\Pr[f^\star(X)\mathcal{M}(X) \leq 0] = d^{-\omega(1)}$ but for all $\ell \in [L]$, "
            r"$i \in S_\ell$, $\mathrm{Top}_C \{\langle p_i^{(\mathcal{M})}, "
            r"p_j^{(\mathcal{M})} \rangle\}_{j=1}^D \cap S_\ell = \emptyset$."
        ),
        hypothesis=(
            r"$\mathcal{D}$ as in Assumption 1; Assumption 2: $C = \mathrm{polylog}(d)$, "
            r"$q = poly(C)/D$. Query and key maps are free."
        ),
        falsified_by=(
            "an error of the construction that does not fall along D with an exponent that grows "
            "with C, or a row with a member of its own set among its C largest"
        ),
    ),
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
        source="Theorem 5.1",
        statement=(
            r"Let $\hat A$ be the attention matrix obtained after pre-training as in subsection "
            r"4.2. Assume that we run GD for $T$ iterations on ($\tilde E$) to fine-tune the value "
            r"vector. Using $\tilde N \leq \mathrm{polylog}(D)$ samples, the model (T) transfers "
            r"to $\tilde{\mathcal{D}}$ i.e. $\Pr_{\tilde{\mathcal{D}}}[f^\star(X) "
            r"F_{\hat A, \tilde v^{(T)}}(X) > 0] \geq 1 - o(1)$."
        ),
        hypothesis=(
            DOWNSTREAM + r" $\tilde v^{(0)} \sim \mathcal{N}(0, \omega^2 I_d)$ with $\omega = "
            r"1/poly(D)$; $\hat A$ is kept fixed. How long pre-training must last is not said."
        ),
        falsified_by=(
            "with learned attention, half of which is inside the true sets, a test error on "
            "log2 D samples that stays well above the irreducible one; or pre-training that moves "
            "attention to other sets"
        ),
    ),
    Claim(
        source="Theorem 5.2",
        statement=(
            r"Let $\mathcal{A}: \mathbb{R}^{d \times D} \to \{-1, 1\}$ be a binary classification "
            r"algorithm without patch association knowledge. Then, it needs $D^{\Omega(1)}$ "
            r"training samples to get test error $\leq o(1)$ on $\tilde{\mathcal{D}}$."
        ),
        hypothesis=(
            DOWNSTREAM + r" Assumption 2: $C = \mathrm{polylog}(d)$, $q = poly(C)/D$. No condition "
            r"that relates $q(D-C)$ to $C^2$."
        ),
        falsified_by=(
            "an algorithm that does not know the sets whose test error vanishes along D with a "
            "number of samples that does not grow"
        ),
    ),
)
