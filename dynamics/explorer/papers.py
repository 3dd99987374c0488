"""Pages of papers whose model files declare the reduction.

The page uses the lists of the model file in `dynamics.models`, at the constants that correspond to
the system's parameters. Title, symbols, events and derivation are those of the system.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from dynamics.cache import jax
from dynamics.explorer.declared import unheld
from dynamics.explorer.own_model import page_of
from dynamics.explorer.own_points import Point, center_of, points_around
from dynamics.explorer.own_programs import Matrix
from dynamics.explorer.page_model import PageModel
from dynamics.library import HERE
from dynamics.models.engine.real_constants import Reading
from dynamics.papers.masked_image_modeling.sizes import rows_of
from dynamics.registry import load_system
from dynamics.system import System
from dynamics.validation import InvalidRequest
from theory.events import EventRule
from theory.papers.masked_image_modeling.notation import CONSTANTS

MOST_CONFIGURATIONS = 2_000
"""Maximum number of configurations of the data; a larger request for a page is refused."""
MOST_NUMBERS = 25_000
"""Maximum number of values in all configurations; a larger request for a page is refused."""
Changes = Iterator[dict[str, Any]]


@dataclass(frozen=True)
class Paper:
    """Correspondence between a paper's system and its model file."""

    constants: Callable[[Any], dict[str, Any]]
    """Function that maps parameters of the system to constants of the model file."""
    moving: Callable[[Any], tuple[str, ...]]
    """Function that maps parameters to the names of the constants that may have sliders."""
    order: Mapping[str, Any]
    """Each order parameter of the system as an expression in those of the model file, by name."""
    smaller: Callable[[Any], Changes]
    """Function that maps parameters to changed values with fewer configurations, nearest first."""
    rest: tuple[str, ...] = ()
    """Names of the parameters that event rules use."""
    attributes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Attributes that the page adds to the class of the reduced problem, by name."""
    presets: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    """Constants that differ from those of ``attdyn run``, by the name of the preset."""


@np.errstate(all="ignore")  # functions of the model may overflow at some values
def page_model(system: System, parameters: Any) -> PageModel:
    """PageModel of a paper's system, with the sliders initially at the given parameters.

    Raises InvalidRequest if there are too many configurations for a page.
    """
    paper = PAPERS[system.name]
    events = tuple(_translated(rule, paper.order) for rule in system.ReducedPopulation.events)
    file = load_system(HERE / "models" / f"{system.name}.py")
    # If `origin` is None, the page names the system instead of the model file.
    shown = dataclasses.replace(file.presentation, origin=None)
    file = dataclasses.replace(file, presentation=shown)
    file = unheld(file, other_events=events, **paper.attributes)
    constants = paper.constants(parameters)
    _check_size(system, parameters, file, paper)
    moving = paper.moving(parameters)

    def derived(there: Any) -> dict[str, float]:
        own = dataclasses.replace(parameters, d=None, **{n: getattr(there, n) for n in moving})
        return {name: float(getattr(own, name)) for name in paper.rest}

    still = [name for name in file.Parameters.__dataclass_fields__ if name not in moving]
    center = center_of(file, file.Parameters(**constants), still, derived=derived)
    points = points_around(center)
    model = page_of(center, points)
    problem: Any = model.problem
    problem.parameters = parameters
    problem.presentation = system.presentation
    if system.name == "masked_image_modeling":
        notation = rows_of(parameters).notation
        problem.presentation = dataclasses.replace(system.presentation, notation=notation)
    presets = dict(_presets(system, paper, points, paper.constants(parameters), model.sliders))
    return dataclasses.replace(model, presets=presets)


def _presets(
    system: System, paper: Paper, points: list[Point], first: dict[str, Any], sliders: Any
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Presets available on the page, as positions of the page's sliders."""
    for title, changes in paper.presets.items():
        parameters = system.Parameters(**{**system.default_runs["run"].parameters, **changes})
        constants = paper.constants(parameters)
        settings = {slider.name: constants[slider.name] for slider in sliders}
        held = any(point.at.items() <= settings.items() for point in points)
        if held and first | settings == constants:
            yield title, settings


def _translated(rule: EventRule, order: Mapping[str, Any]) -> EventRule:
    """Express an event rule of the system in the order parameters of the model file."""
    changes = {}
    for field in dataclasses.fields(rule):
        value = getattr(rule, field.name)
        if isinstance(value, sympy.Basic):
            table = {s: order[s.name] for s in value.free_symbols if s.name in order}
            changes[field.name] = value.xreplace(table)
    return dataclasses.replace(rule, **changes)


