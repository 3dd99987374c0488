"""The three events as rules: what they are written in, and where each begins to hold."""

import pytest

from theory.events import ExceedsRunMaximum, RisesAgain
from theory.papers.positional_attention.notation import EVENTS, alpha, gamma, rho

RULES = {rule.name: rule for rule in EVENTS}
STATE = {"D": 16, "alpha": 0.2, "G": 5.0, "d_alpha": 0.04, "d_G": 1.0, "association_margin": 0.1}


def value(expression, **found):
    known = STATE | found
    return float(expression.subs({s: known[s.name] for s in expression.free_symbols}))


@pytest.mark.parametrize(
    ("name", "reached", "missed"),
    [
        # Relative growth on both sides: of G by 0.2, of alpha by 0.2.
        ("T0", {}, {"d_alpha": 0.0401}),
        ("T0", {"d_alpha": -0.01, "d_G": -0.2}, {"d_alpha": -0.01, "d_G": -0.3}),
        (
            "T0",
            {"G": 15.0, "d_G": 1.5, "d_alpha": 0.019},
            {"G": 15.0, "d_G": 1.5, "d_alpha": 0.021},
        ),
        ("T1", {"G": 8.0}, {"G": 7.99}),
        ("T1", {"G": 6.0, "D": 12}, {"G": 6.0, "D": 13}),
        ("patch_association", {}, {"association_margin": 0.0}),
    ],
)
def test_where_a_rule_begins_to_hold(name, reached, missed):
    rule = RULES[name]
    assert value(rule.expression, **reached) >= 0
    before = value(rule.expression, **missed)
    assert before < 0 or (rule.strict and before == 0)


def test_attention_takes_over_a_signal_that_there_is():
    assert value(RULES["T0"].guard) > 0
    assert value(RULES["T0"].guard, alpha=-0.1) < 0


def test_what_the_rules_of_a_whole_run_compare():
    passing, rising = RULES["T1_paper"], RULES["event_III"]
    assert isinstance(passing, ExceedsRunMaximum)
    assert (passing.quantity, passing.bound) == (gamma, abs(rho))
    assert isinstance(rising, RisesAgain)
    assert (rising.quantity, rising.relative) == (alpha, 0.05)
