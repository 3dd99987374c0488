"""Declare the measurement of a claim by data and a short function that measures one case.

>>> from dynamics.verdicts.cases import flow_to
>>> from dynamics.verdicts.claim import Picture, claim
>>> @claim(
...     "Lemma D.2", "least rate of alpha up to T0", ">", 0.0, laws=({"D": 8, "C": 2},),
...     run=flow_to(1e3), words="alpha rises at {value:.2g} at least, up to T0={T0:.3g}",
... )
... def rises(case):
...     before = case.run.time <= case.run.events["T0"].time
...     rates = [-case.problem.gradient(state)[0] for state in case.run.states[before]]
...     return {"value": min(rates), "T0": case.run.events["T0"].time}

A call ``rises(system, protocol)`` trains the model for each parameter set of the grid and each
seed, and measures one row for each case. It repeats a contradiction found in a single run, and
returns a `Finding` with the table and the picture.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isnan, nan
from types import ModuleType
from typing import Any, NamedTuple
from typing import Literal as OneOf

import numpy as np

from dynamics.system import System
from dynamics.verdicts import rounding
from dynamics.verdicts.cases import Case, Run, named_values
from dynamics.verdicts.findings import RELATIONS, Finding, Protocol, Undecided
from dynamics.verdicts.rules import Growth as Fit
from dynamics.verdicts.rules import Repeat, growth, repeats
from dynamics.verdicts.wording import in_percent, points, sentence

Row = dict[str, Any]
TIME = r"time $\tau = \eta \times$ steps"
HIDDEN = ("curves", "open", "missing", "text", "trained")
"""Keys of a row that are not columns of the finding's table."""


class Also(NamedTuple):
    """Further bound that each row must meet, in a column other than ``value``."""

    column: str
    relation: str
    bound: float
    quantity: str


class Literal(NamedTuple):
    """Bound for a claim's literal words; column ``value`` tests the claim as interpreted here."""

    column: str
    relation: str
    bound: float
    quantity: str
    words: str = ""
    """Format string of the reason; its fields are columns of a row."""
    open: str = ""
    """Key of `MISSING` if a missed bound is undecided; empty if it is a contradiction."""


class Growth(NamedTuple):
    """Claimed power law of ``value`` in another column of the rows."""

    along: str
    exponent: float
    upper: bool = False
    """Whether the claim is an upper bound on the exponent."""
    errors: str = ""
    """Column with standard errors of log ``value``; rows with a non-finite error are dropped."""

    def of(self, rows: Sequence[Row]) -> Fit:
        """Power-law fit over the measured rows, sorted by the column `along`."""
        measured = [row for row in rows if "bound" in row]
        ordered = sorted(measured, key=lambda row: row[self.along])
        if self.errors:
            ordered = [row for row in ordered if np.isfinite(row[self.errors])]
        x, y = ([row[name] for row in ordered] for name in (self.along, "value"))
        errors = [row[self.errors] for row in ordered] if self.errors else None
        return growth(x, y, self.exponent, errors, self.upper)


class Picture(NamedTuple):
    """Axes of a claim's picture; the measurement returns its curves under ``curves``."""

    x: str
    y: str
    levels: Mapping[str, float] = {}
    """Label -> vertical position of a horizontal line in the picture."""
    scales: tuple[str, str] = ("log", "log")


