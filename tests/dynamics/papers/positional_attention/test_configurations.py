import itertools
import math

import pytest

from dynamics.papers.positional_attention import configurations
from dynamics.validation import InvalidRequest
from theory.papers.positional_attention.data_law import SetLaw


@pytest.mark.parametrize(
    ("D", "C", "q", "number"),
    [(16, 4, 0.5, 680), (24, 4, 0.3, 11_628), (32, 8, 0.25, 16_215), (9, 3, 0.6, 55)],
)
def test_counts_and_total_probability(D, C, q, number):
    chosen = configurations.enumeration(D, SetLaw(C, q))
    assert configurations.number_of_configurations(D // C, C) == number == chosen.probability.size
    assert abs(math.fsum(chosen.probability) - 1) < 1e-13


def test_law_equals_all_sequences_of_patches():
    D, C, q = 8, 2, 0.3  # 3^6 sequences
    chosen = configurations.enumeration(D, SetLaw(C, q))
    found = {}
    for sets, chance in zip(chosen.counts[:, 1:].astype(int), chosen.probability, strict=True):
        found[tuple(sorted((a, b, C - a - b) for a, b in sets.tolist()))] = chance
    naive = {}
    for values in itertools.product((1, -1, 0), repeat=D - C):
        chance = math.prod(1 - q if v == 0 else q / 2 for v in values)
        sets = [values[k : k + C] for k in range(0, D - C, C)]
        key = tuple(sorted(tuple(s.count(v) for v in (1, -1, 0)) for s in sets))
        naive[key] = naive.get(key, 0.0) + chance
    assert naive.keys() == found.keys()
    for key, chance in naive.items():
        assert found[key] == pytest.approx(chance, rel=1e-13)


def test_too_many_configurations_are_refused_with_their_number():
    refused = "77,558,760 configurations at D=64 C=4.*nearest: spectral"
    with pytest.raises(InvalidRequest, match=refused):
        configurations.enumeration(64, SetLaw(4, 0.25))
