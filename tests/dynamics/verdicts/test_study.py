"""From measurements to the finding of a check."""

from math import inf, isnan, nan

import pytest

import dynamics
from dynamics.verdicts.findings import Protocol, Undecided
from dynamics.verdicts.study import Measurement, Study, measures


def study(quantity="share", relation="<=", bound=0.5):
    return Study(None, Protocol(), quantity, relation, bound)


def test_one_measurement_decides_and_carries_its_table_and_picture():
    one = study()
    one.row({"D": 8}, share=0.2)
    one.curve("a", (1, 2), [3.0, 4.0])
    one.curve("b", (1, 2), [5.0, 6.0], [0.5, 0.25])
    one.draw("x", "y", {"bound": 1.0}, y_scale="linear")
    found = one.conclude(0.2, "small", note=1)
    assert (found.holds, found.measured, found.bound) == (True, 0.2, 0.5)
    assert found.evidence["table"] == [{"D": 8, "share": 0.2}]
    assert found.evidence["note"] == 1
    assert found.evidence["plot"] == {
        "x_label": "x", "y_label": "y", "x_scale": "log", "y_scale": "linear",
        "curves": [
            {"label": "a", "x": [1, 2], "y": [3.0, 4.0]},
            {"label": "b", "x": [1, 2], "y": [5.0, 6.0], "errors": [0.5, 0.25]},
        ],
        "lines": [{"label": "bound", "y": 1.0}],
    }  # fmt: skip


def test_a_picture_states_what_all_cases_share():
    system = dynamics.load_system("positional_attention")
    one = Study(system, Protocol(), "share", "<=", 0.5)
    one.laws({"D": 8, "C": 2, "q": 0.25}, {"D": 8, "C": 4, "q": 0.25})
    one.draw("x", "y")
    plot = one.conclude(0.2, "small").evidence["plot"]
    assert (plot["parameters"]["D"], plot["parameters"]["q"]) == (8, 0.25)
    assert "C" not in plot["parameters"]
    assert plot["letters"]["nu"] == r"\nu"
    other = Study(system, Protocol(), "share", "<=", 0.5)
    other.draw("x", "y")
    given = {"time": 1e4, "D": [8, 12]}
    assert other.conclude(0.2, "small", parameters=given).evidence["plot"]["parameters"] == {
        "time": 1e4
    }


def test_the_first_that_fails_is_shown():
    also = Measurement("two", 3.0, "<", 2.0)
    assert study("one", ">", 0.0).conclude(1.0, "").quantity == "one"
    found = study("one", ">", 0.0).conclude(1.0, "", also)
    assert (found.holds, found.quantity, found.measured) == (False, "two", 3.0)
    assert study("one", ">", 0.0).conclude(1.0, "", also, may_still_come=True).holds is None


@pytest.mark.parametrize(("relation", "far"), [("<", inf), ("<=", inf), (">=", -inf), (">", -inf)])
def test_what_was_not_observed_is_infinitely_far(relation, far):
    found = study("", relation, 1.0).conclude(nan, "")
    assert (found.holds, found.measured) == (False, far)


def test_a_verdict_that_bounds_do_not_decide_is_said():
    above = study("", "<", 1.0)
    assert not above.met(2.0)
    assert above.conclude(2.0, "", holds=True).holds is True
    assert above.conclude(2.0, "", holds=None).holds is None


def test_laws_are_those_of_the_user_alone():
    asked = Study(None, Protocol(8.0, thorough=True, seed=3), "", "<", 1.0)
    assert asked.laws({"D": 1}, {"D": 2}) == [8.0]
    assert asked.seeds(1, 2) == range(3, 5)


def test_a_check_that_cannot_decide_says_why():
    def positive(parameters):
        if parameters < 0:
            raise Undecided("negative", parameters=parameters)

    @measures("root", "<=", 2.0, positive)
    def root(study):
        if study.parameters is None:
            raise Undecided("nothing to measure")
        return study.conclude(study.parameters**0.5, "measured")

    assert root(None, Protocol(4.0)).holds
    assert root(None, Protocol(9.0)).holds is False
    refused, nothing = root(None, Protocol(-1.0)), root(None, Protocol())
    assert (refused.holds, refused.quantity, refused.bound) == (None, "root", 2.0)
    assert (refused.reason, refused.evidence) == ("negative", {"parameters": -1.0})
    assert (nothing.holds, nothing.reason) == (None, "nothing to measure")
    assert isnan(nothing.measured)
