"""Rules are written in the order parameters, and fire where they say."""

import pytest

from theory.papers.shallow_vit.notation import EVENTS, NOTATION

RULES = {rule.name: rule for rule in EVENTS}
THRESHOLDS = {
    "t_fit": ("error", 0.0, 0.01), "t_zero": ("active", 0.0, 0.01),
    "mass_50": ("relevant", 0.5, 0.49), "mass_75": ("relevant", 0.75, 0.74),
    "mass_90": ("relevant", 0.91, 0.89),
}  # fmt: skip


@pytest.mark.parametrize("name", THRESHOLDS)
def test_thresholds(name):
    rule, (quantity, reached, missed) = RULES[name], THRESHOLDS[name]
    assert (rule.guard > 0, rule.strict) == (True, False)
    for value, holds in ((reached, True), (missed, False)):
        assert (rule.expression.subs(NOTATION.symbol(quantity), value) >= 0) == holds