@dataclass(frozen=True)
class Experiment:
    """Measurement of a claim; a call with a system and a `Protocol` returns a `Finding`."""

    measure: Callable[[Case], Mapping[str, Any]]
    source: str
    quantity: str
    relation: str
    bound: float
    laws: Sequence[Mapping[str, Any]] | None = ({},)
    thorough: Sequence[Mapping[str, Any]] = ()
    family: Callable[[Any], Sequence[Any]] | None = None
    run: Run | None = None
    require: Callable[[Any], None] | None = None
    shown: Sequence[str] = ()
    seeds: tuple[int, int] = (1, 1)
    share: bool = False
    exists: bool = False
    in_part: bool = False
    growth: Growth | None = None
    also: Sequence[Also] = ()
    literal: Literal | None = None
    varies: tuple[str, ...] = ()
    again: bool | OneOf["thorough"] = True
    near_limit: bool = False
    words: str = ""
    picture: Picture | None = None
    conclude: Callable[[list[Row], Finding], Finding] | None = None

    def __call__(self, system: System, protocol: Protocol) -> Finding:
        """Measure the claim; repeat a contradiction, and a run near the stability limit."""
        finding = self._repeated(system, protocol)
        if self.near_limit and finding.single and finding.holds:  # False becomes undecided (rule 5)
            times = rounding.PERTURBATIONS
            return rounding.screened(finding, self._repeated, system, protocol, times)
        return finding

    def _repeated(self, system: System, protocol: Protocol) -> Finding:
        finding = self._once(system, protocol, Repeat())
        again = protocol.thorough if self.again == "thorough" else self.again
        if not again or finding.holds is not False or not finding.single:
            return finding
        words = []
        for repeat in repeats(*finding.single):
            other = self._once(system, protocol, repeat)
            words.append(f"{repeat}: {other.measured:.4g}")
            if other.holds is not False:
                break
        else:
            finding = replace(finding, single=())
        return replace(finding, reason=f"{finding.reason}; repeated with {', '.join(words)}")

    def _once(self, system: System, protocol: Protocol, repeat: Repeat) -> Finding:
        first, count = protocol.seed + repeat.seed, self.seeds[protocol.thorough]
        try:
            laws = self._laws(system, protocol)
        except Undecided as refusal:
            missing = (refusal.missing,)
            return Finding(None, self.quantity, nan, self.bound, str(refusal), missing=missing)
        cases = [
            Case(system, law, seed, protocol.thorough, repeat)
            for law in laws
            for seed in range(first, first + count)
        ]
        named = [named_values(case.parameters, self.shown) for case in cases]
        if count > 1:
            named = [row | {"seed": case.seed} for row, case in zip(named, cases, strict=True)]
        held = {name for name in named[0] if all(row[name] == named[0][name] for row in named)}
        labels = [points([{n: v for n, v in row.items() if n not in held}]) for row in named]
        rows = [
            row | self._row(replace(case, label=label))
            for row, case, label in zip(named, cases, labels, strict=True)
        ]
        finding = self._judged(rows, system, list(named[0]))
        return self.conclude(rows, finding) if self.conclude else finding

    def _laws(self, system: System, protocol: Protocol) -> list[Any]:
        laws = [protocol.parameters]
        if self.laws is None and protocol.parameters is not None:
            raise Undecided("this claim is measured on images, without Parameters", "law")
        if self.laws is not None and protocol.parameters is None:
            grid = (*self.laws, *(self.thorough if protocol.thorough else ()))
            laws = [system.Parameters(**law) for law in grid]
        return laws if self.family is None else [each for law in laws for each in self.family(law)]

    def _row(self, case: Case) -> Row:
        """Row of one case: the measurement, with the verdict under ``holds``."""
        try:
            if self.require is not None:
                self.require(case.parameters)
            if self.run is not None:
                problem, run = self.run(case)
                case = replace(case, problem=problem, run=run)
            row = {"trained": case.trained, **self.measure(case)}
        except Undecided as refusal:
            row = {"value": nan, "holds": None, "text": str(refusal), "missing": refusal.missing}
            return row | dict(refusal.evidence)
        row.setdefault("bound", self.bound)
        if "holds" not in row:
            unmet = [each for each in self._requirements(row) if not _met(row, each)]
            row["holds"] = not unmet or (None if "open" in row else False)
        row.setdefault("missing", row.get("open", "size"))
        return row

    def _requirements(self, row: Row) -> list[Also]:
        first = [] if self.growth else [Also("value", self.relation, row["bound"], self.quantity)]
        return [*first, *self.also]

    def _judged(self, rows: list[Row], system: System, names: Sequence[str]) -> Finding:
        """Finding that combines the measured rows of all cases."""
        holds, missing = self._holds(rows)
        decisive, value, bound = self._decisive(rows, holds)
        reason = sentence(rows, names, self.words)
        if self.growth is not None and holds is not False:
            law = self.growth.of(rows)
            value, bound = law.fit.exponent, self.growth.exponent
            reason, holds = f"{reason}; {law}", law.holds if holds else None
        if self.share and (decided := [row["holds"] for row in rows if row["holds"] is not None]):
            value = sum(decided) / len(decided)
            holds = RELATIONS[self.relation](value, bound)
            reason = f"{in_percent(sum(decided), len(decided))} of {len(decided)} cases; {reason}"
        evidence: Row = {"parameters": _grid_of(rows, names)}
        evidence["table"] = [_plain(row) for row in rows]
        if self.picture is not None and (curves := _curves(rows)):
            evidence["plot"] = self._plot(curves, system, evidence["parameters"])
        parted = holds is None and {row["holds"] for row in rows} >= {True, False}
        return Finding(
            holds, decisive.quantity, value, bound, reason, evidence, decisive.relation,
            self.varies, self._literal(rows), missing, in_part=parted and self.in_part,
            trained=tuple(dict.fromkeys(run for row in rows for run in row.get("trained", ()))),
        )  # fmt: skip

    def _holds(self, rows: list[Row]) -> tuple[bool | None, tuple[str, ...]]:
        states = [row["holds"] for row in rows]
        missing = tuple(dict.fromkeys(row["missing"] for row in rows if row["holds"] is None))
        if self.exists:
            verdict = True if True in states else None if None in states else False
        elif False in states:
            verdict = None if self.in_part and True in states else False
        else:
            verdict = None if None in states else True
        return verdict, missing or ("size",)

    def _decisive(self, rows: list[Row], holds: bool | None) -> tuple[Also, float, float]:
        """First unmet bound, or the bound of ``value`` if all are met, and the decisive value."""
        measured = [row for row in rows if "bound" in row]
        if not measured:
            return Also("value", self.relation, self.bound, self.quantity), nan, self.bound
        first = Also("value", self.relation, measured[0]["bound"], self.quantity)
        every = ((row, each) for row in measured for each in self._requirements(row))
        failed = (each for row, each in every if holds is not True and not _met(row, each))
        decisive, worst = next(failed, first), _best if self.exists else _worst
        value = worst([float(row[decisive.column]) for row in measured], decisive)
        if isnan(value) and holds is not None:
            value = -inf if decisive.relation.startswith(">") else inf
        return decisive, value, decisive.bound

    def _literal(self, rows: list[Row]) -> Finding | None:
        one = self.literal
        there = [row for row in rows if one is not None and one.column in row]
        if one is None or not there:
            return None
        value = _worst([float(row[one.column]) for row in there], one)
        reason = "; ".join(dict.fromkeys(one.words.format(**row) for row in there))
        holds = all(_met(row, one) for row in there) or (None if one.open else False)
        missing = (one.open or "size",)
        return Finding(
            holds, one.quantity, value, one.bound, reason, relation=one.relation, missing=missing
        )

    def _plot(self, curves: list[Row], system: System, grid: Row) -> Row:
        picture = self.picture or Picture("", "")
        held = {name: value for name, value in grid.items() if not isinstance(value, list)}
        return {
            "x_label": picture.x, "y_label": picture.y,
            "x_scale": picture.scales[0], "y_scale": picture.scales[1],
            "curves": curves, "parameters": held,
            "lines": [{"label": label, "y": y} for label, y in picture.levels.items()],
            "letters": {name: system.notation.latex(name) for name in held},
        }  # fmt: skip


