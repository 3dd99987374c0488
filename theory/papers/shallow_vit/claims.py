r"""The statements of Li, Wang, Liu, Chen (2023), each worded as the paper words it.

Five statements at the head are ours: what is exact without noise, and decides several of the
others. The text at hand has lost what it says of Figures 1b, 2, 3 and 5 beside their captions; what
is recalled is said so. :math:`\tau` is the noise of a token, a the common size of the output
weights, :math:`p_n(t)` the attention of a label-relevant query to label-relevant tokens.

The paper asks (Theorem 1) for :math:`\alpha_* \geq \alpha_\# / (\epsilon_S e^{-(\delta+\tau)}
(1 - (\sigma+\tau)))` with :math:`\epsilon_S < 1/2`: at most a fraction of alpha_* is confusion.
Its own Figure 1a does not keep to that.
"""

from __future__ import annotations

from theory.claims import Claim
from theory.papers.shallow_vit import attention_limits, conditions, lemmas

EXACT = r"No noise ($\tau = 0$): every token is a pattern. Any start, any step size, any batches."
FIXED = (
    EXACT
    + r""" All samples have the same $n_*$ and the same $n_\#$ (``fixed``,
    ``fixed_disc``); in general the right-hand side is the ratio of the counts of the two
    samples."""
)
ASSUMPTION_1 = r"""Assumption 1: $\|W_V^{(0)} \mu_j - p_j\| \leq \sigma$, $\|W_K^{(0)} \mu_j - q_j\|
    \leq \delta$, $\|W_Q^{(0)} \mu_j - r_j\| \leq \delta$ with orthonormal $p$, $q$, $r$, $q_1 =
    r_1$, $q_2 = r_2$, $\sigma = O(1/M)$, $\delta < 1/2$."""
THEOREM_1 = (
    ASSUMPTION_1
    + r""" $\tau \leq \min(\sigma, \delta)$; $m \gtrsim \epsilon^{-2} M^2 \log
    N$; $\alpha_* \geq \alpha_\# / (\epsilon_S e^{-(\delta + \tau)} (1 - (\sigma + \tau)))$ for some
    $\epsilon_S \in (0, 1/2)$; $B \geq \Omega((\alpha_* - e^{-(\delta + \tau)} (\tau +
    \sigma))^{-2})$, $|S^n| \geq \Omega(1)$."""
)
LUCKY = (
    THEOREM_1
    + r""" $\mathcal{W}(t) = \{i: \angle(W_{O(i,\cdot)}, p_1) \leq \sigma + \tau\}$
    and $\mathcal{U}(t)$ with $p_2$ (Definition 2)."""
)
BY_GATES = """lucky neurons are those that have their part, a > 0 and open to a query of pattern 1
    (W), a < 0 and open to one of pattern 2 (U), as Definition 2 has none"""
SECTION_4_1 = r"""$d = m_a = m_b = 10$, $M = 5$, $m = 1000$, $\xi = 0.01$, $c_0 = 0.01$; a trial
    succeeds if its testing loss is smaller than $10^{-3}$."""

SECTION_4_2 = """A ViT of 5 blocks, pre-trained on CIFAR-100, on CIFAR-10 images integrated into
    ImageNet plants, alpha_* about 0.66 before sparsification."""

