"""The phase-plane figure, at a size and grid that take no time."""

import numpy as np
import pytest

import dynamics
from dynamics.validation import InvalidRequest
from dynamics.verdicts.figure import draw

SYSTEM = dynamics.load_system("positional_attention")
SMALL = SYSTEM.Parameters(D=8, C=2, q=0.5)
QUICK = {"time": 1e3, "starts": 1, "grid": 6}


@pytest.fixture(scope="module")
def drawing():
    """Both planes, on fewer levels of the slow manifold: what it is, is asked in the analysis."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dynamics.analysis.phase_portrait.plane.ARROWS", 8)
        return draw(SYSTEM, "plane", SMALL, options=QUICK)


def test_both_planes_by_default(drawing):
    assert list(drawing.data) == ["gamma-rho", "alpha-gamma"]
    left, right = drawing.axes
    assert (left.get_xlabel(), left.get_ylabel()) == (r"$\gamma$", r"$\rho$")
    assert (right.get_xlabel(), right.get_ylabel()) == (r"$\alpha$", r"$\gamma$")
    assert "gradients beside the runs" in drawing.caption
    assert drawing.data["gamma-rho"]["hidden"] == {"alpha": "slow"}
    assert drawing.data["alpha-gamma"]["hidden"] == {"rho": "run"}


def test_what_is_drawn_is_what_is_told(drawing):
    for axes, told in zip(drawing.axes, drawing.data.values(), strict=True):
        drawn = [line.get_xydata() for line in axes.lines]
        branches = [each for line in told["nullclines"].values() for each in line["branches"]]
        assert branches
        for branch in branches:
            assert any(np.array_equal(branch, shown) for shown in drawn)


def test_one_plane_alone_can_be_asked_for():
    alone = draw(SYSTEM, "plane", SMALL, options=QUICK | {"plane": "gamma-rho", "grid": 4})
    assert list(alone.data) == ["gamma-rho"]
    (axes,) = alone.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == (r"$\gamma$", r"$\rho$")


def test_an_unknown_plane_is_refused():
    with pytest.raises(InvalidRequest, match="plane='beta-rho'"):
        draw(SYSTEM, "plane", SMALL, options={"plane": "beta-rho"})
