r"""The events of training, as rules on four order parameters of the training set.

- ``t_fit``: no training sample is on the wrong side. It comes early, and says little alone.
- ``t_zero``: every training sample has reached the margin. The hinge has no slope left, and descent
  on all samples stands still from there.
- ``mass_50``, ``mass_75``, ``mass_90``: the attention to label-relevant tokens, averaged over the
  queries of all training samples, reaches that share (Proposition 2 says: nearly all of it).

Where two samples are all of the law (``data="fixed"``, no noise) these are events of the test set
too.
"""

from __future__ import annotations

import sympy

from theory.events import Crossing, EventRule
from theory.systems.shallow_vit.notation import NOTATION

ORDER_PARAMETERS = ("risk", "active", "error", "relevant")
"""What the rules are written in; every problem of this system reports them at every step."""

RATES = ("risk",)
"""None of them is a rate whose sign could alternate: no run of the hinge is called oscillating."""

SHARES = (50, 75, 90)
"""Attention to label-relevant tokens that counts as an event, in percent."""

active, error, relevant = NOTATION.symbols("active error relevant")
ALWAYS = sympy.Integer(1)

EVENTS: tuple[EventRule, ...] = (
    Crossing(
        name="t_fit",
        meaning="no training sample is misclassified",
        latex=r"yF > 0 \text{ on all training samples}",
        after=None,
        expression=-error,
        guard=ALWAYS,
    ),
    Crossing(
        name="t_zero",
        meaning="zero training loss: every training sample has reached the margin",
        latex=r"yF \geq \gamma \text{ on all training samples}",
        after=None,
        expression=-active,
        guard=ALWAYS,
    ),
    *(
        Crossing(
            name=f"mass_{share}",
            meaning=f"{share} % of the attention is on label-relevant tokens",
            latex=rf"P_* \geq {share} \%",
            after=None,
            expression=relevant - sympy.Rational(share, 100),
            guard=ALWAYS,
        )
        for share in SHARES
    ),
)
