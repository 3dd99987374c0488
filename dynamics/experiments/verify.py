"""Every statement of a paper, with a measured verdict.

A check runs the experiment that could contradict its claim and returns a `Finding`; nothing is
marked by hand. Checks take the problems from the `System` they are given, so that a system with a
wrong update or another law gets other verdicts.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from math import isnan
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from dynamics.registry import built_in_names, load_system
from dynamics.validation import InvalidRequest, first_problem

if TYPE_CHECKING:
    from dynamics.registry import System
    from theory.claims import Claim

WORDS = {True: "holds", False: "does not hold here", None: "not decidable at this size"}


@dataclass(frozen=True)
class Protocol:
    """What a check may assume about the request.

    Attributes
    ----------
    parameters : object or None
        The user's; None for those of the protocol of each claim.
    thorough : bool
        More sizes and seeds.
    seed : int
        Of everything random.
    """

    parameters: Any = None
    thorough: bool = False
    seed: int = 0


@dataclass(frozen=True)
class Finding:
    """What a check measured.

    Attributes
    ----------
    holds : bool or None
        True where the measurement supports the claim, False where it contradicts it, None where
        this size cannot decide.
    quantity : str
        What was measured, in words.
    measured, bound : float
        The measured value, and what the claim says of it.
    reason : str
        Why this verdict, in one sentence with the numbers that matter.
    evidence : mapping
        Plain values (JSON): ``parameters`` of the measurement, tables, and under ``plot`` what
        `dynamics.plotting.evidence` draws: ``x_label``, ``y_label``, ``x_scale``, ``y_scale``,
        ``curves`` (a list of ``label``, ``x``, ``y``) and ``lines`` (a list of ``label``, ``y``).
    """

    holds: bool | None
    quantity: str
    measured: float
    bound: float
    reason: str
    evidence: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Verdict:
    """A claim with its finding.

    Attributes
    ----------
    claim : Claim
        The paper's statement.
    finding : Finding
        What was measured.
    """

    claim: Claim
    finding: Finding

    @property
    def holds(self) -> bool | None:
        """Supported (True), contradicted (False), or undecided at this size (None)."""
        return self.finding.holds

    @property
    def measured(self) -> float:
        """The measured value."""
        return self.finding.measured

    @property
    def bound(self) -> float:
        """What the claim says of it."""
        return self.finding.bound

    @property
    def evidence(self) -> Mapping[str, Any]:
        """Quantity, reason, parameters, tables and curves."""
        finding = self.finding
        return {"quantity": finding.quantity, "reason": finding.reason, **finding.evidence}

    def document(self) -> dict[str, Any]:
        """The verdict as plain values."""
        return {
            "claim": self.claim.source,
            "holds": self.holds,
            "verdict": WORDS[self.holds],
            "measured": self.measured,
            "bound": self.bound,
            "statement": self.claim.statement,
            "evidence": dict(self.evidence),
        }


Check = Callable[["System", Protocol], Finding]


def checks(system: System) -> Mapping[str, Check]:
    """The checks of a system: source of the claim -> function; empty where there are none.

    They are its own where it brings them, else those of the paper's folder here.
    """
    if system.checks is not None:
        return system.checks
    if system.origin is not None or system.name not in built_in_names():
        return {}
    module = importlib.import_module(f"dynamics.experiments.{system.name}.checks")
    found: Mapping[str, Check] = module.CHECKS
    return found


def verify(
    system: Any,
    parameters: Any = None,
    claims: Sequence[str] | None = None,
    thorough: bool = False,
    seed: int = 0,
) -> list[Verdict]:
    """Check claims of a system's paper numerically.

    Parameters
    ----------
    system : System, str, path-like or Model
        As of `dynamics.load_system`.
    parameters : Parameters, optional
        Where to check; by default each claim has the sizes of its own protocol.
    claims : sequence of str, optional
        Sources (``"Lemma 4.1"``); all by default.
    thorough : bool
        More sizes and seeds.
    seed : int
        Of everything random.

    Returns
    -------
    list of Verdict

    Raises
    ------
    InvalidRequest
        For a claim that the paper does not have, or that nothing checks.
    """
    return list(verdicts(system, parameters, claims, thorough, seed))


def verdicts(
    system: Any,
    parameters: Any = None,
    claims: Sequence[str] | None = None,
    thorough: bool = False,
    seed: int = 0,
) -> Iterator[Verdict]:
    """The verdicts of `verify`, each as soon as it is known."""
    chosen = load_system(system)
    known = {claim.source: claim for claim in chosen.claims}
    asked = sources(chosen, claims)
    table = checks(chosen)
    for source in asked:
        if source not in table:
            raise InvalidRequest(f"{chosen.name} has no check of claim {source!r}")
    protocol = Protocol(parameters, thorough, seed)
    for source in asked:
        yield Verdict(known[source], _decided(_checked(table[source], chosen, protocol)))


def _checked(check: Check, system: System, protocol: Protocol) -> Finding:
    """The finding; undecided where a check needs sizes that the user's ones do not allow."""
    try:
        return check(system, protocol)
    except (InvalidRequest, ValidationError) as error:
        if protocol.parameters is None:
            raise
        told = first_problem(error) if isinstance(error, ValidationError) else str(error)
        reason = f"needs other sizes beside those given, and they cannot be: {told}"
        return Finding(None, "not measured", float("nan"), float("nan"), reason)


def _decided(finding: Finding) -> Finding:
    """A measured value that is not a number decides nothing, whatever it was compared with."""
    if finding.holds is None or not isnan(finding.measured):
        return finding
    reason = f"what is measured has no value here: {finding.reason}"
    return replace(finding, holds=None, reason=reason)


def sources(system: System, claims: Sequence[str] | None) -> list[str]:
    """The claims that are asked for, in any case of their letters; all where none is named.

    Raises
    ------
    InvalidRequest
        For a claim that the paper does not have, with the nearest that it has; where there are no
        claims.
    """
    known = {claim.source.lower(): claim.source for claim in system.claims}
    if not known:
        raise InvalidRequest(f"{system.name} has no claims")
    if claims is None:
        return list(known.values())
    for source in claims:
        if source.lower() not in known:
            near = known[get_close_matches(source.lower(), list(known), 1, 0.0)[0]]
            listed = ", ".join(known.values())
            raise InvalidRequest(
                f"claim {source!r} is unknown; known are {listed}; nearest: {near}"
            )
    return [known[source.lower()] for source in claims]
