"""What the command line prints, draws and writes."""

from __future__ import annotations

import json
import math
import os
import tempfile
import textwrap
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.results.comparison import Comparison, Overlay
from dynamics.results.event import Event
from dynamics.results.storage import Result
from dynamics.results.trajectory import Trajectory
from dynamics.validation import InvalidRequest, brief
from theory.closure import closure_lines

if TYPE_CHECKING:
    from dynamics.registry import System

PICTURES = (".png", ".svg", ".pdf")
"""Endings of pictures."""
SAMPLED = {"test_error", "patch_association", "cosine"}
"""Observables that only runs on samples have."""
NOTE = 96
"""Columns of a footnote."""
MEMORISED = 0.5
"""Share of the test error below which the training error says that samples were memorised."""
MEMORISED_FROM = 50.0
"""Time before which association may only not have begun."""


def json_text(document: Any) -> str:
    """A document as JSON; infinity and NaN, which JSON does not know, become null."""
    return json.dumps(_finite(document), indent=2, allow_nan=False, default=str)


def _finite(content: Any) -> Any:
    if isinstance(content, np.ndarray | np.generic):
        content = content.tolist()
    if isinstance(content, list | tuple):
        return [_finite(entry) for entry in content]
    if isinstance(content, Mapping):
        return {key: _finite(entry) for key, entry in content.items()}
    return None if isinstance(content, float) and not math.isfinite(content) else content


def print_result(flags: Mapping[str, Any], document: Any, text: str) -> None:
    """Print a result: one JSON document with ``--json``, else its text.

    Parameters
    ----------
    flags : mapping
        Of the command.
    document : dict
        Plain values.
    text : str
    """
    print(json_text(document) if flags.get("json") else text)


def writable(path: Any, endings: tuple[str, ...]) -> Path:
    """A file that can be written, checked before anything is computed.

    Parameters
    ----------
    path : path-like
    endings : tuple of str
        Those that its name may have.

    Raises
    ------
    InvalidRequest
        If the path has another ending, is a folder, or cannot be written.
    """
    target = Path(str(path))
    if target.suffix.lower() not in endings:
        raise InvalidRequest(
            f"{str(path)!r} can end in {', '.join(endings)}; nearest: {endings[0]}"
        )
    try:
        if target.is_dir():
            raise InvalidRequest(f"{str(path)!r} is a folder; it can be a file")
        parent = next(folder for folder in target.absolute().parents if folder.exists())
        with tempfile.TemporaryDirectory(dir=parent) as folder:
            (Path(folder) / _temporary(target).name).touch()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InvalidRequest(
            f"{str(path)!r} cannot be written ({reason}); it can be a new file in a folder of yours"
        ) from None
    return target


def write_whole(path: Path, write: Callable[[Path], Any]) -> Path:
    """Write a file whole or not at all.

    Parameters
    ----------
    path : Path
    write : callable
        Writes to the path that it is given.

    Returns
    -------
    Path
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary(path)
    try:
        write(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def write_folder(
    out: Path,
    document: dict[str, Any],
    pictures: Iterable[tuple[str, Any]],
    result: Result | None = None,
    texts: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Write a folder of pictures with a summary, whole or not at all.

    Parameters
    ----------
    out : Path
    document : dict
        Plain values.
    pictures : iterable of (str, Axes)
        File names and axes.
    result : Trajectory, Comparison or Overlay, optional
        Written too.
    texts : mapping, optional
        File name -> text of further files.

    Returns
    -------
    dict
        The document with the names of the other files as ``files``, as in ``summary.json``.
    """
    from dynamics import plotting
    from dynamics.results import storage

    with storage.fresh_folder(out) as folder:
        if result is not None:
            storage.write_groups(result, folder / storage.INSIDE)
        files = [plotting.write(axes, folder / name).name for name, axes in pictures]
        for name, text in (texts or {}).items():
            (folder / name).write_text(text, encoding="utf-8")
        document = document | {"files": [*files, *(texts or {})]}
        (folder / "summary.json").write_text(json_text(document) + "\n", encoding="utf-8")
        storage.put(folder, out)
    return document


def _temporary(path: Path) -> Path:
    """The name under which a file is written first; the ending chooses the format."""
    return path.with_name(f".{path.name}.new{path.suffix}")


def document(result: Result) -> dict[str, Any]:
    """The JSON document of a result: plain numbers."""
    content: dict[str, Any]
    first = _first(result)
    if isinstance(result, Overlay):
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
            "seeds": [_seed(run) for run in result.fulls],
        }
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
        "settings": {n: entry for n, entry in first.settings.items() if n != "closure"},
        "outcome": result.outcome.kind,
        "outcome_step": result.outcome.step,
        "remedy": result.outcome.remedy,
    }
    if "closure" in first.settings:
        head["closure"] = first.settings["closure"]
    return head | content


def _times(run: Trajectory) -> dict[str, float | None]:
    return {name: event.time if event else None for name, event in run.events.items()}


def _steps(run: Trajectory) -> dict[str, int | None]:
    return {name: event.step for name, event in run.events.items()}


def _final(run: Trajectory) -> dict[str, float]:
    """Scalar parts of the state and observables at the end."""
    pairs = zip(run.layout.names, run.layout.shapes, strict=True)
    series = {name: run[name] for name, shape in pairs if shape == ()} | dict(run.observables)
    return {name: float(values[-1]) for name, values in series.items()}


