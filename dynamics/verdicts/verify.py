"""Measure a verdict on each listed statement of a paper.

A check runs an experiment that could contradict its claim and returns a `Finding`. The experiment
takes its problems from a `System`, so a system with another update rule or law can get other
verdicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import isnan
from typing import Any

from dynamics.parameter_fields import check_parameters
from dynamics.registry import load_system
from dynamics.system import System
from dynamics.training.progress import interruption
from dynamics.validation import InvalidRequest, integer, refuse, unknown
from dynamics.verdicts import rounding, rules, verdicts_of
from dynamics.verdicts.findings import Check, Finding, Protocol, Verdict
from dynamics.verdicts.stability import with_stability


def checks(system: System) -> Mapping[str, Check]:
    """Checks of a system, by the source of their claim; empty if the system has none."""
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
        As in `dynamics.load_system`: for example ``"positional_attention"``.
    parameters : Parameters, optional
        Where to check; by default each claim has the sizes of its own protocol.
    claims : sequence of str, optional
        Sources (``"Lemma 4.1"``); all by default.
    thorough : bool
        Use more sizes and seeds.
    seed : int
        Seed of every random draw.

    Returns
    -------
    list of Verdict

    Raises
    ------
    InvalidRequest
        For an unknown system or claim, a claim without a check, parameters of another system, or
        an invalid seed.
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
    system: Any, parameters: Any, claims: Sequence[str] | None, thorough: bool, seed: int
) -> Iterator[Verdict]:
    """Yield the verdicts of `verify` one by one, as they are measured."""
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
                finding = with_stability(loaded, _run(table[source], loaded, protocol))
            except Exception:
                if not interrupted.is_set():
                    raise
            if interrupted.is_set():  # an interrupted run gives no verdict
                raise KeyboardInterrupt
        yield Verdict(claim, rules.applied(claim, finding))


def _run(check: Check, system: System, protocol: Protocol) -> Finding:
    """Finding of a check; undecided if the user's parameters are invalid, or the value is NaN."""
    try:
        finding = check(system, protocol)
        if protocol.parameters is not None and not getattr(check, "near_limit", False):
            finding = rounding.screened(finding, check, system, protocol)
    except InvalidRequest as error:
        if protocol.parameters is None:
            raise
        reason = f"the check needs further sizes, which are invalid with these parameters: {error}"
        return Finding(None, "not measured", float("nan"), float("nan"), reason)
    if finding.holds is None or not isnan(finding.measured):
        return finding
    reason = f"the measured value is NaN: {finding.reason}"
    return replace(finding, holds=None, reason=reason)


def sources(system: System, claims: Sequence[str] | None) -> list[str]:
    """Sources of the requested claims as the paper writes them; all claims if `claims` is None.

    Raises InvalidRequest for an unknown claim, naming the nearest one, and for a system without
    claims.
    """
    claims = [claims] if isinstance(claims, str) else claims
    by_name = {claim.source.lower(): claim.source for claim in system.claims}
    if not by_name:
        raise InvalidRequest(f"{system.name} has no claims")
    if claims is not None and not isinstance(claims, Iterable):
        refuse("claims", claims, "is not a list", "names of claims", [*by_name.values()][:1])
    for source in map(str, claims or ()):
        if source.lower() not in by_name:
            raise unknown("claim", source, [*by_name.values()])
    return [*by_name.values()] if claims is None else [by_name[source.lower()] for source in claims]
