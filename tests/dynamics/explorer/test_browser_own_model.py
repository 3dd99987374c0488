"""The page of a model file in a browser, against what Python computes."""

import pytest
from browser import Tab, chromium

import dynamics
from dynamics.explorer import own_points, write_page

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("pages") / "linear_icl.html"
    system = dynamics.load_system("linear_icl")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(own_points, "MOST_TRIED", 1)
        write_page(system, path, system.Parameters(D=2))
    return path


def events_of(parameters):
    system = dynamics.load_system("linear_icl")
    problem = system.ReducedPopulation(parameters)
    run = system.default_runs["compare"]
    return {
        name: event.step
        for name, event in dynamics.descend(problem, run.eta, run.steps).events.items()
    }


def test_events_are_those_of_python_before_and_after_a_constant_moves(path):
    parameters = dynamics.load_system("linear_icl").Parameters
    assert path.stat().st_size < 400_000
    with chromium() as browser:
        tab = Tab(browser, path.as_uri())
        tab.rests()
        for changes in ({}, {"slope": 0.5}):
            for name, value in changes.items():
                tab.type_into(name, str(value))
                tab.rests()
            expected = events_of(parameters(D=2, **changes))
            assert expected
            for event, step in expected.items():
                assert tab.cell(event, 1) == step
                assert tab.cell(event, 2) == pytest.approx(tab.cell(event, 0), rel=0.1)
        assert tab.complaints == []
        assert {url.split(":")[0] for url in tab.requests} <= {"file", "blob", "data"}
