"""Write the generated pages of the site: models, verdicts, gallery, notebooks, reference.

Descriptions of models come from `dynamics.description` at every build, pictures and verdicts from
the cache (`cache`).
"""

from __future__ import annotations

import importlib
import inspect
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from cache import CACHE, Item, items
from cards import bar, called, doors, gallery, legend
from explorers import frame, listed, write_explorers

from dynamics.library import built_in_names, system_names
from dynamics.registry import load_system, title
from dynamics.system import System
from dynamics.verdicts.gallery import source_of
from dynamics.verdicts.verdict_report import prose
from theory.closure import closure_lines

REFERENCE = {
    "dynamics": ("Runs, comparisons, sweeps, verdicts", "dynamics", ()),
    "systems": (
        "Systems, problems and descriptions",
        "",
        (
            "dynamics.problem.Problem", "dynamics.problem.Layout",
            "dynamics.description.Description", "dynamics.description.Symbol",
            "dynamics.description.Definition", "dynamics.presentation.Presentation",
            "dynamics.verdicts.figure.Drawing",
        ),
    ),
    "plotting": ("Pictures", "dynamics.plotting", ()),
    "phase_diagrams": ("Phase diagrams of sweeps", "dynamics.phase_diagrams", ()),
    "analysis": (
        "Stability and phase planes",
        "",
        (
            "dynamics.analysis.transverse_stability.transverse",
            "dynamics.analysis.transverse_growth.transverse_growth",
            "dynamics.analysis.phase_portrait.plane.portrait",
            "dynamics.analysis.phase_portrait.plane.Portrait",
        ),
    ),
    "theory": ("Models, symmetry, derivations", "theory", ()),
    "errors": (
        "Errors",
        "",
        (
            "dynamics.validation.InvalidRequest", "dynamics.sweep.store.StoreError",
            "dynamics.sweep.cluster.SchedulerGone",
        ),
    ),
    "types": (
        "Types of the theory",
        "",
        (
            "theory.closure.Closure", "theory.page.Page",
            "theory.notation.Notation", "theory.claims.Claim", "theory.events.Crossing",
            "theory.events.ExceedsRunMaximum", "theory.events.RisesAgain",
        ),
    ),
}  # fmt: skip
"""Page of the reference -> heading, package of its public names, further names."""
BOUND = re.compile(r"\| \\?(<=|>=|<|>) (\S+) \|")
"""Claimed value in a table of verdicts."""
SIGNS = {
    "<=": "\N{LESS-THAN OR EQUAL TO}", ">=": "\N{GREATER-THAN OR EQUAL TO}",
    "<": "\\<", ">": "\\>",
}  # fmt: skip


def write(folder: Path) -> None:
    """Write every generated page to the folder of the site's sources."""
    cached, explored = list(items()), write_explorers(folder / "extra")
    for item in cached:
        if not item.is_current():
            print(f"{item.system}/{item.name} is not in the cache, or out of date: make docs-cache")
    for name in system_names():
        own = [item for item in cached if item.system == name]
        more = [frame(name)] if name in explored else []
        text = _model(load_system(name), own, folder, more)
        _write(folder / "models" / f"{name}.md", text)
    if explored:
        titles = [prose(_short(name)) for name in explored]
        _write(folder / "explorers.md", listed(explored, titles))
    names = [f"{_short(name)} <{name}>" for name in system_names()]
    _write(folder / "models" / "index.md", _listed(names, "Pages"))
    verdicts = [item for item in cached if item.name == "verdicts" and item.read()]
    for item in verdicts:
        _write(folder / "verdicts" / f"{item.system}.md", _verdicts(item, folder))
    _write(folder / "verdicts" / "index.md", _verdict_index(verdicts))
    _write(folder / "gallery.md", _gallery(cached, folder))
    _write(folder / "doors.md", doors(folder))
    _write(folder / "notebooks" / "index.md", _notebooks())
    _reference(folder / "api")


def _short(name: str) -> str:
    return re.sub(r"\s*\(.*", "", title(name))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.rstrip() + "\n", encoding="utf-8")


def _listed(names: Sequence[str], caption: str) -> str:
    """Visible table of contents as Markdown."""
    return "\n".join([f"## {caption}", "", "```{toctree}", ":maxdepth: 1", "", *names, "```"])


def _picture(item: Item, folder: Path, page: str) -> str:
    """Copy the picture of an item into the sources; return its path relative to the page."""
    target = folder / "pictures" / item.system / item.picture.name
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(item.picture, target)
    return "../" * page.count("/") + target.relative_to(folder).as_posix()


def _model(system: System, own: Sequence[Item], folder: Path, more: Sequence[str]) -> str:
    """Page of a model: description, further sections, training, figures, file and verdicts."""
    page, name = f"models/{system.name}", system.name
    parts = [system.describe().as_markdown().rstrip()]
    claims = parts[0].find("\n## Claims\n")
    parts[0] = parts[0][: claims if claims > 0 else None].rstrip()
    parts += more
    if system.claims:
        parts.append(
            f"## Claims\n\n{len(system.claims)} statements of the paper are measured: "
            f"[verdicts](../verdicts/{name}.md)."
        )
    if system.model is not None:
        closure = system.closure(system.Parameters()).document()
        parts.append("\n".join(["## What closes", "", "```text", *closure_lines(closure), "```"]))
    for item in own:
        record = item.read()
        if record is None or item.name == "verdicts":
            continue
        heading = "Training" if item.name == "training" else item.name.replace("figure-", "Figure ")
        caption = prose(record.get("caption", "")) or _training_words(system)
        parts.append(f"## {heading}\n\n![{heading} of {name}]({_picture(item, folder, page)})")
        parts.append(f"```sh\n{record['command']}\n```\n\n{caption}")
    if system.model is not None:
        parts.append(f"## The file\n\n```python\n{source_of(system)[1]}\n```")
    return "\n\n".join(parts)


