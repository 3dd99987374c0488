"""What the tests of claims ask of every verdict."""

import json

import dynamics


def verdicts(system, *claims, parameters=None):
    """Whether each claim holds; each verdict has evidence that can be written down."""
    found = dynamics.verify(system, parameters, claims)
    assert [verdict.claim.source for verdict in found] == list(claims)
    for verdict in found:
        assert verdict.evidence["quantity"]
        assert verdict.evidence["reason"]
        json.dumps(verdict.document())
    return [verdict.holds for verdict in found]
