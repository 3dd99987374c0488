r"""The three events of training, as rules on the order parameters.

The signal strength that reaches the loss is :math:`\alpha G`; its log-growth splits in
:math:`d\log\alpha + d\log G`.

- Event I, value-driven: v grows, attention stays. It ends at ``T0``, the first time with alpha > 0
  at which attention contributes at least as much: :math:`d\log G \geq d\log\alpha`.
- Event II, attention-driven, up to ``T1``: half of the attention falls inside the true set,
  :math:`G \geq D/2`. ``T1_paper`` is the paper's own form,
  :math:`\gamma > \max_t |\rho^{(t)}|` over the run, which depends on the horizon.
- Event III: alpha grows again.

``patch_association`` (Definition 2.2) is reached when the least entry of A inside every set exceeds
the greatest outside, in every row.
"""

from __future__ import annotations

import sympy

from theory.events import Crossing, EventRule, ExceedsRunMaximum, SustainedRise
from theory.systems.positional_attention.notation import NOTATION

ORDER_PARAMETERS = ("alpha", "gamma", "rho", "G", "d_alpha", "d_G", "association_margin")
"""What the rules are written in; every problem of this system reports them at every step."""

RATES = ("d_alpha", "d_G")
"""Those that are read off the gradient; the growth of alpha tells whether a run oscillates."""

alpha, gamma, rho, G, d_alpha, d_G, margin = NOTATION.symbols(" ".join(ORDER_PARAMETERS))
D = NOTATION.symbol("D")

EVENTS: tuple[EventRule, ...] = (
    Crossing(
        name="T0",
        meaning="end of Event I: attention takes over the growth of the signal",
        latex=r"\frac{d \log G}{d\tau} \geq \frac{d \log \alpha}{d\tau}",
        after=None,
        expression=d_G / G - d_alpha / alpha,
        guard=alpha,
    ),
    Crossing(
        name="T1",
        meaning="end of Event II: half of the attention falls inside the true set",
        latex=r"G \geq D/2",
        after="T0",
        expression=G - D / 2,
        guard=sympy.Integer(1),
    ),
    ExceedsRunMaximum(
        name="T1_paper",
        meaning="end of Event II as the paper puts it, for this horizon",
        latex=r"\gamma > \max_t |\rho|",
        after="T0",
        quantity=gamma,
        bound=sympy.Abs(rho),
    ),
    SustainedRise(
        name="event_III",
        meaning="start of Event III: alpha grows again",
        latex=r"\alpha \text{ rises again}",
        after="T1",
        quantity=alpha,
        relative=1e-6,
        duration=1.0,
    ),
    Crossing(
        name="patch_association",
        meaning="every row puts its own set on top (Definition 2.2)",
        latex=r"\mathrm{Top}_C(A_{i\cdot}) = S_{\ell(i)}\ \forall i",
        after=None,
        expression=margin,
        guard=sympy.Integer(1),
        strict=True,
    ),
)
