"""Theorem 3.2: transformers that generalize without attending to the own set."""

import naive
import numpy as np
import pytest

from theory.papers.positional_attention import constructions as made
from theory.papers.positional_attention.linear_rules import sign_rule_error
from theory.symmetry import Partition


def sets_of(D, C):
    return Partition.contiguous([C] * (D // C))


def members(partition):
    return [list(map(int, inside)) for inside in partition.sets]


def test_shift_only_permutes_rows():
    partition = Partition(np.array([0, 1, 2, 2, 0, 1]))
    values = np.random.default_rng(1).integers(-1, 2, (200, 6)).astype(float)
    own, moved = (made.set_logits(partition, 4.0, shift) for shift in (0, 1))
    head = made.Head(0.3, 3, 1e-3)
    reference, shifted = made.margins(own, values, head), made.margins(moved, values, head)
    np.testing.assert_allclose(shifted, reference, atol=1e-12 * np.abs(reference).max())
    assert (own != moved).any()
    order = [np.flatnonzero((moved == row).all(axis=1)).size for row in own]
    assert order == [len(partition.sets[0])] * 6


@pytest.mark.parametrize(("D", "C", "q", "p"), [(6, 2, 0.4, 3), (8, 2, 0.5, 5), (9, 3, 0.6, 3)])
def test_errors_against_loops(D, C, q, p):
    partition = sets_of(D, C)
    sets = members(partition)

    def power(x):
        return sum(sum(x[i] for i in inside) ** p for inside in sets)

    assert made.sharp_error((D, C, q), p).error == pytest.approx(naive.rule_error(power, sets, q))


def test_the_finite_model_is_the_sharp_one():
    partition = sets_of(6, 2)
    logits, sets = made.set_logits(partition, 30.0), members(partition)
    head = made.Head(0.3, 3, 1e-3)

    def finite(x):
        return float(made.margins(logits, np.array([x], dtype=float), head)[0])

    def sharp(x):
        return sum(sum(x[i] for i in inside) ** 3 for inside in sets) + 1e-3 * sum(x)

    expected = naive.rule_error(sharp, sets, 0.4)
    assert naive.rule_error(finite, sets, 0.4) == pytest.approx(expected, rel=1e-12)


def test_attention_to_everything_is_linear():
    linear = sign_rule_error(16, 4, 0.5).error
    for p, many in ((3, 4), (1, 1)):
        assert made.sharp_error((16, 4, 0.5), p, many).error == pytest.approx(linear)


def test_pairs_are_a_gram_matrix():
    partition = sets_of(64, 4)
    gram = made.paired_logits(partition)
    spectrum = np.unique(np.round(np.linalg.eigvalsh(gram), 9))
    np.testing.assert_allclose(spectrum, [0, 4e-3, 48], atol=1e-9)
    assert made.overlap(gram, partition, False) == (0, 0)
    assert made.overlap(gram, partition, True) == (1, 1)
    with pytest.raises(ValueError, match="even number"):
        made.paired_logits(sets_of(6, 2))


def test_top_c_of_the_shift():
    partition = sets_of(12, 4)
    assert made.overlap(made.set_logits(partition, 4.0), partition, True) == (0, 0)
    assert made.overlap(made.set_logits(partition, 4.0, 0), partition, True) == (4, 4)
    # Encodings e_l(i) of these logits do associate, as Definition 2.2 reads.
    positions = np.eye(3)[partition.labels].T
    assert made.overlap(positions.T @ positions, partition, True) == (4, 4)


def test_encodings_and_logits_avoid_the_own_set_at_once():
    for D, C in ((12, 4), (16, 4), (8, 4)):
        partition = sets_of(D, C)
        gram, logits = made.neighbour_gram(partition), made.set_logits(partition, 4.0)
        positions = made.encodings(gram)
        np.testing.assert_allclose(positions.T @ positions, gram, atol=1e-12)
        rebuilt = positions.T @ made.query_key(positions, logits) @ positions
        np.testing.assert_allclose(rebuilt, logits, atol=1e-12)
        assert made.overlap(gram, partition, False) == (0, 0)
    with pytest.raises(ValueError, match="semidefinite"):
        made.encodings(np.diag([1.0, -1.0]))
