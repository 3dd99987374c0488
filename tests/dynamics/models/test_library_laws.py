"""Losses and laws of published models, typed in again from their docstrings in plain numpy."""

import itertools

import numpy as np
import pytest

import dynamics


def full(name, constants, **options):
    system = dynamics.load_system(name)
    return system.FullPopulation(system.Parameters(**constants), **options)


def state_of(*parts):
    return np.concatenate([np.ravel(part) for part in parts])


def softmax(scores):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


# A staircase of monomials, over the corners of the hypercube.
def corners(D, target):
    """Every corner, with the value of the target there."""
    for number in range(2**D):
        x = np.array([1.0 if number >> k & 1 else -1.0 for k in range(D)])
        one, two, three = x[0], x[0] * x[1], x[0] * x[1] * x[2]
        yield x, {"staircase": one + two + three, "leap": one + three, "parity": three}[target]


@pytest.mark.parametrize(
    ("target", "sizes"),
    [("staircase", {}), ("leap", {"D": 4, "neurons": 6}), ("parity", {"D": 3, "neurons": 5})],
)
def test_the_staircase_by_its_corners(target, sizes):
    D, neurons = sizes.get("D", 5), sizes.get("neurons", 12)
    problem, random = (
        full("merged_staircase", {"target": target, **sizes}),
        np.random.default_rng(3),
    )
    for scale in (0.2, 1.0, 3.0):
        W, a, b = (scale * random.standard_normal(n) for n in ((neurons, D), neurons, neurons))
        losses, products = [], {"F_1": [], "F_12": [], "F_123": []}
        for x, y in corners(D, target):
            F = sum(a[i] * np.tanh(w @ x + b[i]) for i, w in enumerate(W)) / neurons
            losses.append((F - y) ** 2 / 2)
            for count, values in enumerate(products.values(), 1):
                values.append(F * x[:count].prod())
        expected = {name: np.mean(values) for name, values in products.items()}
        expected |= {f"w_{k + 1}": np.sqrt(np.mean(W[:, k] ** 2)) for k in range(3)}
        state = state_of(W, a, b)
        found = problem.observables(state)
        assert problem.risk(state) == pytest.approx(np.mean(losses), rel=1e-12)
        assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-12)


# Documents with masked words, by what every true word is shown as.
def channel(words, masked, left, anything):
    """P(word as shown | true word, its place masked or not): two matrices, MASK the last column."""
    plain, hidden = np.zeros((2, words, words + 1))
    for true in range(words):
        plain[true, true] = 1.0
        hidden[true, true] += left
        for shown in range(words):
            hidden[true, shown] += anything / words
        hidden[true, words] += 1 - left - anything
    return (1 - masked) * plain + masked * hidden, hidden


OTHER = {"T": 4, "v": 3, "chosen": 3, "masked": 0.4, "left": 0.3, "random": 0.2, "decay": 0.05}
USUAL = {"T": 4, "v": 2, "chosen": 2, "masked": 0.15, "left": 0.1, "random": 0.1, "decay": 1e-3}


