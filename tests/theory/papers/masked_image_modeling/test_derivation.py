"""The printed page: evaluated as it stands, against the network on every mask and latent."""

import cmath
import itertools
import math
from dataclasses import replace

import masked
import numpy as np
import pages
import pytest
import sympy

from theory.papers.masked_image_modeling import recursion
from theory.papers.masked_image_modeling.derivation import page
from theory.papers.masked_image_modeling.images import ImageLaw
from theory.papers.masked_image_modeling.information_gap import initial_ratio
from theory.papers.masked_image_modeling.notation import NOTATION

LATENTS = [(0.7, 0.4), (1.3, 0.6)]
AREAS = np.array([0, 0, 0, 1, 1, 2, 2, 3, 3])
LAW = ImageLaw(AREAS[None], 4, (0.7, 1.3), (0.4, 0.6))
CONSTANTS = {"P": 9, "C_global": 3, "C_local": 2, "masked": 4, "gamma": 4 / 9, "eta": 0.3}
ROWS = {
    "local": (3, {"self": 3, "own": 4, "global": 1, "other": 6, "target": 1}),
    "global": (0, {"self": 0, "own": 2, "local": 5}),
}
"""Row -> its patch p, and a position of each class."""
FEATURES = {"target": 1, "global": 0, "other": 2, "own": 0, "local": 3}


def brute(p, ups, phi):
    """Loss of patch p over all masks and latents, complex where a weight is."""
    return masked.row(LAW, p, ups, phi, complex, cmath.exp)[0]


def reader(row):
    """The page's own section of a row at random scalars, and the scalars."""
    rng = np.random.default_rng(5)
    names = [theta.name for theta in recursion.class_sizes(row, recursion.family_slots()[row])]
    at = {name: float(rng.normal()) / 2 for name in names}
    alike = 2 if row == "local" else 3
    own, single = (1, 3) if row == "local" else (2, 0)
    configurations = []
    for h in itertools.product(range(own + 1), range(single + 1), *[range(3)] * alike):
        if sum(h) != CONSTANTS["P"] - CONSTANTS["masked"]:
            continue
        for drawn in itertools.product(LATENTS, repeat=alike + 1 + (row == "local")):
            z, odds = zip(*drawn, strict=True)
            first = {"h_m": h[0], "z_m": z[0], "h": h[2:], "z": z[-alike:], "cache": {}}
            if row == "local":
                first |= {"h_global": h[1], "z_global": z[1]}
            configurations.append((math.prod(odds), first))

    def mean(f):
        printed = [f(**at | given) for _, given in configurations]
        weights = [odds * read("W", **given) for odds, given in configurations]
        return math.fsum(w * value for w, value in zip(weights, printed, strict=True))

    keep = tuple(s for s in page().sections if s.heading == f"Rows of type {row}")
    read = pages.Reader(replace(page(), sections=keep), CONSTANTS | at, mean, first=1)
    return read, at, mean


@pytest.mark.parametrize("row", ROWS)
def test_page_is_gradient_descent_on_every_entry(row):
    read, at, mean = reader(row)
    p, places = ROWS[row]
    assert mean(lambda **_: 1.0) == pytest.approx(1, rel=1e-13)
    ups, phi = np.zeros(9, complex), np.zeros(4, complex)
    for q in range(9):
        same, local = AREAS[q] == AREAS[p], AREAS[q] > 0
        far = "local" if row == "global" else "other" if local else "global"
        ups[q] = at[f"{row}_Ups_{'self' if q == p else 'own' if same else far}"]
    for a in range(4):
        own = "own" if row == "global" else "target"
        far = "local" if row == "global" else "other" if a else "global"
        phi[a] = at[f"{row}_Phi_{own if a == AREAS[p] else far}"]
    risk = CONSTANTS["gamma"] * mean(lambda **given: read("loss", **given))
    assert risk == pytest.approx(brute(p, ups, phi).real, rel=1e-12)
    for name, value in at.items():
        _, kind, word = name.split("_", 2)
        moved = [ups.copy(), phi.copy()]
        index = places[word] if kind == "Ups" else FEATURES[word]
        moved[kind == "Phi"][index] += 1e-30j
        slope = brute(p, *moved).imag / 1e-30
        assert abs(slope) > 1e-5
        assert read(f"{name}'") - value == pytest.approx(-CONSTANTS["eta"] * slope, rel=1e-11)


def test_leading_order_of_the_page():
    """rho0 against the exact ratio at large P; the motion against its equations."""
    last = replace(page(), sections=page().sections[-1:])
    sizes = {"P": 10**6, "C_global": 10**6 // 5, "C_local": 4, "masked": 10**6 // 4}
    exact = initial_ratio().subs({NOTATION.symbol(name): size for name, size in sizes.items()})
    found = pages.Reader(last, sizes | {"gamma": 0.25})("rho0")
    assert found == pytest.approx(float(exact), rel=2e-5)
    printed = {str(name): value for name, value, *_ in last.sections[0].equations}
    time, rho0 = sympy.Symbol("a_t", positive=True), NOTATION.symbol("rho0")
    for name, factor, power in (("Phi_m", 1, 1), ("Phi_0", -rho0, 2)):
        rate = sympy.diff(printed[name], time)
        assert sympy.simplify(rate - factor * sympy.exp(power * printed[name])) == 0
        assert printed[name].subs(time, 0) == 0
