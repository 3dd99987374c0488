import numpy as np
from scalars import Scalars, fold

from dynamics.analysis.phase_portrait import portrait
from dynamics.analysis.phase_portrait.elimination import follow_branch


def rests(x):
    """Real roots of u^3 - u = x."""
    roots = np.roots([1, 0, -1, -x])
    return np.sort(roots[np.abs(roots.imag) < 1e-9].real)


def test_one_branch_is_followed_to_its_fold():
    x = np.linspace(-1, 1, 81)
    values, slopes = follow_branch(fold(), "u", {"x": x}, ((80,), 1.3), (-3.0, 3.0))
    there = np.isfinite(values)
    assert abs(x[there].min() + 2 / (3 * np.sqrt(3))) < 0.025
    expected = [rests(at)[-1] for at in x[there]]
    np.testing.assert_allclose(values[there], expected, atol=1e-12)
    assert (slopes[there] > 0).all()
    nothing, _ = follow_branch(fold(), "u", {"x": x}, ((40,), 0.01), (-0.5, 0.5))
    assert not np.isfinite(nothing).any()


def test_a_fast_scalar_of_a_plane_rests_on_its_nullcline():
    """It attracts where 3 u^2 > 1, and repels between the folds."""
    fast = Scalars(("u", "x"), lambda u, x: (1e3 * (u**3 - u - x), -1.0), (1.0, 0.0))
    found = portrait(fast, 0.9, ("u", "x"), ((-2.0, 2.0), (-1.0, 1.0)), 0, 16).slow
    assert found.name == "u"
    for lines, attracts in ((found.attracting, True), (found.repelling, False)):
        points = np.concatenate(lines)
        np.testing.assert_allclose(points[:, 0] ** 3 - points[:, 0], points[:, 1], atol=1e-9)
        assert ((3 * points[:, 0] ** 2 > 1) == attracts).all()
    assert [len(found.attracting), len(found.repelling)] == [2, 1]