@pytest.mark.parametrize(("constants", "law"), [({}, USUAL), (OTHER, OTHER)])
def test_topics_by_their_documents(constants, law):
    words, random = law["T"] * law["v"], np.random.default_rng(4)
    seen, hidden = channel(words, law["masked"], law["left"], law["random"])
    problem = full("topic_model", constants)
    for scale in (0.3, 1.0):
        V, A = (scale * random.standard_normal((n, words + 1)) for n in (words, words + 1))
        risks = []
        for topics in itertools.combinations(range(law["T"]), law["chosen"]):
            own = [word for word in range(words) if word // law["v"] in topics]
            f = seen[own].mean(axis=0)
            assert f.sum() == pytest.approx(1.0)
            rows = [f[u] > 0 for u in range(words + 1)]
            risk = 0.0
            for true, q in itertools.product(own, range(words + 1)):
                answer = V[:, rows] @ softmax(A[q, rows] + np.log(f[rows]))
                loss = ((answer - np.eye(words)[true]) ** 2).sum() / 2
                risk += hidden[true, q] / len(own) * loss
            risks.append(risk)
        expected = np.mean(risks) + law["decay"] / 2 * (V**2).sum()
        assert problem.risk(state_of(V, A)) == pytest.approx(expected, rel=1e-12)


# Gaussian tokens, one of which holds the label: draws against draws.
@pytest.mark.parametrize(
    ("constants", "law"),
    [({}, {"d": 8, "L": 3, "gamma": 0.7}), ({"d": 4, "L": 5, "gamma": 0.4},) * 2],
)
def test_gaussian_tokens_by_draws(constants, law):
    """Within 4 standard errors of both sides, at random matrices and at zero; SE below 1%."""
    d, L, gamma, theirs, ours = law["d"], law["L"], law["gamma"], 30_000, 200_000
    problem = full("single_location_gaussian", constants, samples=theirs)
    random = np.random.default_rng(5)
    place, rows = random.integers(L, size=ours), np.arange(ours)
    X = random.normal(0.0, gamma, size=(ours, L, d))
    X[rows, place] += np.sqrt(d / 2) * np.eye(d)[0]
    y = X[rows, place] @ np.eye(d)[1]
    size = np.sqrt(1 / theirs + 1 / ours)
    for key, value in ((0.0, 0.0), (1.0, 0.3), (3.0, 0.5), (-1.0, 0.8)):
        k, v = 0.3 * abs(key) * random.standard_normal((2, d))
        k[0], v[1] = key, value
        weights = softmax(X @ k / np.sqrt(d))
        losses = ((weights * (X @ v)).sum(axis=1) - y) ** 2 / 2
        found, state = weights[rows, place], state_of(k, v)
        assert losses.std() * size < 0.01 * losses.mean()
        assert abs(problem.risk(state) - losses.mean()) < 4 * losses.std() * size
        error = problem.observables(state)["found"] - found.mean()
        assert abs(error) < 4 * found.std() * size + 1e-12


# An induction head, token by token.
def frame(D, flips, signs):
    """Unit vector i has coordinate i xor flips, and a sign for the bits it shares with signs."""
    rows = np.zeros((D, D))
    for i in range(D):
        rows[i, i ^ flips] = (-1.0) ** (i & signs).bit_count()
    return rows


def sequences(N, D):
    """Vectors of tokens and positions, and the label of the query, over the frames of the law.

    Frames of tokens are all products of Pauli matrices, of both signs. Those of positions come
    with them, and commute with M: a plane is turned where its tokens have their last sign.
    """
    M = np.kron(np.eye(D // 2), [[0.0, 1.0], [-1.0, 0.0]])
    for flips, signs, sign, pair in itertools.product(range(D), range(D), (1, -1), range(N)):
        tokens = sign * frame(D, flips, signs)
        planes = frame(D, flips & ~1 | signs & 1, signs)[1::2]
        vectors = []
        for item, label, p in zip(tokens[::2], tokens[1::2], planes[:N], strict=False):
            vectors += [np.append(item, p), np.append(label, M @ p)]
        yield [*vectors, np.append(tokens[2 * pair], planes[N])], tokens[2 * pair + 1]


def layer(vectors, W):
    """Every vector with, after it, the average over itself and those before it."""
    out = []
    for i, query in enumerate(vectors):
        seen = vectors[: i + 1]
        weights = [np.exp(query @ W @ key) for key in seen]
        average = sum(w * value for w, value in zip(weights, seen, strict=True)) / sum(weights)
        out.append(np.append(query, average))
    return out


@pytest.mark.parametrize(("N", "D"), [(1, 4), (2, 8)])
def test_the_induction_head_token_by_token(N, D):
    problem, random = full("induction_head", {"N": N}), np.random.default_rng(6)
    for scale in (0.1, 0.5):
        shapes = (2 * D, 2 * D), (4 * D, 4 * D), (D, 8 * D)
        W1, W2, W3 = (scale * random.standard_normal(shape) for shape in shapes)
        losses = []
        for vectors, label in sequences(N, D):
            out = W3 @ layer(layer(vectors, W1), W2)[-1]
            losses.append(((out - label) ** 2).sum() / 2)
        assert problem.risk(state_of(W1, W2, W3)) == pytest.approx(np.mean(losses), rel=1e-12)
