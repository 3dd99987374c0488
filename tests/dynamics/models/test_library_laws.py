"""Losses and laws of published models, typed in again from their docstrings in plain numpy."""

import itertools
from functools import cache

import numpy as np
import pytest

import dynamics
from dynamics.verdicts.library import statistical_induction as induction


def softmax(scores):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def attention_sink(theta, law):
    copies = law.W * law.xi / law.copied * (np.arange(law.V) < law.copied)
    sink = np.exp(theta["alpha"])[:, None]
    logits = (sink * theta["beta"] + copies) / (sink + law.W)
    added = np.mean(logits[:, 0] - logits[:, -1])
    attention = np.mean(sink / (sink + law.W))
    return {"risk": -np.log(softmax(logits)).mean(), "added": added, "attention": attention}


def memory_spikes(theta, law):
    E = np.array([[1.0, 0.0], [law.alpha, np.sqrt(1 - law.alpha**2)]])
    logits, p = E @ theta["W"], np.array([law.p, 1 - law.p])
    margins = np.array([1, -1]) * (logits[:, 0] - logits[:, 1])
    found = {"risk": p @ np.logaddexp(0, -margins), "error": p @ (margins <= 0)}
    return found | {"m_1": margins[0], "m_2": margins[1]}


def markov_attention(theta, law):
    """At the best bias."""
    (e, w), p, q = np.ravel([theta["e"], theta["w"]]), law.p, law.q
    z = (1 + 2 * w * abs(w)) * e**2
    root = np.sqrt((p - q) ** 2 + 4 * p * q * np.exp(z))
    bias = e**2 / 2 + np.log((p - q + root) / (2 * q * np.exp(z)))
    after_1, after_0 = (0.5 + 2 * w * abs(w)) * e**2 + bias, bias - e**2 / 2
    one = q * np.logaddexp(0, after_1) + (1 - q) * np.logaddexp(0, -after_1)
    zero = p * np.logaddexp(0, -after_0) + (1 - p) * np.logaddexp(0, after_0)
    return {"risk": (p * one + q * zero) / (p + q), "z": z}


def reversal_curse(theta, law):
    z, Y, right = theta["z"], theta["Y"], {"": [], "held_out_": []}
    for fact in range(law.both + 2 * law.one):
        first = 2 + 2 * fact
        only = 0 if fact < law.both + law.one else 1
        for arrow, (token, last) in enumerate(((first, first + 1), (first + 1, first))):
            weights = np.exp(z[arrow, [token, arrow]])
            f = weights / np.linalg.norm(weights)
            chance = softmax(f[0] * Y[token] + f[1] * Y[arrow])[last]
            right["" if fact < law.both or arrow == only else "held_out_"].append(chance)
    risks = {f"{kind}risk": -np.log(chances).mean() for kind, chances in right.items()}
    return risks | {f"{kind}known": np.mean(chances) for kind, chances in right.items()}


def scan_and_snap(theta, law):
    C, D, losses, common, first = law.common, law.distinct, [], [], []
    powers = law.ratio ** np.arange(D)
    for n in (0, 1):
        x, own = np.zeros(C + 2 * D), C + n * D
        x[:C], x[own : own + D] = law.share / C, (1 - law.share) * powers / powers.sum()
        b = x * np.exp(theta["z"]) / (x @ np.exp(theta["z"]))
        losses.append(-np.log(softmax(b @ theta["Y"] / np.linalg.norm(b))[n]))
        common.append(b[:C].sum())
        first.append(b[own] / b[own : own + D].sum())
    found = {"attention_c": np.mean(common), "attention_d": np.mean(first)}
    return found | {"risk": np.mean(losses)}


def inputs_of_selection(law):
    X = np.random.default_rng(law.draw).normal(0, law.spread, (law.inputs, 7, 2))
    X[:, 0] += (1, 0)
    X[:, 1:4] += (-1, 1)
    X[:, 4:] += (-0.5, -0.5)
    return X


def token_selection(theta, law):
    shares = softmax(inputs_of_selection(law) @ theta["p"])
    f = shares @ [1, *[law.other] * 6]
    found = {"risk": np.log1p(np.exp(-f)).mean(), "selected": shares[:, 0].mean()}
    return found | {"norm": np.linalg.norm(theta["p"])}


def merged_staircase(theta, law):
    W, a, b = theta["W"], theta["a"], theta["b"]
    losses, products = [], {"F_1": [], "F_12": [], "F_123": []}
    for x in itertools.product((-1.0, 1.0), repeat=law.D):
        one, two, three = np.cumprod(x[:3])
        y = {"staircase": one + two + three, "leap": one + three, "parity": three}[law.target]
        F = sum(a[i] * np.tanh(w @ x + b[i]) for i, w in enumerate(W)) / law.neurons
        losses.append((F - y) ** 2 / 2)
        for product, values in zip((one, two, three), products.values(), strict=True):
            values.append(F * product)
    found = {name: np.mean(values) for name, values in products.items()}
    found |= {f"w_{k + 1}": np.sqrt(np.mean(W[:, k] ** 2)) for k in range(3)}
    return found | {"risk": np.mean(losses)}


