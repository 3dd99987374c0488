"""Slow, obvious twins of everything fast: ``ref = naive.x(...)``, ``comp = x(...)``.

Nothing here imports the code it checks.
"""

import functools
import itertools
import math
from types import SimpleNamespace

import masked
import mpmath
import numpy as np


def population(parameters, sets, alpha, matrix):
    """Risk, dR/dalpha and dR/dA of (P) by loops over labels, signal sets and patch values."""
    size, p, nu = parameters.D, parameters.p, parameters.nu
    weights = np.exp(parameters.scale * matrix)
    attention = weights / weights.sum(axis=1, keepdims=True)
    risk, d_alpha, d_attention, whole = 0.0, 0.0, np.zeros((size, size)), 0.0
    for label, signal in itertools.product((1, -1), sets):
        others = [i for i in range(size) if i not in signal]
        for values in itertools.product((1, -1, 0), repeat=len(others)):
            x = np.zeros(size)
            x[list(signal)] = label
            x[others] = values
            alike = any(abs(sum(x[list(s)])) == len(s) for s in sets if s != signal)
            if alike and parameters.random_sets == "mixed":
                continue
            chance = math.prod(1 - parameters.q if v == 0 else parameters.q / 2 for v in values)
            chance /= 2 * len(sets)
            whole += chance
            attended = attention @ x
            inner = size * alpha * attended
            margin = label * (inner**p + nu * inner).sum()
            risk += chance * math.log1p(math.exp(-margin))
            weight = -chance / (1 + math.exp(margin)) * label
            slope = p * inner ** (p - 1) + nu
            d_alpha += weight * (slope * size * attended).sum()
            d_attention += weight * size * alpha * np.outer(slope, x)
    inside = (attention * d_attention).sum(axis=1, keepdims=True)
    d_matrix = parameters.scale * attention * (d_attention - inside)
    return risk / whole, d_alpha / whole, d_matrix / whole


def empirical(parameters, data, value, matrix):
    """Risk, dR/dv and dR/dA, with its diagonal, of (E) by loops over samples, rows and columns."""
    patches, labels = data
    size, p, nu = parameters.D, parameters.p, parameters.nu
    weights = np.exp(parameters.scale * matrix)
    attention = weights / weights.sum(axis=1, keepdims=True)
    risk, d_value, d_matrix = 0.0, np.zeros(value.size), np.zeros((size, size))
    for sample, label in zip(patches, labels, strict=True):
        seen = [math.fsum(value * patch) for patch in sample]
        output, by_value, by_matrix = 0.0, np.zeros(value.size), np.zeros((size, size))
        for i in range(size):
            inner = size * sum(attention[i, j] * seen[j] for j in range(size))
            output += inner**p + nu * inner
            slope = size * (p * inner ** (p - 1) + nu)
            for j in range(size):
                by_value += slope * attention[i, j] * sample[j]
                for r in range(size):
                    change = attention[i, j] * ((j == r) - attention[i, r])
                    by_matrix[i, r] += slope * seen[j] * parameters.scale * change
        margin = label * output
        risk += (math.log1p(math.exp(-abs(margin))) + max(-margin, 0.0)) / len(labels)
        weight = -label / (1 + math.exp(min(margin, 700.0))) / len(labels)
        d_value += weight * by_value
        d_matrix += weight * by_matrix
    return risk, d_value, d_matrix


