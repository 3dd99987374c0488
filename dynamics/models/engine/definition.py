"""A model with what is made of it once: its parameters, its fingerprint, its realizations."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

from pydantic.dataclasses import dataclass as checked_dataclass

from dynamics.models.engine.fingerprint import digests
from dynamics.models.engine.letters import notation_of
from dynamics.models.engine.panels import plot_description
from dynamics.models.engine.realization import Realization, Walk
from dynamics.models.engine.tracing_errors import refusals
from dynamics.results.presentation import Origin, Presentation, conditions
from dynamics.validation import STRICT, InvalidRequest, integer, learning_rate, number, whole
from theory.events import EventRule
from theory.model import Model

KEPT = 6
"""Realizations that are kept: points of a sweep come and go."""
DRAWS = 4000
"""Samples of a law that can only be drawn from, where no number is given."""
MOST_STEPS = 10**12


class Digests(Mapping[str, str]):
    """Part of a model -> short hash, computed when it is first looked at."""

    def __init__(self, compute: Callable[[], dict[str, str]]) -> None:
        self._compute = compute

    @cached_property
    def _values(self) -> dict[str, str]:
        return self._compute()

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class Definition:
    """A model, ready to be realized at any constants.

    Parameters
    ----------
    model : Model
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.name = model.name
        self.Parameters = parameters_of(model)
        self.digests = Digests(lambda: digests(self.realization(self.Parameters())))
        self._made: OrderedDict[Any, Realization] = OrderedDict()

    @property
    def origin(self) -> Origin:
        """Where the model is, and its fingerprint."""
        path = "" if self.model.path is None else str(self.model.path)
        return Origin(path, self.digests)

    def realization(self, parameters: Any, samples: Any = None, seed: Any = 0) -> Realization:
        """The model at some parameters; the same object for the same ones.

        Raises
        ------
        InvalidRequest
            In one line, for anything that is wrong with the model there.
        """
        if not isinstance(parameters, self.Parameters):
            raise InvalidRequest(
                f"parameters={type(parameters).__name__} are not of {self.name}; make them by "
                "system.Parameters(...)"
            )
        constants = dataclasses.asdict(parameters)
        count = 0
        if self.model.law is None and self.model.sample is not None and self.model.risk is None:
            usual = DRAWS if samples is None else samples
            count = integer("samples", usual, at_least=1, at_most=10**8)
        seed = integer("seed", seed, at_least=0, at_most=2**63 - 1) if count else 0
        key = (tuple(constants.items()), count, seed)
        if key not in self._made:
            made = Realization(self.model, constants, count, seed)
            self._made[key] = made
            while len(self._made) > KEPT:
                self._made.popitem(last=False)
        self._made.move_to_end(key)
        return self._made[key]

    def walk(self, eta: Any = None, steps: Any = None) -> Walk:
        """The run along which a closure is looked at; the model's own settings by default."""
        rates = learning_rate(self.model.eta if eta is None else eta, None)
        steps = self.model.steps if steps is None else steps
        return Walk(rates, integer("steps", steps, at_least=1, at_most=MOST_STEPS))

    def presentation(
        self, scalars: tuple[str, ...], made: Realization, events: tuple[EventRule, ...]
    ) -> Presentation:
        """Letters, panels and events of a problem."""
        seen = made.seen_names
        with refusals():
            notation = notation_of(self.model, scalars, seen)
            plot = plot_description(self.model, scalars, seen, [rule.name for rule in events])
        return Presentation(
            self.model.title or self.name, notation, plot, conditions(events), self.origin
        )


def parameters_of(model: Model) -> type[Any]:
    """The frozen, validated type of a model's constants."""
    fields: list[Any] = []
    for name, default in model.constants.items():
        if isinstance(default, bool):
            kind: Any = bool
        elif isinstance(default, int):
            kind = whole(-(2**31))
        elif isinstance(default, float):
            kind = number()
        elif isinstance(default, str):
            kind = str
        else:
            kind = number(optional=True)
        fields.append((name, kind, dataclasses.field(default=default)))
    plain = dataclasses.make_dataclass(
        "Parameters", fields, namespace={"__doc__": f"Constants of {model.name}."},
        frozen=True, kw_only=True,
    )  # fmt: skip
    return checked_dataclass(plain, config=STRICT, frozen=True, kw_only=True)
