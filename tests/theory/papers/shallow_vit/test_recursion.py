"""Attention to relevant tokens from the 16 scalars, against a softmax over counts."""

import numpy as np
import pytest

from theory.papers.shallow_vit import recursion as r
from theory.papers.shallow_vit.symmetry import named, pattern_group
from theory.symmetry import classes


@pytest.mark.parametrize(("patterns", "others"), [(5, 4), (4, 7), (3, 2)])
def test_masses_by_query_type(patterns, others):
    rng = np.random.default_rng(7)
    orbits = classes(pattern_group(patterns))
    B = rng.normal(size=orbits.count)[orbits.labels]
    counts = np.array([9, 2, *[others] * (patterns - 2)])
    P = counts[:, None] * np.exp(B)
    P /= P.sum(axis=0)
    values = {f"B_{pair}": B[tuple(where[0])] for pair, where in named(orbits).items()}
    values |= {"n_star": 9, "n_confusion": 2, "n_other": others, "M": patterns, "B_kl": 0} | values
    for (_, mass), query in zip(r.relevant_masses().items(), (0, 1, 2), strict=True):
        value = mass.subs({s: values[s.name] for s in mass.free_symbols})
        assert float(value) == pytest.approx(P[0, query], abs=1e-14)
