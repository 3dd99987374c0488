"""The listed statements of a paper, each with a measured verdict.

A check runs the experiment that could contradict its claim and returns a `Finding`; nothing is
marked by hand. Checks take the problems from their `System`, so that a system with a
wrong update or another law gets other verdicts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan
from typing import TYPE_CHECKING, Any

from dynamics.registry import load_system
from dynamics.training.progress import interruption
from dynamics.validation import InvalidRequest, check_parameters, integer, refuse, unknown
from dynamics.verdicts import rounding, rules, verdicts_of
from theory.summary import summarized

if TYPE_CHECKING:
    from dynamics.system import System
    from theory.claims import Claim

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
"""What an undecided verdict is missing -> how its word ends."""


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


@summarized
@dataclass(frozen=True)
class Finding:
    """What a check measured.

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
        picture of a `dynamics.verdicts.study.Study`.
    relation : str
        What the claim puts between measured value and bound: ``"<="``; "" where it is not said.
    single : tuple of str
        Of what only one was tried: ``"step size"``, ``"seed"``, ``"time"``.
    literal : Finding or None
        What was measured of the statement's literal words, where the finding is of a reading.
    missing : tuple of str
        What would have to be another one for a decision, names from `MISSING`, where ``holds`` is
        None.

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

    @property
    def word(self) -> str:
        """The verdict in words; where nothing was decided, with what is missing."""
        if self.holds is None:
            return f"not decidable {' and '.join(MISSING[name] for name in self.missing)}"
        return "holds" if self.holds else "does not hold here"


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
        how = {"re-derived": self.claim.re_derived, "read": bool(self.claim.reading)}
        done = " and ".join(name for name, is_so in how.items() if is_so)
        return f"{self.finding.word}, as {done} here" if done else self.finding.word

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
        content: dict[str, Any] = {
            "claim": self.claim.source,
            "holds": self.holds,
            "verdict": self.word,
            "measured": self.measured,
            "bound": self.bound,
            "statement": self.claim.statement,
            "single": list(self.finding.single),
            "missing": list(self.finding.missing) if self.holds is None else [],
            "evidence": dict(self.evidence),
        }
        if self.claim.reading:
            content["reading"] = self.claim.reading
        literal = self.finding.literal
        if literal is not None:
            names = ("holds", "measured", "bound", "relation", "quantity", "reason")
            content["literal"] = {name: getattr(literal, name) for name in names}
            content["literal"]["verdict"] = literal.word
        return content


Check = Callable[["System", Protocol], Finding]


def checks(system: System) -> Mapping[str, Check]:
    """The checks of a system: source of the claim -> function; empty where there are none."""
    return verdicts_of(system, "checks")


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
        As of `dynamics.load_system`: ``"positional_attention"`` is one.
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
        For a system that there is none of, parameters of another, a claim that the paper does not
        have or that nothing checks, or a seed that is none.
    KeyboardInterrupt
        At Ctrl-C or SIGTERM while a claim is checked.

    Examples
    --------
    >>> import dynamics
    >>> system = dynamics.load_system("positional_attention")
    >>> verdicts = dynamics.verify(system, system.Parameters(D=16, C=4), claims=["Theorem 3.1"])
    >>> [(verdict.claim.source, verdict.holds) for verdict in verdicts]
    [('Theorem 3.1', False)]
    """
    return list(verdicts(system, parameters, claims, thorough, seed))


def verdicts(
    system: Any,
    parameters: Any = None,
    claims: Sequence[str] | None = None,
    thorough: bool = False,
    seed: int = 0,
) -> Iterator[Verdict]:
    """Yield the verdicts of `verify`, each as soon as it is measured.

    Parameters
    ----------
    system, parameters, claims, thorough, seed
        As of `verify`.
    """
    loaded, seed = load_system(system), integer("seed", seed, at_least=0, at_most=2**62)
    if parameters is not None:
        check_parameters(parameters, loaded.Parameters, loaded.name)
    claims_by_source = {claim.source: claim for claim in loaded.claims}
    requested, table = sources(loaded, claims), checks(loaded)
    for source in requested:
        if source not in table:
            raise InvalidRequest(f"{loaded.name} has no check of claim {source!r}")
    protocol = Protocol(parameters, thorough, seed)
    for source in requested:
        claim = claims_by_source[source]
        with interruption() as interrupted:
            try:
                finding = _run(table[source], loaded, protocol)
            except Exception:
                if not interrupted.is_set():
                    raise
            if interrupted.is_set():  # what a run that was cut short gives is no verdict
                raise KeyboardInterrupt
        yield Verdict(claim, rules.applied(claim, finding))


def _run(check: Check, system: System, protocol: Protocol) -> Finding:
    """The finding of a check.

    Undecided where the check needs sizes that the user's parameters do not allow, and where the
    measured value is not a number.
    """
    try:
        finding = check(system, protocol)
        if protocol.parameters is not None and not hasattr(check, "without_rounding"):
            finding = rounding.screened(finding, check, system, protocol)
    except InvalidRequest as error:
        if protocol.parameters is None:
            raise
        reason = f"needs other sizes beside those given, and they cannot be: {error}"
        return Finding(None, "not measured", float("nan"), float("nan"), reason)
    if finding.holds is None or not isnan(finding.measured):
        return finding
    reason = f"what is measured has no value here: {finding.reason}"
    return replace(finding, holds=None, reason=reason)


def sources(system: System, claims: Sequence[str] | None) -> list[str]:
    """The requested claims as the paper writes them; all of the paper where none is named.

    Parameters
    ----------
    system : System
    claims : sequence of str or None
        In any case of their letters.

    Raises
    ------
    InvalidRequest
        For a claim that the paper does not have, with the nearest that it has; where there are no
        claims.
    """
    claims = [claims] if isinstance(claims, str) else claims
    by_name = {claim.source.lower(): claim.source for claim in system.claims}
    if not by_name:
        raise InvalidRequest(f"{system.name} has no claims")
    if claims is not None and not isinstance(claims, Iterable):
        refuse("claims", claims, "is no list", "names of claims", [*by_name.values()][:1])
    for source in map(str, claims or ()):
        if source.lower() not in by_name:
            raise unknown("claim", source, [*by_name.values()])
    return [*by_name.values()] if claims is None else [by_name[source.lower()] for source in claims]
