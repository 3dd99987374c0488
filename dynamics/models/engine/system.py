"""System of a model file: its problems, derivation, claims and default runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamics.default_runs import DefaultRun
from dynamics.library import in_library
from dynamics.models.engine.definition import Definition, notation_of
from dynamics.models.engine.sampled import BATCH, DTYPE
from dynamics.models.engine.square import FullEmpirical, FullPopulation, ReducedPopulation
from dynamics.models.engine.tracing import refusals
from dynamics.presentation import PlotDescription, Presentation, conditions
from dynamics.system import Derivation, System
from dynamics.validation import NEAR, InvalidRequest, path_of, refuse
from theory.claims import Claim, read_claims
from theory.closure import Closure
from theory.events import Crossing, EventRule
from theory.law import ModelError
from theory.model import Model
from theory.model_file import imports_are_unchanged, read_model
from theory.update_rules import GD, UpdateRule

if TYPE_CHECKING:
    from theory.page import Page

EMPIRICAL_SAMPLES = 1000
_FILES: dict[tuple[str, int, int], System] = {}
"""Path, modification time and size of a model file -> system of the file."""


def load(source: str | os.PathLike[str], anew: bool = False) -> System:
    """Load the system of a model file; cached until the file or its imports change.

    With `anew`, the cache is ignored. Raises InvalidRequest if the file is missing, contains no
    model, or cannot be run.
    """
    path = os.path.abspath(path_of("system", source))
    try:
        status = os.stat(path)
    except OSError as error:
        beside = Path(path).parent
        files = [p.name for p in beside.glob("*.py")] if beside.is_dir() else []
        near = get_close_matches(Path(path).name, files, 1, NEAR) or ["the path of a file"]
        missing = isinstance(error, FileNotFoundError)
        why = "is missing" if missing else f"cannot be read ({str(error.strerror).lower()})"
        refuse("system", source, why, "a model file or a name", near[0])
    key = (path, status.st_mtime_ns, status.st_size)
    if anew or key not in _FILES or not imports_are_unchanged(_FILES[key].model):
        with refusals():
            model = read_model(Path(path))
        _FILES[key] = system_of(model)
    return _FILES[key]


def _part(path: str, name: str, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    """Call a named part of the system of a model file; pickles refer to this function."""
    return getattr(load(path), name)(*arguments, **options)


def system_of(model: Model) -> System:
    """System made from a model; raises InvalidRequest if the model's claims are invalid."""
    definition = Definition(model, _part)
    with refusals():
        claims = _claims(model)
        named = tuple(model.table("names", model.constants))
        events = _rules_by_name(model)
    attributes = {
        "definition": definition, "system": model.name, "events": events,
        "sampling_options": ("samples", "seed") if model.only_drawn else (),
        "options": _empirical_options(model),
    }  # fmt: skip
    kinds: dict[str, Any] = {
        kind.__name__: type(
            kind.__name__,
            (kind,),
            {**attributes, "__doc__": kind.__doc__, "__module__": kind.__module__},
        )
        for kind in (ReducedPopulation, FullPopulation, FullEmpirical)
    }
    presentation = Presentation(
        title=model.title or model.name,
        notation=notation_of(model, named, ()),
        plot=PlotDescription(overlaid=(*named[:4], "risk")),
        event_latex=conditions(events),
        origin=definition.origin,
    )
    own_rule = model.rule or ("step" if model.step else "gd")
    return System(
        name=model.name,
        presentation=presentation,
        claims=claims,
        derivation=FileDerivation(definition),
        Parameters=definition.Parameters,
        **kinds,
        default_runs={
            name: DefaultRun(
                {},
                model.eta,
                model.steps,
                samples,
                rule=own_rule,
                schedule=model.schedule,
                stages=model.stages,
            )
            for name, samples in (("run", 0), ("compare", 0), ("empirical", EMPIRICAL_SAMPLES))
        },
        model=model,
    )


