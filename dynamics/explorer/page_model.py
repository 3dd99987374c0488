"""Data of a page: its script, its sliders, and the quantities that it reports."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dynamics.problem import Problem
from dynamics.system import System


def shell_key(system: System) -> str:
    """Name of the system in commands of the page; a model file without its folder."""
    return shlex.quote(Path(system.reference).name)


@dataclass(frozen=True)
class Slider:
    """Slider of one constant.

    `minimum`, `maximum`: range; None for a choice of words; `open_minimum`: whether the minimum
    itself is excluded; `values`: available values, empty for all; `logarithmic`: whether the scale
    is logarithmic; `ends`: why the range is smaller than that of the constant; `divides`: constant
    that this one must divide, or ""; `divisors`: value of that constant -> available values of this
    one.
    """

    name: str
    minimum: float | None = None
    maximum: float | None = None
    open_minimum: bool = False
    values: tuple[Any, ...] = ()
    logarithmic: bool = False
    ends: str = ""
    divides: str = ""
    divisors: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class PageModel:
    """Data of the page of a system.

    `script`: JavaScript that defines ``MODEL``; see `assets/driver.js`; `problem`: reduced problem
    at the initial positions of the sliders; `observables`: names of the reported quantities, in
    order; `matrices`: matrices by class: name, title, meaning, classes with labels and values;
    `draws`: size and seed for a law that can only be sampled, else (0, 0); `presets`: name ->
    values of controls; other controls take their defaults.
    """

    script: str
    problem: Problem
    sliders: tuple[Slider, ...]
    observables: tuple[str, ...]
    matrices: tuple[Mapping[str, Any], ...] = ()
    draws: tuple[int, int] = (0, 0)
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def scalars(problem: Problem) -> tuple[str, ...]:
    """Names of the parts of the state with curves: all, or none if some are arrays."""
    return problem.layout.names if set(problem.layout.shapes) == {()} else ()
