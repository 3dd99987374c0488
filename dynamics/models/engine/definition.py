"""Definition of a model: checked constants, notation table, plot panels, cached realizations."""

from __future__ import annotations

import dataclasses
import re
from collections import UserDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from pickle import PicklingError
from typing import Any

from pydantic.dataclasses import dataclass as checked_dataclass

from dynamics.models.engine.closing import ClosedModel
from dynamics.models.engine.declaration import Declaration
from dynamics.models.engine.fingerprint import digests
from dynamics.models.engine.limits import parse_limits
from dynamics.models.engine.realization import Realization
from dynamics.models.engine.tracing import refusals
from dynamics.parameter_fields import STRICT, check_parameters, number, refusing, whole
from dynamics.presentation import (
    LOOKS,
    Origin,
    Panel,
    PlotDescription,
    Presentation,
    conditions,
)
from dynamics.results.formulas import plain_text
from dynamics.validation import NEGATIVE, integer
from theory.closure import Closure
from theory.closure.regime import PLAIN, Regime
from theory.events import EventRule
from theory.law import ModelError
from theory.model import HELD_OUT, Model
from theory.notation import GREEK, Notation, latex_of
from theory.update_rules import UpdateRule, own_rule


def notation_of(
    model: Model,
    scalars: tuple[str, ...],
    observables: tuple[str, ...],
    arrays: Iterable[str] = (),
) -> Notation:
    """Notation table of a model: symbol and meaning of constants, scalars, rates, observables."""
    kinds = {name: f"constant of {_users(model, name)}" for name in model.constants}
    kinds |= dict.fromkeys(scalars, "scalar of the reduction")
    kinds |= dict.fromkeys(observables, "observable of the model")
    rows = {
        name: (
            name,
            GREEK.get(name, name),
            latex_of(name, arrays if name in scalars else ()),
            plain_text(model.meaning(name)) or kind,
        )
        for name, kind in kinds.items()
    }
    for name in (*scalars, *observables):
        rate, latex = f"d_{name}", rf"\dot{{{rows[name][2]}}}"
        rows[rate] = rate, rate, latex, f"rate of {name}, per unit of time"
    rows["risk"] = "risk", "R", "R", "population risk"
    outside = "largest distance from the closed space"
    rows["outside"] = "outside", "outside", r"\mathrm{outside}", outside
    return Notation(model.source or model.title or model.name, rows.values())


def _users(model: Model, constant: str) -> str:
    """Names of the functions of a model that take a constant, joined by "and"."""
    roles = [role for role, names in model.arguments.items() if constant in names]
    return " and ".join(filter(None, [", ".join(roles[:-1]), roles[-1]]))


HELD_OUT_RISK = f"{HELD_OUT}risk"
MOST_PANELS = 5
"""Without `panels` in the model file, a plot has at most this number of panels of scalars."""


def plot_description(
    model: Model, scalars: Sequence[str], observables: Sequence[str], events: Sequence[str]
) -> PlotDescription:
    """Panels of a model's plot, and the label of each event.

    `model.panels` has a tuple of names for each panel. The prefix ``log``, as in ``"log risk"``,
    makes the axis of the panel logarithmic. Without `panels`, scalars with similar names share a
    panel. Raises ModelError if a panel names neither a scalar nor an observable nor ``risk``.
    """
    allowed = [*scalars, *observables, "risk"]
    if model.panels:
        panels = [_panel(entry, allowed) for entry in model.panels]
    else:
        panels = [_numbered(names) for names in _together(scalars)[:MOST_PANELS]]
        risks = [("risk", 5), (HELD_OUT_RISK, 1)][: 1 + (HELD_OUT_RISK in observables)]
        others = [name for name in observables if name != HELD_OUT_RISK]
        panels += [_numbered(names) for names in _together(others)[:2]]
        panels.append(Panel(tuple(risks), logarithmic=True))
    drawn = {name for panel in panels for name in panel.names}
    return PlotDescription(
        omission="" if model.panels else _omission(drawn, scalars, observables),
        panels=tuple(panels),
        marks={name: _mark(name) for name in events},
        overlaid=(*scalars[:4], "risk"),
    )


