"""Event rules as text: each form and its shape; what is none is refused in one line."""

import re

import pytest
import sympy

from theory.events import FORMS, Crossing, ExceedsRunMaximum, RisesAgain, event_rule, event_rules
from theory.law import ModelError

KNOWN = ["v", "alpha", "gamma", "rho", "G", "risk", "d_v", "d_alpha", "D"]
v, alpha, gamma, rho, G, D, d_v = sympy.symbols("v alpha gamma rho G D d_v", real=True)


@pytest.mark.parametrize(
    ("text", "expression", "strict"),
    [
        ("G >= D/2", G - D / 2, False),
        ("G <= 3", 3 - G, False),
        ("v starts growing", d_v, True),
        ("sqrt(v) * max(G, 2, D) >= -abs(v)**2", sympy.sqrt(v) * sympy.Max(G, 2, D) + v**2, False),
        (" 2e-3 < log(v) ", sympy.log(v) - sympy.Rational(1, 500), True),
    ],
)
def test_crossings(text, expression, strict):
    rule = event_rule("T", text, KNOWN)
    assert isinstance(rule, Crossing)
    assert sympy.simplify(rule.expression - expression) == 0
    assert (rule.strict, rule.after, rule.guard) == (strict, None, 1)


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("risk <= alpha/10", r"\mathrm{risk} \leq \frac{\alpha}{10}"),
        ("G > D/2 while alpha > 0 after T0", r"G > \frac{D}{2} \text{ while } \alpha > 0"),
        ("alpha stops growing", r"\dot{\alpha} \leq 0"),
        ("v starts growing", r"\dot{v} > 0"),
        ("alpha rises again", r"\alpha \text{ rises again}"),
        ("gamma exceeds the maximum of 2*rho",
         r"\gamma \text{ exceeds the maximum of } 2 \rho"),
    ],
)  # fmt: skip
def test_conditions_as_they_are_written(text, latex):
    rules = event_rules({"T0": "v > 1", "T": text}, KNOWN)
    assert rules[1].latex == latex


def test_shapes_over_a_whole_run():
    rise = event_rule("E", "alpha rises again after T1", KNOWN)
    assert isinstance(rise, RisesAgain)
    assert (rise.quantity, rise.after, rise.relative) == (alpha, "T1", 0.05)
    over = event_rule("E", "gamma exceeds the maximum of 2*rho", KNOWN)
    assert isinstance(over, ExceedsRunMaximum)
    assert (over.quantity, over.bound) == (gamma, 2 * rho)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("H > 1", "'H' is unknown; nearest: "),
        ("rho stops growing", "'d_rho' is unknown"),
        ("v is large", FORMS),
        ("", FORMS),
        ("v > 1 and G > 1", FORMS),
        ("v.real > 1", "'v.real' is not arithmetic"),
        ("__import__('os') > 1", "is not arithmetic"),
        ("v > 1/0", "'1/0' is not a finite number"),
        ("v > sqrt(-1)", r"'sqrt\(-1\)' is not a finite number"),
        ("v > sqrt(v, 2)", r"'sqrt\(v, 2\)' is not arithmetic"),
        ("v > min(G)", r"'min\(G\)' is not arithmetic"),
        ("v\0 > 1", "cannot be read"),
        ("v > 1 while G", FORMS),
        (3, "3 is not a rule; rules are text"),
    ],
)
def test_what_is_no_rule(text, message):
    with pytest.raises(ModelError, match=r"^event T: [^\n]+$") as caught:
        event_rules({"T": text}, KNOWN)
    assert re.search(re.escape(FORMS) if message == FORMS else message, str(caught.value))


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        *(({name: "v > 1"}, "^events: .* is not a word") for name in ("T 1", "", "1", 3, "T-1")),
        ({"T": "v > 1 after T"}, "event T: no event 'T' is defined before it"),
        ({"T": "v > 1 after S", "S": "v > 0"}, "event T: no event 'S' is defined before it"),
    ],
)
def test_names_and_orders_that_cannot_be(texts, message):
    with pytest.raises(ModelError, match=message):
        event_rules(texts, KNOWN)


@pytest.mark.parametrize(
    ("text", "same"),
    [("off > 1", "-on > 1"), ("v > d_off", "v > -d_on"), ("off stops growing", "-d_on <= 0")],
)
def test_a_name_that_is_equal_to_another_stands_for_it(text, same):
    names = [*KNOWN, "on", "d_on"]
    (rule,) = event_rules({"T": text}, names, {"off": "-on"})
    (other,) = event_rules({"T": same}, names)
    assert rule.expression == other.expression


@pytest.mark.parametrize("number", ["9**9**9**9", "10**400", "(1/3)**99999", "1.5**" + "9" * 30])
def test_numbers_that_no_float_holds_are_refused_before_they_are_made(number):
    with pytest.raises(ModelError, match=r"event T: .*not a (power|finite number)"):
        event_rule("T", f"w >= {number}", ["w"])
