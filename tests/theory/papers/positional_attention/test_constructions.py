"""Theorem 3.2: transformers that generalize without attending to the own set."""

import naive
import numpy as np
import pytest

from theory.papers.positional_attention.constructions import (
    Head,
    encodings,
    margins,
    neighbour_gram,
    overlap,
    paired_logits,
    query_key,
    set_logits,
    sharp_error,
)
from theory.papers.positional_attention.linear_rules import sign_rule_error
from theory.symmetry import Partition


def sets_of(D, C):
    return Partition.contiguous([C] * (D // C))


def members(partition):
    return [list(map(int, inside)) for inside in partition.sets]


@pytest.mark.parametrize("labels", [[0, 0, 1, 1, 2, 2], [0, 1, 2, 2, 0, 1], [0, 1, 0, 1, 0, 1]])
def test_shift_only_permutes_rows(labels):
    partition = Partition(np.array(labels))
    values = np.random.default_rng(1).integers(-1, 2, (200, 6)).astype(float)
    own, moved = (set_logits(partition, 4.0, shift) for shift in (0, 1))
    head = Head(0.3, 3, 1e-3)
    reference, shifted = margins(own, values, head), margins(moved, values, head)
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

    assert sharp_error((D, C, q), p).error == pytest.approx(naive.rule_error(power, sets, q))


def test_the_finite_model_is_the_sharp_one():
    """F of equation (T) at s = 30, every sample enumerated."""
    partition = sets_of(6, 2)
    logits, head = set_logits(partition, 30.0), Head(0.3, 3, 1e-3)
    sets = members(partition)
    found = naive.rule_error(
        lambda x: float(margins(logits, np.array([x], dtype=float), head)[0]), sets, 0.4
    )
    reference = naive.rule_error(
        lambda x: sum(sum(x[i] for i in inside) ** 3 for inside in sets) + 1e-3 * sum(x), sets, 0.4
    )
    assert found == pytest.approx(reference, rel=1e-12)


@pytest.mark.parametrize(("D", "C", "q"), [(16, 4, 0.5), (64, 4, 0.25)])
def test_attention_to_everything_is_linear(D, C, q):
    linear = sign_rule_error(D, C, q).error
    for p, many in ((3, D // C), (1, 1)):
        assert sharp_error((D, C, q), p, many).error == pytest.approx(linear)


def test_pairs_are_a_gram_matrix():
    partition = sets_of(64, 4)
    gram = paired_logits(partition)
    np.testing.assert_allclose(
        np.unique(np.round(np.linalg.eigvalsh(gram), 9)), [0, 4e-3, 48], atol=1e-9
    )
    assert np.linalg.eigvalsh(gram)[0] >= -1e-12
    assert overlap(gram, partition, False) == (0, 0)
    assert overlap(gram, partition, True) == (1, 1)
    with pytest.raises(ValueError, match="even number"):
        paired_logits(sets_of(6, 2))


def test_top_c_of_the_shift():
    partition = sets_of(12, 4)
    assert overlap(set_logits(partition, 4.0), partition, True) == (0, 0)
    assert overlap(set_logits(partition, 4.0, 0), partition, True) == (4, 4)
    # Encodings e_l(i) of these logits do associate, as Definition 2.2 reads.
    positions = np.eye(3)[partition.labels].T
    assert overlap(positions.T @ positions, partition, True) == (4, 4)


def test_encodings_and_logits_avoid_the_own_set_at_once():
    for D, C in ((12, 4), (16, 4), (8, 4)):
        partition = sets_of(D, C)
        gram, logits = neighbour_gram(partition), set_logits(partition, 4.0)
        positions = encodings(gram)
        np.testing.assert_allclose(positions.T @ positions, gram, atol=1e-12)
        rebuilt = positions.T @ query_key(positions, logits) @ positions
        np.testing.assert_allclose(rebuilt, logits, atol=1e-12)
        assert overlap(gram, partition, False) == (0, 0)
    with pytest.raises(ValueError, match="semidefinite"):
        encodings(np.diag([1.0, -1.0]))


def test_attention_to_patches_adds_up_at_large_logits():
    logits, values = np.array([[800.0, 0.0], [1.0, 1.0]]), np.array([[3.0, 1.0], [0.0, -2.0]])
    np.testing.assert_allclose(margins(logits, values, Head(0.5, p=1, nu=0.0)), [5.0, -1.0])
