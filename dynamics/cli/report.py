"""Text, JSON and pictures of the result of a command."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.problem import FloatArray
from dynamics.results.comparison import DEPARTURE_SHARES, Comparison, Overlay
from dynamics.results.event import Event
from dynamics.results.outcome import DIVERGED
from dynamics.results.storage import Result
from dynamics.results.trajectory import Trajectory
from dynamics.validation import brief
from theory.closure import closure_lines
from theory.events import Crossing, event_rule
from theory.law import ModelError
from theory.model import HELD_OUT

if TYPE_CHECKING:
    from dynamics.default_runs import Contrast
    from dynamics.system import System

SAMPLED = {"test_error", "patch_association", "cosine"}
"""Observables that only runs on samples have."""
SHOWN = ("G", "risk", f"{HELD_OUT}risk", "error")
"""Observables whose final values are printed."""
SYMMETRIC = "symmetric"
MOST_ROWS, MOST_SHOWN = 12, 10
"""Up to `MOST_ROWS` scalars are all printed; of more, the `MOST_SHOWN` of largest magnitude."""
NOTE = 96
"""Width of a footnote, in characters."""
MEMORISED = 0.5
"""Ratio of training to test error below which the samples are reported as memorized."""
MEMORISED_FROM = 50.0
"""Minimum time (sum of learning rates) of a run whose samples may be reported as memorized."""


def document(result: Result) -> dict[str, Any]:
    """JSON-ready values of a result."""
    content: dict[str, Any]
    first = _first(result)
    settings: Mapping[str, Any] = first.settings
    if isinstance(result, Overlay) and result.flow is None:
        settings = result.shared
        content = {
            "rules": list(result.rules),
            "eta": list(result.etas),
            "events": [_times(run) for run in result.runs],
            "event_steps": [_steps(run) for run in result.runs],
            "reasons": [dict(run.reasons) for run in result.runs],
            "final": [_final(run) for run in result.runs],
            "outcomes": [str(run.outcome) for run in result.runs],
        }
    elif isinstance(result, Overlay):
        content = {
            "eta": list(result.etas),
            "deviation": {name: list(row) for name, row in result.deviations.items()},
            "order": result.orders,
            "events": _times(first),
            "outcomes": [str(run.outcome) for run in result.runs],
        }
    elif isinstance(result, Comparison):
        runs = {"reduced": result.reduced, "full": result.full}
        content = {
            "deviation": result.deviation,
            "events": {view: _times(run) for view, run in runs.items()},
            "event_steps": {view: _steps(run) for view, run in runs.items()},
            "reasons": {view: dict(run.reasons) for view, run in runs.items()},
            "outcomes": {view: str(run.outcome) for view, run in runs.items()},
            "final": {view: _final(run) for view, run in runs.items()},
            "seeds": [_seed(run) for run in result.fulls],
        }
        if departs(result):
            shares = {f"{share:g}": result.departures(share) for share in DEPARTURE_SHARES}
            ends = {name: rows[:, -1] for name, rows in result.relative_deviations.items()}
            content |= {"departures": shares, "relative_deviation": ends}
    else:
        content = {
            "events": _times(first),
            "event_steps": _steps(first),
            "reasons": dict(first.reasons),
            "final": _final(first),
        }
    head = {
        "system": first.system,
        "parameters": dict(first.parameters),
        "settings": {n: entry for n, entry in settings.items() if n != "closure"},
        "outcome": result.outcome.kind,
        "outcome_step": result.outcome.step,
        "remedy": result.outcome.remedy,
    }
    if "closure" in settings:
        head["closure"] = settings["closure"]
    return head | content


def _times(run: Trajectory) -> dict[str, float | None]:
    return {name: event.time if event else None for name, event in run.events.items()}


def _steps(run: Trajectory) -> dict[str, int | None]:
    return {name: event.step for name, event in run.events.items()}


def _final(run: Trajectory) -> dict[str, float]:
    """Final values of the scalars and observables of a run."""
    series = run.scalars | dict(run.observables)
    return {name: float(values[-1]) for name, values in series.items()}


def _seed(run: Trajectory) -> dict[str, Any]:
    """JSON-ready values of one seed of a full problem."""
    named = {"seed": run.settings["seed"]} if "seed" in run.settings else {}
    return named | {"outcome": str(run.outcome), "events": _times(run), "final": _final(run)}


def _first(result: Result) -> Trajectory:
    """Representative run: the reduced run of a comparison, the flow or first run of an overlay."""
    if isinstance(result, Comparison):
        return result.reduced
    return result.first if isinstance(result, Overlay) else result


def pictures(result: Result) -> Iterator[tuple[str, Callable[[], Any]]]:
    """File names of the pictures of a result, and functions that return the pictures' axes."""
    from dynamics import plotting

    first = _first(result)
    if np.count_nonzero(first.time > 0) < 2:
        return
    last: Trajectory | None = result.full if isinstance(result, Comparison) else first
    if isinstance(result, Overlay):
        yield "overlay.png", partial(plotting.overlay, result)
        last = None
    elif isinstance(result, Comparison):
        yield "training.png", partial(plotting.comparison, result)
    else:
        yield "training.png", partial(plotting.training, result)
    if last is not None and "sets" in last.settings and "A" in last.layout.names:
        yield "attention.png", partial(plotting.attention, last)
    if isinstance(result, Comparison):
        draw = plotting.departure if departs(result) else plotting.deviation
        yield "deviation.png", partial(draw, result)
    if last is not None and set(last.observables) >= SAMPLED:
        runs = result if isinstance(result, Comparison) else [last]
        yield "realistic.png", partial(plotting.realistic, runs)
    settings = result.shared if isinstance(result, Overlay) else first.settings
    if settings.get("closure", {}).get("labels"):
        closure = settings["closure"]
        yield "classes.png", partial(plotting.entry_classes, closure, first.parameters)