def _check_size(system: System, parameters: Any, file: System, paper: Paper) -> None:
    """Refuse parameters with too many configurations for a page."""

    def fits(there: Any) -> bool:
        constants = dataclasses.asdict(file.Parameters(**paper.constants(there)))
        numbers = 0
        for k, (_, sample) in enumerate(file.model.call("configurations", constants=constants)):
            numbers += sum(map(np.size, jax.tree.leaves(sample)))
            if k == MOST_CONFIGURATIONS or numbers > MOST_NUMBERS:
                return False
        return True

    if fits(parameters):
        return
    for changes in paper.smaller(parameters):
        try:
            near = dataclasses.replace(parameters, d=None, **changes)
        except InvalidRequest:
            continue
        if fits(near):
            sizes = " ".join(f"{name}={getattr(parameters, name)}" for name in changes)
            nearest = " ".join(f"{name}={value}" for name, value in changes.items())
            raise InvalidRequest(
                f"{sizes} has more configurations than a page can have; nearest: {nearest}"
            )
    raise InvalidRequest(
        f"{system.name} has more configurations at these parameters than a page can have; explore "
        "needs fewer patches"
    )


def _s(name: str) -> sympy.Symbol:
    return sympy.Symbol(name, real=True)


def _positional_constants(parameters: Any) -> dict[str, Any]:
    names = ("D", "C", "q", "p", "nu", "beta", "scale", "random_sets")
    constants = {name: getattr(parameters, name) for name in names}
    usual = dataclasses.replace(parameters, alpha0=None).alpha0
    return constants | {"alpha0": None if parameters.alpha0 == usual else parameters.alpha0}


def _smaller_sets(parameters: Any) -> Changes:
    for patches in range(parameters.D - 1, 3, -1):
        yield {"D": patches}
    for size in range(parameters.C - 1, 1, -1):
        yield {"D": 2 * size, "C": size}


def _attention_logits(problem: Any) -> dict[str, Matrix]:
    """Attention logits in two classes: patches of one set, and patches of different sets."""
    constants, names = problem.realization.constants, list(problem.scalars)
    patches = np.arange(constants["D"])
    sets = patches // constants["C"]
    labels = np.where(sets[:, None] == sets, 0, 1)
    np.fill_diagonal(labels, -1)
    numbers = [names.index("gamma"), names.index("rho")]
    base = Reading((2,), ((sympy.Integer(1), np.zeros(2)),))
    classes = tuple((k, 1.0) for k in numbers)
    return {"A": Matrix(labels, base, np.eye(len(names))[numbers], classes, labels.shape)}


def _image_constants(parameters: Any) -> dict[str, Any]:
    sizes = {name: getattr(parameters, name) for name in ("P", "C_global", "C_local", "masked")}
    words = {"z": parameters.z, "odds": parameters.odds}
    texts = {name: ",".join(map(repr, values)) for name, values in words.items()}
    areas = ""
    if parameters.family != "one_cluster":
        areas = ";".join(",".join(map(str, row)) for row in parameters.area_ids.tolist())
        sizes |= {"C_global": 1, "C_local": 1}
    return {**sizes, **texts, "areas": areas}


def _image_sizes(parameters: Any) -> tuple[str, ...]:
    sizes = ("P", "C_global", "C_local") if parameters.family == "one_cluster" else ()
    return (*sizes, "masked")


def _smaller_images(parameters: Any) -> Changes:
    if parameters.family != "one_cluster":
        many = parameters.P
        yield from (
            {"masked": k} for k in sorted(range(1, many), key=lambda k: abs(k - parameters.masked))
        )
        return
    size = parameters.C_local
    areas = (parameters.P - parameters.C_global) // size
    for left in range(areas - 1, 0, -1):
        share = left / areas
        globally, masked = (
            max(1, round(share * whole)) for whole in (parameters.C_global, parameters.masked)
        )
        patches = globally + left * size
        yield {"P": patches, "C_global": globally, "masked": min(masked, patches - 1)}


PAPERS: Mapping[str, Paper] = {
    "positional_attention": Paper(
        _positional_constants,
        lambda parameters: ("D", "C", "q", "p", "nu", "beta", "scale", "random_sets", "alpha0"),
        {"association_margin": sympy.Min(_s("beta"), _s("gamma")) - _s("rho")},
        _smaller_sets,
        attributes={"matrices": _attention_logits},
        presets={
            "three events": {},
            "the paper's law": {"random_sets": "any"},
            "association lost at q = .8": {"random_sets": "any", "q": 0.8},
        },
    ),
    "masked_image_modeling": Paper(
        _image_constants,
        _image_sizes,
        {
            "alpha_m": _s("d_Phi_m"),
            "alpha_0": _s("d_Phi_0"),
            "rho": sympy.Abs(_s("d_Phi_0")) / sympy.Abs(_s("d_Phi_m")),
        },
        _smaller_images,
        rest=CONSTANTS,
    ),
}
