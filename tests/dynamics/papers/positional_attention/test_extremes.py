"""Extreme but finite input: a finite gradient or a named reason, never a silent NaN."""

from functools import cache

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import dynamics
from dynamics.expectations import spectral_sum

SIZES = [(8, 2), (12, 3), (16, 4)]
EXPECTATIONS = ("exact", "spectral", "auto")


@cache
def problem(size, p, beta, expectation):
    system = dynamics.load_system("positional_attention")
    parameters = system.Parameters(D=size[0], C=size[1], p=p, beta=beta)
    with pytest.MonkeyPatch.context() as patch:
        # A budget of a tenth of a second: what matters is that it is kept, not how large it is.
        patch.setattr(spectral_sum, "BUDGET", 1e8)
        return system.ReducedPopulation(parameters, expectation, tolerance=1e-6)


def large(limit):
    """Numbers of every order up to a limit, of both signs."""
    orders = st.floats(-12.0, np.log10(limit))
    return st.builds(lambda order, sign: sign * 10.0**order, orders, st.sampled_from([-1, 0, 1]))


@pytest.mark.parametrize(
    ("examples", "high"), [(60, 3), pytest.param(2500, 9, marks=pytest.mark.long)]
)
def test_a_finite_gradient_or_a_reason(examples, high):
    asked = given(
        st.sampled_from(SIZES),
        st.sampled_from([3, high]),
        st.sampled_from([-800.0, -3.0, 0.0, 1.0, 40.0, 800.0]),
        st.sampled_from(EXPECTATIONS),
        st.tuples(large(1e3), large(1e3), large(1e3)),
    )(gradient_or_reason)
    for case in (
        ((16, 4), high, 800.0, "spectral", (1e3, 1e3, -1e3)),
        ((16, 4), high, 800.0, "exact", (1e3, 1e3, -1e3)),
        ((12, 3), high, -800.0, "spectral", (-1.0, 1.0, 0.29427271762092816)),
        ((16, 4), 3, 1.0, "spectral", (-1e3, 1e3, 1e3)),
    ):
        asked = example(*case)(asked)
    settings(max_examples=examples, deadline=None, derandomize=True)(asked)()


def gradient_or_reason(size, p, beta, expectation, state):
    given_problem = problem(size, p, beta, expectation)
    slope = given_problem.gradient(np.array(state))
    if np.isfinite(slope).all():
        # Where the gradient is known, so is the risk.
        assert np.isfinite(given_problem.risk(np.array(state)))
    else:
        assert given_problem.gradient_failure(np.array(state))
