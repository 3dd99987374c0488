"""What the command line prints and draws of a result."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.results.comparison import Comparison, Overlay
from dynamics.results.storage import Result
from dynamics.results.trajectory import Event, Trajectory
from dynamics.validation import brief
from theory.closure import closure_lines

if TYPE_CHECKING:
    from dynamics.registry import System
    from theory.claims import Claim


def document(result: Result) -> dict[str, Any]:
    """The JSON document of a result: plain numbers, null where there is none."""
    content: dict[str, Any]
    if isinstance(result, Overlay):
        first = result.flow
        content = {
            "eta": list(result.etas),
            "deviation": {name: list(row) for name, row in result.deviations.items()},
            "order": result.orders,
            "events": _times(first),
            "outcomes": [str(run.outcome) for run in result.runs],
        }
    elif isinstance(result, Comparison):
        runs = {"reduced": result.reduced, "full": result.full}
        first = result.reduced
        content = {
            "deviation": result.deviation,
            "events": {view: _times(run) for view, run in runs.items()},
            "event_steps": {view: _steps(run) for view, run in runs.items()},
            "reasons": {view: dict(run.reasons) for view, run in runs.items()},
            "outcomes": {view: str(run.outcome) for view, run in runs.items()},
            "seeds": [_seed(run) for run in result.fulls],
        }
    else:
        first = result
        content = {
            "events": _times(first),
            "event_steps": _steps(first),
            "reasons": dict(first.reasons),
            "final": {n: float(s[-1]) for n, s in _scalars(first).items()},
        }
    head = {
        "system": first.system,
        "parameters": dict(first.parameters),
        "settings": {n: entry for n, entry in first.settings.items() if n != "closure"},
        "outcome": result.outcome.kind,
        "outcome_step": result.outcome.step,
        "remedy": result.outcome.remedy,
    }
    if "closure" in first.settings:
        head["closure"] = first.settings["closure"]
    return finite(head | content)


def _times(run: Trajectory) -> dict[str, float | None]:
    return {name: None if event is None else event.time for name, event in run.events.items()}


def _steps(run: Trajectory) -> dict[str, int | None]:
    return {name: None if event is None else event.step for name, event in run.events.items()}


def _scalars(run: Trajectory) -> dict[str, Any]:
    pairs = zip(run.layout.names, run.layout.shapes, strict=True)
    return {name: run[name] for name, shape in pairs if shape == ()} | dict(run.observables)


def plain(content: Any) -> Any:
    """Arrays and numpy numbers as what JSON knows."""
    return content.tolist() if hasattr(content, "tolist") else str(content)


def finite(content: Any) -> Any:
    """JSON has no infinity and no NaN; both become null."""
    if isinstance(content, np.ndarray | np.generic):
        content = content.tolist()
    if isinstance(content, list | tuple):
        return [finite(entry) for entry in content]
    if isinstance(content, Mapping):
        return {key: finite(entry) for key, entry in content.items()}
    if isinstance(content, float) and not math.isfinite(content):
        return None
    return content


def pictures(result: Result) -> Iterator[tuple[str, Any]]:
    """File names and axes of the pictures of a result."""
    from dynamics import plotting

    first = _first(result)
    if np.count_nonzero(first.time > 0) < 2:
        return
    if isinstance(result, Overlay):
        yield "overlay.png", plotting.overlay(result)
    elif isinstance(result, Comparison):
        yield "training.png", plotting.comparison(result)
        if "sets" in result.full.settings and "A" in result.full.layout.names:
            yield "attention.png", plotting.attention(result.full)
        yield "deviation.png", plotting.deviation(result)
        if set(result.full.observables) >= REALISTIC:
            yield "realistic.png", plotting.realistic(result)
    else:
        yield "training.png", plotting.training(result)
        if "sets" in result.settings and "A" in result.layout.names:
            yield "attention.png", plotting.attention(result)
        if set(result.observables) >= REALISTIC:
            yield "realistic.png", plotting.realistic([result])
    if first.settings.get("closure", {}).get("labels"):
        yield "classes.png", plotting.entry_classes(first.settings["closure"])


def table(system: System, result: Result) -> str:
    """A short table: parameters, events, deviations, how it ended."""
    first = _first(result)
    law = {n: entry for n, entry in first.parameters.items() if entry not in (None, (), [])}
    shown = ", ".join(f"{name}={brief(_entry(entry))}" for name, entry in law.items())
    plain_settings = {k: v for k, v in first.settings.items() if not isinstance(v, (list, dict))}
    made = ", ".join(f"{k}={v}" for k, v in plain_settings.items())
    lines = [system.title, shown, made, ""]
    if "closure" in first.settings:
        lines[-1:] = [*closure_lines(first.settings["closure"]), ""]
    runs = (result.reduced, result.full) if isinstance(result, Comparison) else (first,)
    lines.append(f"{'event':<20}" + "".join(f"{'time, ' + run.view:<28}" for run in runs) + "step")
    for name, event in first.events.items():
        others = [run.events[name] for run in runs]
        row = f"{name:<20}" + "".join(f"{_time(other):<28}" for other in others)
        steps = {other.step for other in others if other is not None and other.step is not None}
        lines.append(row + ", ".join(map(str, sorted(steps, key=str))))
        if event is None:
            lines[-1] = f"{name:<20}none: {first.reasons.get(name, '')}"
    if isinstance(result, Comparison):
        lines += ["", f"{'state':<20}largest |reduced - full| over {len(result.time)} records"]
        lines += [f"{name:<20}{value:.1e}" for name, value in result.deviation.items()]
        if "outside" in result.full.observables:
            lines.append(f"{'outside the space':<20}{result.full['outside'].max():.1e}")
    if isinstance(result, Overlay):
        lines += ["", *_distances(result)]
    scalars = _scalars(first)
    few = [name for name in first.layout.names if name in scalars]
    shown_at_end = dict.fromkeys((*(few or system.plot_description.overlaid), "G", "risk", "error"))
    final = [f"{name}={scalars[name][-1]:.6g}" for name in shown_at_end if name in scalars]
    lines += ["", f"{_place(result):<20}" + ", ".join(final)]
    drawn = result.fulls if isinstance(result, Comparison) else (first,)
    if set(drawn[0].observables) >= REALISTIC:
        lines += [_realistic(run) for run in drawn]
    return "\n".join([*lines, f"{'outcome':<20}{result.outcome}"])


def _entry(entry: Any) -> str:
    """A parameter: a number, a word, or several of them."""
    if isinstance(entry, (list, tuple)):
        return f"({', '.join(map(_entry, entry))})"
    return entry if isinstance(entry, str) else f"{entry:.6g}"


REALISTIC = {"test_error", "patch_association", "cosine"}
"""Observables that only runs on samples have."""
MEMORISED = 0.5
"""Share of the test error below which the training error says that samples were memorised."""
MEMORISED_FROM = 50.0
"""Time before which association may only not have begun."""


def _seed(run: Trajectory) -> dict[str, Any]:
    """What one seed of a full problem came to."""
    named = {"seed": run.settings["seed"]} if "seed" in run.settings else {}
    final = {n: float(s[-1]) for n, s in _scalars(run).items()}
    return named | {"outcome": str(run.outcome), "events": _times(run), "final": final}


def _realistic(run: Trajectory) -> str:
    """One line on a run on samples: association, errors, cosine at the end."""
    at_end = {name: float(run[name][-1]) for name in (*REALISTIC, "error", "bayes_error")}
    line = (
        f"{'seed ' + str(run.settings['seed']):<20}"
        f"{at_end['patch_association']:.0%} of the rows associated, test error "
        f"{at_end['test_error']:.2%} (training {at_end['error']:.2%}, irreducible "
        f"{at_end['bayes_error']:.2%}), cosine {at_end['cosine']:.4f}"
    )
    memorised = at_end["error"] < MEMORISED * at_end["test_error"]
    early = run.time[-1] < MEMORISED_FROM
    if at_end["patch_association"] == 1.0 or not memorised or early:
        return line
    return (
        f"{line}\n{'':<20}memorised: the {run.settings['samples']:,} samples are fitted better "
        "than fresh ones, without the sets; more samples help"
    )


def _first(result: Result) -> Trajectory:
    """The run that speaks for a result: the reduced one of a comparison, the flow of an overlay."""
    if isinstance(result, Comparison):
        return result.reduced
    return result.flow if isinstance(result, Overlay) else result


def _place(result: Result) -> str:
    if isinstance(result, Overlay):
        return "flow, end"
    return "reduced, end" if isinstance(result, Comparison) else "at the end"


def _distances(result: Overlay) -> list[str]:
    """Largest distance of every run from the flow, and the order in eta."""
    names = list(result.deviations)
    wide = {name: max(12, len(name) + 4) for name in names}
    heads = "".join(f"{'|' + name + '|':<{wide[name]}}" for name in names)
    lines = [f"{'eta':<12}{heads}outcome"]
    for k, run in enumerate(result.runs):
        row = "".join(f"{result.deviations[name][k]:<{wide[name]}.2e}" for name in names)
        lines.append(f"{run.settings['eta']:<12g}{row}{run.outcome.kind}")
    return [*lines, f"{'order':<12}" + "".join(f"{result.orders[n]:<{wide[n]}.3f}" for n in names)]


def _time(event: Event | None) -> str:
    if event is None:
        return "none"
    known = f" ± {event.uncertainty:.1g}" if event.uncertainty > 1e-5 * event.time else ""
    return f"{event.time:.6g}{known}"


def proofs(claims: Sequence[Claim]) -> str:
    """The claims that can be checked by computation, and what came out."""
    lines = []
    for claim in claims:
        if claim.proof is not None:
            evidence = claim.proof()
            words = {True: "holds", False: "does not hold", None: "to be measured along a run"}
            verdict = words[evidence.holds]
            lines += [f"{claim.source}: {verdict} ({evidence.case})"]
            lines += [f"    {finding}" for finding in evidence.findings]
    return "\n".join(lines)
