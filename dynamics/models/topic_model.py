r"""One layer of attention learns topics from masked words (Li, Li, Risteski 2023).

Each of T topics has v words. A document draws ``chosen`` topics, then infinitely many words from
these topics. A word is masked with probability ``masked``; a masked word is kept unchanged
(``left``), replaced by any word (``random``), or replaced by the word MASK. In the document after
masking, word u has the share :math:`f_u`. From the shares of all words, the model with attention
logits A and values V predicts the true word e at a masked place that shows the word q,

.. math:: \hat e = \sum_u V_{\cdot u}\, \mathrm{softmax}_u (A_{qu} + \ln f_u), \qquad
   R = \tfrac12 E \| \hat e - e \|^2 + \tfrac\lambda2 \|V\|^2 ,

with the weight decay :math:`\lambda` of V; the law is finite and enumerated exactly. Exchanges of
words and of topics are symmetries, so training closes on eight scalars. V has three scalars: for
words of the same topic, of another topic, and for MASK. A has five scalars: for the same topic,
another topic, and MASK as key, as query and as both. The paper first trains V under uniform
attention, then A; here all entries are trained at once from zero, and A has no gradient before V
has grown.

:T: number of topics
:v: number of words of each topic
:chosen: number of topics of a document
:masked: probability that a word is masked
:left: probability that a masked word is kept unchanged
:random: probability that a masked word is replaced by any word
:decay: weight decay of V, the :math:`\lambda` above
:V: values, true word by shown word
:A: logits of attention, query word by key word
:V_same: value of a word of the same topic
:V_other: value of a word of another topic
:V_mask: value of MASK
:A_same: logit of a word of the same topic
:A_other: logit of a word of another topic
:A_to_mask: logit of MASK, for a query that is a word
:A_of_mask: logit of a word, for the query MASK
:A_mask: logit of MASK, for the query MASK
:T_V: values of the own topic reach half of 1/v, those of a uniform prediction within the topic
:T_A: words attend to their own topic e times as much as to others
"""

from itertools import combinations, product
from math import comb

import numpy as np

SOURCE = "arXiv 2303.04245"
eta, steps = 1.0, 3000
limits = (
    "v >= 1",
    "T*v <= 60",
    "1 <= chosen < T",
    "0 < masked < 1",
    "left >= 0",
    "random >= 0",
    "left + random <= 1",
)
events = {"T_V": "V_same >= 1/(2*v)", "T_A": "A_same - A_other >= 1"}


def start(T=4, v=2):
    return {"V": np.zeros((T * v, T * v + 1)), "A": np.zeros((T * v + 1, T * v + 1))}


def names(T, v):
    own, other, mask = 0, v, T * v
    table = {"V_same": ("V", 0, own), "V_other": ("V", 0, other), "V_mask": ("V", 0, mask)}
    table |= {"A_same": ("A", 0, own), "A_other": ("A", 0, other), "A_to_mask": ("A", 0, mask)}
    return table | {"A_of_mask": ("A", mask, 0), "A_mask": ("A", mask, mask)}


def law(T, v, chosen=2, masked=0.15, left=0.1, random=0.1):
    """Probability of each sample: masked ``word``, ``share`` of each word, symbol ``query``."""
    words, topics = np.eye(T * v + 1), comb(T, chosen)
    for topic in combinations(range(T), chosen):
        own = [t * v + k for t in topic for k in range(v)]
        shown = random * np.append(np.full(T * v, 1 / (T * v)), 0) + (1 - left - random) * words[-1]
        share = (1 - masked) * words[own].mean(axis=0)
        share = share + masked * (left * words[own].mean(axis=0) + shown)
        for word, query in product(own, range(T * v + 1)):
            chance = (left * (query == word) + shown[query]) / topics / len(own)
            yield chance, {"share": share, "word": words[word][:-1], "query": words[query]}


def loss(theta, sample, xp, decay=1e-3):
    """Loss of one masked word, including the weight decay of V."""
    weights = sample["share"] * xp.exp(sample["query"] @ theta["A"])
    answer = theta["V"] @ weights / xp.sum(weights)
    return xp.sum((answer - sample["word"]) ** 2) / 2 + decay / 2 * xp.sum(theta["V"] ** 2)
