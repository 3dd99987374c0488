import re

import numpy as np
import pytest

from theory.law import ModelError
from theory.program import run_floats
from theory.update_rules import INPUTS, RULES, own_rule


def lion(gradient, memory, entry, step, eta, xp, b1=0.9, b2=0.99):
    return -eta * xp.sign(b1 * memory + (1 - b1) * gradient), b2 * memory + (1 - b2) * gradient


def largest_square(gradient, memory, entry, step, eta, xp):
    mean, square = memory
    square = xp.maximum(square, gradient**2)
    return -eta * gradient / (xp.sqrt(square) + 1e-3), (0.9 * mean + gradient, square)


def leaning(gradient, memory, entry, step, eta, xp):
    return -eta * xp.where(gradient > 0, gradient, 0.5 * gradient), memory


OWN = {f.__name__: own_rule(f) for f in (lion, largest_square, leaning)}


@pytest.mark.parametrize("rule", [*RULES.values(), *OWN.values()], ids=lambda rule: rule.name)
def test_the_program_of_a_rule_is_its_function(rule):
    draws = np.random.default_rng(0).uniform(0.1, 2.0, (20, len(INPUTS) + rule.memory))
    for numbers in draws:
        gradient, entry, step, eta, norm, *memory = numbers
        expected, kept = rule.apply(gradient, memory, entry, step, eta, np, norm)
        given = np.concatenate([numbers, [*rule.numbers.values()]])
        found = run_floats(rule.program, given)
        assert found[rule.program.outputs["change"]] == pytest.approx(expected, rel=1e-13)
        assert found[rule.program.outputs["memory"]] == pytest.approx(kept, rel=1e-13)


def test_adam_by_hand():
    change, memory = RULES["adam"].apply(0.3, [0.0, 0.0], 1.0, 1, 0.01, np)
    assert change == pytest.approx(-0.01 * 0.3 / (0.3 + 1e-8), rel=1e-14)
    assert memory == pytest.approx([0.03, 0.3**2 * 1e-3])


def test_oddness_is_found_with_memory_that_is_odd_or_even():
    assert all(rule.odd for rule in RULES.values())
    assert [rule.odd for rule in OWN.values()] == [True, True, False]


def test_decay_is_coupled_but_in_adamw():
    assert RULES["adam"].changed(weight_decay=0.1).weight_decay == 0.1
    adamw = RULES["adamw"].changed(weight_decay=0.1)
    assert (adamw.weight_decay, adamw.constants["weight_decay"]) == (0.0, 0.1)
    assert (adamw.decays, RULES["adam"].decays) == (True, False)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (lambda gradient, eta: 0, "step must begin: def step(gradient, memory, entry"),
        (lambda gradient, memory, entry, step, eta, xp: (gradient[0], memory), "Too many indices"),
        (lambda gradient, memory, entry, step, eta, xp: (xp.fft.fft(gradient), memory), "program"),
        (lambda gradient, memory, entry, step, eta, xp, k: (k, memory), "'k', which is not a"),
    ],
)
def test_what_is_no_rule_is_refused(step, words):
    with pytest.raises(ModelError, match=re.escape(words)):
        own_rule(step)
