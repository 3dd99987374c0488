"""Texts of a page as JSON: constants, symbols, panels, events, equations.

Meanings, symbols and limits come from `dynamics.description`, panels from the problem's
presentation. Formulas are MathML.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from importlib import metadata
from math import ceil, log10
from typing import Any

from dynamics.description.page import Definition, Description, Symbol
from dynamics.explorer.page_model import PageModel, Slider, scalars, shell_key
from dynamics.presentation import Presentation
from dynamics.problem import Problem
from dynamics.results.formulas import mathml, plain_text
from dynamics.results.hypertext import fragment
from dynamics.system import System
from dynamics.validation import InvalidRequest
from theory.events import EventRule

MOST_DERIVED = 8
"""Maximum number of scalars of a user's model; above it, the page shows no derived recursion."""
MOST_WRITTEN = 80_000
"""Maximum number of characters of a derivation; above it, the page shows only the model."""
LEAST_TIME = 1e-2
"""Time (eta times steps) at which curves on a page begin; a smaller eta replaces this number."""


def page_description(system: System, model: PageModel) -> dict[str, Any]:
    """Texts of the page of a system, as JSON-ready values."""
    problem, presentation = model.problem, model.problem.presentation
    description = system.describe(problem.parameters)
    symbols = {symbol.name: symbol for symbol in description.symbols}
    observables = {one.name: one for one in description.observables}
    run, names = system.default_runs["compare"], scalars(problem)
    horizon = 10.0 ** ceil(log10(run.eta * run.steps))
    return {
        "name": system.name,
        "title": system.title,
        "source": description.source,
        "summary": summary(description.prose),
        "command": _command(system, model),
        "constants": [_constant(slider, symbols, problem) for slider in model.sliders],
        "presets": {name: dict(settings) for name, settings in model.presets.items()},
        "states": [_letter(name, presentation, {}) for name in names],
        "observables": [_letter(name, presentation, observables) for name in model.observables],
        "events": [_event(rule, presentation) for rule in problem.events],
        "panels": _panels(problem, model.observables),
        "matrices": list(model.matrices),
        "plane": {"x": names[-2], "y": names[-1]} if len(names) > 1 else None,
        "derivation": _equations(system, description, problem),
        "run": {
            "eta": run.eta,
            "steps": run.steps,
            "horizon": horizon if system.flows else None,
            "least_time": min(LEAST_TIME, run.eta),
        },
        "version": metadata.version("attdyn"),
    }


def summary(prose: str) -> str:
    r"""First paragraph of a text, without a sentence that leads to a displayed formula.

    Examples
    --------
    >>> summary("A model of a word. Its risk is\n\n.. math:: R\n\nwhere R is large.")
    'A model of a word.'
    >>> summary("One word")
    'One word'
    """
    text = plain_text(prose.split("\n\n")[0])
    sentences = re.findall(r".*?[.!?](?=\s|$)", text, re.DOTALL)
    return "".join(sentences).strip() or text


def _equations(system: System, description: Description, problem: Problem) -> str:
    """Derivation as HTML, or only the model if the recursion is long or slow to derive."""
    if system.model is None or problem.layout.size <= MOST_DERIVED:
        text = fragment(system.derivation(problem.parameters).as_markdown(3))
        if len(text) <= MOST_WRITTEN:
            return text
    return fragment(description.page.as_markdown(3))


def _command(system: System, model: PageModel) -> str:
    """Command that trains the system, with the constants that no slider determines."""
    parameters, moved = model.problem.parameters, [slider.name for slider in model.sliders]
    showcase = system.default_runs["run"].parameters
    at_sliders = {name: getattr(parameters, name) for name in moved}
    try:
        usual = system.Parameters(**{**showcase, **at_sliders})
    except InvalidRequest:
        usual = system.Parameters(**showcase)
    words = ["attdyn run", shell_key(system)]
    for name in parameters.__dataclass_fields__:
        value = getattr(parameters, name)
        if name not in moved and value != getattr(usual, name):
            words.append(f"--{name} {_flag(value)}")
    samples, seed = model.draws
    if samples:
        words.append(f"--samples {samples} --seed {seed}")
    return " ".join(words)


def _flag(value: Any) -> str:
    """Format a value in the syntax of the command line."""
    if not isinstance(value, tuple):
        return f"{value:.17g}" if isinstance(value, float) else str(value)
    nested = any(isinstance(entry, tuple) for entry in value)
    return f"'{';'.join(map(_flag, value))}'" if nested else ",".join(map(_flag, value))


def _event(rule: EventRule, presentation: Presentation) -> dict[str, str]:
    """Describe an event by its name in plots, its condition and its meaning."""
    plot = presentation.plot
    # Formulas in the symbol of an event are enclosed in dollar signs.
    parts = {**plot.asides, **plot.marks}.get(rule.name, "").split("$")
    words = [part if k % 2 else rf"\text{{{part}}}" for k, part in enumerate(parts) if part]
    return {
        "name": rule.name,
        "mathml": mathml("".join(words) or presentation.notation.latex(rule.name)),
        "condition": mathml(rule.latex),
        "meaning": plain_text(rule.meaning),
    }


def _constant(slider: Slider, symbols: dict[str, Symbol], problem: Problem) -> dict[str, Any]:
    symbol, value = symbols[slider.name], getattr(problem.parameters, slider.name)
    kind = "word" if isinstance(value, str) else "whole" if isinstance(value, int) else "real"
    return asdict(slider) | {
        "mathml": mathml(symbol.latex),
        "meaning": plain_text(symbol.meaning),
        "allowed": plain_text(symbol.allowed),
        "kind": kind,
        "default": value,
        "values": slider.values or None,
    }


def _letter(
    name: str, presentation: Presentation, definitions: Mapping[str, Definition]
) -> dict[str, str]:
    meaning = definitions[name].words if name in definitions else ""
    if not meaning and name in presentation.notation:
        meaning = presentation.notation[name].meaning
    latex = presentation.notation.latex(name)
    return {"name": name, "mathml": mathml(latex), "meaning": plain_text(meaning)}


def _panels(problem: Problem, observables: tuple[str, ...]) -> list[dict[str, Any]]:
    """Panels of a page, with the curves that the page can show."""
    curves = {*problem.layout.names, *observables}
    return [
        {"names": names, "logarithmic": panel.logarithmic, "title": ", ".join(names)}
        for panel in problem.presentation.plot.panels
        if (names := [name for name in panel.names if name in curves])
    ]
