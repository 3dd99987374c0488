"""Page of the shallow ViT: all entries are trained, and the curves are order parameters.

The lists of instructions compute the loss of one sample. The hinge loss has kinks at which training
stays, so there is no flow. The page shows gradient descent from the random start of one seed.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import sympy

from dynamics.cache import jax
from dynamics.explorer.own_model import page_script
from dynamics.explorer.own_points import BYTES, GRID, REACH, Point, bytes_of
from dynamics.explorer.own_programs import Lists, Source, lists_of
from dynamics.explorer.own_sliders import choice, real_slider
from dynamics.explorer.page_model import PageModel, Slider
from dynamics.models.engine.functions import Embedding
from dynamics.models.engine.limits import parse_limits
from dynamics.models.engine.readings import Readings
from dynamics.models.engine.real_constants import Reading, reading, symbol
from dynamics.papers.shallow_vit.parameters import Parameters
from dynamics.papers.shallow_vit.problems import ReducedPopulation
from dynamics.system import System
from dynamics.validation import InvalidRequest

MOST_ENTRIES = 6000
"""Maximum number of trained entries of a page, at which a step takes some milliseconds."""
MOST_TERMS = 200_000
"""Maximum product of the numbers of trained entries and of samples (vectors of token counts)."""
LENGTHS = ("sigma", "delta", "xi")
"""Constants on which the initial state depends linearly."""
REALS = ("margin", *LENGTHS)
WHOLE = {"L": REACH, "m": 2}
"""Maximum distance of each integer constant from its initial value, in either direction."""
SHARES = ("alpha_star", "alpha_confusion")
"""Shares that the problem rounds to counts of tokens; a page has some values of each share."""


def page_model(system: System, parameters: Parameters) -> PageModel:
    """PageModel of the shallow ViT, with the sliders initially at the given parameters.

    Raises InvalidRequest if a training step is too slow for a page.
    """
    problem = ReducedPopulation(parameters)
    _check_size(problem)
    points = _points(parameters)
    limits = parse_limits(("margin > 0", *(f"{name} >= 0" for name in LENGTHS)), REALS)
    constants = {name: getattr(parameters, name) for name in (*WHOLE, *SHARES, *REALS)}
    command = f"attdyn explore {system.name}"
    fixed = {
        "name": system.name,
        "command": command,
        "others": {},
        "reals": REALS,
        "state_names": (),
        "observable_names": problem.order_names,
        "order_names": problem.order_names,
    }
    sliders: list[Slider] = []
    for name in constants:
        if name in REALS:
            nothing = points[0].readings.inputs[0]
            sliders.append(real_slider(name, constants, limits, nothing, ""))
        else:
            values = dict.fromkeys(point.at[name] for point in points)
            ends = f"{command} --{name} ... writes a page with another value"
            sliders.append(choice(name, list(values), ends))
    script = page_script(points, limits, fixed)
    return PageModel(script, problem, tuple(sliders), problem.order_names)


def _check_size(problem: ReducedPopulation) -> None:
    """Refuse a problem whose training steps are too slow for a page."""
    given, size = problem.parameters, problem.layout.size
    vectors = len(problem.tokens.labels)
    entries = min(MOST_ENTRIES, MOST_TERMS // vectors)
    if size <= entries:
        return
    most = given.m - -(-(size - entries) // given.d)  # each neuron has d entries
    near = f"m={most}" if most > 0 else "data='fixed'"
    raise InvalidRequest(
        f"m={given.m} has {size} trained entries; explore can train up to {entries} with "
        f"{vectors} count vectors; nearest: {near}"
    )


def _points(parameters: Parameters) -> list[Point]:
    """Points of a page: the given parameters, then neighbours, nearest first."""
    known: dict[Any, tuple[Lists, Readings]] = {}
    points = [_point(parameters, known)]
    moves = [
        (distance, name, getattr(parameters, name) + sign * distance)
        for name, reach in WHOLE.items() for distance in range(1, reach + 1) for sign in (-1, 1)
    ]  # fmt: skip
    for name in SHARES:
        value = getattr(parameters, name)
        moves += [(k + 1, name, float(f"{value * x:.9g}")) for k, x in enumerate(GRID) if value]
    for _, name, value in sorted(moves):
        try:
            made = _point(dataclasses.replace(parameters, **{name: value}), known)
        except InvalidRequest:
            continue
        if bytes_of([*points, made]) <= BYTES:
            points.append(made)
    return points


def _point(parameters: Parameters, known: dict[Any, tuple[Lists, Readings]]) -> Point:
    problem = ReducedPopulation(parameters)
    data, count = problem.payload[0], problem.layout.size
    some = np.flatnonzero(np.asarray(data.weights))
    samples = jax.tree.map(lambda part: np.asarray(part)[some], data.samples)
    data = data._replace(weights=np.asarray(data.weights)[some], samples=samples)
    embedding = Embedding(
        np.zeros(count), np.zeros((0, 0)), np.arange(count), np.ones(count), np.ones(count)
    )
    leaves = jax.tree.leaves((data.weights, samples, data.fixed))
    reals = [np.array(symbol(name), dtype=object) for name in sorted(data.reals)]
    inputs = tuple(reading(np.asarray(leaf)) for leaf in [*leaves, *reals, embedding.offset])
    own = inputs[1 : 1 + len(jax.tree.leaves(samples))]
    key = parameters.m, tuple(each.shape[1:] for each in own)
    start = known[key][1].start if key in known else _start(parameters)
    read = Readings(inputs, start, ())
    if key not in known:
        names, columns = [f"w_{k}" for k in range(count)], problem._functions.columns
        program = problem._functions.program
        program.check(problem.payload[0])  # the check determines the observables
        source = Source(program, data, embedding, names, columns, columns)
        known[key] = lists_of(source, read, drawn=True), read
    ones = Reading((some.size,), ((sympy.Integer(1), np.ones(some.size)),))
    lists = dataclasses.replace(known[key][0], rows=(*own, ones))
    at = {name: getattr(parameters, name) for name in (*WHOLE, *SHARES)}
    return Point(at, lists, read, law=True)


def _start(parameters: Parameters) -> Reading:
    """The initial state as a function of the lengths of its random parts."""

    def at(lengths: tuple[float, ...]) -> Any:
        there = dataclasses.replace(parameters, **dict(zip(LENGTHS, lengths, strict=True)))
        return ReducedPopulation(there).initial_state

    base = at((0.0, 0.0, 0.0))
    parts = [(sympy.Integer(1), base)]
    for name, lengths in zip(LENGTHS, np.eye(3), strict=True):
        parts.append((symbol(name), at(tuple(lengths)) - base))
    return Reading(base.shape, tuple(parts))
