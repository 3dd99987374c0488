import itertools
import math

import numpy as np
import pytest

from dynamics.systems.positional_attention.reduced import configurations
from dynamics.validation import InvalidRequest
from theory.papers.positional_attention.data_law import SetLaw


@pytest.mark.parametrize(
    ("D", "C", "q", "number"),
    [(16, 4, 0.5, 680), (32, 4, 0.3, 116_280), (32, 8, 0.25, 16_215), (9, 3, 0.6, 55)],
)
def test_counts_and_total_probability(D, C, q, number):
    chosen = configurations.enumeration(D, SetLaw(C, q))
    assert configurations.number_of_configurations(D // C, C) == number == chosen.probability.size
    assert abs(math.fsum(chosen.probability) - 1) < 1e-13


def test_law_equals_all_sequences_of_patches():
    """The distribution of (multiset of types) against the product over single patches."""
    D, C, q = 8, 2, 0.3
    chosen = configurations.enumeration(D, SetLaw(C, q))
    width = chosen.latents[2].size
    found = {}
    for index, chance in zip(chosen.index[1:].T, chosen.probability, strict=True):
        types = [tuple(chosen.composition[k // width].astype(int)) for k in index]
        found[tuple(sorted(types))] = chance
    naive = {}
    for values in itertools.product((1, -1, 0), repeat=D - C):
        chance = math.prod(1 - q if v == 0 else q / 2 for v in values)
        sets = [values[k : k + C] for k in range(0, D - C, C)]
        key = tuple(sorted(tuple(s.count(v) for v in (1, -1, 0)) for s in sets))
        naive[key] = naive.get(key, 0.0) + chance
    assert naive.keys() == found.keys()
    for key, chance in naive.items():
        assert found[key] == pytest.approx(chance, rel=1e-13)


def test_columns_are_the_sums_and_the_first_set_is_the_signal():
    chosen = configurations.enumeration(12, SetLaw(3, 0.4))
    types, column = np.divmod(chosen.index.astype(int), chosen.latents[2].size)
    sums = chosen.latents[1][chosen.sum_index[types]].sum(axis=0)
    assert (chosen.latents[2][column] == sums).all()
    assert (chosen.composition[types[0]] == (3, 0, 0)).all()


def test_members_are_the_inverse_of_the_index():
    chosen = configurations.enumeration(12, SetLaw(3, 0.4))
    for k, entry in enumerate(chosen.entries):
        held = np.concatenate([np.flatnonzero(row == entry) for row in chosen.index[1:]])
        found = chosen.members[chosen.starts[k] : chosen.starts[k + 1]]
        assert sorted(found) == sorted(held)
    assert chosen.members.size == chosen.index[1:].size
    for lanes in (1, 3, 16):
        cuts = configurations.lane_cuts(chosen.starts, lanes)
        assert (cuts[0], cuts[-1]) == (0, chosen.entries.size)
        assert (np.diff(cuts) >= 0).all()


def test_certain_features_leave_no_empty_patch():
    chosen = configurations.enumeration(8, SetLaw(2, 1.0))
    assert abs(chosen.probability.sum() - 1) < 1e-15
    used = np.unique(chosen.entries // chosen.latents[2].size)
    assert (chosen.composition[used, 2] == 0).all()


def test_too_many_configurations_are_refused_with_their_number():
    with pytest.raises(InvalidRequest, match="77,558,760 configurations at D=64 C=4"):
        configurations.enumeration(64, SetLaw(4, 0.25))
