r"""The phases of training, as rules on the order parameters of a local and of a global row.

With m the area of a local patch p, 0 the global one, and :math:`\rho = |\alpha_0|/\alpha_m` the
ratio of the rates of the two correlations (Lemma 5.1):

- ``E0``: training starts in Phase I, :math:`\rho > 1`. Two phases where it happens at all (then at
  time 0), one phase where it does not.
- ``E1``: end of Phase I, stage 1, :math:`\Phi_0 \leq -(\Delta_{\mathrm{eff}}/2 - 0.01) \ln P / U`.
  ``E1p`` is the paper's own form, with Delta.
- ``E2``: switch of the dominant effects (Lemma 5.3), :math:`\rho \leq 1`.
- ``E3``: end of Phase I, stage 2. Its threshold is a convention with c = 0.1.
- ``E4``: end of rapid growth, half of the attention falls on the own unmasked area. ``E4p`` is
  the paper's form, :math:`\Phi_m \geq (1 - \kappa_s) \ln P / L`.
- ``E5``: convergence, after E4: the loss of the patch is within :math:`2 \gamma` `EPSILON` of its
  floor, `EPSILON` where half of the patches are masked. A loss counts only where p is masked, so
  that it is small from the start on where few patches are, or where hardly ever a mate is not.
- ``E4_global``, ``E5_global``: the same of a global patch and its own area.

Rules are sought from the start unless they say otherwise; thresholds that are already passed at
time 0 because the gap is not positive are guarded.
"""

from __future__ import annotations

import sympy

from theory.events import Crossing, EventRule
from theory.systems.masked_image_modeling.notation import NOTATION

ORDER_PARAMETERS = (
    "rho",
    "alpha_m",
    "alpha_0",
    "Phi_m",
    "Phi_0",
    "A_m",
    "gap",
    "A_g",
    "gap_g",
)
"""What the rules are written in; every problem of this system reports them at every step.

The local patch and the cluster that m and 0 refer to are those of `reference`; ``A_g`` and
``gap_g`` are of the global one. ``A_m`` and ``A_g`` are means over masks that hold p and leave a
patch of its area unmasked, NaN where no mask does. Where no patch is in a local area, all but
``A_g`` and ``gap_g`` are NaN. There is always a global patch.
"""

CONSTANTS = ("P", "gamma", "L", "U", "kappa_s", "Delta", "Delta_eff")
"""The other symbols of the rules: attributes of the parameters of a problem."""

EPSILON = sympy.Rational(1, 1000)
"""Loss above the floor at which training counts as converged, half of the patches masked."""

rho, alpha_m, alpha_0, Phi_m, Phi_0, A_m, gap, A_g, gap_g = NOTATION.symbols(
    " ".join(ORDER_PARAMETERS)
)
P, gamma, L, U, kappa_s, Delta, Delta_eff = NOTATION.symbols(" ".join(CONSTANTS))

SLACK = sympy.Rational(1, 100)
STAGE_2 = sympy.Rational(1, 10)
"""The small constant c of stage 2, a convention."""
ALWAYS = sympy.Integer(1)
HALF = sympy.Rational(1, 2)


def stage_1_threshold(difference: sympy.Expr) -> sympy.Expr:
    """Depth of Phi_0 at the end of Phase I, stage 1, for an information gap."""
    return (difference / 2 - SLACK) * sympy.log(P) / U


def stage_2_threshold() -> sympy.Expr:
    """Phi_m - Phi_0 at the end of Phase I, stage 2."""
    return (Delta / 2 + SLACK + STAGE_2 * (1 - kappa_s)) * sympy.log(P) / L


def convergence_threshold() -> sympy.Expr:
    """Loss above the floor at convergence."""
    return 2 * gamma * EPSILON


def growth_threshold() -> sympy.Expr:
    """Phi_m at the end of rapid growth, as the paper puts it."""
    return (1 - kappa_s) * sympy.log(P) / L


EVENTS: tuple[EventRule, ...] = (
    Crossing(
        name="E0",
        meaning="training starts with Phase I: the global feature is decoupled first",
        latex=r"\rho > 1",
        after=None,
        expression=rho - 1,
        guard=ALWAYS,
        strict=True,
    ),
    Crossing(
        name="E1",
        meaning="end of Phase I, stage 1, by the information gap at this size",
        latex=r"\Phi_0 \leq -(\Delta_{\mathrm{eff}}/2 - 0.01) \ln P / U",
        after=None,
        expression=-stage_1_threshold(Delta_eff) - Phi_0,
        guard=stage_1_threshold(Delta_eff),
    ),
    Crossing(
        name="E1p",
        meaning="end of Phase I, stage 1, as the paper puts it",
        latex=r"\Phi_0 \leq -(\Delta/2 - 0.01) \ln P / U",
        after=None,
        expression=-stage_1_threshold(Delta) - Phi_0,
        guard=stage_1_threshold(Delta),
    ),
    Crossing(
        name="E2",
        meaning="switch of dominant effects (Lemma 5.3): the own feature grows faster",
        latex=r"|\alpha_0| \leq \alpha_m",
        after=None,
        expression=1 - rho,
        guard=ALWAYS,
    ),
    Crossing(
        name="E3",
        meaning="end of Phase I, stage 2 (positive information gap)",
        latex=r"\Phi_m - \Phi_0 \geq (\Delta/2 + 0.01 + 0.1 (1 - \kappa_s)) \ln P / L",
        after="E2",
        expression=Phi_m - Phi_0 - stage_2_threshold(),
        guard=Delta,
    ),
    Crossing(
        name="E4",
        meaning="end of rapid growth: half of the attention is on the own unmasked area",
        latex=r"A_m \geq 1/2",
        after=None,
        expression=A_m - HALF,
        guard=ALWAYS,
    ),
    Crossing(
        name="E4p",
        meaning="end of rapid growth as the paper puts it",
        latex=r"\Phi_m \geq (1 - \kappa_s) \ln P / L",
        after=None,
        expression=Phi_m - growth_threshold(),
        guard=ALWAYS,
    ),
    Crossing(
        name="E5",
        meaning="convergence of a local patch: its loss is near the floor",
        latex=r"L_p - L_p^\star \leq 2 \gamma 10^{-3}",
        after="E4",
        expression=convergence_threshold() - gap,
        guard=ALWAYS,
    ),
    Crossing(
        name="E4_global",
        meaning="half of the attention of a global patch is on its own unmasked area",
        latex=r"A_g \geq 1/2",
        after=None,
        expression=A_g - HALF,
        guard=ALWAYS,
    ),
    Crossing(
        name="E5_global",
        meaning="convergence of a global patch: its loss is near the floor",
        latex=r"L_g - L_g^\star \leq 2 \gamma 10^{-3}",
        after="E4_global",
        expression=convergence_threshold() - gap_g,
        guard=ALWAYS,
    ),
)
