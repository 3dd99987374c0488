"""What the checks of statements at every Q say where values agree to rounding alone."""

import dataclasses

import numpy as np
import pytest
from heavier_mask import Heavier

import dynamics
from dynamics.verdicts.masked_image_modeling import rounding_of_terms

SYSTEM = dynamics.load_system("masked_image_modeling")
AT_EVERY_Q = (
    "Appendix A.1", "Lemma A.1", "Lemma A.8", "Lemma 5.1", "Lemma 5.2", "Equation (5.1)",
    "Lemma A.10", "Equation (3.2)",
)  # fmt: skip
SATURATED = [
    {"P": 2, "C_global": 1, "C_local": 1, "masked": 1},
    {"family": "custom", "areas": "0,0", "masked": 1, "z": "0.001"},
    {"family": "custom", "areas": "0,1", "masked": 1, "z": "1000"},
    {"family": "custom", "areas": "0,1;0,0", "masked": 1, "z": "30"},
    {"P": 8, "C_global": 4, "C_local": 2, "masked": 3, "z": "1000"},
]
"""Laws at which most gradients are the last digits of terms that cancel, or zero."""


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("given", SATURATED)
def test_values_that_are_equal_within_rounding_hold(given):
    """Without a warning: no value is compared through 0/0."""
    for found in dynamics.verify(SYSTEM, SYSTEM.Parameters(**given), AT_EVERY_Q):
        assert found.holds, (found.claim.source, found.measured, found.evidence["reason"])


def test_a_wrong_gradient_is_seen_beyond_rounding():
    wrong = dataclasses.replace(SYSTEM, FullPopulation=Heavier)
    claims = ("Lemma A.1", "Lemma A.8", "Lemma 5.1", "Lemma 5.2")
    law = SYSTEM.Parameters(P=8, C_global=4, C_local=2, masked=3, z="1000")
    for found in dynamics.verify(wrong, law, claims):
        assert found.measured > 1e3 * rounding_of_terms.ROUNDING, found.claim.source


def test_the_scale_of_a_difference_is_that_of_values_or_of_rounded_terms():
    law = SYSTEM.Parameters(P=8, C_global=4, C_local=2, masked=4, z="10")
    eps = np.finfo(float).eps
    assert rounding_of_terms.scale_of(law, 3e5, 3) == 3e5
    assert rounding_of_terms.scale_of(law, 0.0, 3) == pytest.approx(
        16 * eps * 40 / 1e-12 * 0.5 * 1000
    )


def test_what_holds_at_one_size_says_so():
    law = SYSTEM.Parameters(P=8, C_global=4, C_local=2, masked=3)
    for found in dynamics.verify(SYSTEM, law, AT_EVERY_Q):
        words = "at this one size, P=8, K=1, 3 masked, z=[1.0]"
        assert words in found.evidence["reason"], found.claim.source
    (usual,) = dynamics.verify(SYSTEM, None, ["Lemma A.8"])
    assert "one size" not in usual.evidence["reason"]
