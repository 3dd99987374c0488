"""What a check works with: the request, and the table, the curves and the bounds of its verdict.

A check is a function ``check(study) -> Finding`` decorated with what it `measures`. It fills the
table and the curves of the `Study` run by run and ends with ``study.conclude(value, reason)``: the
measured value, the evidence and the picture of the verdict all come from the study.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, wraps
from math import inf, isnan, nan
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from dynamics.verdicts.findings import RELATIONS, Check, Finding, Protocol, Undecided
from dynamics.verdicts.rules import Repeat, repeats
from dynamics.verdicts.wording import listed

if TYPE_CHECKING:
    from dynamics.results.trajectory import Trajectory
    from dynamics.system import System

Result = TypeVar("Result")

TIME = r"time $\tau = \eta \times$ steps"
LINEAR = ("linear", "linear")
"""Scales of both axes of a picture."""


class Measurement(NamedTuple):
    """A number and what a claim says of it.

    Attributes
    ----------
    quantity : str
        What is measured, in words.
    value : float
        NaN where it has no value: it meets no bound and counts as infinitely far from it.
    relation : str
        ``"<"``, ``"<="``, ``"=="``, ``">="`` or ``">"``, to be read between value and bound.
    bound : float
    """

    quantity: str
    value: float
    relation: str
    bound: float

    @property
    def met(self) -> bool:
        """Whether the value has the relation to the bound."""
        return bool(RELATIONS[self.relation](self.value, self.bound))


@dataclass(frozen=True)
class Case:
    """A problem at some parameters, and its training run.

    Attributes
    ----------
    parameters : Parameters
    problem : Problem
    run : Trajectory
    """

    parameters: Any
    problem: Any
    run: Trajectory


class Study:
    """What a check works with, and what its verdict is made of.

    Attributes
    ----------
    system : System
    parameters : object or None
        The user's; None for those of the protocol of the claim.
    thorough : bool
        More sizes and seeds.
    seed : int
        Of everything random.
    quantity, relation, bound : str, str, float
        Of the first `Measurement`.
    require : function or None
        Screens parameters by the claim's hypothesis, as of `measures`.
    repeat : Repeat
        How this run of the check differs from the first, where it is made again.
    single : tuple of str
        Of what only one is tried (`dynamics.verdicts.rules.REPEATED`).
    literal : Finding or None
        What was measured of the literal words, where the claim is read in another way.
    rows : list of dict
        The table of the evidence.
    curves : list of dict
        ``label``, ``x`` and ``y`` of every curve in the picture of the verdict.
    plot : dict or None
        That picture, as `dynamics.plotting.evidence` draws it.
    """

    def __init__(
        self, system: System, protocol: Protocol, quantity: str, relation: str, bound: float
    ) -> None:
        self.system, self.parameters = system, protocol.parameters
        self.thorough, self.seed = protocol.thorough, protocol.seed
        self.quantity, self.relation, self.bound = quantity, relation, bound
        self.require: Callable[[Any], None] | None = None
        self.repeat = Repeat()
        self.single: tuple[str, ...] = ()
        self.literal: Finding | None = None
        self.rows: list[dict[str, Any]] = []
        self.curves: list[dict[str, Any]] = []
        self.plot: dict[str, Any] | None = None
        self._used: list[Any] = []

    def laws(self, *default: Mapping[str, Any]) -> list[Any]:
        """The user's parameters alone, or those of the check, from values by name.

        Raises
        ------
        Undecided
            Where they do not meet the hypothesis of the claim, whosever they are.
        """
        if self.parameters is not None:
            self._used = [self.parameters]
            return [self.parameters]
        laws = [self.system.Parameters(**values) for values in default]
        self._used, require = laws, self.require
        if require is not None:
            for law in laws:
                require(law)
        return laws

    def law(self, **default: Any) -> Any:
        """The user's parameters, or those of the check by name."""
        return self.laws(default)[0]

    def rate(self, eta: float) -> float:
        """The learning rate of a check, or the part of it at which the check is made again."""
        return eta * self.repeat.eta_factor

    def horizon(self, steps: int) -> int:
        """The steps of a check, or as many as the time of a check that is made again takes."""
        return round(steps * self.repeat.time_factor / self.repeat.eta_factor)

    def seeds(self, few: int, many: int) -> range:
        """Seeds from that of the request on.

        Parameters
        ----------
        few, many : int
            How many, by default and where the request is thorough.
        """
        return range(self.seed, self.seed + (many if self.thorough else few))

    def row(self, sizes: Mapping[str, Any], **values: Any) -> None:
        """Add a row to the table: the sizes of a case, then what was measured there."""
        self.rows.append({**sizes, **values})

    def column(self, name: str) -> list[Any]:
        """One column of the table."""
        return [row[name] for row in self.rows]

    def listed(self, name: str, digits: int = 3) -> str:
        """Numbers of one column, separated by commas.

        Parameters
        ----------
        name : str
        digits : int
            Significant digits.
        """
        return listed(self.column(name), digits)

    def words(self, template: str, separator: str = ", ") -> str:
        """Every row of the table in words.

        Parameters
        ----------
        template : str
            A format string with the names of columns: ``"{error:.2g} (D={D})"``.
        separator : str
        """
        return separator.join(template.format(**row) for row in self.rows)

    def curve(
        self, label: str, x: ArrayLike, y: ArrayLike, errors: ArrayLike | None = None
    ) -> None:
        """Add a curve to the picture.

        Parameters
        ----------
        label : str
        x, y : float array, shape (n,)
        errors : float array, shape (n,), optional
            Standard error of each y, which the picture shows as bars.
        """
        points = {"x": np.asarray(x).tolist(), "y": np.asarray(y).tolist()}
        if errors is not None:
            points["errors"] = np.asarray(errors).tolist()
        self.curves.append({"label": label, **points})

    def draw(
        self,
        x_label: str,
        y_label: str,
        levels: Mapping[str, float] | None = None,
        x_scale: str = "log",
        y_scale: str = "log",
    ) -> None:
        """Make the picture of the curves.

        Parameters
        ----------
        x_label, y_label : str
        levels : mapping, optional
            Label -> y of a horizontal line.
        x_scale, y_scale : str
            ``"linear"``, ``"log"`` or ``"symlog"``.
        """
        self.plot = {
            "x_label": x_label,
            "y_label": y_label,
            "x_scale": x_scale,
            "y_scale": y_scale,
            "curves": self.curves,
            "lines": [{"label": label, "y": y} for label, y in (levels or {}).items()],
        }

    def met(self, value: float) -> bool:
        """Whether a value meets the bound of the claim."""
        return Measurement(self.quantity, value, self.relation, self.bound).met

    def conclude(
        self,
        value: float,
        reason: str,
        *also: Measurement,
        holds: Literal["as measured"] | bool | None = "as measured",
        may_still_come: bool = False,
        missing: str | None = None,
        **evidence: Any,
    ) -> Finding:
        """The finding: every measurement must meet its bound.

        It shows the first measurement that does not meet its bound, else the first of all.

        Parameters
        ----------
        value : float
            Of the quantity of the check.
        reason : str
            Why the verdict is what it is, with the numbers that matter.
        *also : Measurement
            Other ones.
        holds : bool or None, optional
            The verdict where the bounds alone do not decide it; None where nothing is decided. The
            finding is of the first measurement then, and its reason names those of the others that
            do not meet their bounds.
        may_still_come : bool
            A bound that is not met may be met where what is missing is there: nothing is decided.
        missing : str, optional
            What that is, a name from `dynamics.verdicts.findings.MISSING`: by default the time of
            what may still come, else the size.
        **evidence
            Plain values (JSON), such as ``parameters``, beside the table.
        """
        every = [Measurement(self.quantity, value, self.relation, self.bound), *also]
        decisive, measured = every[0], float(value)
        if holds == "as measured":
            failed = [measurement for measurement in every if not measurement.met]
            decisive = (failed or every)[0]
            holds = None if failed and may_still_come else not failed
            measured = float(decisive.value)
            if isnan(measured):
                measured = -inf if decisive.relation.startswith(">") else inf
        else:
            for each in also:
                if not each.met:
                    unmet = f"{each.quantity} is {each.value:.3g}, claimed {each.relation}"
                    reason += f"; {unmet} {each.bound:.3g}"
        if self.rows:
            evidence.setdefault("table", self.rows)
        if self.plot is not None:
            evidence["plot"] = self.plot | self._held(evidence.get("parameters", {}))
        return Finding(
            holds, decisive.quantity, measured, decisive.bound, reason, evidence,
            relation=decisive.relation, single=self.single, literal=self.literal,
            missing=(missing or ("time" if may_still_come else "size"),),
        )  # fmt: skip

    def _held(self, evidence: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters that all cases share, or numbers among those of the evidence; their LaTeX."""
        every = [asdict(law) for law in self._used] or [dict(evidence)]
        held = {
            name: value
            for name, value in every[0].items()
            if isinstance(value, (str, float, int)) and all(law[name] == value for law in every)
        }
        if not held:
            return {}
        letters = {name: self.system.notation.latex(name) for name in held}
        return {"parameters": held, "letters": letters}


def measures(
    quantity: str,
    relation: str,
    bound: float = nan,
    require: Callable[[Any], None] | None = None,
    single: tuple[str, ...] = (),
    again: bool | Literal["thorough"] = False,
) -> Callable[[Callable[[Study], Finding]], Check]:
    """Decorate ``check(study)`` with the quantity that it measures.

    Where the check raises `Undecided`, its finding is undecided.

    Parameters
    ----------
    quantity, relation, bound : str, str, float
        As of a `Measurement`. A bound that follows from the parameters is set by the check:
        ``study.bound = ...``.
    require : function, optional
        Raises `Undecided` for parameters that do not meet the claim's hypothesis, the user's or
        those of the protocol.
    single : tuple of str
        Of what only one is tried (`dynamics.verdicts.rules.REPEATED`); a check that tries
        several sets ``study.single``.
    again : bool or "thorough"
        A finding that contradicts the claim and has something ``single`` is measured again, with
        another `Study.repeat` each time, until one does not contradict it; always, or where the
        request is thorough. The check takes its learning rates from `Study.rate`, its steps from
        `Study.horizon` and its seeds from the study.
    """

    def decorate(check: Callable[[Study], Finding]) -> Check:
        def once(system: System, protocol: Protocol, repeat: Repeat) -> Finding:
            protocol = replace(protocol, seed=protocol.seed + repeat.seed)
            study = Study(system, protocol, quantity, relation, bound)
            study.require, study.single, study.repeat = require, single, repeat
            try:
                if require is not None and protocol.parameters is not None:
                    require(protocol.parameters)
                return check(study)
            except Undecided as refusal:
                evidence = refusal.evidence
                missing = (refusal.missing,)
                return Finding(
                    None, quantity, nan, study.bound, str(refusal), evidence, missing=missing
                )

        @wraps(check)
        def decorated(system: System, protocol: Protocol) -> Finding:
            finding = once(system, protocol, Repeat())
            repeated = again is True or bool(again and protocol.thorough)
            if not repeated or finding.holds is not False or not finding.single:
                return finding
            words = []
            for repeat in repeats(*finding.single):
                other = once(system, protocol, repeat)
                words.append(f"{repeat}: {other.measured:.4g}")
                if other.holds is not False:
                    break
            else:
                finding = replace(finding, single=())
            return replace(finding, reason=f"{finding.reason}; again with {', '.join(words)}")

        decorated.__dict__["screened"] = require is not None
        return decorated

    return decorate


def either(by_default: Check, at_parameters: Check) -> Check:
    """One check by default, another one at parameters of the user.

    Parameters
    ----------
    by_default, at_parameters : function
        ``(system, protocol) -> Finding``, as `measures` makes them.
    """

    def check(system: System, protocol: Protocol) -> Finding:
        return (by_default if protocol.parameters is None else at_parameters)(system, protocol)

    return check


def computed_once(
    size: int, problem: str = "ReducedPopulation"
) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Decorate ``run(make, ...)`` so that checks share runs: call it with a system for ``make``.

    Parameters
    ----------
    size : int
        How many results are cached, the last ones.
    problem : str
        Which problem of that system ``make`` is.
    """

    def decorate(run: Callable[..., Result]) -> Callable[..., Result]:
        cached = lru_cache(maxsize=size)(run)

        @wraps(run)
        def of_system(system: System, *arguments: Any, **options: Any) -> Result:
            return cached(getattr(system, problem), *arguments, **options)

        return of_system

    return decorate
