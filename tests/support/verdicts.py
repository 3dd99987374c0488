"""What the tests of claims ask of every verdict, and systems that are wrong."""

import json
from dataclasses import replace

import dynamics


def verdict_of(system, claim, parameters=None):
    (found,) = dynamics.verify(system, parameters, [claim])
    return found


def verdicts(system, *claims, parameters=None):
    """Whether each claim holds; each verdict has evidence that can be written down."""
    found = dynamics.verify(system, parameters, claims)
    assert [verdict.claim.source for verdict in found] == list(claims)
    for verdict in found:
        assert verdict.evidence["quantity"]
        assert verdict.evidence["reason"]
        json.dumps(verdict.document())
    return [verdict.holds for verdict in found]


def moved(system, change):
    """A system whose reduced state moves by a changed gradient."""

    class Moved(system.ReducedPopulation):
        has_jacobian = False

        def gradient(self, state):
            return change(super().gradient(state))

    return replace(system, ReducedPopulation=Moved)


def scaled(problem, **factors):
    """A problem in which parts of the state move by other multiples of their gradient."""

    class Scaled(problem):
        def advance(self, state, updates, *rest):
            rates = updates.eta.copy()
            for name, factor in factors.items():
                self.layout.part(rates, name)[...] *= factor
            return super().advance(state, replace(updates, eta=rates), *rest)

    return Scaled
