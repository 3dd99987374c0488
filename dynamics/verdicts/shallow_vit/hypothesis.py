"""Hypothesis of Theorem 1 on a law: outside of it nothing is decided.

Of all weights trained with the hinge max{1 - y F, 0} of (2), and of sizes. Without noise: what is
measured on patterns has tau = 0.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from math import ceil, exp, pi
from typing import Any

from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.shallow_vit.runs import SAMPLES
from theory.papers.shallow_vit.conditions import least_neurons, least_share

LARGEST_DELTA = 0.5
"""Assumption 1: delta is below."""
VERBS = {"attention": "is", "values": "are"}


def enough_neurons(law: Any) -> None:
    """Refuse a law with too few neurons for N samples (the N of Section 4.1), or too large a sigma.

    Raises
    ------
    Undecided
    """
    least = least_neurons(law.M, SAMPLES, law.sigma)
    if law.sigma >= pi / law.M:
        raise _outside(law, f"sigma = {law.sigma:g} has to be below pi / M = {pi / law.M:.3g}")
    if law.m <= least:
        reason = (
            f"m >= epsilon^-2 M^2 log N with 1 - epsilon - sigma M / pi > 0 is not met by m = "
            f"{law.m}: with N = {SAMPLES} it takes {ceil(least)} neurons"
        )
        raise _outside(law, reason, "size")


def other_training(law: Any) -> str:
    """Difference of a law from (2), all weights with the hinge, in words; "" if none."""
    words = [] if law.frozen == "none" else [f"{law.frozen} {VERBS[law.frozen]} frozen"]
    words += [] if law.loss == "hinge" else [f"the loss is {law.loss}"]
    if not words:
        return ""
    here = " and ".join(words)
    return f"the claim assumes all weights, trained with the hinge max(1 - y F, 0); here {here}"


def all_trained(law: Any) -> None:
    """Refuse a law that does not train all weights with the hinge.

    Raises
    ------
    Undecided
    """
    if words := other_training(law):
        raise _outside(law, words)


def theorem_1(law: Any) -> None:
    """Refuse a law that Theorem 1 does not speak of.

    Raises
    ------
    Undecided
        With the size from which on it does.
    """
    all_trained(law)
    sizes_of_theorem_1(law)


def up_to_frozen(law: Any) -> None:
    """Refuse a law that Theorem 1 does not speak of, whatever it freezes.

    Of claims that say themselves what is frozen.

    Raises
    ------
    Undecided
    """
    theorem_1(replace(law, frozen="none"))


def sizes_of_theorem_1(law: Any) -> None:
    """Refuse the sizes of a law that Theorem 1 does not speak of, however it is trained.

    Raises
    ------
    Undecided
        With the size from which on it does.
    """
    if law.delta >= LARGEST_DELTA:
        raise _outside(law, f"delta = {law.delta:g} has to be below {LARGEST_DELTA:g}")
    enough_neurons(law)
    least = least_share(law.alpha_confusion, law.sigma, law.delta)
    if law.alpha_star <= least:
        most = law.alpha_star * (1 - law.sigma) * exp(-law.delta) / 2
        reason = (
            f"(8) is not met by alpha_* = {law.alpha_star:g} with alpha_# = "
            f"{law.alpha_confusion:g}: it takes alpha_* above {least:.3g}, or alpha_# below "
            f"{most:.3g}"
        )
        raise _outside(law, reason)


def lucky_neurons(law: Any) -> None:
    """Refuse a law outside the lemmas on lucky neurons.

    Raises
    ------
    Undecided
    """
    if law.output_weights != "shared":
        raise Undecided("neurons have a sign for every position", "law", parameters=asdict(law))
    theorem_1(law)


def _outside(law: Any, reason: str, missing: str = "law") -> Undecided:
    return Undecided(f"outside of the hypothesis: {reason}", missing, parameters=asdict(law))
