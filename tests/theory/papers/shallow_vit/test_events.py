"""Rules are written in the order parameters, and fire where they say."""

import pytest

from theory.papers.shallow_vit.notation import EVENTS, NOTATION

RULES = {rule.name: rule for rule in EVENTS}


@pytest.mark.parametrize(
    ("name", "reached", "missed"),
    [
        ("t_fit", {"error": 0.0}, {"error": 0.01}),
        ("t_zero", {"active": 0.0}, {"active": 0.01}),
        ("mass_50", {"relevant": 0.5}, {"relevant": 0.49}),
        ("mass_75", {"relevant": 0.75}, {"relevant": 0.74}),
        ("mass_90", {"relevant": 0.91}, {"relevant": 0.89}),
    ],
)
def test_thresholds(name, reached, missed):
    rule = RULES[name]
    assert rule.guard > 0
    assert not rule.strict
    for known, holds in ((reached, True), (missed, False)):
        value = rule.expression.subs({NOTATION.symbol(n): v for n, v in known.items()})
        assert bool(value >= 0) is holds