def _omission(drawn: set[str], scalars: Sequence[str], observables: Sequence[str]) -> str:
    """Numbers of scalars and observables that the panels show, as text; empty if they show all."""
    kinds = {"scalars": scalars, "observables": observables}
    parts = [
        f"{len(drawn.intersection(names))} of {len(names)} {kind}"
        for kind, names in kinds.items()
        if not drawn.issuperset(names)
    ]
    return f"shown: {', '.join(parts)}" if parts else ""


def _mark(event: str) -> str:
    """Label of an event in a plot: a formula for a name like ``T_v``, else the name itself."""
    return f"${latex_of(event)}$" if "_" in event else event


def _together(names: Sequence[str]) -> list[list[str]]:
    """Names of at most `LOOKS` curves a panel; a longer list is first split by initial letters."""
    groups: dict[str, list[str]] = {}
    for name in names:
        letters = re.match(r"[A-Za-z]*", name)
        groups.setdefault(letters[0] if letters and len(names) > LOOKS else "", []).append(name)
    return [group[k : k + LOOKS] for group in groups.values() for k in range(0, len(group), LOOKS)]


def _numbered(names: Sequence[str], logarithmic: bool = False) -> Panel:
    return Panel(tuple((name, k % LOOKS) for k, name in enumerate(names)), logarithmic)


def _panel(entry: object, allowed: Sequence[str]) -> Panel:
    names = [entry] if isinstance(entry, str) else entry
    if not isinstance(names, (tuple, list)) or not names:
        raise ModelError(f"panels: {entry!r} is not a panel; a panel is a tuple of names")
    logarithmic, words = False, []
    for name in names:
        word = str(name)
        if word.startswith("log "):
            logarithmic, word = True, word[4:].strip()
        if word not in allowed:
            raise ModelError(f"panels: {word!r} is unknown; known are {', '.join(allowed[:20])}")
        words.append(word)
    return _numbered(words, logarithmic)


Constants = tuple[tuple[str, Any], ...]
CACHED = 6
"""Maximum number of realizations (a model at one set of constants) kept in memory."""
DRAWS = 4000
"""Default number of draws from a law that can only be sampled."""


class Digests(UserDict[str, str]):
    """Mapping of the parts of a model to short hashes, computed on first access."""

    def __init__(self, compute: Callable[[], dict[str, str]]) -> None:
        self._compute = compute

    @cached_property
    def data(self) -> dict[str, str]:  # type: ignore[override]
        """Name of each part of the model -> short hash of the part."""
        return self._compute()

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


