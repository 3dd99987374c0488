"""The reduced recursion, the start and the floor, against brute force."""

import itertools
import math

import naive
import numpy as np
import pytest
import sympy

from theory.papers.masked_image_modeling import recursion
from theory.papers.masked_image_modeling.model import masks
from theory.papers.masked_image_modeling.notation import NOTATION
from theory.papers.masked_image_modeling.symmetry import feature_offsets, one_cluster, row_types

LATENTS = [(0.7, 0.4), (1.3, 0.6)]
CASES = [
    (one_cluster(5, 2, 1), 1, 2),
    (one_cluster(5, 1, 2), 0, 3),
    (np.array([[0, 0, 1, 1, 2], [0, 1, 1, 0, 0]]), 1, 2),
]
P, C_global, C_local, gamma = NOTATION.symbols("P C_global C_local gamma")


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
    system = recursion.derive(row, "row")
    values = np.random.default_rng(0).normal(scale=0.5, size=row.size)
    fixed = dict(zip(system.state, values.tolist(), strict=True))
    fixed[gamma] = hidden_count / areas.shape[1]
    wanted = [system.risk_integrand, *system.blocks.values()]
    wanted = [summed(system.expand(part)).subs(fixed) for part in wanted]
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


SIZES = {P: 10, C_global: 4, C_local: 2, gamma: 0.4}


def summed(expression):
    """An expression with every sum over areas term by term; sympy's ``doit`` takes minutes."""
    return expression.replace(sympy.Sum, terms)


def terms(summand, limits):
    area, first, last = limits
    return sympy.Add(*[summand.subs(area, k) for k in range(int(first), int(last) + 1)])


def drawn(expression):
    """An expression with letters for the sizes, at `SIZES`, latents drawn by their names."""
    expression = summed(expression.subs(SIZES))
    found = {}
    for latent in expression.atoms(sympy.Indexed) | expression.free_symbols:
        if str(latent)[:2] in ("z_", "z[", "h_", "h["):
            mixed = sum(map(ord, str(latent)))
            found[latent] = 0.5 + mixed % 17 / 20 if str(latent)[0] == "z" else 1
    return expression.xreplace(found)


def test_blocks_are_the_gradient_of_the_risk():
    """Letters for the sizes; two other areas are alike."""
    system = recursion.family()["local"]
    values = {s: 0.1 * k - 0.3 for k, s in enumerate(system.state)}
    risk = drawn(system.expand(system.risk_integrand))
    assert risk.free_symbols == set(system.state)
    for theta in system.state:
        block = drawn(system.expand(system.blocks[f"d_{theta.name}"])).subs(values)
        slope = sympy.diff(risk, theta).subs(values) / system.multiplicity[theta].subs(SIZES)
        assert float(block) == pytest.approx(-float(slope), abs=1e-14), theta


def test_counts_of_entries_are_a_row_of_q():
    for name, runs in (("local", 3), ("global", 3)):
        system = recursion.family()[name]
        sizes = {P: 10, C_global: 4, C_local: 2}
        ups = [n.subs(sizes) for s, n in system.multiplicity.items() if "_Ups_" in s.name]
        phi = [n.subs(sizes) for s, n in system.multiplicity.items() if "_Phi_" in s.name]
        assert (sum(ups), sum(phi)) == (10, 1 + runs)
        row = row_types(one_cluster(10, 4, 2))[name == "local"]
        assert ups == row.ups_sizes.tolist()
        assert phi == row.phi_sizes.tolist()
        assert [s.name for s in system.state] == [
            *(f"{name}_Ups_{word}" for word in row.ups_names),
            *(f"{name}_Phi_{word}" for word in row.phi_names),
        ]
        assert {s.name for s in system.state} <= set(NOTATION)


def test_adding_a_number_to_every_position_changes_nothing():
    system = recursion.family()["global"]
    risk = drawn(system.expand(system.risk_integrand))
    values = dict.fromkeys(system.state, 0.2)
    moved = values | dict.fromkeys(system.shift_invariant, 0.9)
    assert float(risk.subs(moved)) == pytest.approx(float(risk.subs(values)), abs=1e-14)