def table(system: System, result: Result) -> str:
    """Lines of text on a result: parameters, events, deviations and outcome."""
    first = _first(result)
    law = {n: entry for n, entry in first.parameters.items() if entry not in (None, (), [])}
    held = result.shared if isinstance(result, Overlay) else first.settings
    settings = {k: v for k, v in held.items() if not isinstance(v, (list, dict))}
    laws = result.outcome.kind != DIVERGED
    lines = [
        system.title,
        ", ".join(f"{name}={brief(_entry(entry))}" for name, entry in law.items()),
        ", ".join(f"{name}={entry}" for name, entry in settings.items()),
        *(closure_lines(held["closure"], laws) if "closure" in held else []),
        "",
    ]
    if isinstance(result, Overlay) and result.flow is None:
        return "\n".join([*lines, *_by_rule(result), f"{'outcome':<20}{result.outcome}"])
    runs = (result.reduced, result.full) if isinstance(result, Comparison) else (first,)
    lines += _event_lines(system, runs)
    lines += _notes(system, {name for run in runs for name in run.events if run.events[name]})
    if isinstance(result, Comparison):
        lines += ["", f"{'state':<20}largest |reduced - full| over {len(result.time)} records"]
        largest = _largest(result.deviation)
        lines += [f"{name:<20}{value:.1e}" for name, value in largest.items()]
        if len(largest) < len(result.deviation):
            lines.append(f"the {len(largest)} largest of {len(result.deviation)}")
        if "outside" in result.full.observables:
            lines.append(f"{'off closed space':<20}{result.full['outside'].max():.1e}")
        if departs(result):
            lines += _departures(system, result)
    if isinstance(result, Overlay):
        lines += ["", *_distances(result)]
    end, final = "at the end", _final(first)
    if isinstance(result, (Comparison, Overlay)):
        end = "reduced, end" if isinstance(result, Comparison) else "flow, end"
    states = {name: final[name] for name in first.layout.names if name in final}
    names = [*(_largest(states) or system.presentation.plot.overlaid), *SHOWN]
    names += first.events
    if len(states) > MOST_ROWS:
        end = f"{end}, {MOST_SHOWN} of {len(states)}"
    numbers = [f"{name}={final[name]:.6g}" for name in dict.fromkeys(names) if name in final]
    lines += ["", f"{end:<20}" + ", ".join(numbers)]
    fulls = result.fulls if isinstance(result, Comparison) else (first,)
    if set(fulls[0].observables) >= SAMPLED:
        lines += [_sampled(run) for run in fulls]
    return "\n".join([*lines, f"{'outcome':<20}{result.outcome}"])


def _largest(numbers: Mapping[str, float]) -> dict[str, float]:
    """All entries if at most `MOST_ROWS`, else the `MOST_SHOWN` of largest absolute value."""
    if len(numbers) <= MOST_ROWS:
        return dict(numbers)
    largest = sorted(numbers, key=lambda name: -abs(numbers[name]))[:MOST_SHOWN]
    return {name: value for name, value in numbers.items() if name in largest}


def _missing(reason: str) -> str:
    """Text for an event that is not reached, with the reason."""
    return reason if reason.startswith("not reached") else f"not reached: {reason}"


