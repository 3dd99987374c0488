"""Times of events in flows that are known in closed form, by both integrators."""

import numpy as np
import pytest
from known_flows import BLOWUP, BLOWUP_TIMES, CLOCK, HALF, TIMES, blowup, clock

import dynamics


def flow(model, texts, time, **settings):
    system = dynamics.load_system(model(**texts))
    return dynamics.flow(system.ReducedPopulation(system.Parameters()), time, **settings)


def check(run, times):
    """Every event at its time, to the stated error, which is small."""
    most = 1e-8 if run.settings["integrator"] == "collocation" else 1e-6
    for name, event in run.events.items():
        assert abs(event.time - times[name]) <= event.uncertainty <= most * times[name], name


CASES = [
    (clock, "top bottom top2", 20.0, None),
    (clock, "flat", 5.0, None),
    (blowup, "flat", 1.5, None),
    (clock, "bump bump2", 640.0, [201.5, 640.0]),  # within a step
    (blowup, "flat late", 1.95, None),
    (blowup, "flat late", 2.05, None),
    (blowup, "far", 2.05, None),
]


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(("model", "names", "time", "record"), CASES)
def test_events_are_at_their_times_to_the_stated_error(model, names, time, record, compiled):
    texts, times = (CLOCK, TIMES) if model is clock else (BLOWUP, BLOWUP_TIMES)
    some = {name: texts[name] for name in names.split()}
    run = flow(model, some, time, compiled=compiled, record=record)
    assert (run.outcome.kind == "diverged") is (time > 2 and model is blowup)
    check(run, times)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("width", [0.3, 3e-5])
def test_no_verdict_contradicts_a_record(width, compiled):
    """A rule that holds shortly, however shortly, is not a rule that is not reached."""
    texts = {"short": f"{width} - abs(s - 123.4) >= 0", "wave": f"q >= {1 - width**2}"}
    records = np.array([123.4, 161 * HALF])
    run = flow(clock, texts, 640.0, record=records, compiled=compiled)
    assert run.events["short"].time == pytest.approx(123.4 - width, rel=1e-6)
    wave = run.events["wave"]
    assert wave.reached or "not decidable" in wave.reason


def test_the_stated_error_falls_with_the_tolerance():
    texts = {name: BLOWUP[name] for name in ("flat", "late")}
    runs = [flow(blowup, texts, 1.95, rtol=rtol) for rtol in (1e-8, 1e-10, 1e-11, 1e-12)]
    for name in texts:
        errors = [run.events[name].uncertainty for run in runs]
        assert errors == sorted(errors, reverse=True)
        assert errors[2] < 0.2 * errors[0]
    check(runs[-1], BLOWUP_TIMES)