class Definition:
    """A model with its class of parameters, and its cached realizations at any constants.

    Unpickling calls the function `again`, which loads a model file and rebuilds a part of its
    system.
    """

    def __init__(self, model: Model, again: Callable[..., Any]) -> None:
        self.model, self._again = model, again
        self.name = model.name
        with refusals():
            self.Parameters = parameters_of(model, self.pickled)
        held = model.held_at or {}
        self.digests = Digests(lambda: digests(self.realization(self.Parameters(**held))))
        self.declaration = None
        if model.reduced is not None:
            self.declaration = Declaration(
                model, lambda constants: self.realization(self.Parameters(**constants))
            )
        self._made = lru_cache(CACHED)(self._new)
        self._declared = lru_cache(CACHED)(self._newly_declared)

    def _new(self, constants: Constants, count: int, seed: int) -> ClosedModel:
        return ClosedModel(self.model, dict(constants), count, seed)

    def _newly_declared(self, constants: Constants, regime: Regime) -> tuple[Realization, Closure]:
        assert self.declaration is not None
        return self.declaration.at(dict(constants), regime)

    def pickled(
        self, name: str, arguments: tuple[Any, ...], options: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        """Value of ``__reduce__`` for a part of the system; unpickling reads the model file."""
        if self.model.path is None:
            raise PicklingError(f"{self.name} has no model file, so another process cannot load it")
        return self._again, (str(self.model.path), name, arguments, options)

    @property
    def origin(self) -> Origin:
        """Path of the model file, and the hashes of the model's parts."""
        path = "" if self.model.path is None else str(self.model.path)
        return Origin(path, self.digests)

    def realization(self, parameters: Any, samples: Any = None, seed: Any = 0) -> ClosedModel:
        """Realized model at some parameters; equal arguments give the same object.

        `samples` and `seed` set the draws of a law that can only be sampled. Raises InvalidRequest
        if a function of the model fails at these parameters.
        """
        check_parameters(parameters, self.Parameters, self.name)
        count = 0
        if self.model.only_drawn:
            usual = DRAWS if samples is None else samples
            count = integer("samples", usual, at_least=1, at_most=10**8)
        seed = integer("seed", seed, at_least=0, at_most=2**63 - 1) if count else 0
        return self._made(tuple(dataclasses.asdict(parameters).items()), count, seed)

    def reduction(
        self, parameters: Any, samples: Any = None, seed: Any = 0, regime: Regime = PLAIN
    ) -> tuple[Realization, Closure]:
        """Realized model that the reduced problem trains, and its closure.

        For a declared reduction, the entries of the realized model are the declared scalars. Raises
        InvalidRequest if the declared gradient differs from the gradient of every entry.
        """
        if self.declaration is None:
            made = self.realization(parameters, samples, seed)
            return made, made.closure_under(regime)
        check_parameters(parameters, self.Parameters, self.name)
        return self._declared(tuple(dataclasses.asdict(parameters).items()), regime)

    def closure(
        self, parameters: Any = None, samples: Any = None, seed: Any = 0, regime: Regime = PLAIN
    ) -> Closure:
        """Closure of training at some parameters; see `theory.closure.Closure`."""
        selected = self.Parameters() if parameters is None else parameters
        if self.declaration is None:
            return self.realization(selected, samples, seed).closure_under(regime)
        check_parameters(selected, self.Parameters, self.name)
        return self.declaration.closure(dataclasses.asdict(selected), regime)

    def own_rule(self, constants: Mapping[str, Any]) -> UpdateRule | None:
        """Update rule made from the function ``step`` of the model, or None without a ``step``."""
        if self.model.step is None:
            return None
        with refusals(), self.model.blamed("step"):
            return own_rule(self.model.step, constants)

    def presentation(
        self,
        scalars: tuple[str, ...],
        observables: tuple[str, ...],
        frozen: tuple[str, ...],
        events: tuple[EventRule, ...],
        arrays: Iterable[str] = (),
    ) -> Presentation:
        """Notation, plot panels and events of a problem.

        `frozen` names entries that never move; they appear only in panels of the model file.
        """
        with refusals():
            notation = notation_of(self.model, scalars, (*observables, *frozen), arrays)
            reported = (*observables, *frozen) if self.model.panels else observables
            plot = plot_description(self.model, scalars, reported, [rule.name for rule in events])
        return Presentation(
            self.model.title or self.name, notation, plot, conditions(events), self.origin
        )


def parameters_of(model: Model, pickled: Callable[..., tuple[Any, ...]]) -> type[Any]:
    """Frozen dataclass of a model's constants, checked against the limits of the model file."""
    kinds = {bool: bool, int: whole(NEGATIVE, at_most=2**63 - 1), float: number(), str: str}
    fields: list[Any] = []
    for name, default in model.constants.items():
        kind = kinds.get(type(default), number(optional=True))
        fields.append((name, kind, dataclasses.field(default=default)))
    limits = parse_limits(model.limits or (), model.constants)

    def check(constants: Mapping[str, Any]) -> None:
        for limit in limits:
            limit.check(model.name, constants)

    def check_own(self: Any) -> None:
        check({name: getattr(self, name) for name in model.constants})

    namespace = {
        "__doc__": f"Constants of {model.name}.", "__post_init__": check_own,
        "__reduce__": lambda self: pickled("Parameters", (), dataclasses.asdict(self)),
    }  # fmt: skip
    plain = dataclasses.make_dataclass(
        "Parameters", fields, namespace=namespace, frozen=True, kw_only=True
    )
    check(model.constants)
    return refusing(checked_dataclass(plain, config=STRICT, frozen=True, kw_only=True))
