import numpy as np
import pytest
from scalars import fold

from dynamics.analysis.phase_portrait.roots import partial_gradient
from dynamics.analysis.phase_portrait.slow_manifold import follow_branch, rests_on_grid

FOLD = 2 / (3 * np.sqrt(3))


def slow_manifold(problem, name, at, bracket):
    """All values at which a gradient component is zero, over a grid of the other scalars."""
    grids = dict(zip(at, np.broadcast_arrays(*at.values()), strict=True))

    def component(index):
        return partial_gradient(problem, name, {k: float(grids[k][index]) for k in grids})

    return rests_on_grid(name, grids, bracket, component)


def test_three_branches_end_in_folds():
    """u^3 - u = x: every real root of the polynomial, at every point."""
    x = np.linspace(-1, 1, 81)
    found = slow_manifold(fold(), "u", {"x": x}, (-3.0, 3.0))
    assert sorted(found.attracting) == [False, True, True]
    for k, at in enumerate(x):
        roots = np.roots([1, 0, -1, -at])
        roots = np.sort(roots[np.abs(roots.imag) < 1e-9].real)
        values = found.values[:, k]
        np.testing.assert_allclose(np.sort(values[np.isfinite(values)]), roots, atol=1e-12)
    slopes, values = found.slopes, found.values
    kept = np.isfinite(values)
    np.testing.assert_allclose(slopes[kept], 3 * values[kept] ** 2 - 1, atol=1e-6)
    for row, held in zip(values, found.attracting, strict=True):
        there = x[np.isfinite(row)]
        if not held:
            assert np.abs(there).max() < FOLD
        else:
            assert max(there.min(), -there.max()) == pytest.approx(-FOLD, abs=0.025)


def test_one_branch_is_followed_to_its_fold():
    x = np.linspace(-1, 1, 81)
    every = slow_manifold(fold(), "u", {"x": x}, (-3.0, 3.0))
    upper = max(every.values, key=lambda row: np.nanmax(row))
    found = follow_branch(fold(), "u", {"x": x}, ((80,), 1.3), (-3.0, 3.0))
    assert found.attracting == (True,)
    np.testing.assert_allclose(found.values[0], upper, atol=1e-12)
    assert not len(follow_branch(fold(), "u", {"x": x}, ((40,), 0.01), (-0.5, 0.5)).values)