def _event_lines(system: System, runs: Sequence[Trajectory]) -> list[str]:
    """Lines with the times of each event in all runs, and a remark if its condition later fails."""
    if not runs[0].events:
        return ["no events"]
    lines = [f"{'event':<20}{''.join(f'time, {run.view}'.ljust(28) for run in runs)}step"]
    for name in runs[0].events:
        events = [run.events[name] for run in runs]
        steps = {other.step for other in events if other.step is not None}
        row = "".join(f"{_time(other):<28}" for other in events)
        row += ", ".join(map(str, sorted(steps, key=str)))
        every = (part for run in runs for part in run.reasons.get(name, "").split("; ") if part)
        reasons = "; ".join(dict.fromkeys(every))
        if not any(events):
            row = _missing(reasons)
        elif reasons:
            row += f"  ({reasons})"
        if ended := [run.view for run in runs if _lapsed(system, run, name)]:
            row += f"  (no longer at the end{'' if len(ended) == len(runs) else ': ' + ended[0]})"
        lines.append(f"{name:<20}{row}")
    return lines


def _lapsed(system: System, run: Trajectory, name: str) -> bool:
    """Whether the condition of a reached event is known to fail at the end of a run."""
    rules = {rule.name: rule for rule in getattr(system.ReducedPopulation, "events", ())}
    rule, final = rules.get(name), _final(run)
    if not run.events[name] or rule is None:
        return False
    if name in SAMPLED and name in final:  # share of rows of the logits that meet the condition
        return final[name] < 1.0
    known = {n: v for n, v in (dict(run.parameters) | final).items() if isinstance(v, (int, float))}
    if not rule.latex:  # an event rule of a model file has no LaTeX
        try:
            rule = event_rule(name, rule.meaning, list(known))
        except ModelError:  # the event's condition contains rates
            return False
    if not isinstance(rule, Crossing):
        return False
    value = rule.expression.subs({s: known.get(s.name, s) for s in rule.expression.free_symbols})
    is_known = value.is_number and value.is_real
    return bool(is_known and (value <= 0 if rule.strict else value < 0))


def _notes(system: System, happened: Container[str]) -> list[str]:
    """Footnotes of the reached events whose rules have a note."""
    rules = getattr(system.ReducedPopulation, "events", ())
    notes = [f"{rule.name}: {rule.note}" for rule in rules if rule.note and rule.name in happened]
    lines = [textwrap.wrap(note, NOTE, subsequent_indent="  ") for note in notes]
    return ["", *chain.from_iterable(lines)] if lines else []


def _entry(entry: Any) -> str:
    """Text of a parameter's value: a number, a word, or a list."""
    if isinstance(entry, (list, tuple)):
        return f"({', '.join(map(_entry, entry))})"
    return entry if isinstance(entry, str) else f"{entry:.6g}"


def _sampled(run: Trajectory) -> str:
    """Line of text on a run on samples: final patch association, errors and cosine."""
    end = _final(run)
    line = (
        f"{'seed ' + str(run.settings['seed']):<20}"
        f"{end['patch_association']:.0%} of the rows associated, test error "
        f"{end['test_error']:.2%} (training {end['error']:.2%}, irreducible "
        f"{end['bayes_error']:.2%}), cosine {end['cosine']:.4f}"
    )
    memorised = end["error"] < MEMORISED * end["test_error"] and run.time[-1] >= MEMORISED_FROM
    if end["patch_association"] == 1.0 or not memorised:
        return line
    return (
        f"{line}\n{'':<20}memorised: the {run.settings['samples']:,} samples are fitted better "
        "than fresh ones, and the sets are not found; more samples help"
    )


def departs(result: Any) -> bool:
    """Whether a result compares the scalars of runs on samples with those of a reduced run."""
    sampled = isinstance(result, Comparison) and "samples" in result.full.settings
    return sampled and bool(result.relative_deviations)


def _departures(system: System, result: Comparison) -> list[str]:
    """One line of text for each state: times of departure from the reduced run, final deviation."""
    times = [result.departures(share) for share in DEPARTURE_SHARES]
    heads = "".join(f"{f'{100 * share:g} %':<26}" for share in DEPARTURE_SHARES)
    lines = ["", f"{'away for good by':<20}{heads}at the end (relative)"]
    for name, rows in result.relative_deviations.items():
        row = "".join(f"{_departure(left[name]):<26}" for left in times)
        lines.append(f"{name:<20}{row}{_range(100 * rows[:, -1])} %")
    count = len(result.fulls)
    meaning = "time after which the deviation exceeds that share of the reduced value"
    lines.append(f"{'':<20}{meaning}{f', over {count} seeds' if count > 1 else ''}")
    apart = any(rows[:, 0].any() for rows in result.relative_deviations.values())
    if apart and SYMMETRIC in system.empirical_options.get("start", ""):
        lines.append(f"{'':<20}with --start {SYMMETRIC} only the samples differ between runs")
    return lines


