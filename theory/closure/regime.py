"""Properties of update rules that determine the closure of training."""

from __future__ import annotations

from dataclasses import dataclass

from theory.update_rules import UpdateRule


@dataclass(frozen=True)
class Regime:
    """Properties of an update rule that determine the closure of training.

    `signs`: opposite entries with opposite gradients stay opposite (the rule is odd). `spaces`:
    linear spaces are kept (the rule is linear in past gradients). `decay`: entries without a
    gradient decay. `by_array`: each array has its own learning rate, as in stages. `flow`:
    quadratic laws, which the gradient flow conserves, are listed.
    """

    signs: bool = True
    spaces: bool = True
    decay: bool = False
    by_array: bool = False
    flow: bool = True

    @classmethod
    def of(cls, rule: UpdateRule, by_array: bool = False) -> Regime:
        """Regime of an update rule."""
        if rule.plain:
            return cls(by_array=by_array, flow=not by_array)
        return cls(rule.odd, rule.spaces, rule.decays, by_array, False)


PLAIN = Regime()
"""Regime of gradient descent with one learning rate, and of gradient flow."""