class FileDerivation(Derivation):
    """Derivation of a model file, with its pages, closure and expressions."""

    def __init__(self, definition: Definition) -> None:
        super().__init__(partial(self._page, "page"))
        self._definition = definition

    def _page(self, name: str, parameters: Any = None, eta: Any = None, **options: Any) -> Page:
        """Page made by the function `name` of `dynamics.models.engine.derivation`."""
        from dynamics.models.engine import derivation

        definition = self._definition
        selected = definition.Parameters() if parameters is None else parameters
        rates = definition.reduction(selected)[0].rates(eta)
        return getattr(derivation, name)(definition, selected, rates, **options)

    def __call__(self, parameters: Any = None, rule: UpdateRule = GD, **options: Any) -> Page:
        """Page of the derivation with the step of an update rule."""
        return self.page(parameters, rule=rule, **options)

    def defining(
        self, parameters: Any = None, rule: UpdateRule = GD, by_array: bool = False
    ) -> Page:
        """Page with the defining equations of the model and the step of an update rule."""
        return self._page("defining", parameters, rule=rule, by_array=by_array)

    def closure(self, parameters: Any = None, samples: Any = None, seed: Any = 0) -> Closure:
        """Closure of training at some parameters."""
        return self._definition.closure(parameters, samples, seed)

    def expressions(self, parameters: Any = None) -> Any:
        """Risk and recursion as SymPy expressions."""
        from dynamics.models.engine.expressions import expressions_of

        return expressions_of(self._definition, parameters)

    def first_integrals(self, parameters: Any = None) -> Any:
        """First integrals f(x) + g(y) of the gradient flow, with their values at the start."""
        from dynamics.models.engine.first_integrals import first_integrals

        return first_integrals(self.expressions(parameters))


def _empirical_options(model: Model) -> dict[str, str]:
    """Options of `FullEmpirical` -> help text; ``start`` is included if the file has ``starts``."""
    starts = {"start": f"declared (default), {', '.join(model.starts)}"} if model.starts else {}
    usual = " and 0 for another start" if starts else ""
    return starts | {
        "omega": f"standard deviation of noise on every entry of the start (default 1e-3{usual})",
        "batch": BATCH,
        "dtype": DTYPE,
        "test_samples": "number of fresh samples for test_risk (default: none)",
    }


def _rules_by_name(model: Model) -> tuple[EventRule, ...]:
    """Event rules with names and texts only, for lists of events before a problem is built."""
    import sympy

    one = sympy.Integer(1)
    table = model.table("events", model.constants)
    return tuple(Crossing(str(n), str(text), "", one) for n, text in table.items())


def _claims(model: Model) -> tuple[Claim, ...]:
    """Claims of a model: from its TOML file in the library, or from its own check functions."""
    if model.path is not None and in_library(model.path):
        texts = model.path.with_suffix(".toml")
        return read_claims(texts) if texts.is_file() else ()
    stated = model.claims or ()
    named = dict(stated) if isinstance(stated, Mapping) else None
    claims = []
    for name, function in [(None, each) for each in stated] if named is None else named.items():
        if not callable(function):
            raise ModelError(
                f"claims: {function!r} is not a function (system, protocol) -> Finding"
            )
        source = str(name or _name_of(function).replace("_", " "))
        statement = " ".join((function.__doc__ or source).split())
        check = _guarded(function, model)
        claims.append(
            Claim(source, statement, "stated in the model file", "its own check", check=check)
        )
    return tuple(claims)


def _name_of(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _guarded(function: Callable[..., Any], model: Model) -> Callable[..., Any]:
    """Wrap the check of a claim: errors become one-line messages; a result must be a Finding."""
    name_of_check = _name_of(function)

    def check(system: Any, protocol: Any) -> Any:
        with refusals(), model.blamed(f"claim {name_of_check}"):
            finding = function(system, protocol)
        if not all(hasattr(finding, name) for name in ("holds", "measured", "bound", "reason")):
            raise InvalidRequest(
                f"claim {name_of_check} returns {type(finding).__name__}, not a Finding"
            )
        return finding

    return check
