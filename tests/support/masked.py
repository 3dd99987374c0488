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