def _departure(times: FloatArray) -> str:
    """Range over all seeds of the departure times of a state, as text."""
    left = times[np.isfinite(times)]
    if not left.size:
        return "not at the end"
    return _range(left) + ("" if left.size == times.size else f" ({left.size} of {times.size})")


def _range(values: FloatArray) -> str:
    low, high = (f"{edge:.3g}" for edge in (values.min(), values.max()))
    return low if low == high else f"{low} to {high}"


def _distances(result: Overlay) -> list[str]:
    """Lines with the largest distance of each run from the flow, and the fitted power of eta."""
    names = list(result.deviations)
    wide = {name: max(12, len(name) + 4) for name in names}
    heads = "".join(f"{'|' + name + '|':<{wide[name]}}" for name in names)
    lines = [f"{'eta':<12}{heads}outcome"]
    for k, run in enumerate(result.runs):
        row = "".join(f"{result.deviations[name][k]:<{wide[name]}.2e}" for name in names)
        lines.append(f"{run.settings['eta']:<12g}{row}{run.outcome.kind}")
    lines.append(f"{'order':<12}" + "".join(f"{result.orders[n]:<{wide[n]}.3f}" for n in names))
    return lines


def _by_rule(result: Overlay) -> list[str]:
    """Table of an overlay, one column for each run: steps of events, final values, outcome."""
    labels, runs = result.labels, result.runs
    names, ends = result.first.presentation.plot.overlaid, [_final(run) for run in runs]
    rows = {"event": list(labels)}
    for name in runs[0].events:
        events = [run.events[name] for run in runs]
        rows[name] = [f"step {event.step}" if event else "none" for event in events]
    for name in (n for n in names if any(n in end for end in ends)):
        rows[f"{name}, end"] = [f"{end[name]:.6g}" if name in end else "" for end in ends]
    rows["how it ended"] = [run.outcome.kind for run in runs]
    wide = [2 + max(len(row[k]) for row in rows.values()) for k in range(len(runs))]
    return [
        f"{name:<20}" + "".join(f"{cell:<{w}}" for cell, w in zip(row, wide, strict=True)).rstrip()
        for name, row in rows.items()
    ]


def _time(event: Event) -> str:
    if not event:
        return "none"
    margin = f" ± {event.uncertainty:.1g}" if event.uncertainty > 1e-5 * event.time else ""
    return f"{event.time:.6g}{margin}"


@dataclass(frozen=True)
class Beside:
    """Reduced run at other parameters, set beside the reduced run of a comparison."""

    contrast: Contrast
    first: Trajectory
    """Reduced run of the comparison."""
    run: Trajectory
    """Reduced run at the parameters of `contrast`."""
    remark: str
    """Sentences on the difference between the two runs."""

    def document(self) -> dict[str, Any]:
        """JSON-ready values: parameters of the contrast, results of its run, and the remark."""
        whole = document(self.run)
        parts = {name: whole[name] for name in ("events", "reasons", "final", "outcome")}
        return {"parameters": dict(self.contrast.parameters), **parts, "remark": self.remark}

    def lines(self) -> list[str]:
        """Lines of text: events reached only by `first`, final values of `run`, and the remark."""
        end = document(self.run)["final"]
        lines = ["", f"{'compared with':<20}{self._label(self.run)}, reduced"]
        for name, event in self.run.events.items():
            if self.first.events[name] and not event:
                lines.append(f"{name:<20}{_missing(event.reason)}")
        names = [*self.run.layout.names, *SHOWN]
        numbers = ", ".join(f"{name}={end[name]:.6g}" for name in names if name in end)
        return [*lines, f"{'at the end':<20}{numbers}", f"{'criterion':<20}{self.remark}", ""]

    def pictures(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        """File name of the overlay of both runs, and function that draws the overlay."""
        from dynamics import plotting

        runs = {self._label(run): run for run in (self.first, self.run)}
        yield "beside.png", partial(plotting.several, runs, self.contrast.overlaid)

    def _label(self, run: Trajectory) -> str:
        letters = run.presentation.notation
        return ", ".join(
            f"{letters[name].letter} = {run.parameters[name]}" for name in self.contrast.parameters
        )


def lay_beside(
    system: System,
    contrast: Contrast,
    first: Trajectory,
    options: Mapping[str, Any],
    train: Callable[[Any], Trajectory],
) -> Beside:
    """Train the reduced problem at the parameters of a contrast.

    The run `first` is the reduced run of the comparison, and `options` are those of
    `System.problem`. The function `train` trains a problem with the settings of the comparison.
    """
    parameters = system.Parameters(**first.parameters)
    other = dataclasses.replace(parameters, **contrast.parameters)
    run = train(system.problem(other, None, options))
    return Beside(contrast, first, run, contrast.remark(parameters))