def _training_words(system: System) -> str:
    run = system.default_runs["compare"]
    given = ", ".join(f"{name}={value}" for name, value in run.parameters.items())
    return (
        f"Lines are the reduced problem, markers the full one: gradient descent at learning rate "
        f"{run.eta:g}, {run.steps:,} steps{', ' + given if given else ''}."
    )


def _verdicts(item: Item, folder: Path) -> str:
    """Page with the report on a paper and the pictures of its evidence."""
    source = item.record.with_suffix("")
    target = folder / "verdicts" / item.system
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.md"), dirs_exist_ok=True)
    text = (source / "verdicts.md").read_text(encoding="utf-8")
    text = re.sub(r"(?<=\]\()(?=[\w-]+\.png\))", f"{item.system}/", text)
    text = BOUND.sub(_bound, text)
    record = item.read()
    command = f"```sh\n{record['command']} --report report\n```"
    heading, _, rest = text.split("\n\n", 2)  # the bar stands for the counts
    model = f"The model: [{item.system}](../models/{item.system}.md)."
    if added := item.unmeasured():
        model += f" Without a verdict here, because they were added since: {'; '.join(added)}."
    shares = bar(list(record["verdicts"].values()))
    return "\n\n".join([heading, legend(), shares, model, command, rest])


def _bound(match: re.Match[str]) -> str:
    """Cell of a claimed value, with signs instead of ASCII and without a place to break."""
    value = match[2].replace("-", "\N{MINUS SIGN}")
    return f"| {SIGNS[match[1]]}\N{NO-BREAK SPACE}{value} |"


def _verdict_index(verdicts: Sequence[Item]) -> str:
    rows = ["## Papers", "", legend(), ""]
    for item in verdicts:
        words = list((item.read() or {})["verdicts"].values())
        link = f"[{prose(title(item.system))}]({item.system}.md)"
        rows += [f"{link}, {len(words)} claims", "", bar(words), ""]
    entries = [f"{_short(item.system)} <{item.system}>" for item in verdicts]
    contents = ["", "```{toctree}", ":hidden:", "", *entries, "```"]
    return "\n".join([*rows, *contents])


def _gallery(cached: Sequence[Item], folder: Path) -> str:
    """Gallery of thumbnails; each picture gets its own page with command and caption."""
    papers, shown = built_in_names(), {}
    for name in (*papers, *(n for n in system_names() if n not in papers)):
        own = [item for item in cached if item.system == name and item.name != "verdicts"]
        shown[prose(_short(name))] = kept = [item for item in own if item.read()]
        for item in kept:
            record, page = item.read() or {}, f"gallery/{name}-{item.name}"
            heading = f"# {prose(_short(name))}: {called(item)}"
            picture = f"![{item.name} of {name}]({_picture(item, folder, page)})"
            caption = prose(record.get("caption", "")) or _training_words(load_system(name))
            links = f"[The model](../models/{name}.md) · [Gallery](../gallery.md)"
            command = f"```sh\n{record['command']}\n```"
            text = "\n\n".join([heading, picture, caption, command, links])
            _write(folder / f"{page}.md", text)
    return "\n\n".join(gallery("Gallery", shown, folder))


def _notebooks() -> str:
    names = sorted(path.stem for path in (CACHE.parents[1] / "notebooks").glob("*.ipynb"))
    return "# Notebooks\n\nWith the outputs of the committed code.\n\n" + _listed(names, "Stories")


def _reference(folder: Path) -> None:
    """Write the pages of the reference: public names with their docstrings, by package."""
    name = "Reference"
    contents = ["", ".. toctree::", "   :maxdepth: 1", "", *(f"   {name}" for name in REFERENCE)]
    _write(folder / "index.rst", "\n".join([name, "=" * len(name), *contents]))
    for page, (heading, package, names) in REFERENCE.items():
        objects = _public(package) if package else list(names)
        lines = [heading, "=" * len(heading), ""]
        if package:
            lines += [f".. automodule:: {package}", "   :no-members:", ""]
        lines += [".. autosummary::", "", *(f"   {name}" for name in objects), ""]
        for name in objects:
            whole = f"{package}.{name}" if package else name
            lines += [f".. {_directive(_object(whole))}:: {name}", ""]
        _write(folder / f"{page}.rst", "\n".join(lines))


def _directive(thing: object) -> str:
    if not inspect.isclass(thing):
        return "autofunction"
    return "autoexception" if issubclass(thing, Exception) else "autoclass"


def _public(package: str) -> list[str]:
    module = importlib.import_module(package)
    return [name for name in module.__all__ if callable(getattr(module, name))]


def _object(name: str) -> object:
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)