def reduced(parameters, state, digits=40):
    """Risk and per-entry gradient on (alpha, gamma, rho) in mpmath, over all type *sequences*.

    The formulas are typed from the paper: no multisets, no tables, derivatives by hand.
    """
    with mpmath.workdps(digits):
        D, C, p = parameters.D, parameters.C, parameters.p
        nu, beta, s = (mpmath.mpf(getattr(parameters, n)) for n in ("nu", "beta", "scale"))
        alpha, gamma, rho = map(mpmath.mpf, map(float, state))
        e = [mpmath.exp(s * value) for value in (beta, gamma, rho)]
        total = e[0] + (C - 1) * e[1] + (D - C) * e[2]
        lam, gam, xi = (value / total for value in e)
        # d softmax / d gamma = s * (indicator - (C-1) Gamma) * softmax, and so on.
        own, far = s * (C - 1) * gam, s * (D - C) * xi
        slopes = {
            "gamma": [-own * lam, s * gam - own * gam, -own * xi],
            "rho": [-far * lam, -far * gam, s * xi - far * xi],
        }

        def share(a, b, total_sum):
            z, out = a - b, [mpmath.mpf(0)] * 4
            for x, count in ((1, a), (-1, b), (0, C - a - b)):
                if count == 0:
                    continue
                sums = (x, z - x, total_sum - z)
                u = lam * sums[0] + gam * sums[1] + xi * sums[2]
                inner = D * alpha * u
                steep = p * inner ** (p - 1) + nu
                out[0] += count * (inner**p + nu * inner)
                out[1] += count * steep * D * u
                for k, name in ((2, "gamma"), (3, "rho")):
                    moved = sum(w * t for w, t in zip(slopes[name], sums, strict=True))
                    out[k] += count * steep * D * alpha * moved
            return out

        cache, risk, gradient = {}, mpmath.mpf(0), [mpmath.mpf(0)] * 3
        for chosen, chance in configurations(D, C, parameters.q, parameters.random_sets, digits):
            total_sum = C + sum(a - b for a, b in chosen)
            parts = [(C, 0), *chosen]
            for kind in parts:
                if (kind, total_sum) not in cache:
                    cache[kind, total_sum] = share(*kind, total_sum)
            rows = zip(*(cache[kind, total_sum] for kind in parts), strict=True)
            margin, *slopes_of_margin = map(mpmath.fsum, rows)
            grown = mpmath.exp(-margin)
            risk += chance * mpmath.log1p(grown)
            weight = chance * grown / (1 + grown)
            gradient = [g - weight * d for g, d in zip(gradient, slopes_of_margin, strict=True)]
        counts = (1, D * (C - 1), D * (D - C))
        return risk, [g / n for g, n in zip(gradient, counts, strict=True)]


