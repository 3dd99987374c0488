"""Rows with given overlaps: their products, their form, and matrices that are not overlaps."""

import numpy as np
import pytest

from dynamics import rows_with_overlaps
from dynamics.validation import InvalidRequest


@pytest.mark.parametrize(("m", "d"), [(1, 1), (4, 9), (6, 2), (12, 3)])
def test_rows_have_the_overlaps_of_others_at_any_dimension(m, d):
    others = np.random.default_rng(m + d).standard_normal((m, d))
    gram = others @ others.T
    rows = rows_with_overlaps(gram)
    np.testing.assert_allclose(rows @ rows.T, gram, atol=1e-14 * m * np.abs(gram).max())
    assert np.array_equal(rows, np.tril(rows))
    assert (np.diag(rows) >= 0).all()


WRONG = [
    ([[1.0, 0.5], [0.4, 1.0]], "gram is not symmetric: entry (0, 1) is 0.5, and (1, 0) is 0.4"),
    ([[1.0, 1.5], [1.5, 1.0]], "gram is not positive semidefinite: its least eigenvalue is -0.5"),
    ([[1.0, 0.5]], "gram has the shape (1, 2); it must be (m, m)"),
    ([1.0], "gram has the shape (1,); it must be (m, m)"),
    (np.zeros((0, 0)), "gram has the shape (0, 0); it must be (m, m)"),
    ([[np.nan]], "gram is not finite"),
    ([["x"]], "gram must be a matrix of numbers"),
    ([[1.0], [1.0, 2.0]], "gram must be a matrix of numbers"),
]


@pytest.mark.parametrize(("gram", "message"), WRONG)
def test_what_is_no_matrix_of_overlaps_is_refused_in_a_line(gram, message):
    with pytest.raises(InvalidRequest) as caught:
        rows_with_overlaps(gram)
    assert str(caught.value).startswith(message)
