"""A fast expectation is held against the recursion that its model file declares."""

import json

import pytest

import dynamics
from dynamics.cache import kept
from dynamics.models import positional_attention as file
from dynamics.papers.held import hold
from dynamics.validation import InvalidRequest


@pytest.fixture
def checks(tmp_path, monkeypatch):
    """A folder of checks that is empty."""
    monkeypatch.setenv("ATTDYN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(kept, "_FOUND", {})
    monkeypatch.setattr(kept, "cache_directory", lambda: tmp_path)
    return tmp_path / "checks"


@pytest.mark.parametrize(
    ("name", "expectation"),
    [("positional_attention", "spectral"), ("masked_image_modeling", "contour")],
)
def test_what_was_held_is_kept(checks, name, expectation):
    system = dynamics.load_system(name)
    system.ReducedPopulation(system.Parameters(), expectation)
    (found,) = checks.iterdir()
    assert json.loads(found.read_text()) < 1e-12
    system.ReducedPopulation(system.Parameters(), expectation)
    assert list(checks.iterdir()) == [found]


def test_another_gradient_is_refused(checks):
    system = dynamics.load_system("positional_attention")
    given = {"D": 6, "C": 2}
    exact = system.ReducedPopulation(system.Parameters(**given), "exact")
    spectral = system.ReducedPopulation(system.Parameters(), "spectral").expectation
    with pytest.raises(InvalidRequest, match="spectral expectation does not have the gradient"):
        hold(spectral, file, given, lambda _, states: [2.0 * exact.gradient(s) for s in states])