Decorator = Callable[[Callable[[Case], Mapping[str, Any]]], Experiment]


def claim(source: str, quantity: str, relation: str, bound: float = nan, **data: Any) -> Decorator:
    """Decorate ``measure(case)``, the measurement of one case, with the data of a claim.

    The measurement returns a row: ``value`` and the columns of the table. Optional keys of a row
    are ``bound`` (a bound that depends on the parameters), ``open`` (a key of
    `dynamics.verdicts.findings.MISSING`; a missed bound then leaves the case undecided),
    ``holds`` (the verdict, in place of the comparison with bounds), ``text`` (a sentence in place
    of ``words``), ``curves`` (label -> (x, y) or (x, y, errors)) and ``trained`` (runs of reduced
    populations, in place of the run of the case). The measurement raises `Undecided` if the case
    cannot be measured.

    `source`: name of the claim in its text, ``"Lemma 4.1"``; `quantity`: the measured value in
    words; `relation`, `bound`: the claimed inequality; `laws`, `thorough`: grid of parameters by
    name, and its extension by ``--thorough``, both replaced by parameters of the user, or None for
    one case without parameters, on networks trained on images; `family`: function from Parameters
    to the list of Parameters that replaces each law; `run`: function from a case to (problem, run),
    such as `flow_to` or `descent`; `require`: function that raises `Undecided` for parameters
    outside the hypothesis; `shown`: names of the parameters that the verdict prints; `seeds`:
    number of seeds by default and with ``--thorough``, one row each; `share`: whether the value is
    the share of decided rows that meet the bounds of ``also``; `exists`: whether one row that holds
    suffices; `in_part`: for an asymptotic hypothesis, whether the claim holds in part if only some
    rows hold; `growth`: the claimed power law, a Growth; `also`: further bounds, Also; `literal`:
    bound on the literal words, Literal; `varies`: settings tried at one value only, ``"step
    size"``, ``"seed"``, ``"time"``; `again`: whether a contradiction is repeated with other values
    of ``varies``, always or in thorough requests; `near_limit`: whether training is near the
    stability limit, so that the verdict is undecided if rounding changes it; `words`: format string
    with the columns of a row; `picture`: axes of the picture; `conclude`: last step (rows, finding)
    -> finding over all rows.
    """

    def decorate(measure: Callable[[Case], Mapping[str, Any]]) -> Experiment:
        return Experiment(measure, source, quantity, relation, bound, **data)

    return decorate


