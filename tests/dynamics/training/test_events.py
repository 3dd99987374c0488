"""Event rules on made-up histories, against loops, for every way to cut them into chunks."""

import itertools
from types import SimpleNamespace

import naive
import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamics.training.events import TOO_LATE, Detector
from theory.events import Crossing, ExceedsRunMaximum, RisesAgain

a, b = sympy.symbols("a b", real=True)
ONE = sympy.Integer(1)
CROSSING = Crossing("crossing", "", "", a - sympy.Symbol("D"), ONE)
GUARDED = Crossing("guarded", "", "", -b, a, strict=True, after="crossing")
MAXIMUM = ExceedsRunMaximum("maximum", "", "", a, sympy.Abs(b))
RISE = RisesAgain("rise", "", "", b, 0.05, after="crossing")
RESOLVED = Crossing("resolved", "", "", b, ONE, resolution=0.3, after="crossing")
RULES = (CROSSING, GUARDED, MAXIMUM, RISE, RESOLVED)


def chunks(history, cuts):
    edges = sorted({0, *(c % len(history) for c in cuts), len(history)})
    for first, last in itertools.pairwise(edges):
        yield first, history[first:last], np.array([float(first)])


def detect(history, cuts, step_time=0.5, fate="", rules=RULES, again=(), resumed=False):
    """What is detected; the run once more is in chunks by other cuts, or as given."""
    names = ("a", "b", "n")[: history.shape[1]]
    detector = Detector(rules, names, SimpleNamespace(D=1.5), step_time)
    for chunk in chunks(history, cuts):
        detector.feed(*chunk)
        if resumed:
            detector.restore(detector.state())
    known = again is None or callable(again)
    detector.finish(len(history) - 1, fate, again if known else lambda: chunks(history, again))
    return detector.detections


def last_moving(rates):
    return next(rate for rate in reversed(rates) if rate != 0)


values = st.floats(-4, 4).map(lambda v: round(v, 1))
histories = st.lists(st.tuples(values, values), min_size=1, max_size=60)
places = st.lists(st.integers(0, 100), max_size=60)


@settings(deadline=None, max_examples=300)
@given(histories, places, st.booleans())
def test_every_rule_equals_a_loop_however_the_run_is_cut(history, cuts, resumed):
    history = np.array(history)
    found = detect(history, cuts, resumed=resumed)
    steps = range(len(history))
    first = next((t for t in steps if history[t, 0] >= 1.5), None)
    assert found["crossing"].step == first
    later = [] if first is None else range(first, len(history))
    second = next((t for t in later if -history[t, 1] > 0 and history[t, 0] > 0), None)
    assert found["guarded"].step == second
    bound = np.abs(history[:, 1]).max()
    assert found["maximum"].step == next((t for t in steps if history[t, 0] > bound), None)
    largest = np.maximum.accumulate(np.abs(history[:, 1]))
    signs = (t for t in later if largest[t] > 0 and history[t, 1] >= 0)
    # A zero counts where the last rate that was none had not decayed.
    counted = (t for t in signs if abs(last_moving(history[: t + 1, 1])) > 0.3 * largest[t])
    assert found["resolved"].step == next(counted, None)
    rise = None if first is None else naive.rises_again(history[:, 1], 0.05, first)
    assert found["rise"].step == rise
    assert all((entry.step is None) == bool(entry.reason) for entry in found.values())


FALLS = "still decreases when the run ends"


@pytest.mark.parametrize("cut", [1, 3, 100])
@pytest.mark.parametrize(
    ("alphas", "step", "reason"),
    [
        ([1, 0.5, 0.2, 0.6, 1.06], 2, ""),
        ([1, 0.5, 0.2, 0.6, 1.04], None, "still rises when the run ends, to 1.04 of its value"),
        ([1, 0.5, 0.2, 0.6, 1.06, 1.01], 2, ""),
        ([1, 0.5, 0.2, 0.6, 1.06, 0.99], None, "rises, and falls again, to 0.99 of"),
        ([1, 0.5, 0.5004, 0.4], None, FALLS),
        ([1, 0.5, 0.5004, 0.50035], None, f"{FALLS} after a rise by 0.0008 of"),
        ([1, 1.2, 1.5], None, "does not fall below its value at crossing"),
        ([1, 1.2, 0.9, 1.04, 0.8, 1.2], 4, ""),
    ],
)
def test_a_rise_counts_from_five_per_cent_above_the_value_before_the_fall(
    alphas, step, reason, cut
):
    """At 4 per cent it is none, nor at 50: the threshold is pinned from both sides."""
    history = np.column_stack([np.full(len(alphas), 2.0), alphas])
    result = detect(history, range(0, len(alphas), cut))["rise"]
    assert result.step == step
    assert result.reason.startswith(reason)
    assert bool(result.reason) == (step is None)


def test_reasons_say_why():
    found = detect(np.array([[0.0, 0.0], [1.0, 2.0]]), [])
    assert found["crossing"].reason == "not reached by time 0.5"
    assert found["rise"].reason == "crossing is not reached"
    assert found["maximum"].reason == "never above 2 in a run to time 0.5"


LATE = (
    Crossing("late", "", "", a - 2, after="top"),
    RisesAgain("again", "", "", b, 0.05, after="top"),
    Crossing("resolved", "", "", b, ONE, resolution=0.3, after="again"),
    ExceedsRunMaximum("above", "", "", a, b, after="late"),
    Crossing("last", "", "", -b, ONE, after="above"),
)


@settings(deadline=None, max_examples=200)
@given(histories, places, places)
def test_what_awaits_a_rule_of_the_whole_run_is_sought_from_its_step_on(history, cuts, others):
    """As if that step had been known on the way: as where the number of a step reaches it."""
    history = np.column_stack([np.array(history), np.arange(len(history))])
    top = ExceedsRunMaximum("top", "", "", a, sympy.Abs(b))
    found = detect(history, cuts, rules=(top, *LATE), again=others)
    for rule in LATE:
        step = found[rule.after].step
        begin = Crossing(rule.after, "", "", sympy.Symbol("n") - (1000 if step is None else step))
        alone = detect(history, [], rules=(begin, rule))[rule.name]
        one = found[rule.name]
        assert (one.step, one.reason) == (alone.step, alone.reason), rule.name


def test_where_the_steps_are_not_taken_once_more_what_awaits_them_is_too_late():
    """Its search begins at a step that only the end of the run tells."""
    top = ExceedsRunMaximum("top", "", "", a, b)
    history = np.column_stack([np.arange(8.0), np.full(8, 3.5)])
    for incomplete in (None, lambda: itertools.islice(chunks(history, [3]), 1)):
        found = detect(history, [], rules=(top, *LATE), again=incomplete)
        for rule in (top, *LATE):
            assert found[rule.name].step is None
            assert found[rule.name].reason == TOO_LATE.format(rule.after or "the maximum")
