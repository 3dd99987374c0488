"""The transformer on a Markov chain: its separatrix, where its sides end, and its basins."""

import numpy as np
import pytest
from matplotlib.path import Path

import dynamics
from dynamics.analysis.phase_portrait import portrait
from dynamics.analysis.phase_portrait.basins import bisected, ends_of

SYSTEM = dynamics.load_system("markov_attention")


def test_the_separatrix_at_one_and_a_half():
    """Published: sqrt(w^2 + sgn w log|w| - (log 2 + 1)/2) = .998980."""
    problem = SYSTEM.ReducedPopulation(SYSTEM.Parameters())
    ends = ends_of(problem, lambda w, e: np.array([e, w]), 1e8)
    pair = np.array([[[-1.5, 0.5], [-1.5, 2.0]]])
    (place,), (jumps,) = bisected(ends, pair, ends(pair[0])[None], np.ones(2), 0.1)
    assert jumps
    assert place[1] == pytest.approx(0.998980, abs=1e-6)
    formula = np.sqrt(1.5**2 - np.log(1.5) - (np.log(2) + 1) / 2)
    assert place[1] == pytest.approx(formula, rel=1e-7)


def test_where_the_two_sides_end():
    """On (1 + 2 w|w|) e^2 = log 81 at the entropy of the chain, or at e = 0 and log 2."""
    problem = SYSTEM.ReducedPopulation(SYSTEM.Parameters())
    entropy = -0.1 * np.log(0.1) - 0.9 * np.log(0.9)
    for e0, z, risk in ((1.0, np.log(81), entropy), (0.998, 0.0, np.log(2))):
        run = dynamics.flow(problem, 1e7, initial=[e0, -1.5])
        assert run["z"][-1] == pytest.approx(z, abs=1e-6)
        assert run["risk"][-1] == pytest.approx(risk, rel=1e-9)
    assert dynamics.flow(problem, 1e7, initial=[0.998, -1.5])["e"][-1] < 1e-9


def contains(basin, point):
    """Whether a point is inside an odd number of outlines."""
    return sum(Path(line).contains_point(point) for line in basin.outline) % 2 == 1


def test_each_start_is_in_the_basin_of_its_own_run():
    """The twin: a flow from each of 20 random starts, and the level at which its risk ends."""
    problem = SYSTEM.ReducedPopulation(SYSTEM.Parameters())
    box = ((-3.0, 3.0), (-3.0, 3.0))
    found = portrait(problem, 300.0, ("w", "e"), box, starts=0, grid=4, basin_starts=12)
    assert len(found.basins) == 3
    (bad,) = [b for b in found.basins if problem.risk(b.ends[0]) > 0.6]
    for w, e in np.random.default_rng(0).uniform(-3, 3, (20, 2)):
        run = dynamics.flow(problem, 3e4, initial=[e, w])
        near = min(np.hypot(*(line - (w, e)).T).min() for line in bad.separatrices or bad.outline)
        if near > 0.3:  # chords of the outline are off the curve
            assert contains(bad, (w, e)) == (run["risk"][-1] > 0.6)