def _seed(run: Trajectory) -> dict[str, Any]:
    """The result of one seed of a full problem."""
    named = {"seed": run.settings["seed"]} if "seed" in run.settings else {}
    return named | {"outcome": str(run.outcome), "events": _times(run), "final": _final(run)}


def _first(result: Result) -> Trajectory:
    """The run that stands for a result: the reduced one of a comparison, the flow of an overlay."""
    if isinstance(result, Comparison):
        return result.reduced
    return result.flow if isinstance(result, Overlay) else result


def pictures(result: Result) -> Iterator[tuple[str, Any]]:
    """File names and axes of the pictures of a result."""
    from dynamics import plotting

    first = _first(result)
    if np.count_nonzero(first.time > 0) < 2:
        return
    last: Trajectory | None = result.full if isinstance(result, Comparison) else first
    if isinstance(result, Overlay):
        yield "overlay.png", plotting.overlay(result)
        last = None
    elif isinstance(result, Comparison):
        yield "training.png", plotting.comparison(result)
    else:
        yield "training.png", plotting.training(result)
    if last is not None and "sets" in last.settings and "A" in last.layout.names:
        yield "attention.png", plotting.attention(last)
    if isinstance(result, Comparison):
        yield "deviation.png", plotting.deviation(result)
    if last is not None and set(last.observables) >= SAMPLED:
        runs = result if isinstance(result, Comparison) else [last]
        yield "realistic.png", plotting.realistic(runs)
    if first.settings.get("closure", {}).get("labels"):
        yield "classes.png", plotting.entry_classes(first.settings["closure"], first.parameters)


def table(system: System, result: Result) -> str:
    """Parameters, events, deviations and outcome of a result as lines of text.

    Parameters
    ----------
    system : System
    result : Trajectory, Comparison or Overlay

    Returns
    -------
    str
    """
    first = _first(result)
    law = {n: entry for n, entry in first.parameters.items() if entry not in (None, (), [])}
    settings = {k: v for k, v in first.settings.items() if not isinstance(v, (list, dict))}
    lines = [
        system.title,
        ", ".join(f"{name}={brief(_entry(entry))}" for name, entry in law.items()),
        ", ".join(f"{name}={entry}" for name, entry in settings.items()),
        *(closure_lines(first.settings["closure"]) if "closure" in first.settings else []),
        "",
    ]
    runs = (result.reduced, result.full) if isinstance(result, Comparison) else (first,)
    lines.append(f"{'event':<20}" + "".join(f"{'time, ' + run.view:<28}" for run in runs) + "step")
    for name in first.events:
        events = [run.events[name] for run in runs]
        steps = {other.step for other in events if other.step is not None}
        row = "".join(f"{_time(other):<28}" for other in events)
        row += ", ".join(map(str, sorted(steps, key=str)))
        reasons = "; ".join(dict.fromkeys(r.reasons[name] for r in runs if name in r.reasons))
        if not any(events):
            row = f"none: {reasons}"
        elif reasons:
            row += f"  ({reasons})"
        lines.append(f"{name:<20}{row}")
    lines += _notes(system, {name for run in runs for name in run.events if run.events[name]})
    if isinstance(result, Comparison):
        lines += ["", f"{'state':<20}largest |reduced - full| over {len(result.time)} records"]
        lines += [f"{name:<20}{value:.1e}" for name, value in result.deviation.items()]
        if "outside" in result.full.observables:
            lines.append(f"{'outside the space':<20}{result.full['outside'].max():.1e}")
    if isinstance(result, Overlay):
        lines += ["", *_distances(result)]
    end, final = "at the end", _final(first)
    if isinstance(result, (Comparison, Overlay)):
        end = "reduced, end" if isinstance(result, Comparison) else "flow, end"
    names = [name for name in first.layout.names if name in final]
    names = [*(names or system.plot_description.overlaid), "G", "risk", "error"]
    numbers = [f"{name}={final[name]:.6g}" for name in dict.fromkeys(names) if name in final]
    lines += ["", f"{end:<20}" + ", ".join(numbers)]
    fulls = result.fulls if isinstance(result, Comparison) else (first,)
    if set(fulls[0].observables) >= SAMPLED:
        lines += [_sampled(run) for run in fulls]
    return "\n".join([*lines, f"{'outcome':<20}{result.outcome}"])


def _notes(system: System, happened: Container[str]) -> list[str]:
    """A footnote for every event that happened and whose time misleads, as its rule has it."""
    rules = getattr(system.ReducedPopulation, "events", ())
    notes = [f"{rule.name}: {rule.note}" for rule in rules if rule.note and rule.name in happened]
    lines = [textwrap.wrap(note, NOTE, subsequent_indent="  ") for note in notes]
    return ["", *chain.from_iterable(lines)] if lines else []


def _entry(entry: Any) -> str:
    """A parameter: a number, a word, or several of them."""
    if isinstance(entry, (list, tuple)):
        return f"({', '.join(map(_entry, entry))})"
    return entry if isinstance(entry, str) else f"{entry:.6g}"


def _sampled(run: Trajectory) -> str:
    """One line on a run on samples: association, errors, cosine at the end."""
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
        "than fresh ones, without the sets; more samples help"
    )


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


def _time(event: Event) -> str:
    if not event:
        return "none"
    margin = f" ± {event.uncertainty:.1g}" if event.uncertainty > 1e-5 * event.time else ""
    return f"{event.time:.6g}{margin}"
