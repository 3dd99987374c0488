"""The criterion of zero error: its number, and attentions tried on every sample of small laws."""

import numpy as np
import pytest

from theory.papers.positional_attention import separability
from theory.papers.positional_attention.data_law import SetLaw, configurations
from theory.papers.positional_attention.separability import criterion, least_margin

TABLE = {
    (8, 2, 3): 0.375, (9, 3, 3): 0.593, (16, 4, 5): 0.712, (12, 4, 3): 0.844, (16, 2, 3): 0.875,
    (12, 3, 3): 0.889, (18, 2, 3): 1.0, (20, 2, 3): 1.125, (15, 3, 3): 1.185, (16, 4, 3): 1.266,
}  # fmt: skip


@pytest.mark.parametrize(("sizes", "number"), TABLE.items())
def test_the_criterion_of_both_laws(sizes, number):
    D, C, p = sizes
    assert criterion(SetLaw(C, 0.5, "mixed"), D // C, p) == pytest.approx(number, abs=5e-4)
    assert criterion(SetLaw(C, 0.5), D // C, p) == D // C - 1


@pytest.mark.parametrize("weights", [(1, 1, 0), (2, 1, 0), (3, 0, 1), (0, 2, 1), (1, 0, 4)])
def test_the_least_margin_is_that_of_all_samples_one_by_one(weights):
    sets = ((0, 1), (2, 3), (4, 5))
    alone, within, between = weights
    attention = np.full((6, 6), between)
    for members in sets:
        attention[np.ix_(members, members)] = within
    np.fill_diagonal(attention, alone)
    margins = [
        label * int(((attention @ np.array(values)) ** 3).sum())
        for label, values, _ in configurations(sets, "mixed")
    ]
    assert least_margin(SetLaw(2, 0.5, "mixed"), 3, 3, weights) == min(margins)


def test_the_proposition_holds_on_a_grid_and_fails_for_the_law_of_the_paper(monkeypatch):
    monkeypatch.setattr(separability, "FINEST", 4)
    assert separability.separability().holds is True
    assert separability.separability("any").holds is False
