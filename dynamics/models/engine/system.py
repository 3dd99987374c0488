"""A system made of a model: what commands and drivers expect, from its one file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamics.models.engine.definition import Definition, notation_of
from dynamics.models.engine.problem import ModelProblem
from dynamics.models.engine.sampled import BATCH, DTYPE
from dynamics.models.engine.square import FullEmpirical, FullPopulation, ReducedPopulation
from dynamics.models.engine.tracing import refusals
from dynamics.process_settings import end_as_usual
from dynamics.registry import DefaultRun, System, in_library
from dynamics.results.presentation import PlotDescription
from dynamics.validation import InvalidRequest
from theory.claims import Claim
from theory.events import Crossing, EventRule
from theory.law import ModelError
from theory.model import Model
from theory.model_file import read_model

if TYPE_CHECKING:
    from theory.page import Page

EMPIRICAL_SAMPLES = 1000
PROBLEMS: Mapping[str, type[ModelProblem]] = {
    "ReducedPopulation": ReducedPopulation,
    "FullPopulation": FullPopulation,
    "FullEmpirical": FullEmpirical,
}


def load(path: str | os.PathLike[str]) -> System:
    """The system of a model file.

    Raises
    ------
    InvalidRequest
        If the file holds no model, or cannot be run; in one line.
    """
    end_as_usual()
    with refusals():
        model = read_model(Path(path))
    return system_of(model)


def system_of(model: Model) -> System:
    """The system of a model.

    Raises
    ------
    InvalidRequest
        If its claims are none.
    """
    definition = Definition(model)
    with refusals():
        claims, checks = _claims(model)
        named = tuple(model.table("names", model.constants))
        events = _rules_by_name(model)
    kinds = {
        name: type(
            name,
            (kind,),
            {
                "definition": definition, "system": model.name, "events": events,
                "__doc__": kind.__doc__, "__module__": kind.__module__,
            },
        )
        for name, kind in PROBLEMS.items()
    }  # fmt: skip
    draws = model.law is None and model.can_be_drawn and model.risk is None
    return System(
        name=model.name,
        title=model.title or model.name,
        notation=notation_of(model, named, ()),
        claims=claims,
        derivation=_page_of(definition, "page"),
        defining=_page_of(definition, "defining"),
        derivations=lambda parameters=None: {},
        Parameters=definition.Parameters,
        **kinds,  # type: ignore[arg-type]
        default_runs={
            "run": DefaultRun({}, model.eta, model.steps),
            "compare": DefaultRun({}, model.eta, model.steps),
            "empirical": DefaultRun({}, model.eta, model.steps, EMPIRICAL_SAMPLES),
        },
        expectations=(),
        empirical_options=_empirical_options(model),
        plot_description=PlotDescription(overlaid=(*named[:4], "risk")),
        cost_model=_seconds,
        sampling_options=("samples", "seed") if draws else (),
        origin=definition.origin,
        model=model,
        checks=checks,
        reduced_options=("coordinates",),
        full_options=("coordinates",),
        closure=definition.closure,
        expressions=lambda parameters=None: _expressions(definition, parameters),
    )


def _empirical_options(model: Model) -> dict[str, str]:
    """Options of `FullEmpirical` -> their meaning; ``start`` where the file has ``starts``."""
    starts = {"start": f"declared (default), {', '.join(model.starts)}"} if model.starts else {}
    usual = " and 0 for another start" if starts else ""
    return starts | {
        "omega": f"standard deviation of noise on every entry of the start (default 1e-3{usual})",
        "batch": BATCH,
        "dtype": DTYPE,
        "test_samples": "fresh samples, of which records report test_risk (default: none)",
    }


def _page_of(definition: Definition, name: str) -> Callable[..., Page]:
    def made(parameters: Any = None, eta: Any = None, **options: Any) -> Page:
        """A page at some parameters, by a function of `dynamics.models.engine.derivation`."""
        from dynamics.models.engine import derivation

        selected = definition.Parameters() if parameters is None else parameters
        rates = definition.reduction(selected)[0].rates(eta)
        return getattr(derivation, name)(definition, selected, rates, **options)

    return made


def _expressions(definition: Definition, parameters: Any) -> Any:
    """Risk and recursion of a model; sympy is loaded here."""
    from dynamics.models.engine.expressions import expressions_of

    return expressions_of(definition, parameters)


def _seconds(parameters: Any, full: str | None, options: Mapping[str, Any]) -> float:
    """Predicted cost of a gradient: larger whole numbers first."""
    sizes = [v for v in vars(parameters).values() if isinstance(v, int) and v > 0]
    return 1e-6 * float(max(sizes, default=1)) ** 2 * (100.0 if full else 1.0)


def _rules_by_name(model: Model) -> tuple[EventRule, ...]:
    """The events by name alone, for a system without a problem."""
    import sympy

    one = sympy.Integer(1)
    table = model.table("events", model.constants)
    return tuple(Crossing(str(n), str(text), "", one) for n, text in table.items())


def _claims(model: Model) -> tuple[tuple[Claim, ...], dict[str, Callable[..., Any]] | None]:
    """The claims of a model file, and the functions that check them; None for the library's own."""
    claims_of_model = model.claims
    if claims_of_model is None:
        return (), {}
    if in_library(model.path) and isinstance(claims_of_model, Mapping):
        stated = claims_of_model.items()
        return tuple(
            Claim(*item, "the law of the model file", "its check") for item in stated
        ), None
    items = (
        claims_of_model.items()
        if isinstance(claims_of_model, Mapping)
        else [(None, f) for f in claims_of_model]
    )
    checks: dict[str, Callable[..., Any]] = {}
    claims = []
    for name, function in items:
        if not callable(function):
            raise ModelError(f"claims: {function!r} is no function (system, protocol) -> Finding")
        name_of_check = getattr(function, "__name__", type(function).__name__)
        source = str(name or name_of_check.replace("_", " "))
        statement = " ".join((function.__doc__ or source).split())
        checks[source] = _guarded(function, model)
        claims.append(Claim(source, statement, "stated in the model file", "its own check"))
    return tuple(claims), checks


def _guarded(function: Callable[..., Any], model: Model) -> Callable[..., Any]:
    """A check whose errors are one line, and which must give a Finding."""
    name_of_check = getattr(function, "__name__", type(function).__name__)

    def check(system: Any, protocol: Any) -> Any:
        with refusals(), model.blamed(f"claim {name_of_check}"):
            finding = function(system, protocol)
        if not all(hasattr(finding, name) for name in ("holds", "measured", "bound", "reason")):
            raise InvalidRequest(
                f"claim {name_of_check} gives {type(finding).__name__}, not a Finding"
            )
        return finding

    return check
