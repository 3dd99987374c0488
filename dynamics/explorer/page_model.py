"""The model of a page: its script, its sliders, and the quantities that it reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dynamics.problem import Problem


@dataclass(frozen=True)
class Slider:
    """The control of one constant.

    `minimum`, `maximum`: ends of the slider; None for a choice of words; `open_minimum`: whether
    the minimum itself is refused; `values`: the only values of it in the page; empty for all;
    `logarithmic`: whether equal distances are equal factors; `ends`: why it ends where it does, if
    the constant could go on; `divides`: constant that this one must divide; "" for none;
    `divisors`: value of that constant -> values of this one that the page has.
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
    """A system as its page has it.

    `script`: JavaScript that defines ``MODEL``; see `assets/driver.js`; `problem`: the reduced
    problem where the sliders stand at first; `observables`: what the model in the page reports, in
    its order; `matrices`: matrices by class: name, title, meaning, classes with their labels and
    values; `draws`: of a law that can only be sampled; (0, 0) of another; `presets`: name -> values
    of controls, of the constants and of the run; another control stands at its default.
    """

    script: str
    problem: Problem
    sliders: tuple[Slider, ...]
    observables: tuple[str, ...]
    matrices: tuple[Mapping[str, Any], ...] = ()
    draws: tuple[int, int] = (0, 0)
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def scalars(problem: Problem) -> tuple[str, ...]:
    """Parts of the state that have curves: all of them, or none where some are arrays."""
    return problem.layout.names if set(problem.layout.shapes) == {()} else ()
