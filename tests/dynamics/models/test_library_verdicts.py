"""Verdicts on the claims of the library, at the protocols of their checks and where they fail."""

import pytest

import dynamics

HOLDS, OPEN = True, None
VERDICTS = {
    "deep_linear": {"Sigmoid": HOLDS, "Learning time": HOLDS},
    "induction_head": {
        "Theorem 1": HOLDS, "Emergence, gamma": OPEN, "Emergence, all": OPEN, "Three scalars": OPEN,
    },
    "linear_icl": {
        "Global minimum": HOLDS, "Closed form": HOLDS, "Conserved": HOLDS, "Plateaus": HOLDS,
    },
    "merged_staircase": {"Staircase": HOLDS, "Leaps": HOLDS, "Order": OPEN},
    "single_location": {"Recovery": HOLDS, "Order": HOLDS},
    "single_location_gaussian": {"Recovery": HOLDS},
    "softmax_icl": {"Conserved": HOLDS, "Concentration": HOLDS, "Dominant first": HOLDS},
    "sparse_parity": {"Learned": HOLDS},
    "topic_model": {"Blocks of values": HOLDS, "Blocks of attention": HOLDS},
}  # fmt: skip
ELSEWHERE = [
    ("deep_linear", {"layers": 3}, "Sigmoid", "not decidable under this law"),
    ("deep_linear", {"layers": 3}, "Learning time", "not decidable under this law"),
    ("linear_icl", {"slope": 0.5}, "Closed form", "not decidable under this law"),
    ("linear_icl", {"ratio": 2.0}, "Closed form", "not decidable under this law"),
    ("linear_icl", {"ratio": -1.0}, "Global minimum", "not decidable at this precision"),
    ("merged_staircase", {"target": "leap"}, "Staircase", "not decidable under this law"),
    ("merged_staircase", {}, "Order", "not decidable at this size"),
    ("softmax_icl", {"p1": 0.8}, "Concentration", "not decidable under this law"),
]


def verdicts(name, parameters=None, claims=None):
    system = dynamics.load_system(name)
    law = None if parameters is None else system.Parameters(**parameters)
    return dynamics.verify(system, parameters=law, claims=claims)


@pytest.mark.long
@pytest.mark.parametrize("name", VERDICTS)
def test_every_claim_has_the_verdict_that_is_recorded(name):
    assert {v.claim.source: v.finding.holds for v in verdicts(name)} == VERDICTS[name]


@pytest.mark.parametrize(("name", "parameters", "claim", "words"), ELSEWHERE)
def test_outside_a_hypothesis_nothing_is_decided(name, parameters, claim, words):
    (verdict,) = verdicts(name, parameters, [claim])
    assert verdict.finding.word == words


@pytest.mark.long
@pytest.mark.parametrize("parameters", [{"heads": 2}, {"w0": 0.3}])
def test_plateaus_need_a_head_for_each_and_a_small_start(parameters):
    base = {"rank": 1, "heads": 4, "least": 0.1, "slope": 0.1, "w0": 1e-2}
    (verdict,) = verdicts("linear_icl", base | parameters, ["Plateaus"])
    assert verdict.finding.word == "not decidable under this law"
