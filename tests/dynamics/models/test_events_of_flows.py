"""Times of events in flows that are known in closed form, by both integrators."""

import math

import numpy as np
import pytest

import dynamics
from theory.events import event_rules

HALF = math.pi / 2
CLOCK = {
    "top": "q stops growing",
    "bottom": "q starts growing after top",
    "top2": "q stops growing after bottom",
    "flat": "(s - 2)**3 >= 0",
    "wave": "q >= 2",
    "bump": "-(s - 201)*(s - 202) >= 0",
    "bump2": "-(s - 201)*(s - 202) >= 0 after bump",
}
BLOWUP = {"flat": "(w - 1)**5 >= 0", "late": "d_w >= 100", "far": "w >= 1000000"}


def problem_of(**settings):
    system = dynamics.Model(names={name: name for name in settings["start"]()}, **settings)
    return system.ReducedPopulation(system.Parameters())


@pytest.fixture(scope="module")
def clock():
    """S is the time, and q its sine."""
    return problem_of(
        start=lambda: {"s": 0.0},
        risk=lambda theta, xp: -theta["s"],
        observables=lambda theta, xp: {"q": xp.sin(theta["s"])},
        events=CLOCK,
    )


@pytest.fixture(scope="module")
def blowup():
    """W = 1 / (2 - t)."""
    return problem_of(
        start=lambda: {"w": 0.5}, risk=lambda theta, xp: -(theta["w"] ** 3) / 3, events=BLOWUP
    )


def flow(problem, time, texts, **settings):
    """A flow with those events only."""
    problem.events = event_rules(texts, problem.order_names)
    return dynamics.flow(problem, time, **settings)


def some(texts, *names):
    return {name: texts[name] for name in names}


def check(run, exact):
    """Every event at its time, to the stated error, which is small."""
    most = 1e-8 if run.settings["integrator"] == "collocation" else 1e-6
    assert list(run.events) == list(exact)
    for name, time in exact.items():
        event = run.events[name]
        assert abs(event.time - time) <= event.uncertainty <= most * time, (name, event)


@pytest.mark.parametrize("compiled", [True, False])
class TestFlows:
    def test_an_event_after_another_is_not_before_it(self, clock, compiled):
        run = flow(clock, 20.0, some(CLOCK, "top", "bottom", "top2"), compiled=compiled)
        check(run, {"top": HALF, "bottom": 3 * HALF, "top2": 5 * HALF})

    def test_a_flat_root_has_a_time(self, clock, blowup, compiled):
        check(flow(clock, 5.0, some(CLOCK, "flat"), compiled=compiled), {"flat": 2.0})
        check(flow(blowup, 1.5, some(BLOWUP, "flat"), compiled=compiled), {"flat": 1.0})

    def test_what_holds_for_a_moment_within_a_step_is_found(self, clock, compiled):
        run = flow(
            clock, 640.0, some(CLOCK, "bump", "bump2"), compiled=compiled, record=[201.5, 640.0]
        )
        check(run, {"bump": 201.0, "bump2": 201.0})

    @pytest.mark.parametrize("time", [1.95, 2.05])
    def test_an_event_before_a_blow_up_is_kept(self, blowup, compiled, time):
        check(
            flow(blowup, time, some(BLOWUP, "flat", "late"), compiled=compiled),
            {"flat": 1.0, "late": 1.9},
        )

    def test_the_error_before_a_blow_up_is_that_of_all_steps_before(self, blowup, compiled):
        run = flow(blowup, 2.05, some(BLOWUP, "far"), compiled=compiled)
        assert run.outcome.kind == "diverged"
        check(run, {"far": 2.0 - 1e-6})


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("width", [0.3, 3e-3, 3e-5])
def test_no_verdict_contradicts_a_record(clock, width, compiled):
    """A rule that holds shortly, however shortly, is not a rule that is not reached."""
    texts = {"short": f"{width} - abs(s - 123.4) >= 0", "wave": f"q >= {1 - width**2}"}
    run = flow(clock, 640.0, texts, record=np.array([123.4, 161 * HALF]), compiled=compiled)
    assert run.events["short"].time == pytest.approx(123.4 - width, rel=1e-6)
    wave = run.events["wave"]
    assert wave.reached or "not decidable" in wave.reason


def test_the_stated_error_falls_with_the_tolerance(blowup):
    texts = some(BLOWUP, "flat", "late")
    runs = [flow(blowup, 1.95, texts, rtol=rtol) for rtol in (1e-8, 1e-10, 1e-11, 1e-12)]
    for name in texts:
        errors = [run.events[name].uncertainty for run in runs]
        assert errors == sorted(errors, reverse=True)
        assert errors[2] < 0.2 * errors[0]
    check(runs[-1], {"flat": 1.0, "late": 1.9})
