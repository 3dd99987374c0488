"""Part of a closure that holds under an update rule."""

from __future__ import annotations

from dataclasses import dataclass

from theory.update_rules import UpdateRule


@dataclass(frozen=True)
class Regime:
    """Properties of an update rule that decide what training closes on.

    `signs`: whether opposite entries with opposite gradients stay opposite: the rule is odd;
    `spaces`: whether linear spaces are kept: the rule is linear in the gradients so far; `decay`:
    whether entries without a gradient decay; `by_array`: whether each array has a rate of its own,
    as in stages; `flow`: whether quadratic laws are listed, which the gradient flow keeps.
    """

    signs: bool = True
    spaces: bool = True
    decay: bool = False
    by_array: bool = False
    flow: bool = True

    @classmethod
    def of(cls, rule: UpdateRule, by_array: bool = False) -> Regime:
        """The regime of a rule."""
        if rule.plain:
            return cls(by_array=by_array, flow=not by_array)
        return cls(rule.odd, rule.spaces, rule.decays, by_array, False)


PLAIN = Regime()
"""Gradient descent with one rate, and gradient flow."""
