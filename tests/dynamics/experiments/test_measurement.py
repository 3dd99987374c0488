"""From measurements to the finding of a check."""

from math import inf, isnan, nan

import pytest

from dynamics.experiments.measurement import (
    Chart,
    Measurement,
    Series,
    Undecided,
    conclude,
    listed,
    measures,
    undecided,
)
from dynamics.experiments.verify import Protocol

CHART = Chart("x", "y", [Series("a", (1, 2), [3.0, 4.0])], {"bound": 1.0}, y_scale="linear")


def test_one_measurement_decides_and_carries_its_chart():
    found = conclude(Measurement("share", 0.2, "<=", 0.5, CHART), "small", table=[1])
    assert (found.holds, found.measured, found.bound) == (True, 0.2, 0.5)
    assert found.evidence["table"] == [1]
    assert found.evidence["plot"] == {
        "x_label": "x", "y_label": "y", "x_scale": "log", "y_scale": "linear",
        "curves": [{"label": "a", "x": [1, 2], "y": [3.0, 4.0]}],
        "lines": [{"label": "bound", "y": 1.0}],
    }  # fmt: skip


def test_the_first_that_fails_is_shown():
    first, second = Measurement("one", 1.0, ">", 0.0, CHART), Measurement("two", 3.0, "<", 2.0)
    assert conclude([first], "").quantity == "one"
    found = conclude([first, second], "")
    assert (found.holds, found.quantity, found.measured) == (False, "two", 3.0)
    assert found.evidence["plot"] == CHART.document()
    assert conclude([first, second], "", may_still_come=True).holds is None


@pytest.mark.parametrize(("relation", "far"), [("<", inf), ("<=", inf), (">=", -inf), (">", -inf)])
def test_what_was_not_observed_is_infinitely_far(relation, far):
    found = conclude(Measurement("", nan, relation, 1.0), "")
    assert (found.holds, found.measured) == (False, far)


def test_a_verdict_that_bounds_do_not_decide_is_said():
    measurement = Measurement("", 2.0, "<", 1.0)
    assert conclude(measurement, "", holds=True).holds is True
    assert conclude(measurement, "", holds=None).holds is None
    nothing = undecided("q", 1.0, "too large", parameters={"D": 8})
    assert nothing.holds is None
    assert isnan(nothing.measured)


def test_numbers_of_a_reason():
    assert listed([1.23456, nan]) == "1.23, not seen"


def test_a_check_that_cannot_decide_says_why():
    def positive(parameters):
        if parameters < 0:
            raise Undecided("negative", parameters=parameters)

    @measures("root", "<=", 2.0, positive)
    def root(system, protocol, measured):
        if protocol.parameters is None:
            raise Undecided("nothing to measure")
        return conclude(measured(protocol.parameters**0.5), "measured")

    assert root(None, Protocol(4.0)).holds
    assert root(None, Protocol(9.0)).holds is False
    refused, nothing = root(None, Protocol(-1.0)), root(None, Protocol())
    assert (refused.holds, refused.quantity, refused.bound) == (None, "root", 2.0)
    assert (refused.reason, refused.evidence) == ("negative", {"parameters": -1.0})
    assert (nothing.holds, nothing.reason) == (None, "nothing to measure")