def topic_model(theta, law):
    """Documents with masked words; a word is shown as itself, another or MASK, the last one."""
    words, V, A, risks = law.T * law.v, theta["V"], theta["A"], []
    hidden = np.zeros((words, words + 1))
    for true in range(words):
        hidden[true, :words] = law.random / words
        hidden[true, true] += law.left
        hidden[true, words] = 1 - law.left - law.random
    seen = (1 - law.masked) * np.eye(words, words + 1) + law.masked * hidden
    for topics in itertools.combinations(range(law.T), law.chosen):
        own = [word for word in range(words) if word // law.v in topics]
        f = seen[own].mean(axis=0)
        rows = f > 0
        risk = 0.0
        for true, q in itertools.product(own, range(words + 1)):
            answer = V[:, rows] @ softmax(A[q, rows] + np.log(f[rows]))
            loss = ((answer - np.eye(words)[true]) ** 2).sum() / 2
            risk += hidden[true, q] / len(own) * loss
        risks.append(risk)
    return {"risk": np.mean(risks) + law.decay / 2 * (V**2).sum()}


def layer(rows, A):
    """Every row with, after it, the average over itself and those before it."""
    out = []
    for i, query in enumerate(rows):
        weights = np.exp([query @ A @ key for key in rows[: i + 1]])
        average = sum(w * value for w, value in zip(weights, rows, strict=False)) / weights.sum()
        out.append(np.append(query, average))
    return out


def causal_tree(theta, law):
    parents, risk = (None, 0, 0, 1, 2), 0.0
    z, w = np.polynomial.legendre.leggauss(law.nodes)
    z, w = (z + 1) / 2, w / 2
    for *s, y in itertools.product((0, 1), repeat=7):
        chance = 0.0
        for (a, p), (b, q) in itertools.product(zip(z, w, strict=True), repeat=2):
            chain = np.array([[1 - a, a], [b, 1 - b]])
            by_nodes = (a if s[0] else b) / (a + b) / 2 * chain[s[5], y]
            for place in range(1, 5):
                by_nodes *= chain[s[parents[place]], s[place]]
            chance += p * q * by_nodes
        rows = np.array([[*np.eye(2)[s[i]], *np.eye(6)[i]] for i in range(6)])
        logits = theta["W"] @ layer(layer(rows, theta["A1"]), theta["A2"])[-1]
        risk -= chance * np.log(softmax(logits)[y])
    return {"risk": risk}


@cache
def chance_of_symbols(x, balanced):
    """Of a sequence; the square of transition probabilities is cut along its diagonal."""
    z, w = np.polynomial.legendre.leggauss(16)
    z, w, total = (z + 1) / 2, w / 2, 0.0
    for (r, p), (t, q) in itertools.product(zip(z, w, strict=True), repeat=2):
        pairs = [(1.0, r, r)] if balanced else [(r, r, r * t), (r, r * t, r)]
        for density, up, down in pairs:
            chance = (up if x[0] else down) / (up + down)
            for a, b in itertools.pairwise(x):
                move = down if a else up
                chance *= move if a != b else 1 - move
            total += p * q * density * chance
    return total


def statistical_induction(theta, law):
    W, v, risk = theta["W"], theta["v"], 0.0
    for x in itertools.product((0, 1), repeat=law.L + 1):
        h = [softmax(v[: j + 1][::-1]) @ np.eye(2)[list(x[: j + 1])] for j in range(law.L)]
        losses = []
        for i in range(law.L):
            logits = np.zeros(2)
            for j in range(i + 1):
                logits[x[j]] += W[x[i]] @ h[j]
            losses.append(-np.log(softmax(logits)[x[i + 1]]))
        risk += chance_of_symbols(x, law.chains == "balanced") * np.mean(losses)
    return {"risk": risk, "previous": softmax(v)[1]}


def frame(D, flips, signs):
    """Unit vector i has coordinate i xor flips, and a sign for the bits it shares with signs."""
    rows = np.zeros((D, D))
    for i in range(D):
        rows[i, i ^ flips] = (-1.0) ** (i & signs).bit_count()
    return rows


def induction_head(theta, law):
    """Token by token, over the frames of the law.

    Frames of tokens are all products of Pauli matrices, of both signs. Those of positions come
    with them, and commute with M: a plane is turned where its tokens have their last sign.
    """
    N, D, losses = law.N, len(theta["W3"]), []
    M = np.kron(np.eye(D // 2), [[0.0, 1.0], [-1.0, 0.0]])
    for flips, signs, sign, pair in itertools.product(range(D), range(D), (1, -1), range(N)):
        tokens = sign * frame(D, flips, signs)
        planes = frame(D, flips & ~1 | signs & 1, signs)[1::2]
        vectors = []
        for item, label, p in zip(tokens[::2], tokens[1::2], planes[:N], strict=False):
            vectors += [np.append(item, p), np.append(label, M @ p)]
        vectors.append(np.append(tokens[2 * pair], planes[N]))
        out = theta["W3"] @ layer(layer(vectors, theta["W1"]), theta["W2"])[-1]
        losses.append(((out - tokens[2 * pair + 1]) ** 2).sum() / 2)
    return {"risk": np.mean(losses)}


LAWS = [
    (attention_sink, {}), (attention_sink, {"V": 5, "copied": 2, "W": 7.0, "xi": 2.0}),
    (memory_spikes, {}), (memory_spikes, {"p": 0.6, "alpha": 0.3}),
    (markov_attention, {}), (markov_attention, {"p": 0.2, "q": 0.5}),
    (reversal_curse, {}), (reversal_curse, {"both": 2, "one": 3}),
    (scan_and_snap, {}), (scan_and_snap, {"common": 3, "distinct": 5, "ratio": 0.6, "share": 0.4}),
    (token_selection, {}), (token_selection, {"inputs": 2, "other": 0.3, "draw": 1}),
    (merged_staircase, {}), (merged_staircase, {"target": "leap", "D": 4, "neurons": 6}),
    (merged_staircase, {"target": "parity", "D": 3, "neurons": 5}), (topic_model, {}),
    (topic_model, {"T": 4, "v": 3, "chosen": 3, "masked": 0.4, "left": 0.3, "random": 0.2,
                   "decay": 0.05}),
    (causal_tree, {"nodes": 4}), (statistical_induction, {"L": 4}),
    (statistical_induction, {"L": 4, "chains": "balanced"}),
    (induction_head, {"N": 1}), (induction_head, {"N": 2}),
]  # fmt: skip


@pytest.mark.parametrize(("twin", "constants"), LAWS)
def test_the_law_is_that_of_plain_numpy(twin, constants):
    system, random = dynamics.load_system(twin.__name__), np.random.default_rng(3)
    law = system.Parameters(**constants)
    full = system.FullPopulation(law)
    for scale in (0.05, 0.7):
        state = scale * random.standard_normal(full.layout.size)
        theta = {name: full.layout.part(state, name) for name in full.layout.names}
        found = {"risk": full.risk(state), **full.observables(state)}
        rel = 1e-9 if twin is statistical_induction else 1e-12  # by the nodes of both integrals
        for name, value in twin(theta, law).items():
            assert found[name] == pytest.approx(value, rel=rel, abs=1e-12), name


def test_the_bayes_risk_is_that_of_posterior_means():
    """By free chains, two places: P(next = 1 | x_0) and so on, from sequences of three."""
    total = 0.0
    for n in (2, 3):
        for x in itertools.product((0, 1), repeat=n):
            p, before = (sum(chance_of_symbols((*x[:-1], y), False) for y in ends)
                         for ends in (x[-1:], (0, 1)))  # fmt: skip
            total -= p * np.log(p / before) / 2
    system = dynamics.load_system("statistical_induction")
    assert induction.bayes_risk(system, system.Parameters(L=2)) == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("constants", [{}, {"d": 4, "L": 5, "gamma": 0.4}])
def test_gaussian_tokens_by_draws(constants):
    """Within 4 standard errors of both sides, at random matrices and at zero; SE below 1%."""
    system, theirs, ours = dynamics.load_system("single_location_gaussian"), 30_000, 200_000
    law = system.Parameters(**constants)
    problem, random = system.FullPopulation(law, samples=theirs), np.random.default_rng(5)
    place, rows = random.integers(law.L, size=ours), np.arange(ours)
    X = random.normal(0.0, law.gamma, size=(ours, law.L, law.d))
    X[rows, place] += np.sqrt(law.d / 2) * np.eye(law.d)[0]
    y = X[rows, place] @ np.eye(law.d)[1]
    size = np.sqrt(1 / theirs + 1 / ours)
    for key, value in ((0.0, 0.0), (1.0, 0.3), (3.0, 0.5), (-1.0, 0.8)):
        k, v = 0.3 * abs(key) * random.standard_normal((2, law.d))
        k[0], v[1] = key, value
        weights = softmax(X @ k / np.sqrt(law.d))
        losses = ((weights * (X @ v)).sum(axis=1) - y) ** 2 / 2
        found, state = weights[rows, place], np.concatenate([k, v])
        assert losses.std() * size < 0.01 * losses.mean()
        assert abs(problem.risk(state) - losses.mean()) < 4 * losses.std() * size
        error = problem.observables(state)["found"] - found.mean()
        assert abs(error) < 4 * found.std() * size + 1e-12
