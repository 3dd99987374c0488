"""Data of a page: its script, its sliders, and the quantities that the page reports."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dynamics.problem import Problem
from dynamics.system import System


def shell_key(system: System) -> str:
    """Name of a system in the page's commands; a model file is named without its folder."""
    return shlex.quote(Path(system.reference).name)


@dataclass(frozen=True)
class Slider:
    """Slider of one constant."""

    name: str
    minimum: float | None = None
    """Lower end of the range, or None for a choice of words."""
    maximum: float | None = None
    """Upper end of the range, or None for a choice of words."""
    open_minimum: bool = False
    """Whether the minimum itself is excluded."""
    values: tuple[Any, ...] = ()
    """Values available on the page; empty if every value in the slider's range is available."""
    logarithmic: bool = False
    """Whether the slider has a logarithmic scale."""
    ends: str = ""
    """Reason why the slider's range is smaller than the range that the model allows, or ""."""
    divides: str = ""
    """Name of the constant that this constant must divide, or ""."""
    divisors: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Available values of this constant, by the value of the constant that it must divide."""


@dataclass(frozen=True)
class PageModel:
    """Data of the page of a system."""

    script: str
    """JavaScript that defines ``MODEL``, for `assets/driver.js`."""
    problem: Problem
    """Reduced problem at the initial positions of the sliders."""
    sliders: tuple[Slider, ...]
    observables: tuple[str, ...]
    """Names of the reported quantities, in order."""
    matrices: tuple[Mapping[str, Any], ...] = ()
    """Descriptions of trained arrays: name, title, meaning, and label and value of each class."""
    draws: tuple[int, int] = (0, 0)
    """Size and seed of the samples for a law that can only be sampled, else (0, 0)."""
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Values of controls, by the name of the preset; other controls take their defaults."""


def scalars(problem: Problem) -> tuple[str, ...]:
    """Names of the parts of a problem's state if all parts are scalars, else ()."""
    return problem.layout.names if set(problem.layout.shapes) == {()} else ()
