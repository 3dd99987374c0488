"""Findings and verdicts as values."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from theory.summary import summarized

if TYPE_CHECKING:
    from dynamics.results.stability import Stability
    from dynamics.system import System
    from dynamics.verdicts.stability import Trained
    from theory.claims import Claim

RELATIONS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
}
MISSING = {
    "size": "at this size",
    "time": "to this time",
    "law": "under this law",
    "step size": "at this step size",
    "seed": "with this seed",
    "trials": "with so few trials",
    "precision": "at this precision",
    "formula": "without the lost formula",
    "model": "by a reconstruction",
    "measurement": "without a measurement",
}
"""Missing part of an undecided verdict -> end of its word."""


@dataclass(frozen=True)
class Protocol:
    """Settings of the request that a check may read.

    `parameters`: the user's; None for those of the protocol of each claim; `thorough`: more sizes
    and seeds; `seed`: of everything random.
    """

    parameters: Any = None
    thorough: bool = False
    seed: int = 0


@summarized
@dataclass(frozen=True)
class Finding:
    """Measurement of a check.

    Attributes
    ----------
    holds : bool or None
        True where the measurement supports the claim, False where it contradicts it, None where
        it decides nothing, for want of what is `missing`.
    quantity : str
        What was measured, in words.
    measured, bound : float
        The measured value, and what the claim says of it.
    reason : str
        Why this verdict, in one sentence with the numbers that matter.
    evidence : mapping
        Plain values (JSON): ``parameters`` of the measurement, tables, and under ``plot`` the
        picture of `dynamics.verdicts.claim`.
    relation : str
        What the claim puts between measured value and bound: ``"<="``; "" where it is not said.
    single : tuple of str
        Of what only one was tried: ``"step size"``, ``"seed"``, ``"time"``.
    literal : Finding or None
        What was measured of the statement's literal words, where the finding is of a reading.
    missing : tuple of str
        What would have to be another one for a decision, names from `MISSING`, where ``holds`` is
        None.
    in_part : bool
        The claim holds at some of the parameters and not at others, which the reason names.
    trained : tuple of Trained
        Runs of reduced populations that were measured.
    stability : Stability or None
        Until when the least stable of them stays on its classes; None where none was trained.

    Examples
    --------
    >>> from dynamics import Finding
    >>> finding = Finding(True, "spread of A", 8e-18, 1e-12, "spread at rounding")
    >>> finding.holds, dict(finding.evidence)
    (True, {})
    """

    holds: bool | None
    quantity: str
    measured: float
    bound: float
    reason: str
    evidence: Mapping[str, Any] = field(default_factory=dict)
    relation: str = ""
    single: tuple[str, ...] = ()
    literal: Finding | None = None
    missing: tuple[str, ...] = ("size",)
    in_part: bool = False
    trained: tuple[Trained, ...] = ()
    stability: Stability | None = None

    @property
    def word(self) -> str:
        """The verdict in words; with what is missing, or the time to which the classes hold."""
        if self.holds is None and not self.in_part:
            return f"not decidable {' and '.join(MISSING[name] for name in self.missing)}"
        word = "holds" if self.holds else "holds in part" if self.in_part else "does not hold here"
        found = self.stability
        return word if found is None or not found.limited else f"{word} to time {found.until:.4g}"


@summarized
@dataclass(frozen=True)
class Verdict:
    """A claim with its finding.

    Attributes
    ----------
    claim : Claim
        The paper's statement.
    finding : Finding
        What was measured, under the rules of `dynamics.verdicts.rules`.

    Examples
    --------
    >>> import dynamics
    >>> system = dynamics.load_system("positional_attention")
    >>> finding = dynamics.Finding(None, "spread of A", float("nan"), 1e-12, "too large")
    >>> claim = next(claim for claim in system.claims if claim.source == "Theorem 3.1")
    >>> verdict = dynamics.Verdict(claim, finding)
    >>> verdict.claim.source, verdict.holds, verdict.document()["verdict"]
    ('Theorem 3.1', None, 'not decidable at this size')
    """

    claim: Claim
    finding: Finding

    @property
    def holds(self) -> bool | None:
        """Supported (True), contradicted (False), or undecided (None)."""
        return self.finding.holds

    @property
    def word(self) -> str:
        """The verdict in words, with what it is a verdict on where that is not the literal text."""
        how = {"recalled": self.claim.recalled, "read": bool(self.claim.reading)}
        done = " and ".join(name for name, is_so in how.items() if is_so)
        return f"{self.finding.word}, as {done} here" if done else self.finding.word

    @property
    def literal_word(self) -> str:
        """The verdict on the literal words, which summaries count."""
        return self.finding.literal.word if self.finding.literal else self.word

    @property
    def measured(self) -> float:
        """The measured value."""
        return self.finding.measured

    @property
    def bound(self) -> float:
        """Relation and bound of the claim, in words."""
        return self.finding.bound

    @property
    def evidence(self) -> Mapping[str, Any]:
        """Quantity, reason, parameters, tables and curves."""
        finding = self.finding
        return {"quantity": finding.quantity, "reason": finding.reason, **finding.evidence}

    def overview(self) -> dict[str, Any]:
        """A summary: claim, verdict, and the number that decides."""
        finding = self.finding
        return {
            "claim": f"{self.claim.source}: {self.claim.statement}",
            "verdict": self.word,
            "quantity": finding.quantity,
            "measured": f"{self.measured:.4g}, claimed {finding.relation} {self.bound:.4g}",
            "reason": finding.reason,
            "parameters": finding.evidence.get("parameters"),
        }

    def document(self) -> dict[str, Any]:
        """The verdict as plain values."""
        stability, literal = self.finding.stability, self.finding.literal
        content: dict[str, Any] = {
            "claim": self.claim.source, "holds": self.holds, "verdict": self.word,
            "measured": self.measured, "bound": self.bound, "statement": self.claim.statement,
            "single": list(self.finding.single),
            "missing": list(self.finding.missing) if self.holds is None else [],
            "stability": None if stability is None else stability.document(),
            "evidence": dict(self.evidence),
        }  # fmt: skip
        if self.claim.reading:
            content["reading"] = self.claim.reading
        if literal is not None:
            names = ("holds", "measured", "bound", "relation", "quantity", "reason")
            content["literal"] = {name: getattr(literal, name) for name in names}
            content["literal"]["verdict"] = literal.word
        return content


class Undecided(Exception):
    """Why a check measures nothing, and what is missing; other keywords become the evidence."""

    def __init__(self, reason: str, missing: str = "size", **evidence: Any) -> None:
        super().__init__(reason)
        self.missing, self.evidence = missing, evidence


Check = Callable[["System", Protocol], Finding]
