r"""The statements of Huang, Wen, Chi, Liang (2024), each worded as the paper words it.

The text at hand has lost its formulas. Claims whose content is in one are marked ``re_derived``:
the formula is derived anew where it can be, and recalled where it is an order of magnitude or a
threshold in log P. The others say in words what they claim. Area 0 is the global one, which the
paper numbers 1; m is p's area, :math:`\alpha_{p \to v}` and :math:`\beta_{p \to q}` are the rates
of Phi and Ups, :math:`\Upsilon^{(k)}` is the part of Ups that images of cluster k contributed.
"""

from __future__ import annotations

from theory.claims import Claim
from theory.papers.masked_image_modeling import information_gap, lemmas

LAW = r"""Definition 2.1 and Assumptions 2.2 to 2.4; $Q^{(0)} = 0$, GD on the population loss (2.8),
    masking ratio $\gamma = \Theta(1)$."""
POSITIVE = LAW + r" Information gap $\Delta \geq \Omega(1)$, $P$ sufficiently large."
NEGATIVE = LAW + r" Information gap $\Delta \leq -\Omega(1)$, $P$ sufficiently large."
BOTH = LAW + r" $|\Delta| \geq \Omega(1)$, $P$ sufficiently large."

CLAIMS = (
    Claim(
        source="Appendix A.1",
        statement=r"""[The rows of $Q$ along features stay zero, $v^\top Q^{(t)} = 0$,] since
            $v^\top \tilde X_p = 0$ when $p \in M$, due to orthogonality. Thus, in the following, we
            only need to consider the case $p \in M$: the row $e_p^\top Q$ moves by the loss of the
            patch $p$ alone.""",
        hypothesis=LAW,
        falsified_by="an entry v^T Q that leaves 0, or a gradient of one row that sees another",
        proof=lemmas.live_entries,
    ),
    Claim(
        source="Lemma A.8",
        statement=r"""The population loss can be decomposed into the following form: $\mathcal{L}_p
            = \frac1K \sum_k \frac12 E\left[1\{p \in M\}\left(z_m^2 (1 - A_m)^2 + \sum_{a \neq m}
            z_a^2 A_a^2\right)\right]$.""",
        hypothesis=LAW,
        falsified_by="a mask and attention for which the squared distance differs from it",
        proof=lemmas.lemma_a_8,
        re_derived=True,
    ),
    Claim(
        source="Lemma 5.1",
        statement=r"""1. for the same area, $\alpha_{p \to v_{k,m}} = \frac1K E[1\{p \in M\} z_m A_m
            (z_m^2 (1 - A_m)^2 + \sum_{a \neq m} z_a^2 A_a^2)]$; 2. if $m \neq 0$, for the global
            area, and 3. for other area $i$, $\alpha_{p \to v_{k,i}} = -\frac1K E[1\{p \in M\} z_i
            A_i (z_i^2 A_i (1 - A_i) + z_m^2 A_m (1 - A_m) - \sum_{a \neq m, i} z_a^2 A_a^2)]$.""",
        hypothesis=LAW,
        falsified_by="a gradient by Phi that differs from it at some Q",
        proof=lemmas.lemma_5_1,
        re_derived=True,
    ),
    Claim(
        source="Lemma 5.2",
        statement=r"""$\beta_{p \to q} = \sum_k \beta^{(k)}_{p \to q}$, where $\beta^{(k)}_{p \to q}
            = \frac1K E[1\{p \in M\} u_q (b_q - r)]$ with $b_q = z_m^2 (1 - A_m)$ for an unmasked
            $q$ of the same area, $-z_a^2 A_a$ for an unmasked $q$ of another area $a$, 0 for a
            masked one, and $r = \sum_q u_q b_q$.""",
        hypothesis=LAW,
        falsified_by="a gradient by Ups that differs from it at some Q",
        proof=lemmas.lemma_5_2,
        re_derived=True,
    ),
    Claim(
        source="Equation (5.1)",
        statement=r"""We further introduce the PP attention correlation projected on the $k$-th
            cluster, $\Upsilon^{(k)}_{p \to q}$, updated by $\eta \beta^{(k)}_{p \to q}$. We can
            directly verify that $\Upsilon_{p \to q} = \sum_k \Upsilon^{(k)}_{p \to q}$.""",
        hypothesis=LAW,
        falsified_by="""a sum over clusters that differs from Ups, or rates of Ups whose sum over q,
            which is zero cluster by cluster, is not""",
        proof=lemmas.conserved_sum,
        re_derived=True,
    ),
    Claim(
        source="Equation (4.1)",
        statement=r"""The information gap is $\Delta = (1 - \kappa_s) - 2 (1 - \kappa_c)$. [At the
            start] $|\alpha_{p \to v_{k,0}}| \gg \alpha_{p \to v_{k,m}}$ attributed to $\Delta \geq
            \Omega(1)$. However, in cases where $\Delta \leq -\Omega(1)$, this relationship
            reverses.""",
        hypothesis=BOTH + r" $p$ in a local area, $m \neq 0$.",
        falsified_by="ln rho(0) / ln P whose sign is not that of Delta, or that moves away from it",
        proof=information_gap.gap,
        re_derived=True,
    ),
    Claim(
        source="Section 5.1, monotone",
        statement=r"""The feature correlation $\Phi_{p \to v_{k,m}}$ exhibits a monotonically
            increasing trend over time because $\alpha_{p \to v_{k,m}} \geq 0$. Furthermore, if $m
            \neq 0$, i.e. $P_{k,m}$ is the local area, $\Phi_{p \to v_{k,0}}$ will monotonically
            decrease.""",
        hypothesis=LAW,
        falsified_by="a step at which Phi_m falls or, of a local patch, Phi_0 rises",
    ),
    Claim(
        source="Section 5.1, key observation",
        statement=r"""The gradient of projected PP attention $\beta^{(k)}_{p \to q}$ is smaller than
            the corresponding FP gradient $\alpha_{p \to v_{k, a_{k,q}}}$ in magnitude since $u_q
            \leq A_{a_{k,q}}$.""",
        hypothesis=LAW,
        falsified_by="a step with a rate of Ups larger than that of Phi of the same area",
        reading="image by image, for an unmasked q at z = 1, where u_q <= A is what decides",
    ),
    Claim(
        source="Section 5.2, stage 1",
        statement=r"""$\Phi_{p \to v_{k,0}}$ enjoys a much larger decreasing rate initially [...],
            such an effect will dominate over a certain period that defines stage 1 of phase I. At
            the end of this stage, we will have $\Phi_{p \to v_{k,0}} \leq -(\frac\Delta2 - 0.01)
            \frac{\log P}{U}$, whereas all FP attention correlation $\Phi_{p \to v_{k,a}}$ with $a
            \neq 0$ and all projected PP correlations stay close to 0.""",
        hypothesis=POSITIVE + " $p$ in a local area.",
        falsified_by="""a threshold that is reached only after rho has fallen to 1 (E1p after E2),
            or Phi_m that is no smaller than |Phi_0| there""",
        re_derived=True,
    ),
    Claim(
        source="Lemma 5.3",
        statement=r"""For $p \in P_{k,m}$, $m \neq 0$, there exists $\tilde T_{p,1}$, such that at
            iteration $\tilde T_{p,1} + 1$, we have a. $\Phi_{p \to v_{k,m}} \geq \Omega(\log P)$,
            and $\Phi_{p \to v_{k,0}} \in [-O(\log P), -\Omega(\log P)]$; b. all other FP
            correlations $\Phi_{p \to v_{k,a}}$ with $a \neq m, 0$ are small; c. all projected PP
            correlations are small.""",
        hypothesis=POSITIVE,
        falsified_by="""no time at which rho falls to 1, or no E3 after it, or another Phi or an Ups
            of the size of Phi_m there""",
        proof=information_gap.lemma_5_3,
        re_derived=True,
        reading="""the iteration, whose definition is lost, is the first one after the switch at
            which Phi_m is (0.01 + 0.1 (1 - kappa_s)) ln P""",
    ),
    Claim(
        source="Section 5.2, intuition",
        statement=r"""Once $\Phi_{p \to v_{k,0}}$ decreases to $-\frac{\Delta}{2} \log P$, we
            observe that $|\alpha_{p \to v_{k,0}}|$ is approximately equal to $\alpha_{p \to
            v_{k,m}}$. After this point, reducing $\Phi_{p \to v_{k,0}}$ further is more challenging
            compared to the increase in $\Phi_{p \to v_{k,m}}$.""",
        hypothesis=POSITIVE + " $p$ in a local area.",
        falsified_by="""Phi_0 at the switch far from that depth, or a rho that returns above 1 after
            it""",
        reading="up to a constant in Phi_0: e^-Phi_0 is of the order of P^(Delta/2)",
        re_derived=True,
    ),
    Claim(
        source="Section 5.2, separation",
        statement=r"""During stage 1, the significant decrease of the global FP correlation leads to
            a reduction in the attention score $A_0$. Meanwhile, attention scores $A_a$ (where $a
            \neq 0$) for other patches remain consistent, reflecting a uniform distribution over
            unmasked patches within each area.""",
        hypothesis=POSITIVE + " $p$ in a local area.",
        falsified_by="""attention to the own area that has grown by a fixed factor before the
            switch, however large P is: phases that last equally long in units of P^(1 -
            kappa_s)""",
    ),
    Claim(
        source="Section 5.3, rapid growth",
        statement=r"""At the beginning of phase II, $\alpha_{p \to v_{k,m}}$ is mainly driven by
            $A_m$ since $1 - A_m$ remains at the constant order. Therefore, the growth of $\Phi_{p
            \to v_{k,m}}$ naturally results in a boost in $A_m$, thereby promoting an increase in
            its own gradient, which defines the rapid growth stage.""",
        hypothesis=POSITIVE + " $p$ in a local area.",
        falsified_by="alpha_m that does not grow between the switch and A_m = 1/2",
    ),
    Claim(
        source="Section 5.3, convergence",
        statement=r"""The growth of $\Phi_{p \to v_{k,m}}$ starts to decelerate as $\Phi_{p \to
            v_{k,m}}$ reaches $\Theta(\log P)$, resulting in $A_m \approx \Omega(1)$, which leads to
            convergence.""",
        hypothesis=POSITIVE + " $p$ in a local area.",
        falsified_by="""alpha_m that peaks far from A_m = 1/2, or a loss that does not go to its
            floor""",
    ),
    Claim(
        source="Theorem 4.1, loss",
        statement=r"""For any $0 < \epsilon < 1$, suppose $\mathrm{polylog}(P) \gg
            \log(1/\epsilon)$. We apply GD to train the MIM loss function given in (2.8) with $\eta
            \ll \mathrm{poly}(P)$. Then for each patch $p$, the loss converges: after $T^\star =
            O\left(\frac1\eta \log(P) P^{\max\{2(U/L - 1),\, 1 - \kappa_s\}} +
            \frac{1}{\eta\epsilon} \log(P/\epsilon)\right)$ iterations, $\mathcal{L}_p -
            \mathcal{L}_p^\star \leq \epsilon$.""",
        hypothesis=BOTH,
        falsified_by="""a loss above its floor that falls more slowly than 1/t, or a time to a fixed
            epsilon that grows faster than P^(1 - kappa_s) log P at z = 1""",
        re_derived=True,
        one_sided=True,
    ),
    Claim(
        source="Theorem 4.1, attention",
        statement=r"""Area-wide pattern of attention: given cluster $k$, if $X_p$ is masked, then
            the one-layer transformer nearly pays all attention to all unmasked patches in the same
            area $P_{k,m}$, i.e. $(1 - A_m)^2 \leq O(\epsilon)$.""",
        hypothesis=BOTH,
        falsified_by="""own attention, given an unmasked patch of the area, that does not go to 1 as
            the loss goes to its floor""",
        re_derived=True,
        one_sided=True,
    ),
    Claim(
        source="Theorem F.3, local areas",
        statement=r"""Local area learning feature attention correlation through two-phase: given
            $k$, if $m \neq 0$, then (a) $\Phi_{p \to v_{k,0}}$ first quickly decrease with all
            other $\Phi_{p \to v_{k,a}}$, $\Upsilon_{p \to q}$ not changing much; (b) after some
            point, the increase of $\Phi_{p \to v_{k,m}}$ takes dominance.""",
        hypothesis=POSITIVE,
        falsified_by="rho below 1 throughout although Delta is positive, or more than one crossing",
        reading="in Phase I all others stay below |Phi_0|; two phases, with one switch",
    ),
    Claim(
        source="Theorem F.3, frozen",
        statement=r"""Such $\Phi_{p \to v_{k,m}}$ will keep growing until convergence with all other
            feature and positional attention correlations nearly unchanged.""",
        hypothesis=POSITIVE + " $p$ in a local area, after the switch.",
        falsified_by="""another correlation that changes after the switch by a share of the growth
            of Phi_m that does not vanish, or by as much as before the switch""",
    ),
    Claim(
        source="Theorem F.3, global areas",
        statement=r"""Core area learning feature attention correlation through one-phase: given $k$,
            if $m = 0$, throughout the training, the increase of $\Phi_{p \to v_{k,0}}$ dominates,
            whereas all $\Phi_{p \to v_{k,a}}$ with $a \neq 0$ and position attention correlations
            remain close to 0.""",
        hypothesis=BOTH,
        falsified_by="""a rate of another correlation of a global patch above that of its own
            feature""",
    ),
    Claim(
        source="Theorem F.4",
        statement=r"""All areas learning feature attention correlation through one-phase: given $k$,
            throughout the training, the increase of $\Phi_{p \to v_{k,m}}$ dominates, whereas all
            $\Phi_{p \to v_{k,a}}$ with $a \neq m$ and position attention correlations $\Upsilon_{p
            \to q}$ remain close to 0.""",
        hypothesis=NEGATIVE,
        falsified_by="a time at which rho exceeds 1 although Delta is negative",
    ),
    Claim(
        source="Section 5.4, PP",
        statement=r"""For every cluster $k$ [...], the projected PP correlation $\Upsilon^{(k)}_{p
            \to q}$ remains nearly zero in comparison to the significant changes observed in the FP
            correlation, because the gradient is relatively negligible. Therefore, the overall PP
            correlation also stays close to zero, given that the number of clusters $K =
            \Theta(1)$.""",
        hypothesis=BOTH,
        falsified_by="""an Ups of the size of Phi_m, which a small local area gives: Ups_own is
            about Phi_m / (C_s - 1)""",
    ),
    Claim(
        source="Lemma A.1",
        statement=r"""The gradient of the loss function with respect to $Q$ is given by $\nabla_Q
            \mathcal{L} = -E\left[\sum_{p \in M} \sum_q u_{pq} \langle X_p - F_p, 1\{q \notin M\}
            X_q - F_p \rangle \tilde X_p \tilde X_q^\top\right]$. We begin with the chain rule and
            focus on the gradient for each attention score.""",
        hypothesis=LAW,
        falsified_by="an entry of the gradient, or a slope of the loss, that differs at some Q",
        proof=lemmas.lemma_a_1,
        re_derived=True,
    ),
    Claim(
        source="Equation (3.2)",
        statement=r"""Given a masked input, for the attention of area $P_{k,a}$ it holds that [it
            is] $\sum_{q \in P_{k,a}, q \notin M} u_{pq} + \sum_{q \in P_{k,a}, q \in M} u_{pq}$,
            where the first term is proportional to $e^{z_a \Phi_{p \to v_{k,a}}}$. Apparently,
            the attention scores are balanced by the relative magnitude between $\Phi$ and
            $\Upsilon$.""",
        hypothesis=LAW,
        falsified_by="attention to an area, computed from the vectors, that differs from it",
        re_derived=True,
    ),
    Claim(
        source="Section 3.1",
        statement=r"""[In supervised learning of a single cluster, without masks,] the optimal
            attention mechanism can depend solely on the positional encodings. [...] When various
            patterns appear in the data distribution (e.g., in our settings with more than one
            cluster), relying solely on positional correlations is insufficient.""",
        hypothesis=LAW
        + " Several clusters, and a patch that has no mate in common to all of them.",
        falsified_by="""Ups that bring the loss of every patch near its floor although clusters
            cross, or Phi that do not; Ups that do not do so in one cluster, p alone masked""",
    ),
    Claim(
        source="Lemma A.6",
        statement=r"""Under the random masking strategy, $|U \cap P_{k,a}|$ follows the
            hypergeometric distribution. For [the event that it is within half of its mean $(1 -
            \gamma) C_{k,a}$] we have $P \geq 1 - 2 e^{-c C_{k,a}}$, where $c > 0$ is some
            constant.""",
        hypothesis=r"Definition 2.5, masking ratio $\gamma = \Theta(1)$.",
        falsified_by="a chance of the complement above 2 exp(-c C) with c = (1 - gamma)^2 / 2",
        re_derived=True,
        one_sided=True,
    ),
    Claim(
        source="Lemma A.7",
        statement=r"""We have $P(|U \cap P_{k,a}| = 0) \leq e^{-c C_{k,a}}$, where $c > 0$ is some
            constant, by the form of the probability density.""",
        hypothesis=r"Definition 2.5, masking ratio $\gamma = \Theta(1)$.",
        falsified_by="an area that is masked as a whole more often than exp(-c C), c = ln(1/gamma)",
        re_derived=True,
        one_sided=True,
    ),
    Claim(
        source="Lemma A.9",
        statement=r"""$\mathcal{L}_p^\star$ denotes the minimum value of the population loss in
            (A.7), and $\mathcal{L}_p^{low}$ represents the unavoidable errors for $p$, given that
            all the patches in $P_{k,m}$ are masked. We will show that $\mathcal{L}_p^{low}$ serves
            as a lower bound for $\mathcal{L}_p^\star$, and demonstrate that the network trained
            with GD will attain nearly zero error compared to $\mathcal{L}_p^{low}$.""",
        hypothesis=LAW,
        falsified_by="""a loss below (1/K) sum_k E[z^2] P(own area masked) / 2, or descent that
            stays away from it""",
        proof=lemmas.unavoidable,
        re_derived=True,
        one_sided=True,
    ),
    Claim(
        source="Lemma A.10",
        statement=r"""For any $Q$ we have $\tilde{\mathcal{L}}_p \leq \mathcal{L}_p -
            \mathcal{L}_p^{low} \leq \tilde{\mathcal{L}}_p + O(e^{-c C_{k,m}})$, [with
            $\tilde{\mathcal{L}}_p$ the loss over the masks of Lemma A.6]. The lower bound is
            directly obtained by the definition; the last inequality follows from Lemma A.6.""",
        hypothesis=LAW,
        falsified_by="a Q at which the difference is negative, or above U^2 2 exp(-c C)",
        re_derived=True,
        one_sided=True,
    ),
    Claim(
        source="Section 6",
        statement="""Lower values of the attention diversity metric signify a focused attention on a
            coherent area across different patches, reflecting a global pattern of focus. On the
            other hand, higher values suggest that attention is dispersed, focusing on different,
            localized areas.""",
        hypothesis="""The metric of Section 6, top-$k$ keys of every query, on attention of the
            model on an image without masks.""",
        falsified_by="""equal values of the metric for attention that is nearly uniform and
            attention that has become local""",
    ),
    Claim(
        source="Figure 3",
        statement="""It can be seen that the MIM model is particularly effective in learning more
            diverse attention patterns, setting it apart from other models that prioritize a uniform
            global information with less attention diversity.""",
        hypothesis="""ViT-B/16 trained on ImageNet-1K as MAE, MoCo v3, DINO and DeiT (supervised);
            attention heads of the last layer, top 10 keys, 152 images.""",
        falsified_by="""an attention diversity after masked reconstruction that is not above that of
            supervised training by 5 standard errors over seeds, with one layer or with two""",
        reading="against supervised training only, by small networks on the digits",
    ),
)
