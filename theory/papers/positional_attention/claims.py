"""The statements of Jelassi, Sander, Li (2022), as the paper words them; the last is ours."""

from __future__ import annotations

from theory.claims import Claim
from theory.papers.positional_attention import lemmas, separability

PARAMETRIZATION = r"""(GD) on (P) with Parametrization 3.1: $v^{(0)} = \nu^{1/(p-1)} w^\star$,
    $A^{(0)}_{ij} = 0$ for $i \neq j$, $A_{ii} = \sigma_A$."""

DOWNSTREAM = r"""$\tilde{\mathcal{D}}$ as in Assumption 1, with the sets of $\mathcal{D}$ and a
    feature $\tilde w^\star$, $\|\tilde w^\star\|_2 = 1$, potentially different from $w^\star$."""

IMAGES = r"""Section 6: ViTs trained on CIFAR-10/100, SVHN and ImageNet by AdamW with augmentation,
    300 epochs. Here two layers of width 32, Adam, no augmentation, at most some thousand steps."""

CLAIMS = (
    Claim(
        source="Figure 2",
        statement=r"""Consider the case where all the patches $X_j$ are i.i.d. standard Gaussian and
            $f^\star$ is a one-hidden layer CNN with cubic activation. [...] One-layer ViT reaches
            small test error on the binary classification task. However, $P^\top P$ does not match
            the convolution pattern encoded in $f^\star$.""",
        hypothesis="Sizes, optimizer and parametrization are not given.",
        falsified_by="a model that fits, and whose rows have their own set as C largest entries",
        reading="trained are the entries of A, with Adam; the literal words are of A = P^T P",
    ),
    Claim(
        source="Theorem 3.1",
        statement=r"""Let $g(X) = \phi\left(\sum_{j=1}^D \langle w_j, X_j \rangle\right)$ be a
            generalized linear model. Then, $g$ does not fit the labeling function i.e.
            $\Pr[f^\star(X) g(X) \leq 0] \geq 1/8$.""",
        hypothesis=r"""$\mathcal{D}$ as in Assumption 1; Assumption 2: $C = \mathrm{polylog}(d)$, $q
            = poly(C)/D$. No condition on $\phi$, and none that relates $q(D-C)$ to $C^2$.""",
        falsified_by="a link and weights with an exact error below 1/8 on a law of Assumption 1",
    ),
    Claim(
        source="Theorem 3.2",
        statement=r"""There exists a (one-layer) transformer $\mathcal{M}$ so that
            $\Pr[f^\star(X)\mathcal{M}(X) \leq 0] = d^{-\omega(1)}$ but for all $\ell \in [L]$, $i
            \in S_\ell$, $\mathrm{Top}_C \{\langle p_i^{(\mathcal{M})}, p_j^{(\mathcal{M})}
            \rangle\}_{j=1}^D \cap S_\ell = \emptyset$.""",
        hypothesis=r"""$\mathcal{D}$ as in Assumption 1; Assumption 2: $C = \mathrm{polylog}(d)$, $q
            = poly(C)/D$. Query and key maps are free.""",
        falsified_by="""an error of the construction that does not fall along D with an exponent
            that grows with C, or a row with a member of its own set among its C largest""",
        reading="Top_C over the patches j other than i",
    ),
    Claim(
        source="Lemma 4.1",
        statement=r"""There exist $\beta = \sigma_A$, $\gamma^{(t)}, \rho^{(t)} \in \mathbb{R}$ such
            that for all $t \geq 0$: $A^{(t)}_{ii} = \beta$; $A^{(t)}_{ij} = \gamma^{(t)}$ for $i,
            j$ in one set $S_\ell$; $A^{(t)}_{ij} = \rho^{(t)}$ for $i \in S_\ell$, $j \in S_m$,
            $\ell \neq m$.""",
        hypothesis=PARAMETRIZATION,
        falsified_by="two entries of A in one orbit with different population gradients",
        proof=lemmas.lemma_4_1,
    ),
    Claim(
        source="Lemma 4.2",
        statement=r"""For all $t \in [T]$, there exists $\alpha^{(t)} \in \mathbb{R}$ such that
            $v^{(t)} = \alpha^{(t)} w^\star$.""",
        hypothesis=PARAMETRIZATION,
        falsified_by="a non-zero expected gradient by v orthogonal to w*, at v in span(w*)",
        proof=lemmas.lemma_4_2,
    ),
    Claim(
        source="Lemma 4.3",
        statement=r"""Let $t \leq T$. $\gamma^{(t+1)} = \gamma^{(t)} +
            \eta\,\mathrm{polylog}(d)\,(\alpha^{(t)})^p\,\Gamma^{(t)} (G^{(t)})^{p-1}$ and
            $|\rho^{(t+1)}| \leq |\rho^{(t)}| + \eta\,\mathrm{polylog}(d)\,(\alpha^{(t)})^p
            \left(\frac1D + \frac1D \Gamma^{(t)} (G^{(t)})^{p-1}\right)$.""",
        hypothesis=PARAMETRIZATION + r" Assumption 2: $C = \mathrm{polylog}(d)$, $q = poly(C)/D$.",
        falsified_by="""a step with polylog_gamma <= 0, or max over the run of polylog_gamma growing
            like a power of d along the regime of Assumption 2, with an exponent that does not fall
            with d as that of a power of log d does""",
        proof=lemmas.lemma_4_3,
    ),
    Claim(
        source="Theorem 4.1",
        statement=r"""Assume that we run GD on (P) for $T$ iterations with parameters set as in
            Parametrization 3.1. With high probability, the ViT model (T) 1. learns patch
            association i.e. for all $\ell \in [L]$ and $i \in S_\ell$, $\mathrm{Top}_C
            \{A^{(T)}_{i,j}\}_{j=1}^D = S_\ell$. 2. learns the labeling function $f^\star$ i.e.
            $P_D[f^\star(X) F_{A^{(T)}, v^{(T)}}(X) > 0] \geq 1 - o(1)$.""",
        hypothesis=PARAMETRIZATION + r" Any $T \geq poly(d)/\eta$; Assumption 2.",
        falsified_by="""an entry of A outside the own set among the C largest of a row at time T, or
            an error that does not come near the irreducible one""",
    ),
    Claim(
        source="Section 4.1, any time",
        statement=r"""Because of the initialization and the data structure, we have patch
            association for any time $t$ (Lemma 4.3).""",
        hypothesis=PARAMETRIZATION,
        falsified_by="a time at which an entry of another set is among the C largest of a row",
        reading="for any time above 0; at the start all entries off the diagonal are equal",
    ),
    Claim(
        source="Section 4.1, gamma and rho",
        statement=r"""The increment of $\gamma^{(t)}$ is larger than the one of $\rho^{(t)}$. Since
            $\gamma^{(0)} = \rho^{(0)} = 0$, this implies that $\gamma^{(t)} \geq \rho^{(t)}$ for
            all $t \geq 0$.""",
        hypothesis=PARAMETRIZATION,
        falsified_by="a time at which gamma is below rho",
    ),
    Claim(
        source="Lemma D.2",
        statement=r"""[As Section 4.1 cites it:] $\alpha^{(t)} = \langle v^{(t)}, w^\star\rangle$
            increases until a time $T_0 > 0$ where it reaches some threshold.""",
        hypothesis=PARAMETRIZATION,
        falsified_by="alpha that falls before T0, or no T0",
        re_derived=True,
    ),
    Claim(
        source="Equation (2)",
        statement=r"""Assume by contradiction that the $A_{ij}^{(t)}$ stay around initialization and
            that $v^{(t)}$ is optimal i.e. $v^{(t)} = a^{(t)} w^\star$ where $a^{(t)} \gg 1$. Then,
            the predictor $g$ we would have is $g(X) = \sum_{i=1}^D \sum_{j=1}^D S_{ij}^{(0)}
            \langle v^{(t)}, X_j \rangle \propto \sum_{i=1}^D \sum_{j=1}^D e^{A_{ij}^{(0)}} \langle
            w^\star, X_j \rangle$. Such predictor $g$ would yield high population loss.""",
        hypothesis=PARAMETRIZATION + r" $qD = poly(C)$.",
        falsified_by="""a loss at the attention of the start, at the best $a$, that is no higher
            than at the end of training (within a factor 2 nothing is decided: how high it is to be
            is not said)""",
        reading=r"the model (T) with the attention of the start, at the $a$ that is best for it",
    ),
    Claim(
        source="Event I",
        statement=r"""At the beginning of the process, the update of $v^{(t)}$ is larger than the
            one of $A^{(t)}_{i,j}$ which implies that only $v^{(t)}$ updates during this first
            phase. We show that $\alpha^{(t)} = \langle v^{(t)}, w^\star\rangle$ increases until a
            time $T_0 > 0$ where it reaches some threshold. At this point, the model is nothing else
            than a generalized linear model that would not generalize [...].""",
        hypothesis=PARAMETRIZATION,
        falsified_by="attention that has moved at T0, alpha that falls before it, or no T0 at all",
    ),
    Claim(
        source="Event II",
        statement=r"""During this phase, the attention weights must update. $\gamma^{(t)}$ increases
            until a time $T_1 \in [T_0, T]$ such that $\gamma^{(T_1)} > \max_{t \in [T]}
            |\rho^{(t)}|$.""",
        hypothesis=PARAMETRIZATION + r" Any $T \geq poly(d)/\eta$; Assumption 2.",
        falsified_by="gamma that falls between T0 and T1, or never exceeds max |rho| of the run",
    ),
    Claim(
        source="Event III",
        statement=r"""Because we have $\gamma^{(T_1)} > \max_{t \in [T]} |\rho^{(t)}|$, we again
            have $\alpha^{(t+1)} > \alpha^{(t)}$ as in Phase I. Thus, $\alpha^{(t)}$ increases again
            until the population risk becomes a $o(1)$.""",
        hypothesis=PARAMETRIZATION + r" Any $T \geq poly(d)/\eta$; Assumption 2.",
        falsified_by="alpha that ends below its value at T1, or that rises after T1 and then falls",
    ),
    Claim(
        source="Lemma D.11",
        statement=r"""[As Section 4.1 cites it:] because we have $\gamma^{(T_1)} > \max_{t \in [T]}
            |\rho^{(t)}|$, we again have $\alpha^{(t+1)} > \alpha^{(t)}$ as in Phase I.""",
        hypothesis=PARAMETRIZATION + r" Any $T \geq poly(d)/\eta$; Assumption 2.",
        falsified_by="a time after $T_1$ at which alpha falls",
        re_derived=True,
    ),
    Claim(
        source="Theorem 4.2",
        statement=r"""Assume that we run GD on (E) for $T$ iterations with parameters set as in
            Parametrization 3.1. Assume that the number of samples is $N = poly(d)$. With high
            probability, the model 1. learns patch association i.e. for all $\ell \in [L]$ and $i
            \in S_\ell$, $\mathrm{Top}_C \{\hat A^{(T)}_{i,j}\}_{j=1}^D = S_\ell$. 2. fits the
            labeling function i.e. $P_D[f^\star(X) F_{\hat A^{(T)}, \hat v^{(T)}}(X) > 0] \geq 1 -
            o(1)$.""",
        hypothesis=r"""(GD) on (E), $N = poly(d)$, $\hat v^{(0)} \sim N(0, \omega^2 I_d)$, $\hat
            A^{(0)}_{ij} \sim N(0, \omega^2)$ for $i \neq j$, $\omega = 1/poly(d)$, any $T \geq
            poly(d)/\eta$.""",
        falsified_by="""a row without association at some T, or a test error of a model without it,
            at numbers of samples at which more samples do not help""",
    ),
    Claim(
        source="Figure 4",
        statement=r"""We consider the exact same setting (data generation, parameter settings...) as
            for the realistic case. [...] We then plot the learned matrix $A$ and see that
            coefficients with high value exactly correspond to their grey scale counterpart [the
            tuples $(i, j)$ such that $i, j \in S_\ell$]. We also display test error and cosine
            similarity between $w^\star$ and $v$ w.r.t the number of training steps.""",
        hypothesis="(GD) on (E), random start. The sizes are not given.",
        falsified_by="""no level that separates the entries of A inside the sets from the others, a
            test error that does not fall, or a cosine that does not come near 1""",
    ),
    Claim(
        source="Section 4.2",
        statement=r"""We show that $\hat A^{(T)}$ and $\hat v^{(T)}$ are close to their
            semi-realistic counterparts.""",
        hypothesis=r"""Parametrization 3.1, realistic case: $\hat v^{(0)} \sim N(0, \omega^2 I)$,
            $\hat A^{(0)}_{ij} \sim N(0, \omega^2)$ for $i \neq j$, $\omega =
            1/\mathrm{poly}(d)$.""",
        falsified_by="""a random start of spread omega whose deviation from the three scalars grows
            to order one (omega * Phi_max not small) and loses the association that the symmetric
            start has""",
        reading="""with samples without end and v along w*, A from a random start beside the one
            from a symmetric start""",
    ),
    Claim(
        source="Theorem 5.1",
        statement=r"""Let $\hat A$ be the attention matrix obtained after pre-training as in
            subsection 4.2. Assume that we run GD for $T$ iterations on ($\tilde E$) to fine-tune
            the value vector. Using $\tilde N \leq \mathrm{polylog}(D)$ samples, the model (T)
            transfers to $\tilde{\mathcal{D}}$ i.e. $\Pr_{\tilde{\mathcal{D}}}[f^\star(X) F_{\hat A,
            \tilde v^{(T)}}(X) > 0] \geq 1 - o(1)$.""",
        hypothesis=DOWNSTREAM
        + r""" $\tilde v^{(0)} \sim \mathcal{N}(0, \omega^2 I_d)$ with $\omega
            = 1/poly(D)$; $\hat A$ is kept fixed. How long pre-training must last is not said.""",
        falsified_by="""with learned attention, half of which is inside the true sets, a test error
            on log2 D samples that stays well above the irreducible one; or pre-training that moves
            attention to other sets""",
        reading="pre-trained is the population problem from the symmetric start, not on N samples",
    ),
    Claim(
        source="Theorem 5.2",
        statement=r"""Let $\mathcal{A}: \mathbb{R}^{d \times D} \to \{-1, 1\}$ be a binary
            classification algorithm without patch association knowledge. Then, it needs
            $D^{\Omega(1)}$ training samples to get test error $\leq o(1)$ on
            $\tilde{\mathcal{D}}$.""",
        hypothesis=DOWNSTREAM
        + r""" Assumption 2: $C = \mathrm{polylog}(d)$, $q = poly(C)/D$. No
            condition that relates $q(D-C)$ to $C^2$.""",
        falsified_by="""an algorithm that does not know the sets whose test error vanishes along D
            with a number of samples that does not grow""",
    ),
    Claim(
        source="Figure 1a",
        statement=r"""[A]lthough randomly initialized, the positional encodings in Vision
            transformers (ViTs) actually learn this local connectivity: closer patches have more
            similar positional encodings.""",
        hypothesis=IMAGES,
        falsified_by="""positions of neighbouring patches that are no more similar after training
            than those of any others, by a permutation test over all seeds, from the small start""",
        reading="a small vision transformer on the digits of scikit-learn, not ImageNet",
    ),
    Claim(
        source="Figure 5a",
        statement=r"""When $s$ is small, the image does not have a coherent structure e.g. Figure
            5b-(2) and thus, CNNs struggle to generalize. [...] Unsurprisingly, since ViTs are
            permutation invariant, their performance remains unchanged for all $s$.""",
        hypothesis=IMAGES + " The patch size is at most the grid shuffle size $s$.",
        falsified_by="""an accuracy of the convolutional network that does not drop by 5 standard
            errors over seeds, or one of the transformer that does""",
        reading="a small transformer and a small CNN on the digits of scikit-learn, s one pixel",
    ),
    Claim(
        source="Figure 5c",
        statement=r"""[W]e feed the ViT with the shuffled pear image and consider for some $i$ the
            similarity matrix $p_i^\top P$. We see that it does not exhibit a local spatial
            structure [...]. We then apply $\pi_s^{-1}$ to $p_i^\top P$ and observe that we recover
            the spatially localized patterns.""",
        hypothesis=IMAGES,
        falsified_by="""neighbours of the shuffled image that are associated, or neighbours of the
            original one that are not, by a permutation test over all seeds""",
        reading="a small vision transformer on the digits of scikit-learn, from the small start",
    ),
    Claim(
        source="Figure 7",
        statement=r"""ViTs using positional attention compete with vanilla ViTs on a range of
            datasets.""",
        hypothesis=IMAGES,
        falsified_by="""an accuracy that is further behind than the three points by which the paper
            has it behind on ImageNet (68.9 against 71.9 per cent), from one start of the
            positions""",
        reading="competes: at most 0.03 behind; small transformers on the digits of scikit-learn",
    ),
    Claim(
        source="Zero error",
        statement=r"""[Ours.] With random sets of which none is all of one sign, some $\alpha$,
            $\gamma$, $\rho$ classify every sample iff $(L-1)(1-1/C)^p < 1$. From 1 on the error
            is positive at every state, and $\alpha$ is bounded along every flow. [Proved. Below 1
            training may still come to rest with an error, which depends on $q$, $\nu$ and
            $\beta$.]""",
        hypothesis=PARAMETRIZATION
        + r""" Assumption 1 with $q < 1$, but random sets of one sign
            excluded (``random_sets = mixed``): a toy law, not that of the paper.""",
        falsified_by="""a state with error zero where the criterion is at least 1, or an error at
            full attention and large alpha where it is below 1""",
        proof=separability.separability,
    ),
)