@functools.lru_cache(maxsize=16)
def configurations(D, C, q, random_sets, digits):
    """Multisets of the types (a, b) of the sets without signal, and the chance of each."""
    with mpmath.workdps(digits):
        q = mpmath.mpf(q)
        types = [(a, b) for a in range(C + 1) for b in range(C + 1 - a)]
        law = {
            (a, b): mpmath.mpf(math.factorial(C))
            / (math.factorial(a) * math.factorial(b) * math.factorial(C - a - b))
            * (q / 2) ** (a + b)
            * (1 - q) ** (C - a - b)
            for a, b in types
        }
        if random_sets == "mixed":
            types = [kind for kind in types if C not in kind]
            law = {kind: law[kind] / (1 - 2 * (q / 2) ** C) for kind in types}
        found = []
        for chosen in itertools.combinations_with_replacement(types, D // C - 1):
            chance = mpmath.mpf(math.factorial(len(chosen)))
            for kind in set(chosen):
                many = chosen.count(kind)
                chance *= law[kind] ** many / math.factorial(many)
            found.append((chosen, chance))
        return found


def orbits(sets, size):
    """Orbits of index pairs under all permutations that map sets onto sets, by brute force."""
    members = {frozenset(s) for s in sets}
    group = itertools.permutations(range(size))
    group = [pi for pi in group if {frozenset(pi[i] for i in s) for s in members} == members]
    pairs = itertools.product(range(size), repeat=2)
    return {frozenset((pi[i], pi[j]) for pi in group) for i, j in pairs}


def rises_again(values, relative, begin):
    """The least value before the first one far enough above that at ``begin``, after a fall."""
    first, least = values[begin], begin
    for k in range(begin, len(values)):
        if values[least] < first and values[k] > first + relative * abs(first):
            return least if values[-1] > first else None
        if values[k] < values[least]:
            least = k
    return None


def rule_error(rule, sets, q):
    """P(y g(x) < 0) + P(g(x) = 0)/2 of a rule g by loops over labels, signal sets and values."""
    size, error = sum(map(len, sets)), 0 * q
    for label, signal in itertools.product((1, -1), sets):
        others = [i for i in range(size) if i not in signal]
        for values in itertools.product((1, -1, 0), repeat=len(others)):
            x = [label] * size
            for i, value in zip(others, values, strict=True):
                x[i] = value
            chance = math.prod(1 - q if v == 0 else q / 2 for v in values) / (2 * len(sets))
            margin = label * rule(x)
            error += chance * (1 if margin < 0 else 0) + chance * (margin == 0) / 2
    return error


def adam(gradient, start, eta, steps):
    """Adam entry by entry, with the sums over all past gradients written out; states 0..steps."""
    states, past = [list(start)], []
    for t in range(1, steps + 1):
        past.append(gradient(np.array(states[-1])))
        following = []
        for k in range(len(start)):
            first = sum(0.1 * 0.9 ** (t - r) * past[r - 1][k] for r in range(1, t + 1))
            second = sum(0.001 * 0.999 ** (t - r) * past[r - 1][k] ** 2 for r in range(1, t + 1))
            mean, square = first / (1 - 0.9**t), second / (1 - 0.999**t)
            following.append(states[-1][k] - eta * mean / (math.sqrt(square) + 1e-8))
        states.append(following)
    return np.array(states)


def rooted_colours(kinds, edges, roots):
    """Coarsest stable colouring of the disjoint union of rooted copies, by 1-WL on dictionaries.

    Returns {(copy, vertex): colour}; the root of each copy starts in a colour of its own.
    """
    around = {vertex: [] for vertex in range(len(kinds))}
    for a, b in edges:
        around[a].append(b)
        around[b].append(a)
    places = list(itertools.product(range(len(roots)), range(len(kinds))))
    colour_of = {(copy, vertex): (kinds[vertex], vertex == roots[copy]) for copy, vertex in places}
    while True:
        signatures = {
            (copy, v): (colour_of[copy, v], tuple(sorted(colour_of[copy, w] for w in around[v])))
            for copy, v in places
        }
        number = {s: k for k, s in enumerate(sorted(set(signatures.values())))}
        refined = {place: number[s] for place, s in signatures.items()}
        if len(set(refined.values())) == len(set(colour_of.values())):
            return refined
        colour_of = refined


def masked_patch(areas, p, masked_count, latents, row):
    """Loss of a patch by `masked.row`; latents: (value, chance); row: (every Phi, every Ups)."""
    z, odds = zip(*latents, strict=True)
    law = SimpleNamespace(
        area_ids=areas, z=z, odds=odds, P=len(areas[0]), K=len(areas), masked=masked_count
    )
    return masked.row(law, p, row[1], row[0])[0]


def masked_rates(areas, p, masked_count, latents, row, width=1e-5):
    """Minus the derivative of `masked_patch` by every Phi and every Ups, by central differences."""
    flat, split = np.concatenate([np.asarray(part, float) for part in row]), len(row[0])

    def loss(values):
        return masked_patch(areas, p, masked_count, latents, (values[:split], values[split:]))

    steps = width * np.eye(flat.size)
    rates = [(loss(flat - step) - loss(flat + step)) / (2 * width) for step in steps]
    return np.array(rates[:split]), np.array(rates[split:])


def diversity(attention, grid, k):
    """Attention diversity by sorting and loops over pairs of queries."""
    points = []
    for row in attention:
        keys = sorted(range(len(row)), key=lambda j: (-round(row[j] * 1e9), j))[:k]
        points.append([number for j in keys for number in divmod(j, grid[1])])
    return sum(math.dist(p, q) for p in points for q in points) / len(points) ** 2


def total_variation(attention):
    """Mean of half the absolute differences of rows, by loops over pairs of queries."""
    pairs = itertools.product(attention, repeat=2)
    total = sum(sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2 for p, q in pairs)
    return total / len(attention) ** 2
