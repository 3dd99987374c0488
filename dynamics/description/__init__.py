"""Descriptions of systems, generated from the sources that define them.

Law of the data, network and training step come from the derivation (`theory.page.Page.model`);
letters and meanings from the notation table; defaults and limits from ``Parameters``; events from
their rules; observables from the problem that reports them; claims from the paper's list. A model
file is described from its functions and its docstring (`dynamics.description.model_file`).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dynamics.description import model_file
from dynamics.description.page import (
    KINDS,
    RATE,
    Definition,
    Description,
    Statement,
    Symbol,
    sought,
)
from dynamics.parameter_fields import allowed_values, check_parameters
from theory.closure.regime import Regime
from theory.events import Crossing
from theory.update_rules import GD

if TYPE_CHECKING:
    from theory.events import EventRule
    from theory.notation import Notation
    from theory.page import Page

__all__ = ["KINDS", "Definition", "Description", "Statement", "Symbol", "describe"]

CONSTANT, ARRAY, SCALAR, OTHER = KINDS
ATTRIBUTE = re.compile(r"^(\w[\w, ]*) : .*\n((?:[ \t]+.*\n?|\n)*)", re.MULTILINE)
"""Row of the Attributes section of a docstring: names, and the indented text below them."""
ATTRIBUTES = re.compile(r"Attributes\s*-+\n(.*?)(?:\n\s*Raises\s*-+|\Z)", re.DOTALL)
MOST_RATES = 6
"""Maximum number of rates with a row of their own; above it, one row stands for all rates."""


def describe(
    system: Any, parameters: Any = None, rule: Any = GD, by_array: bool = False
) -> Description:
    """Describe a system at some parameters: model, symbols, observables, events, claims.

    `by_array` says whether each array has its own learning rate. Raises InvalidRequest for
    parameters of another system, or an invalid model file.
    """
    if parameters is not None:
        check_parameters(parameters, system.Parameters, system.name)
    selected = system.Parameters() if parameters is None else parameters
    problem = system.ReducedPopulation(selected)
    rule = problem.own_rule() if rule == "step" else rule
    problem = problem.under(Regime.of(rule, by_array))
    notation = problem.presentation.notation
    constants = tuple(_constants(system, notation))
    claims = tuple(Statement(c.source, c.statement, c.hypothesis) for c in system.claims)
    page = system.derivation.defining(parameters, rule, by_array)
    if system.model is not None:
        model = system.model
        return Description(
            system.name,
            system.title,
            model.source,
            model.documented.markdown,
            page,
            (*constants, *model_file.symbols(model, problem)),
            tuple(model_file.observables(model, problem)),
            tuple(model_file.events(model, problem.events)),
            claims,
        )
    reported = _reported(problem)
    formulas = _formulas(system, parameters, page, notation)
    observables = tuple(
        Definition(name, entry.latex, entry.meaning, formulas.get(name, ""))
        for name in reported
        for entry in [notation[name]]
    )
    symbols = (*constants, *_letters(problem, reported, constants))
    events = tuple(_event(rule, page) for rule in problem.events)
    return Description(
        system.name, system.title, notation.source, "", page, symbols, observables, events, claims
    )


def _constants(system: Any, notation: Notation) -> Iterator[Symbol]:
    """Fields of ``Parameters``: meaning, default, and allowed values."""
    allowed, remarks = allowed_values(system.Parameters), _remarks(system.Parameters)
    default = system.Parameters()
    limits = getattr(system.model, "limits", None) or ()
    for field in dataclasses.fields(system.Parameters):
        name, value = field.name, getattr(default, field.name)
        text = "none" if value is None else _value(value)
        joint = [limit for limit in limits if re.search(rf"\b{name}\b", limit)]
        can_be = [allowed[name], remarks.get(name, ""), *joint]
        entry = notation[name]
        yield Symbol(
            name, entry.latex, CONSTANT, entry.meaning, text, "; ".join(filter(None, can_be))
        )


def _value(value: Any) -> str:
    """Text of a default value as typed on the command line."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple):
        return ",".join(map(_value, value)) or "none"
    return str(value)


def _remarks(parameters: type) -> dict[str, str]:
    """Field of ``Parameters`` -> text of its docstring after the first semicolon."""
    section = ATTRIBUTES.search(parameters.__doc__ or "")
    result: dict[str, str] = {}
    if section is None:
        return result
    indent = len(section[1]) - len(section[1].lstrip())
    text = "\n".join(line[indent:] for line in section[1].splitlines()) + "\n"
    for names, words in ATTRIBUTE.findall(text):
        _, semicolon, remark = " ".join(words.split()).partition("; ")
        if semicolon:
            result |= dict.fromkeys(re.split(r",\s*", names), remark.rstrip(".").replace("``", "`"))
    return result


def _reported(problem: Any) -> tuple[str, ...]:
    """Observables that the reduced problem reports in addition to its state and rates."""
    names = problem.observables(problem.initial_state)
    return tuple(
        name for name in names if name not in problem.state_names and not name.startswith("d_")
    )


def _letters(
    problem: Any, reported: tuple[str, ...], constants: tuple[Symbol, ...]
) -> Iterator[Symbol]:
    """Rows of the notation table that are neither constants nor observables."""
    table = problem.presentation.notation
    listed = {*reported, *(symbol.name for symbol in constants)}
    rates = [name for name in table if name.startswith("d_")]
    listed |= {*rates} if len(rates) > MOST_RATES else set()
    for name, entry in table.items():
        if name not in listed:
            shape = f" ({entry.shape})" if entry.shape != "scalar" else ""
            kind = SCALAR if name in problem.state_names else OTHER
            yield Symbol(name, entry.latex, kind, entry.meaning + shape)
    if len(rates) > MOST_RATES:
        yield RATE


def _formulas(system: Any, parameters: Any, page: Page, notation: Notation) -> Mapping[str, str]:
    """Observable -> formula, if the model or the derivation has one."""
    rows = [row for section in page.sections for row in section.equations]
    defined = {page.formula(left): page.formula(right) for left, right, *_ in reversed(rows)}
    formulas = {
        name: page.formula(value) for name, value in system.derivation.formulas(parameters).items()
    }
    return formulas | {
        name: defined[entry.latex] for name, entry in notation.items() if entry.latex in defined
    }


def _event(rule: EventRule, page: Page) -> Definition:
    """Definition of an event, in words and as a formula."""
    words = f"{rule.meaning}; {sought(rule)}"
    if isinstance(rule, Crossing) and rule.guard.free_symbols:
        sign = ">" if rule.guard_strict else r"\geq"
        words += f", while ${page.formula(rule.guard)} {sign} 0$"
    return Definition(rule.name, "", words, rule.latex, note=rule.note)