def checks_of(*modules: ModuleType) -> dict[str, Experiment]:
    """Checks that modules define, by the source of their claim."""
    every = [each for module in modules for each in vars(module).values()]
    return {each.source: each for each in every if isinstance(each, Experiment)}


def _grid_of(rows: Sequence[Row], names: Sequence[str]) -> Row:
    """Value of each parameter in the rows, or the list of its values if it varies."""
    every = {name: list(dict.fromkeys(_key(row[name]) for row in rows)) for name in names}
    return {name: values[0] if len(values) == 1 else values for name, values in every.items()}


def _key(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _plain(row: Row) -> Row:
    columns = {name: value for name, value in row.items() if name not in HIDDEN}
    return {n: v.item() if isinstance(v, np.generic) else v for n, v in columns.items()}


def _curves(rows: Sequence[Row]) -> list[Row]:
    """Curves of all rows; curves with the same label are joined."""
    curves: dict[str, Row] = {}
    for row in rows:
        for label, parts in row.get("curves", {}).items():
            curve = curves.setdefault(label, {"label": label})
            for name, part in zip(("x", "y", "errors"), parts, strict=False):
                curve.setdefault(name, []).extend(np.asarray(part).tolist())
    return list(curves.values())


def _met(row: Row, one: Also | Literal) -> bool:
    return bool(RELATIONS[one.relation](row[one.column], one.bound))


def _worst(values: Sequence[float], one: Also | Literal) -> float:
    """The worst of several values with respect to a bound; NaN if one of the values is NaN."""
    if any(isnan(value) for value in values):
        return nan
    if one.relation.startswith("<"):
        return max(values)
    if one.relation.startswith(">"):
        return min(values)
    return max(values, key=lambda value: abs(value - one.bound))


def _best(values: Sequence[float], one: Also) -> float:
    """Value that meets its bound by the largest margin."""
    known = [value for value in values if not isnan(value)] or [nan]
    return max(known) if one.relation.startswith(">") else min(known)
