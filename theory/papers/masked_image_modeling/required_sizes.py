r"""Minimum number P of patches at which the paper's statements about large P are visible.

The statements fix the exponents of the area sizes :math:`C_g = P^{\kappa_c}` (global) and
:math:`C_s = P^{\kappa_s}` (local). A statement is visible if its powers of P, such as
:math:`P^{0.01}` in the threshold of stage 1, exceed its constants. The ratio rho(0) of the initial
rates of Phi of the global and own area is computed exactly. The motion of both Phi is estimated by
`leading_motion`, for large rho(0), z = 1 and small attention to the own area.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import inf, log
from typing import Any

import mpmath
import sympy

from theory.papers.masked_image_modeling.information_gap import initial_ratio, leading_motion
from theory.papers.masked_image_modeling.notation import NOTATION, SLACK

P, C_global, C_local, masked, gamma = NOTATION.symbols("P C_global C_local masked gamma")
rho0 = NOTATION.symbol("rho0")

Condition = Callable[[Any, Any, float], bool]
"""Whether a statement of the paper is visible, as a function of P, rho(0) and Delta."""
MOST = 1500.0
"""Maximum of ln P in the search; the result is infinite if no P up to e^1500 is large enough."""
FINE = 1e-3
"""The search ends when the interval that contains ln P is shorter than this."""


def least_patches(
    condition: Condition, exponents: tuple[float, float], share: float, start: float
) -> float:
    """Minimum number of patches P >= `start` at which a condition holds, at given exponents.

    If the condition holds for some P, it must hold for every larger P. `exponents` holds kappa_c
    and kappa_s; `share` is the share of masked patches, gamma. Returns inf if the condition does
    not hold up to P = e^1500.

    Examples
    --------
    >>> f"{least_patches(threshold_before_switch, (0.9, 0.3), 0.5, 4096):.0e}"
    '8e+23'
    """
    kappa_c, kappa_s = exponents
    gap = (1 - kappa_s) - 2 * (1 - kappa_c)

    def met(log_p: float) -> bool:
        size = mpmath.exp(log_p)
        return condition(size, ratio_at_start(size, exponents, share), gap)

    low = high = log(start)
    while not met(high):
        low, high = high, 2 * high
        if high > MOST:
            return inf
    while high - low > FINE:
        middle = (low + high) / 2
        low, high = (low, middle) if met(middle) else (middle, high)
    return float(mpmath.exp(high))


def ratio_at_start(size: Any, exponents: tuple[float, float], share: float) -> Any:
    """Exact rho(0) of a cluster of P = `size` patches at z = 1; area sizes need not be integers.

    `exponents` holds kappa_c and kappa_s; `share` is the share of masked patches, gamma.
    """
    kappa_c, kappa_s = exponents
    return _ratio()(size, size**kappa_c, size**kappa_s, share * size)


def first_phase(size: Any, ratio: Any, gap: float) -> bool:
    """Whether training starts in Phase I, that is, whether rho(0) = `ratio` is above 1."""
    del size, gap
    return bool(ratio > 1)


def threshold_before_switch(size: Any, ratio: Any, gap: float) -> bool:
    r"""Whether :math:`\Phi_0` passes the threshold of stage 1 before rho falls to 1.

    The threshold is :math:`-(\Delta/2 - 0.01) \ln P`. At leading order, rho is 1 at :math:`\Phi_0 =
    -\tfrac12 \ln(2 \rho(0) / 3)`. The arguments are P = `size`, rho(0) = `ratio` and Delta = `gap`.
    """
    _, at_switch, _ = _motion()
    return bool(at_switch(ratio) <= -(gap / 2 - float(SLACK)) * mpmath.log(size))


def growth_in_stage_1(size: Any, ratio: Any, gap: float) -> Any:
    r"""Relative growth of the attention to the own area in stage 1, at leading order.

    The growth is :math:`e^{\Phi_m} - 1` at the end of stage 1, :math:`\Phi_0 = -(\Delta/2 - 0.01)
    \ln P`. The arguments are P = `size`, rho(0) = `ratio` and Delta = `gap`.
    """
    own, _, _ = _motion()
    passed = (size ** (gap - 2 * float(SLACK)) - 1) / (2 * ratio)
    return mpmath.exp(own(passed)) - 1 if passed < 1 else mpmath.inf


def change_after_switch(size: Any, ratio: Any, gap: float) -> Any:
    r"""Change of :math:`\Phi_0` after rho falls to 1, divided by :math:`\Phi_0` at this time.

    At leading order :math:`\Phi_m` diverges, at a time that is the inverse of its initial rate. The
    change is measured until then; rho is 1 at about a third of this time. The arguments are P =
    `size`, rho(0) = `ratio` and Delta = `gap`.
    """
    del size, gap
    _, at_switch, at_end = _motion()
    depth = at_switch(ratio)
    return (at_end(ratio) - depth) / depth if depth < 0 else mpmath.inf


@cache
def _ratio() -> Callable[..., Any]:
    exact = initial_ratio().subs(gamma, masked / P)
    return sympy.lambdify([P, C_global, C_local, masked], exact, "mpmath")


@cache
def _motion() -> tuple[Callable[..., Any], ...]:
    """Functions: Phi_m of the scaled time; of rho(0), Phi_0 at rho = 1 and Phi_0 at the end."""
    motion = leading_motion()
    at_switch = motion.Phi_0.subs(motion.scaled, motion.switch)
    at_end = motion.Phi_0.subs(motion.scaled, 1)
    return (
        sympy.lambdify([motion.scaled], motion.Phi_m, "mpmath"),
        sympy.lambdify([rho0], at_switch, "mpmath"),
        sympy.lambdify([rho0], at_end, "mpmath"),
    )
