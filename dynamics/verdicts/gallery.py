"""Write a Markdown page on a model: its file, closure, recursion, figures and verdicts."""

from __future__ import annotations

import ast
import shlex
from collections.abc import Mapping, Sequence
from importlib.util import decode_source

from dynamics.results.comparison import Comparison
from dynamics.results.hypertext import code_block
from dynamics.results.outcome import DIVERGED
from dynamics.results.stability import Stability
from dynamics.system import System
from dynamics.validation import InvalidRequest
from dynamics.verdicts.findings import Verdict
from dynamics.verdicts.verdict_report import escaped, prose, stability_line, summary
from theory.closure import closure_lines
from theory.documentation import Documentation

MOST_DERIVED = 8
"""Maximum number of scalars; above it the page has no derivatives, which would take minutes."""


def source_of(system: System) -> tuple[str, str]:
    """Docstring and code of a system's model file; InvalidRequest if the system has none."""
    if system.model is None or system.model.path is None:
        raise InvalidRequest(f"{system.name} is not a model file; gallery needs one")
    text = decode_source(system.model.path.read_bytes())
    module = ast.parse(text)
    if ast.get_docstring(module) is None:
        return system.title, text.strip()
    end = module.body[0].end_lineno or 0
    return str(ast.get_docstring(module)), "\n".join(text.splitlines()[end:]).strip()


def markdown(
    system: System,
    comparison: Comparison,
    verdicts: Sequence[Verdict],
    figures: Mapping[str, str],
    pictures: Mapping[str, str],
    stability: Stability | None = None,
) -> str:
    """The page on a model as Markdown.

    `system`: system of a model file; `comparison`: reduced and full problem at the model's own
    constants; `figures`: name of a figure -> its caption; `pictures`: ``"training"`` or name of a
    figure -> file name; `stability`: stability of the scalars along the default run.
    """
    documentation, code = source_of(system)
    documented = Documentation(documentation)
    parameters = system.Parameters(**comparison.reduced.parameters)
    closure = system.closure(parameters)
    run, name = comparison.reduced, shlex.quote(system.reference)
    few = 0 < closure.scalars <= MOST_DERIVED
    recursion = system.derivation(parameters) if few else system.describe(parameters).page
    drawn = system.model.can_be_drawn
    events = "; ".join(
        f"{event.name} at time {event.time:.5g}" if event else f"{event.name} {event.reason}"
        for event in run.events.values()
    )
    parts = [
        f"# {escaped(documented.title)}",
        documented.markdown,
        "\n".join(f"- `{name}`: {meaning}" for name, meaning in documented.fields.items()),
        f"Source: {escaped(system.model.source)}." if system.model.source else "",
        "## The file",
        code_block(code, "python"),
        "## What closes",
        code_block(
            "\n".join(closure_lines(closure.document(), run.outcome.kind != DIVERGED)), "text"
        ),
        "## The recursion",
        recursion.as_markdown(3).rstrip(),
        "## Training",
        f"![Training]({pictures['training']})",
        f"Gradient descent at learning rate {system.model.eta:g}, {run.steps[-1]:,} steps: every "
        f"entry differs from its scalar by at most {comparison.largest_deviation:.1e}"
        f"{', the sampling error of the draws' if drawn else ''}. Events: {events or 'none'}.",
        f"Stability: {stability}." if stability else "",
    ]
    for figure, caption in figures.items():
        parts += [f"## Figure {figure}", f"![{figure}]({pictures[figure]})", prose(caption)]
    if verdicts:
        parts += ["## Claims", "\n".join(summary(verdicts))]
        for verdict in verdicts:
            claim, reason = verdict.claim, prose(verdict.finding.reason)
            parts += [f"### {prose(claim.source)}", f"> {prose(claim.statement)}"]
            parts += [f"*Assumes:* {prose(claim.hypothesis)}", f"**{verdict.word}:** {reason}."]
            parts += [stability_line(verdict)]
    commands = [f"attdyn compare {name}", *(f"attdyn figure {name} {each}" for each in figures)]
    commands += [f"attdyn verify {name}"] if verdicts else []
    parts += ["## Again", code_block("\n".join([*commands, f"attdyn gallery {name}"]), "sh")]
    return "\n\n".join(part for part in parts if part) + "\n"
