"""Events as rules: what they are written in, and their thresholds at measured sizes."""

import math

import pytest

from theory.papers.masked_image_modeling import notation as events

MEASURED = {
    "P": 4096,
    "gamma": 0.5,
    "L": 1.0,
    "U": 1.0,
    "kappa_s": 1 / 3,
    "Delta": 0.5,
    "Delta_eff": math.log(24.346) / math.log(4096),
}
RULES = {rule.name: rule for rule in events.EVENTS}


def value(expression, **found):
    known = MEASURED | found
    return float(expression.subs({s: known[s.name] for s in expression.free_symbols}))


@pytest.mark.parametrize(
    ("name", "reached", "missed"),
    [
        ("E0", {"rho": 1.01}, {"rho": 1.0}),
        ("E1", {"Phi_0": -1.52}, {"Phi_0": -1.50}),
        ("E1p", {"Phi_0": -2.00}, {"Phi_0": -1.99}),
        ("E2", {"rho": 1.0}, {"rho": 1.01}),
        ("E3", {"Phi_m": 1.0, "Phi_0": -1.75}, {"Phi_m": 0.425, "Phi_0": -1.646}),
        ("E4", {"A_m": 0.5}, {"A_m": 0.49}),
        ("E4p", {"Phi_m": 5.55}, {"Phi_m": 5.54}),
        ("E5", {"gap": 1e-3}, {"gap": 1.1e-3}),
        ("E5", {"gap": 1e-4, "gamma": 0.05}, {"gap": 1.1e-4, "gamma": 0.05}),
        ("E5_global", {"gap_g": 1e-3}, {"gap_g": 1.1e-3}),
    ],
)
def test_thresholds(name, reached, missed):
    rule = RULES[name]
    assert value(rule.guard) > 0
    assert value(rule.expression, **reached) >= 0
    before = value(rule.expression, **missed)
    assert before < 0 or (rule.strict and before == 0)


def test_stages_of_phase_one_are_guarded_where_the_gap_is_negative():
    """At time 0, Phi_0 = 0 is below a positive threshold: that is not the end of a stage."""
    for name, gap in (("E1", "Delta_eff"), ("E1p", "Delta"), ("E3", "Delta")):
        assert value(RULES[name].guard, **{gap: -0.3}) < 0
