"""Findings (measurements of claims) and verdicts (claims with their findings) as values."""

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
"""Cause of an undecided verdict -> last words of its text, as in "not decidable at this size"."""


@dataclass(frozen=True)
class Protocol:
    """Settings of a request to verify claims.

    `parameters`: the user's, or None to use each claim's own; `thorough`: whether to use more sizes
    and seeds; `seed`: seed of every random draw.
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
        True if the measurement supports the claim, False if it contradicts it, None if undecided.
    quantity : str
        The measured quantity, in words.
    measured, bound : float
        The measured value, and the claimed value.
    reason : str
        One sentence with the decisive numbers of the verdict.
    evidence : mapping
        Plain values (JSON): ``parameters`` of the measurement, tables, and under ``plot`` the
        picture of `dynamics.verdicts.claim`.
    relation : str
        Comparison of measured value and bound: ``"<="``; empty if the claim has none.
    single : tuple of str
        Settings tried at one value only: ``"step size"``, ``"seed"``, ``"time"``.
    literal : Finding or None
        Measurement of the literal words, if the finding is on another reading of the statement.
    missing : tuple of str
        Settings to change for a decision, names in `MISSING`, if ``holds`` is None.
    in_part : bool
        Whether the claim holds at some parameters only; the reason names them.
    trained : tuple of Trained
        Measured runs of reduced populations.
    stability : Stability or None
        Stability of the least stable run in `trained`; None without runs.

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
        """Outcome in words, as in "not decidable at this size" or "holds to time 4000"."""
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
        The measurement, adjusted by the rules of `dynamics.verdicts.rules`.

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
        """Whether the claim is supported (True), contradicted (False) or undecided (None)."""
        return self.finding.holds

    @property
    def word(self) -> str:
        """Outcome in words; "as read here" or "as recalled here" follows for a claim marked so."""
        how = {"recalled": self.claim.recalled, "read": bool(self.claim.reading)}
        done = " and ".join(name for name, is_so in how.items() if is_so)
        return f"{self.finding.word}, as {done} here" if done else self.finding.word

    @property
    def literal_word(self) -> str:
        """Outcome for the literal words of the claim, counted in summaries of verdicts."""
        return self.finding.literal.word if self.finding.literal else self.word

    @property
    def measured(self) -> float:
        """The measured value."""
        return self.finding.measured

    @property
    def bound(self) -> float:
        """The claimed value, compared with `measured`."""
        return self.finding.bound

    @property
    def evidence(self) -> Mapping[str, Any]:
        """Quantity, reason, parameters, tables and curves of the measurement."""
        finding = self.finding
        return {"quantity": finding.quantity, "reason": finding.reason, **finding.evidence}

    def overview(self) -> dict[str, Any]:
        """Summary of the verdict: claim, outcome in words, and the number that decided it."""
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
        """The verdict as plain values (JSON)."""
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
    """Raised by a check that cannot measure its claim; `evidence` goes into the finding."""

    def __init__(self, reason: str, missing: str = "size", **evidence: Any) -> None:
        super().__init__(reason)
        self.missing, self.evidence = missing, evidence


Check = Callable[["System", Protocol], Finding]
