"""The reduced recursion, the start and the floor, against brute force."""

import itertools
import math

import naive
import numpy as np
import pytest
import sympy

from theory.papers.masked_image_modeling import recursion
from theory.papers.masked_image_modeling.model import masks
from theory.papers.masked_image_modeling.symmetry import feature_offsets, one_cluster, row_types

LATENTS = [(0.7, 0.4), (1.3, 0.6)]
CASES = [
    (one_cluster(5, 2, 1), 1, 2),
    (one_cluster(5, 1, 2), 0, 3),
    (np.array([[0, 0, 1, 1, 2], [0, 1, 1, 0, 0]]), 1, 2),
]


def latents_of(row, areas, hidden, drawn):
    """Name of every latent -> value, for one mask and the z of every feature."""
    found, offsets = {}, feature_offsets(areas)
    for k, cluster in enumerate(areas):
        own = cluster[row.patches[0]]
        names = recursion.Cluster("row", tuple(recursion.slots_of(row)[k]))
        for number, slot in enumerate(row.clusters[k]):
            inside = [
                a
                for a in range(cluster.max() + 1)
                if row.phi_of[0, offsets[k] + a] == slot.phi and (a == own) == (number == 0)
            ]
            here = names.slots[number]
            for i, a in enumerate(inside, start=1):
                found[str(names.named("z", here).subs(recursion.AREA, i))] = drawn[offsets[k] + a]
                seen = [q for q in np.flatnonzero(cluster == a) if q not in hidden]
                for (ups, _), (_, h, _) in zip(slot.cells, names.cells(here), strict=True):
                    count = sum(row.ups_of[0, q] == ups for q in seen)
                    found[str(h.subs(recursion.AREA, i))] = count
    return found


@pytest.mark.parametrize(("areas", "number", "hidden_count"), CASES)
def test_risk_and_rates_equal_brute_force(areas, number, hidden_count):
    """Every row type of the derived recursion against loops and differences, at a random state."""
    row = row_types(areas)[number]
    slots = recursion.slots_of(row)
    clusters = [recursion.Cluster("row", tuple(of_cluster)) for of_cluster in slots]
    values = np.random.default_rng(0).normal(scale=0.5, size=row.size)
    kinds = (("Ups", row.ups_names), ("Phi", row.phi_names))
    state = [recursion.entry_of("row", kind, name) for kind, names in kinds for name in names]
    fixed = dict(zip(state, values.tolist(), strict=True))
    sizes, share = recursion.class_sizes("row", slots), hidden_count / areas.size
    wanted = [sum(cluster.loss() for cluster in clusters)]
    wanted += [sum(c.rates().get(theta, 0) for c in clusters) / sizes[theta] for theta in state]
    for cluster in clusters:
        for name, value in reversed(cluster.definitions().items()):
            wanted = [part.xreplace({name: value}) for part in wanted]
    wanted = [share * summed(part).subs(fixed) for part in wanted]
    free = set().union(*[part.atoms(sympy.Indexed) | part.free_symbols for part in wanted])
    free = sorted((s for s in free if isinstance(s, (sympy.Symbol, sympy.Indexed))), key=str)
    names = [str(s) for s in free]
    plain = {s: sympy.Symbol(f"x{k}") for k, s in enumerate(free)}
    compiled = sympy.lambdify(list(plain.values()), [part.xreplace(plain) for part in wanted])
    p, size = int(row.patches[0]), areas.shape[1]
    mean = np.zeros(len(wanted))
    for hidden, _ in masks(size, hidden_count):
        if p in hidden:
            for drawn in itertools.product(LATENTS, repeat=int(feature_offsets(areas)[-1])):
                weight = math.prod(odds for _, odds in drawn)
                found = latents_of(row, areas, hidden, [z for z, _ in drawn])
                mean += weight * np.array(compiled(*[found.get(name, 0) for name in names]))
    mean /= math.comb(size - 1, hidden_count - 1)

    ups, phi = np.split(values, [len(row.ups_names)])
    entries = (phi[row.phi_of[0]], ups[row.ups_of[0]])
    arguments = (areas.tolist(), p, hidden_count, LATENTS, entries)
    assert mean[0] == pytest.approx(naive.masked_patch(*arguments), rel=1e-13)
    by_feature, by_position = naive.masked_rates(*arguments)
    rates_ups, rates_phi = np.split(mean[1:], [len(row.ups_names)])
    assert rates_phi[row.phi_of[0]] == pytest.approx(by_feature, abs=1e-9)
    assert rates_ups[row.ups_of[0]] == pytest.approx(by_position, abs=1e-9)
    assert (row.ups_sizes * rates_ups).sum() == pytest.approx(0, abs=1e-15)


def summed(expression):
    """An expression with every sum over areas term by term; sympy's ``doit`` takes minutes."""
    return expression.replace(sympy.Sum, terms)


def terms(summand, limits):
    area, first, last = limits
    return sympy.Add(*[summand.subs(area, k) for k in range(int(first), int(last) + 1)])
