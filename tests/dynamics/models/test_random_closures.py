"""Random models whose planted classes and laws are found, and hold at 30 digits of descent."""

from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

import dynamics

FUNCTIONS = ("polynomial", "tanh", "softmax", "kink")
STEPS, ETA, DIGITS = 40, "0.002", 30


class Planted:
    """Blocks of entries that enter by one combination each; two that keep u v; some at rest."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.kind = FUNCTIONS[seed % len(FUNCTIONS)]
        sizes = rng.integers(1, 4, rng.integers(2, 4))
        self.owner = np.repeat(np.arange(sizes.size), sizes)
        self.starts = np.round(rng.uniform(-1, 1, sizes.size), 2)[self.owner]
        self.targets = np.round(rng.uniform(0.5, 2.0, sizes.size), 2)
        # Entries of a block are alike, or stand on a general direction.
        general = rng.integers(0, 2, sizes.size).astype(bool)[self.owner]
        self.factors = np.where(general, np.round(rng.uniform(0.2, 2.0, general.size), 1), 1.0)
        self.blocks, self.rest = sizes.size, int(rng.integers(0, 3))
        self.pair = bool(rng.integers(0, 2))

    def start(self):
        arrays = {"w": self.starts, "p": np.array([0.9, 0.4]), "rest": np.full(self.rest, 0.5)}
        kept = {"w": True, "p": self.pair, "rest": self.rest > 0}
        return {name: array for name, array in arrays.items() if kept[name]}

    def risk(self, theta, xp):
        join = (self.owner[None] == np.arange(self.blocks)[:, None]) * self.factors
        s = join @ theta["w"]
        value = {
            "polynomial": lambda: s**3 + s, "tanh": lambda: xp.tanh(s),
            "softmax": lambda: xp.softmax(self.targets * s), "kink": lambda: s + xp.relu(s - 50),
        }[self.kind]()  # fmt: skip
        risk = xp.sum((value - self.targets) ** 2) + (s[0] * s[-1]) ** 2 / 8
        if self.pair:
            risk += (theta["p"][0] ** 2 - theta["p"][1] ** 2 - 1) ** 2 / 4
        return risk

    def gradient(self, state):
        """The gradient by every entry, in the order of `start`."""
        t = [exact(x) for x in self.targets]
        c = [exact(x) for x in self.factors]
        w, others = state[: len(c)], state[len(c) :]
        s = [mp.mpf(0)] * self.blocks
        for b, x, y in zip(self.owner, c, w, strict=True):
            s[b] += x * y
        if self.kind == "softmax":
            p = [mp.exp(a * b) for a, b in zip(t, s, strict=True)]
            p = [x / mp.fsum(p) for x in p]
            mean = mp.fsum(2 * (a - b) * a for a, b in zip(p, t, strict=True))
            slope = [b * a * (2 * (a - b) - mean) for a, b in zip(p, t, strict=True)]
        else:
            f, df = {
                "polynomial": (lambda x: x**3 + x, lambda x: 3 * x**2 + 1),
                "tanh": (mp.tanh, lambda x: 1 - mp.tanh(x) ** 2),
                "kink": (lambda x: x + max(x - 50, 0), lambda x: 1 + (x > 50)),
            }[self.kind]
            slope = [2 * (f(x) - a) * df(x) for x, a in zip(s, t, strict=True)]
        slope[0] += s[0] * s[-1] ** 2 / 4
        slope[-1] += s[0] ** 2 * s[-1] / 4
        result = [x * slope[b] for b, x in zip(self.owner, c, strict=True)]
        if self.pair:
            u, v = others[:2]
            result += [(u**2 - v**2 - 1) * u, -(u**2 - v**2 - 1) * v]
        return result + [mp.mpf(0)] * self.rest


def exact(number):
    """A number of two decimals."""
    fraction = Fraction(float(number)).limit_denominator(100)
    return mp.mpf(fraction.numerator) / fraction.denominator


def seeds(number):
    return [pytest.param(seed, marks=[pytest.mark.long] * (seed >= number)) for seed in range(100)]


@pytest.mark.parametrize("seed", seeds(12))
def test_what_is_planted_is_found_and_what_is_found_holds(seed):
    case = Planted(seed)
    system = dynamics.load_system(dynamics.Model(start=case.start, risk=case.risk))
    closure = system.closure()
    classes = closure.classes
    assert closure.grade == "proved"
    assert closure.frozen >= case.rest
    assert closure.free <= case.blocks + 2 * case.pair
    for block in range(case.blocks):
        factors = case.factors[case.owner == block]
        found = np.unique(classes.labels[: case.owner.size][case.owner == block])
        assert found.size <= np.unique(factors).size
    assert not case.pair or "p_0*p_1" in closure.conserved
    with mp.workdps(DIGITS):
        state = [exact(x) for array in case.start().values() for x in array]
        least = mp.mpf(10) ** (5 - DIGITS)
        begin = list(state)
        for _ in range(STEPS):
            slope = case.gradient(state)
            for entry, label in enumerate(classes.labels.tolist()):
                if label < 0:
                    assert abs(state[entry] - begin[entry]) < least
                    continue
                other = int(classes.first[label])
                sign = int(classes.signs[entry] * classes.signs[other])
                assert abs(state[entry] - sign * state[other]) < least
            scalars = [state[k] for k in classes.first]
            along = [slope[k] for k in classes.first]
            for law in closure.laws:
                numbers = law.fractions or map(Fraction, law.coefficients)
                parts = zip(numbers, law.terms, strict=True)
                assert abs(rate_of(parts, scalars, along)) < (least if law.exact else 1e-10)
            state = [x - mp.mpf(ETA) * g for x, g in zip(state, slope, strict=True)]


def rate_of(parts, scalars, along):
    """Change of a sum of products of at most two scalars, over the sizes of its terms."""
    terms = []
    for factor, term in parts:
        number = mp.mpf(factor.numerator) / factor.denominator
        if len(term) == 1:
            terms.append(number * along[term[0]])
        else:
            i, j = term
            terms += [number * scalars[i] * along[j], number * scalars[j] * along[i]]
    return mp.fsum(terms) / (mp.fsum(map(abs, terms)) or 1)
