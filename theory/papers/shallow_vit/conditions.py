r"""Conditions of Theorem 1 on the share of label-relevant tokens, the neurons and the batch size.

Let :math:`s = \sigma + \tau` and :math:`k = \delta + \tau`, with the errors sigma of the initial
values and delta of the initial keys and queries, and the noise tau of a token. The theorem needs

- condition (8) on the shares of label-relevant and confusion tokens: :math:`\alpha_* \geq \alpha_\#
  / (\epsilon_S e^{-k} (1 - s))` with :math:`\epsilon_S < 1/2` (`least_share`);
- :math:`m \geq \epsilon^{-2} M^2 \log N` neurons, with an :math:`\epsilon` for which condition (11)
  holds, :math:`1 - \epsilon - s M / \pi > 0` (`least_neurons`);
- condition (9): a batch size :math:`B \geq \Omega((\alpha_* - e^{-k} s)^{-2})` (`least_batch`),
  derived in (70) from

.. math:: \Big((1 - s) e^{-k} \tfrac12 \alpha_* - s e^{-k}\Big)^{-2}
   = \Theta\Big((\alpha_* - e^{-k} s)^{-2}\Big).

All constants in O and Omega are set to 1.
"""

from __future__ import annotations

from math import exp, inf, log, pi

import sympy

from theory.claims import Evidence


def least_share(confusion: float, sigma: float, delta: float, tau: float = 0.0) -> float:
    """Infimum of the share alpha_* under condition (8); inf if sigma + tau >= 1.

    `confusion` is the share alpha_# of confusion tokens. `sigma` is the error of the initial
    values, `delta` that of the initial keys and queries, and `tau` the noise of a token.
    """
    left = 1 - (sigma + tau)
    if confusion == 0:
        return 0.0
    return 2 * confusion * exp(delta + tau) / left if left > 0 else inf


def least_neurons(M: int, samples: int, sigma: float, tau: float = 0.0) -> float:
    """Infimum of the number m of neurons at which condition (11) can hold; inf if it cannot."""
    room = 1 - (sigma + tau) * M / pi
    return M**2 * log(samples) / room**2 if room > 0 else inf


def least_batch(share: float, sigma: float, delta: float, tau: float = 0.0) -> float:
    """Batch size by (9), constant 1, at alpha_* = `share`; inf if the bracket in (9) is <= 0."""
    gap = share - exp(-(delta + tau)) * (sigma + tau)
    return gap**-2 if gap > 0 else inf


def derived_batch(share: float, sigma: float, delta: float, tau: float = 0.0) -> float:
    """Batch size on the left of (70), at alpha_* = `share`; inf if the bracket in (70) is <= 0."""
    s, damped = sigma + tau, exp(-(delta + tau))
    gap = (1 - s) * damped * share / 2 - s * damped
    return gap**-2 if gap > 0 else inf


def pole(sigma: float, tau: float = 0.0) -> float:
    """Value of alpha_* at which the left side of (70) diverges."""
    return 2 * (sigma + tau) / (1 - (sigma + tau))


def equation_70() -> Evidence:
    """Test equation (70): at the pole of its left side, its right side must be infinite too."""
    share, s, k = sympy.symbols("alpha_star s k", positive=True)
    left = (1 - s) * sympy.exp(-k) * share / 2 - s * sympy.exp(-k)
    right = share - sympy.exp(-k) * s
    (zero,) = sympy.solve(left, share)
    there = sympy.simplify(right.subs(share, zero) / s)
    # The number `there` is positive for all k > 0 and 0 < s < 1, because e^-k < 1 < 2/(1 - s).
    least = sympy.simplify(there.subs(k, 0))
    finite = sympy.simplify(least - (1 + s) / (1 - s)) == 0
    findings = (
        f"the left side is infinite at alpha_* = {sympy.simplify(zero)}",
        f"there the bracket of the right side is s times {there}, at least {least} > 0",
        "no constant bounds the ratio of the two",
    )
    return Evidence(
        False if finite else None, "s = sigma + tau < 1 and k = delta + tau free", findings
    )
