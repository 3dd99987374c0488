r"""Softmax attention learns in context on orthonormal features (Huang, Cheng, Liang 2023).

A prompt has N tokens drawn from K orthonormal features with probabilities p, and a query with
feature k; the label of a token is :math:`\langle w, x \rangle` with :math:`E[w w^T] = I`. One head
of softmax attention outputs the attention-weighted mean label, with a share
:math:`\mathrm{Attn}_m \propto n_m e^{Q_{km}}` on the :math:`n_m` tokens of feature m. The loss of a
prompt, averaged over the tasks w, is

.. math:: \tfrac12 (1 - \mathrm{Attn}_k)^2 + \tfrac12 \sum_{m \ne k} \mathrm{Attn}_m^2 ,

and the counts n are multinomial, so the law is finite and enumerated exactly. Feature 1 has the
probability ``p1``; all other features share the rest equally. ``A1`` is the entry of Q of feature 1
with itself, ``A2`` that of any other feature with itself (:math:`A_k` of the paper); ``B..`` are
entries of a query with another feature. Adding a constant to a row of Q leaves the attention
unchanged, so each row sum is conserved; for equal p, ``B = -A/(K-1)``. At each event the mean
attention of a query to its own feature reaches 95 % of its upper bound, which is the probability
that this feature is in the prompt.

:K: number of features
:N: number of tokens in a prompt
:p1: probability of feature 1
:Q: bilinear weights, query feature by token feature
:A*: weight of a query feature on itself
:B*: weight of a query feature on another feature
:attention_1: attention of a query of feature 1 to its own feature
:attention_2: attention of a query of another feature to its own feature
:T_1: queries of feature 1 reach 95 % of the largest possible attention
:T_2: queries of all other features reach 95 % of the largest possible attention
"""

import itertools
import math

import numpy as np

SOURCE = "arXiv 2310.05249"
eta, steps = 1.0, 3000
limits = ("2 <= K <= 10", "1 <= N <= 500", "0 < p1 < 1")
events = {
    "T_1": "attention_1 >= 19/20*(1 - (1 - p1)**N)",
    "T_2": "attention_2 >= 19/20*(1 - (1 - (1 - p1)/(K - 1))**N)",
}


def start(K=3):
    return {"Q": np.zeros((K, K))}


def law(K, N=6, p1=1 / 3):
    """Every prompt (counts ``n`` of features, one-hot ``query``) with its probability."""
    p = np.array([p1, *[(1 - p1) / (K - 1)] * (K - 1)])
    for bars in itertools.combinations(range(N + K - 1), K - 1):
        n = np.diff([-1, *bars, N + K - 1]) - 1
        chance = math.factorial(N) * np.prod([q**k / math.factorial(k) for q, k in zip(p, n)])
        for query in range(K):
            yield p[query] * chance, {"n": n.astype(float), "query": np.eye(K)[query]}


def attention(theta, sample, xp):
    """Attention of the query to all tokens of each feature, shape (K,)."""
    weights = sample["n"] * xp.exp(sample["query"] @ theta["Q"])
    return weights / xp.sum(weights)


def loss(theta, sample, xp):
    """Loss of one prompt, averaged in closed form over the random tasks."""
    return xp.sum((attention(theta, sample, xp) - sample["query"]) ** 2) / 2


def observe(theta, sample, xp, K, p1):
    """Attention of a query to its own feature, divided by the probability of the query."""
    own = attention(theta, sample, xp) @ sample["query"]
    first = sample["query"][0]
    return {"attention_1": first * own / p1, "attention_2": (1 - first) * own / (1 - p1)}


def names(K):
    pairs = {"A1": (0, 0), "B12": (0, 1), "A2": (1, 1), "B21": (1, 0), "B23": (1, 2 % K)}
    return {name: ("Q", *entry) for name, entry in pairs.items()}