CLAIMS = (
    Claim(
        source="Pattern closure",
        statement=r"""[Ours.] Gradient descent moves $W_O$, $V = W_V \mu$, $K = W_K \mu$, $Q = W_Q
            \mu$ by $W_O' = W_O - \eta E V^\top$, $V' = V - \eta W_O^\top E \Gamma$, $K' = K - \eta
            Q T^\top \Gamma$, $Q' = Q - \eta K T \Gamma$, with $E$, $T$ functions of $H = W_O V$ and
            $B = K^\top Q$ alone: the derivatives of the loss by $H$ and $B$.""",
        hypothesis=EXACT,
        falsified_by="full and pattern runs that differ by more than rounding",
        proof=lemmas.pattern_closure,
    ),
    Claim(
        source="Gram form",
        statement=r"""[Ours.] $H$, $G_V = V^\top V$, $J = W_O W_O^\top$, $B$, $G_K = K^\top K$, $G_Q
            = Q^\top Q$ close by themselves, e.g. $B' = B - \eta (G_K T \Gamma + \Gamma T G_Q) +
            \eta^2 \Gamma T B^\top T \Gamma$: the dimensions $d$, $m_b$ and $L$ disappear, and no
            rotation of values, keys and queries matters.""",
        hypothesis=EXACT,
        falsified_by="inner products of a run that leave this recursion by more than rounding",
        proof=lemmas.gram_form,
    ),
    Claim(
        source="Odds identity",
        statement=r"""[Ours.] For every query pattern $j$, $\frac{P^+_{1j}}{P^+_{2j}}
            \frac{P^-_{2j}}{P^-_{1j}} = \left(\frac{n_*}{n_\#}\right)^2$ throughout training: the
            mean log-odds of label-relevant against confusion tokens never change.""",
        hypothesis=FIXED,
        falsified_by="a step at which the product of the odds of the two samples has moved",
        proof=attention_limits.odds_identity,
    ),
    Claim(
        source="Symmetric collapse",
        statement=r"""[Ours.] $B$ keeps 6 distinct entries, $K^\top K$ and $Q^\top Q$ 5 each, and
            the attention of all patterns is 16 scalars, driven by one sample.""",
        hypothesis=EXACT
        + r""" $\sigma = \delta = 0$, $W_K = W_Q$, equal counts of the
            non-discriminative patterns, neurons closed under permutations of those and under the
            exchange of 1 and 2 with $a \to -a$.""",
        falsified_by="two entries of one class that come apart by more than rounding",
        proof=lemmas.collapse,
    ),
    Claim(
        source="Margin and output weights",
        statement=r"""[Ours.] $a = \pm 1/m$, margin 1 and step $\sqrt m\, \eta$ give the same
            weights at every step as $a = \pm 1/\sqrt m$, margin $\sqrt m$ and step $\eta$. [The
            paper states $a = \pm 1/\sqrt m$ and sums $\frac1m \mathrm{Relu}$ in its proof.]""",
        hypothesis="Hinge or linear loss; any data, any start.",
        falsified_by="two such runs that differ by more than rounding",
        proof=lemmas.margin_and_weights,
    ),
    Claim(
        source="Theorem 1, generalization",
        statement=r"""As long as the number of training samples $N$ satisfies $N \geq \Omega\left(
            \frac{1}{(\alpha_* - c'(1 - \zeta) - c''(\sigma + \tau))^2} \right)$ [...], after $T$
            number of iterations [...], with a probability at least 0.99, the returned model
            achieves zero generalization error as $f(A^{(0)}, W_O^{(T)}, W_V^{(T)}, W_K^{(T)},
            W_Q^{(T)}) = 0$.""",
        hypothesis=THEOREM_1,
        falsified_by="a test loss that stays above 0 however many samples there are",
        reading="every trial succeeds at the most samples that were tried",
    ),
    Claim(
        source="Theorem 1, iterations",
        statement=r"""After $T$ number of iterations such that $T = \Theta\left( \frac{1}{(1 -
            \epsilon - \frac{(\sigma + \tau) M}{\pi}) \eta \alpha_*} \right)$ [... the returned
            model achieves zero generalization error].""",
        hypothesis=THEOREM_1,
        falsified_by="""an exponent of T in 1/alpha_* (alpha_# in proportion) or in 1/eta other than
            1 by more than 0.1""",
        reading=r"""up to constants: $T$ in proportion to $1/(\eta \alpha_*)$; the factor $1/(1 -
            \epsilon - (\sigma + \tau) M / \pi)$, which $\sigma = O(1/M)$ bounds, is one of
            them""",
    ),
    Claim(
        source="Theorem 1, samples",
        statement=r"""The number of training samples $N$ satisfies $N \geq \Omega\left(
            \frac{1}{(\alpha_* - c'(1 - \zeta) - c''(\sigma + \tau))^2} \right)$. [Section 3.1:] Our
            sample complexity bound is linear in $\alpha_*^{-2}$ and $(\Theta(1) - \sigma -
            \tau)^{-2}$.""",
        hypothesis=THEOREM_1 + r" In particular $\alpha_\#$ in proportion to $\alpha_*$.",
        falsified_by="""N50 that grows with 1/alpha_* faster than as its square, at alpha_# in a
            fixed proportion to alpha_* (fewer samples do not contradict the bound)""",
        one_sided=True,
    ),
    Claim(
        source="Equation (9)",
        statement=r"""The mini-batch size and the number of sampled tokens of each data $X^n$, $n
            \in [N]$ satisfy $B \geq \Omega((\alpha_* - e^{-(\delta + \tau)} (\tau +
            \sigma))^{-2})$, $|S^n| \geq \Omega(1)$. [Then, with enough samples, the returned model
            achieves zero generalization error.]""",
        hypothesis=THEOREM_1,
        falsified_by="""training with batches of that size, the constant 1, that does not reach a
            test loss below 1e-3 (smaller batches that do, do not contradict it)""",
        one_sided=True,
        reading="every trial succeeds with batches of that size, the constant 1",
    ),
    Claim(
        source="Equation (70)",
        statement=r"""$B \gtrsim \frac{1}{((1 - (\tau + \sigma)) e^{-(\delta + \tau)} \frac12
            \alpha_* - (\tau + \sigma) e^{-(\delta + \tau)})^2} = \Theta\left( \frac{1}{(\alpha_* -
            e^{-(\delta + \tau)} (\tau + \sigma))^2} \right)$.""",
        hypothesis=THEOREM_1,
        falsified_by="a ratio of both sides that no constant bounds, at alpha_* that (8) allows",
        proof=conditions.equation_70,
    ),
    Claim(
        source="Figure 1a",
        statement=r"""The fraction of non-discriminative patterns is fixed to be 0.5. [...] The
            sample complexity is indeed almost linear in $\alpha_*^{-2}$, as predicted in (10).""",
        hypothesis=SECTION_4_1 + r" $|S^n| = 100$, $\sigma = 0.1$, $\delta = 0.2$.",
        falsified_by="""[Theorem 1 does not cover alpha_* < 0.365 here.] An exponent of N50 in
            1/alpha_* other than 2 by more than a tenth of it, with its interval""",
        reading="""the other tokens of a sample are drawn uniformly from the non-discriminative
            patterns: with "the ratio of different patterns the same among all the data" there are
            two distinct samples""",
    ),
    Claim(
        source="Figure 1b",
        statement=r"""We next explore the impact on $\sigma$. Set $\alpha_* = 0.3$ and $\alpha_\# =
            0.2$. The number of tokens after sparsification is fixed at 50 for all the data. [What
            Figure 1b shows is lost; by Section 3.1 the sample complexity is] linear in [...]
            $(\Theta(1) - \sigma - \tau)^{-2}$.""",
        hypothesis=SECTION_4_1
        + " The Theta(1) is taken as 1. Theorem 1 does not cover these shares.",
        falsified_by="an exponent of N50 in 1/(1 - sigma) other than 2 by more than a tenth of it",
        re_derived=True,
    ),
    Claim(
        source="Figure 2, in proportion",
        statement=r"""The number of iterations against $\alpha_*^{-1}$ [is linear: Section 3.1, "the
            required number of iterations is proportional to $1/\alpha_*$"; here where $\alpha_\#$
            is in proportion to $\alpha_*$, or 0].""",
        hypothesis=SECTION_4_1 + r" $\sigma = 0.1$; composition of the other tokens not given.",
        falsified_by="iterations that are not on a line over 1 / alpha_*, by an R^2 below 0.99",
    ),
    Claim(
        source="Figure 2, other shares",
        statement=r"""The number of iterations against $\alpha_*^{-1}$ [is linear; here where
            $\alpha_\#$ is not in proportion to $\alpha_*$: constant, or a fixed share of
            non-discriminative tokens as in Figure 1a].""",
        hypothesis=SECTION_4_1 + r" $\sigma = 0.1$; composition of the other tokens not given.",
        falsified_by="""iterations that are linear in 1 / (alpha_* - alpha_#) and not in 1 /
            alpha_*, by an R^2 below 0.99""",
    ),
    Claim(
        source="Proposition 1",
        statement=r"""When there is no self-attention layer, i.e., $W_K$ and $W_Q$ are not updated
            during the training, if $N$ satisfies $N \geq \Omega\left( \frac{1}{(\alpha_* (\alpha_*
            - \sigma - \tau))^2} \right)$, then after $T$ iterations with $T$ in (11), the returned
            model achieves zero generalization error as $f(A^{(0)}, W_O^{(T)}, W_V^{(T)}, W_K^{(0)},
            W_Q^{(0)}) = 0$.""",
        hypothesis=THEOREM_1,
        falsified_by="""N50 that grows with 1/alpha_* faster than as its fourth power, attention
            frozen (fewer samples do not contradict the bound)""",
        one_sided=True,
    ),
    Claim(
        source="Figure 3",
        statement=r"""Comparison of ViT and CNN. [What the paper says of it is lost; by (13) and
            Remark 1, without training $W_K$, $W_Q$ more samples are needed, and $N$ is linear in
            $\alpha_*^{-4}$.]""",
        hypothesis=SECTION_4_1 + r" CNN: attention frozen. $\alpha_\# = \alpha_* / 5$ (ours).",
        falsified_by="an exponent of N50 in 1/alpha_* other than 4 by more than a tenth of it",
        re_derived=True,
    ),
    Claim(
        source="Remark 1",
        statement=r"""Combining Theorem 1 and Proposition 1, we can see that with the additional
            self-attention layer, the sample complexity is reduced by a factor $1/\alpha_*^2$ with
            an approximately equal number of network parameters.""",
        hypothesis=THEOREM_1,
        falsified_by="""a ratio of N50 without to N50 with trained attention that does not grow as
            alpha_*^-2""",
        reading="""of the samples that training needs (N50); of the two sufficient conditions, which
            by the paper's own footnote one cannot rigorously compare, it is arithmetic""",
    ),
    Claim(
        source="Remark 2",
        statement=r"""Increasing $\alpha_*$, the fraction of label-relevant tokens, can reduce the
            sample complexity and speed up the convergence. [...] Decreasing $\tau$, the noise in
            the tokens, can also improve the generalization. [...] A properly designed token
            sparsification method can both increase $\alpha_*$ by removing label-irrelevant tokens
            and decrease $\tau$ by removing noisy tokens, thus improving the generalization
            performance.""",
        hypothesis=SECTION_4_1 + " Training and test samples sparsified alike.",
        falsified_by="""a test loss that does not fall as irrelevant tokens, or the noisiest ones,
            are removed, or falls as much as tokens are removed at random""",
        reading="the last sentence, in the test loss of trained models, with noise as in Figure 5",
    ),
    Claim(
        source="Figure 5",
        statement="""Impact of token sparsification on testing loss. [What the paper says of it in
            Section 4.1 is lost; Appendix B:] pruning label-irrelevant tokens or noisy tokens
            improves the performance.""",
        hypothesis=SECTION_4_1
        + r""" Recalled: $N = 80$, $|S^n| = 50$, $\delta = 0.5$, $\alpha_* = 0.6$, $\alpha_\# =
            0.05$. Ours: a fifth of the tokens have noise of standard deviation 1.""",
        falsified_by="""a test loss that does not fall as irrelevant tokens, or the noisiest ones,
            are removed, or falls as much as tokens are removed at random""",
        re_derived=True,
    ),
    Claim(
        source="Remark 3, samples",
        statement=r"""The initial model $W_V^{(0)}, W_K^{(0)}, W_Q^{(0)}$ affects the learning
            performance through $\sigma$ and $\delta$, both of which decrease as the initial model
            is improved. Then from (10) and (11), the sample complexity reduces [...] for a better
            initial model.""",
        hypothesis=THEOREM_1,
        falsified_by="N50 that falls with sigma or with delta by more than its error",
    ),
    Claim(
        source="Remark 3, convergence",
        statement=r"""The initial model $W_V^{(0)}, W_K^{(0)}, W_Q^{(0)}$ affects the learning
            performance through $\sigma$ and $\delta$ [...]. Then from (10) and (11), [...] the
            convergence speeds up for a better initial model.""",
        hypothesis=THEOREM_1,
        falsified_by="iterations that fall with sigma or with delta by more than their error",
    ),
    Claim(
        source="Proposition 2",
        statement=r"""The attention weights for each token become increasingly concentrated on those
            correlated with tokens of the label-relevant pattern during the training, i.e., $\sum_{i
            \in S^n_*} \mathrm{softmax}(X^{n\top} W_K^{(t)\top} W_Q^{(t)} x_l^n)_i \to 1 - \eta^C$
            [...] when $t$ is large for a large $C > 0$ and all $l \in S^n$ and $n \in [N]$.""",
        hypothesis=THEOREM_1,
        falsified_by="""a query whose attention to label-relevant tokens stays away from 1; with
            alpha_# > 0 one sample at least is bound by the odds identity""",
        proof=attention_limits.proposition_2,
    ),
    Claim(
        source="Proposition 2, rate",
        statement=r"""[The attention to label-relevant tokens tends to $1 - \eta^C$] at a sublinear
            rate of $O(1/t)$.""",
        hypothesis=THEOREM_1,
        falsified_by="""without confusion tokens, with which the limit is not reached: 1 minus the
            attention of label-relevant queries that falls more slowly than 1/t in the last quarter
            of training""",
        one_sided=True,
    ),
    Claim(
        source="Figure 4",
        statement="""The sum of attention weights on label-relevant tokens, i.e., the left side of
            (15) averaged over all $l$, indeed increases to be close to 1 when the number of
            iterations increases. Correspondingly, the sum of attention weights on other tokens
            decreases to be close to 0 [...]. This verifies Lemma 2 on a sparse attention map.""",
        hypothesis=SECTION_4_1
        + r""" $|S^n| = 50$, $N = 200$, $\sigma = 0.1$, $\delta = 0.2$,
            $\alpha_* = 0.5$, $\alpha_\# = 0.05$.""",
        falsified_by="""a mean attention to label-relevant tokens that ends below 0.9; without noise
            it cannot pass the ceiling that the odds identity sets, 0.919 here
            (`attention_limits.ceiling`)""",
    ),
    Claim(
        source="Figures 7 and 8",
        statement="""One can observe the same trend in Figure 7 and 8 as in Figure 4 and 5,
            respectively, indicating that our conclusion that the attention map becomes sparse
            during the training, and that pruning label-irrelevant tokens or noisy tokens improves
            the performance, both hold for different choices of $M$.""",
        hypothesis="$d = m_a = m_b = 20$, $M = 10, 15, 20$, all else as in Section 4.1.",
        falsified_by="""attention at the end, or an order of the sparsifiers, that differs between
            these M""",
    ),
    Claim(
        source="Lemma 1",
        statement=r"""(Hoeffding's inequality) Let $X_1, \dots, X_N$ be independent centered
            sub-gaussian random variables, and let $K = \max_i \|X_i\|_{\psi_2}$. Then for every $a
            = (a_1, \dots, a_N) \in \mathbb{R}^N$ and every $t \geq 0$, we have $P(\sum_{i=1}^N a_i
            X_i \geq t) \leq e \cdot \exp(-\frac{c t^2}{K^2 \|a\|^2})$ where $c > 0$ is an absolute
            constant.""",
        hypothesis=r"$\|X\|_{\psi_2} = \sup_{p \geq 1} p^{-1/2} (E|X|^p)^{1/p}$ (Definition 3).",
        falsified_by="""an exact tail that lies above the bound with the constant that follows from
            the moments (`subgaussian`)""",
    ),
    Claim(
        source="Lemma 2, claim 1",
        statement=r"""For the lucky neuron $i \in \mathcal{W}(t)$, $W_{O(i,\cdot)}^{(t)} p_1 \gtrsim
            \frac{1}{Bt} \sum_{b=1}^t \sum_{n \in \mathcal{B}_b} \frac{\eta^2 t b m}{|S^n| a^2}
            |S^n_1| \|p_1\|^2 p_n(b) + \xi (1 - (\sigma + \tau))$, $W_{O(i,\cdot)}^{(t)} p \leq \xi
            \|p\|$ for $p \in \mathcal{P}/p_1$. [...] For unlucky neurons, $W_{O(i,\cdot)}^{(t)} p
            \leq \xi \|p\|$ for $p \in \mathcal{P}/\{p_1, p_2\}$, $\|W_{O(i,\cdot)}^{(t)}\|^2 \leq M
            \xi^2 \|p\|^2$.""",
        hypothesis=LUCKY,
        falsified_by="""lucky neurons whose growth along p_1 does not lead that along the other
            patterns, or other neurons whose length grows as much""",
        reading=BY_GATES
        + """; the growth along p_1 leads that along all other patterns, and other neurons keep
            their length, in place of bounds by xi, which Gaussian entries exceed at the start""",
    ),
    Claim(
        source="Lemma 2, claim 2",
        statement=r"""There exists $K(t), Q(t) > 0$, where $t$ is large enough before the end of
            training, such that [...] for $i = 1, 2$, $q_i(t) = \prod_{l=0}^{t-1} (1 + K(l)) q_i$,
            $r_i(t) = \prod_{l=0}^{t-1} (1 + Q(l)) r_i$. [In the proof of Theorem 1:] One can obtain
            $\Theta(\log T) = \|q_1(T)\|^2 = o(T)$.""",
        hypothesis=LUCKY,
        falsified_by="""a length of q_1 that falls, a direction that turns, or growth of |q_1|^2 in
            a doubling of t that is not that in the doubling before, through two decades, as
            growth with log t would be""",
    ),
    Claim(
        source="Lemma 2, claim 3",
        statement=r"""For the update of $W_V^{(t)}$, there exists $\lambda \leq \Theta(1)$ such that
            $W_V^{(t)} x_j^n = p_1 - \eta \sum_{b=1}^t \left( \sum_{i \in \mathcal{W}(b)} V_i(b)
            W_{O(i,\cdot)}^{(b)\top} + \sum_{i \notin \mathcal{W}(b)} \lambda V_i(b)
            W_{O(i,\cdot)}^{(b)\top} \right) + z_j(t)$, $j \in S^n_1$, [$V_i < 0$ for lucky neurons:
            the update] increases the magnitude of the value vectors of label-relevant tokens, by
            adding partial neuron weights of $W_O$ that are aligned with the value vectors to these
            vectors.""",
        hypothesis=LUCKY,
        falsified_by="""values of patterns 1 and 2 that do not grow, grow no more than those of the
            others, or do not grow along the lucky neurons""",
        reading=BY_GATES,
    ),
    Claim(
        source="Lemma 3",
        statement=r"""If the number of neurons $m$ is large enough such that $m \geq \epsilon_m^{-2}
            M^2 \log N$, the number of lucky neurons at the initialization $|\mathcal{W}(0)|,
            |\mathcal{U}(0)|$ satisfies $|\mathcal{W}(0)|, |\mathcal{U}(0)| \geq \frac{m}{M} \left(
            1 - \epsilon_m - \frac{(\sigma + \tau) M}{\pi} \right)$.""",
        hypothesis=LUCKY + r" $W_O^{(0)}$ has entries $N(0, \xi^2)$.",
        falsified_by="""fewer neurons within the angle sigma + tau of p_1 than that, with the least
            epsilon_m that is allowed; the share of a sphere in d dimensions inside such an
            angle""",
        proof=attention_limits.lemma_3,
    ),
    Claim(
        source="Lemma 4",
        statement=r"""Let $\mathcal{W}(t)$ and $\mathcal{U}(t)$ be defined in Definition 2. We then
            have $\mathcal{W}(0) \subseteq \mathcal{W}(t)$, $\mathcal{U}(0) \subseteq
            \mathcal{U}(t)$ as long as $B \gtrsim \Theta(1)$.""",
        hypothesis=LUCKY,
        falsified_by="a neuron that is lucky at the start and not at a later step",
        reading=BY_GATES,
    ),
    Claim(
        source="Section 4.1, initialization",
        statement=r"""To satisfy Assumption 1, we generate every token that is a noisy version of
            $\mu_i$ from a Gaussian distribution $N(\mu_i, c_0^2 I)$ [...]. $W_Q^{(0)} = W_Q^{(0)} =
            \delta^2 I / c_0^2$, $W_V^{(0)} = \sigma^2 U / c_0^2$ [...], where $U$ is an $m_a \times
            m_a$ orthonormal matrix, and $\xi = 0.01$.""",
        hypothesis=r"$c_0 = 0.01$, $\sigma = 0.1$, $\delta = 0.2$; the first $W_Q$ read as $W_K$.",
        falsified_by="""no orthonormal p and q within sigma and delta of what these matrices make of
            the patterns""",
        proof=attention_limits.printed_start,
    ),
    Claim(
        source="Figure 6a",
        statement=r"""Figure 6 (a) indicates that a larger $\alpha_*$ by removing more
            label-irrelevant tokens leads to higher test accuracy. Moreover, the test performance
            improves with more training samples.""",
        hypothesis=SECTION_4_2,
        falsified_by="""an accuracy that does not rise by 5 standard errors over seeds, with
            alpha_* at some N, or with N at some alpha_*""",
        reading="digits on a texture, a small network from scratch",
    ),
    Claim(
        source="Figure 6b",
        statement=r"""Figure 6 (b) presents the required sample complexity to learn a model with
            desirable test accuracy. We run 10 independent experiments for each pair of $\alpha_*$
            and $N$, and the experiment is considered a success if the learned model achieves a test
            accuracy of at least 77.5%. [It falls with $\alpha_*$.]""",
        hypothesis=SECTION_4_2,
        falsified_by="""a number of samples, for half of the trials to succeed, that is not larger
            with all of the background than without any""",
        reading="digits on a texture, a small network from scratch; the least N that is tried",
    ),
    Claim(
        source="Figure 6c",
        statement=r"""In Figure 6 (c), the token sparsification method removes the tokens of the
            added background, and the corresponding $\alpha_*$ increases. [...] Figure 6 (c) shows
            that from both initial models, the testing accuracy increases when more background
            tokens are removed.""",
        hypothesis=SECTION_4_2
        + """ Of one class 90 % of the training images have the background, of
            the other 10 %; of test images half.""",
        falsified_by="an accuracy that does not rise by 5 standard errors over seeds",
        reading="two digits and a texture, from scratch instead of two initial models",
    ),
)
