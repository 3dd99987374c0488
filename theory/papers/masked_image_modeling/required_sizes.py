r"""Smallest number of patches at which asymptotic statements of the paper become visible.

The statements concern large P at fixed exponents :math:`C_g = P^{\kappa_c}`,
:math:`C_s = P^{\kappa_s}`. The ratio rho(0) is exact for every P (`initial_ratio`), and
`leading_motion` gives the motion while A_m is small. A statement is visible once its powers of P,
such as :math:`P^{0.01}` in the threshold of stage 1, exceed the constants. The results are
estimates: the motion assumes large rho(0) and z = 1.
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
"""Function of P, rho(0) and Delta that returns whether a statement of the paper is visible."""
MOST = 1500.0
"""Largest ln P of the search."""
FINE = 1e-3
"""Accuracy of ln P at which the search stops."""


def least_patches(
    condition: Condition, exponents: tuple[float, float], share: float, start: float
) -> float:
    """Smallest number of patches P >= `start` at which a condition holds, for fixed exponents.

    The condition must stay true for every larger P. `exponents` holds kappa_c and kappa_s; `share`
    is gamma, the share of masked patches. Returns inf if the condition fails up to P = e^1500.

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
    """Exact rho(0) of one cluster of P = `size` patches at z = 1, with real-valued area sizes.

    `exponents` holds kappa_c and kappa_s; `share` is gamma, the share of masked patches.
    """
    kappa_c, kappa_s = exponents
    return _ratio()(size, size**kappa_c, size**kappa_s, share * size)


def first_phase(size: Any, ratio: Any, gap: float) -> bool:
    """Whether training starts in Phase I: the ratio rho(0) exceeds 1."""
    del size, gap
    return bool(ratio > 1)


def threshold_before_switch(size: Any, ratio: Any, gap: float) -> bool:
    r"""Whether :math:`\Phi_0` reaches :math:`-(\Delta/2 - 0.01) \ln P` before the switch of rates.

    At leading order the switch is at :math:`\Phi_0 = -\tfrac12 \ln(2 \rho_0 / 3)`, where rho_0 is
    the argument `ratio`; the arguments `size` and `gap` are P and Delta.
    """
    _, at_switch, _ = _motion()
    return bool(at_switch(ratio) <= -(gap / 2 - float(SLACK)) * mpmath.log(size))


def growth_in_stage_1(size: Any, ratio: Any, gap: float) -> Any:
    r"""Relative growth of A_m up to the end of stage 1, at leading order :math:`e^{\Phi_m} - 1`.

    Stage 1 ends at :math:`\Phi_0 = -(\Delta/2 - 0.01) \ln P`.
    """
    own, _, _ = _motion()
    passed = (size ** (gap - 2 * float(SLACK)) - 1) / (2 * ratio)
    return mpmath.exp(own(passed)) - 1 if passed < 1 else mpmath.inf


def change_after_switch(size: Any, ratio: Any, gap: float) -> Any:
    r"""Change of :math:`\Phi_0` from the switch until A_m is large, over its value at the switch.

    At leading order the switch is at a t = 1/3, and :math:`\Phi_m` diverges at a t = 1, where a is
    the initial rate of Phi_m. The arguments are P, rho(0) and Delta.
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
    """Functions for Phi_m by a t, Phi_0 at the switch by rho(0), and Phi_0 at a t = 1 by rho(0)."""
    motion = leading_motion()
    at_switch = motion.Phi_0.subs(motion.scaled, motion.switch)
    at_end = motion.Phi_0.subs(motion.scaled, 1)
    return (
        sympy.lambdify([motion.scaled], motion.Phi_m, "mpmath"),
        sympy.lambdify([rho0], at_switch, "mpmath"),
        sympy.lambdify([rho0], at_end, "mpmath"),
    )
