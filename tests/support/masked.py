"""Slow twins of masked image modelling: loops over masks, vectors in full, colours in dicts.

Nothing here is shared with the package but the `Parameters`.
"""

import itertools
from collections import Counter
from math import comb, exp

import numpy as np


def images(parameters):
    """Every (cluster, latents by area, mask) with its chance."""
    masks = list(itertools.combinations(range(parameters.P), parameters.masked))
    for k, areas in enumerate(parameters.area_ids):
        for digits in itertools.product(range(len(parameters.z)), repeat=max(areas) + 1):
            chance = np.prod([parameters.odds[d] for d in digits]) / parameters.K / len(masks)
            for mask in masks:
                yield k, [parameters.z[d] for d in digits], mask, chance


def population(parameters, matrix, basis):
    """Risk and gradient by Q: dense attention of every query, backpropagated as matrices."""
    P = parameters.P
    positions, features = basis[:P], basis[P : P + parameters.features]
    first = np.cumsum([0] + [max(row) + 1 for row in parameters.area_ids])
    risk, slope = 0.0, np.zeros_like(matrix)
    for k, latents, mask, chance in images(parameters):
        areas = parameters.area_ids[k]
        whole = np.array([latents[a] * features[first[k] + a] for a in areas])
        seen = np.ones((P, 1))
        seen[list(mask)] = 0.0
        tokens = seen * whole + positions
        scores = tokens @ matrix @ tokens.T
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        missing = (1 - seen) * (weights @ (seen * whole) - whole)
        risk += chance * 0.5 * (missing**2).sum()
        by_weight = missing @ (seen * whole).T
        by_score = weights * (by_weight - (weights * by_weight).sum(axis=1, keepdims=True))
        slope += chance * tokens.T @ by_score @ tokens
    return risk, slope


def row(parameters, p, ups, phi, number=float, power=exp):
    """Of row p: L_p, its derivatives by every Ups_q and Phi_v, and E[A_m | a mate is unmasked].

    By Lemmas A.8, 5.1 and 5.2 under a sum over all masks; any kind of number, any exponential.
    """
    features = [(k, a) for k, r in enumerate(parameters.area_ids) for a in range(max(r) + 1)]
    loss, attended, mates = number(0), number(0), number(0)
    by_ups, by_phi = [number(0)] * parameters.P, [number(0)] * len(features)
    for k, latents, mask, chance in images(parameters):
        if p not in mask:
            continue
        areas, chance = parameters.area_ids[k], number(chance)
        places = [features.index((k, a)) for a in areas]
        z = [number(latents[a]) for a in areas]
        score = [
            ups[q] + (z[q] * phi[places[q]] if q not in mask else 0) for q in range(parameters.P)
        ]
        weights = [power(s) for s in score]
        total = sum(weights)
        u = [w / total for w in weights]
        A = Counter()
        for q in range(parameters.P):
            if q not in mask:
                A[areas[q]] += u[q]
        m, latent = areas[p], [number(entry) for entry in latents]
        others = sum((latent[a] * A[a]) ** 2 for a in set(areas) if a != m)
        loss += chance * ((latent[m] * (1 - A[m])) ** 2 + others) / 2
        if any(areas[q] == m and q not in mask for q in range(parameters.P)):
            attended += chance * A[m]
            mates += chance
        r = latent[m] ** 2 * A[m] * (1 - A[m]) - others
        for q in range(parameters.P):
            b = number(0)
            if q not in mask:
                b = z[q] ** 2 * (1 - A[m]) if areas[q] == m else -(z[q] ** 2) * A[areas[q]]
            push = chance * u[q] * (b - r)
            by_ups[q] -= push
            if q not in mask:
                by_phi[places[q]] -= z[q] * push
    return loss, by_ups, by_phi, attended / mates if mates else None


def attention(parameters, p, ups, phi):
    """Of row p, masked: expected attention on the unmasked patches of every area, and on others."""
    first = np.cumsum([0] + [max(row) + 1 for row in parameters.area_ids])
    by_area, elsewhere, chances = np.zeros(parameters.features), 0.0, 0.0
    for k, latents, mask, chance in images(parameters):
        if p not in mask:
            continue
        areas = first[k] + parameters.area_ids[k]
        seen = np.array([q not in mask for q in range(parameters.P)])
        z = np.array([latents[a] for a in parameters.area_ids[k]])
        weights = np.exp(ups + seen * z * phi[areas])
        weights *= chance / weights.sum()
        np.add.at(by_area, areas[seen], weights[seen])
        elsewhere += weights[~seen].sum()
        chances += chance
    return by_area / chances, elsewhere / chances


def floor(parameters, p):
    """L*_p by its formula, from binomial coefficients."""
    P, M = parameters.P, parameters.masked
    square = sum(o * z * z for z, o in zip(parameters.z, parameters.odds, strict=True))
    sizes = [sum(1 for a in row if a == row[p]) for row in parameters.area_ids.tolist()]
    chance = [comb(P - C, M - C) / comb(P, M) if M >= C else 0.0 for C in sizes]
    return 0.5 * square * sum(chance) / parameters.K


def colours(areas):
    """Stable colours of patches and of features for every p, by dicts: two lists of lists.

    All p are refined side by side with one palette, so equal colours mean the same everywhere.
    """
    K, P = len(areas), len(areas[0])
    nodes = [("patch", q) for q in range(P)]
    nodes += [("area", k, a) for k in range(K) for a in range(max(areas[k]) + 1)]
    nodes += [("cluster", k) for k in range(K)]
    near = {node: [] for node in nodes}
    for k in range(K):
        for a in range(max(areas[k]) + 1):
            near[("area", k, a)].append(("cluster", k))
            near[("cluster", k)].append(("area", k, a))
        for q in range(P):
            near[("patch", q)].append(("area", k, areas[k][q]))
            near[("area", k, areas[k][q])].append(("patch", q))
    colour = {(p, n): (n[0], n == ("patch", p)) for p in range(P) for n in nodes}
    while True:
        sign = {
            (p, n): (colour[p, n], tuple(sorted(repr(colour[p, m]) for m in near[n])))
            for p in range(P)
            for n in nodes
        }
        palette = {s: c for c, s in enumerate(sorted(set(sign.values()), key=repr))}
        fresh = {key: palette[s] for key, s in sign.items()}
        if len(palette) == len(set(colour.values())):
            break
        colour = fresh
    many = sum(max(row) + 1 for row in areas)
    return (
        [[fresh[p, n] for n in nodes[:P]] for p in range(P)],
        [[fresh[p, n] for n in nodes[P : P + many]] for p in range(P)],
    )


def scalars(areas):
    """Number of scalars of the reduction: classes of the rows that differ as multisets."""
    patches, features = colours(areas)
    rows = {
        tuple(sorted(one + two)): (one, two) for one, two in zip(patches, features, strict=True)
    }
    return sum(len(set(one)) + len(set(two)) for one, two in rows.values())
