"""Association at any time, alpha before T0, the predictor of Equation (2)."""

import dataclasses

import numpy as np
from verdicts import verdicts

import dynamics
from dynamics.verdicts.claim import reduced_flow

SYSTEM = dynamics.load_system("positional_attention")
SMALL = SYSTEM.Parameters(D=8, C=2, q=0.5)
CLAIMS = ("Section 4.1, any time", "Section 4.1, gamma and rho", "Lemma D.2", "Equation (2)")


def one(claim, parameters=SMALL, system=SYSTEM):
    (verdict,) = dynamics.verify(system, parameters, [claim])
    return verdict


def test_they_hold_at_a_small_size():
    assert verdicts(SYSTEM, *CLAIMS, parameters=SYSTEM.Parameters(D=12, C=3, q=0.4)) == [True] * 4


def test_association_at_any_time_is_read_at_times_above_zero():
    law = dataclasses.replace(SMALL, beta=0.7)
    verdict, (_, run) = one(CLAIMS[0], law), reduced_flow(SYSTEM.ReducedPopulation, law, 1e6)
    literal = verdict.document()["literal"]
    assert verdict.word == "holds, as read here"
    assert verdict.measured == min(min(0.7, gamma) - rho for _, gamma, rho in run.states[1:])
    assert (literal["holds"], literal["measured"], literal["bound"]) == (False, 0.0, 0.0)


def test_a_negative_diagonal_is_not_associated():
    """Definition 2.2 counts j = i: with beta < 0 a patch is not among its own C largest."""
    negative = dataclasses.replace(SMALL, beta=-0.5)
    assert verdicts(SYSTEM, CLAIMS[0], parameters=negative) == [False]


class Turned(SYSTEM.ReducedPopulation):
    """gamma and rho move against their gradients."""

    has_jacobian = False

    def gradient(self, state):
        return super().gradient(state) * (1.0, -1.0, -1.0)


def test_turned_attention_flips_both():
    wrong = dataclasses.replace(SYSTEM, ReducedPopulation=Turned)
    assert verdicts(wrong, *CLAIMS[:2], parameters=SMALL) == [False, False]


def test_alpha_rises_to_t0_as_the_lemma_is_cited():
    verdict = one("Lemma D.2")
    event = reduced_flow(SYSTEM.ReducedPopulation, SMALL, 1e6)[1].events["T0"]
    (row,) = verdict.evidence["table"]
    assert verdict.holds
    assert (row["T0"], row["threshold"]) == (event.time, event.state[0])
    high = dataclasses.replace(SMALL, alpha0=3.0)  # alpha starts above where it relaxes to
    assert one("Lemma D.2", high).holds is None


def test_the_predictor_of_equation_2_is_the_best_of_a_grid():
    """Within a factor of two of the end of training the paper's "high" is not a number."""
    verdict = one("Equation (2)")
    (row,) = verdict.evidence["table"]
    problem = SYSTEM.ReducedPopulation(SMALL)
    around = [problem.observables(np.array([row["best_a"] * f, 0, 0]))["risk"] for f in (0.9, 1.1)]
    assert row["loss"] < min(around)
    assert 1 < verdict.measured < 2
    assert verdict.holds is None
