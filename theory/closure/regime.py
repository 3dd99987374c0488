"""Properties of update rules that determine the closure of training."""

from __future__ import annotations

from dataclasses import dataclass

from theory.update_rules import UpdateRule


@dataclass(frozen=True)
class Regime:
    """Properties of an update rule that determine the closure of training.

    If `signs`, opposite entries with opposite gradients stay opposite (the rule is odd). If
    `spaces`, training stays in a linear space that contains the gradients (the rule is linear in
    past gradients). If `decay`, weight decay moves entries without gradient. If `by_array`, each
    array has its own learning rate, as in stages. If `flow`, laws of the flow alone are listed.
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
"""Regime of gradient descent with one learning rate for all arrays, and of gradient flow."""
