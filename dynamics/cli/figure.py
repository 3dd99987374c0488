"""``attdyn figure``: a figure of a paper, or a figure that accompanies a verdict."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamics.cli.arguments import CommandRequest, Parser, value, values
from dynamics.cli.files import PICTURES, picture_line, print_result, writable, write_files
from dynamics.cli.picture_flags import add_picture_flags, picture_file, picture_look
from dynamics.training.progress import interruption
from dynamics.validation import InvalidRequest, integer, unknown

if TYPE_CHECKING:
    from dynamics.verdicts.figure import Drawing


def add_flags(parser: Parser) -> None:
    """Add the command's flags and those of each figure, without the system's parameters."""
    from dynamics.verdicts.draw import figures
    from dynamics.verdicts.figure import flags_of

    for name, figure in figures(parser.system).items():
        switches, own = flags_of(figure)
        parser.add_switches(switches, group=f"figure {name}")
        parser.add_flags(own, values, group=f"figure {name}")
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help=f"one of {', '.join(figures(parser.system))}"
    )
    parser.add_switches({"thorough": "the protocol of the paper in full, which takes longer"})
    option = "setting of the figure, as seeds=3; may be repeated"
    parser.add_argument("--option", action="append", metavar="NAME=VALUE", help=option)
    parser.add_flags({"seed": "random seed (default 0)"}, value)
    out = {"out": "picture: .png, .svg or .pdf (default results/figure-SYSTEM-NAME.png)"}
    parser.add_flags(out, metavar="FILE")
    add_picture_flags(parser)


def execute(request: CommandRequest) -> int:
    """Draw and write a figure, and return the exit code."""
    from dynamics.verdicts.draw import draw, figures
    from dynamics.verdicts.figure import flags_of

    options, system = request.flags, request.system
    names = list(figures(system))
    if not names:
        raise InvalidRequest(f"{system.name} has no figures")
    name = options.get("name")
    if name is None:
        raise InvalidRequest(f"figure needs the name of a figure: {', '.join(names)}")
    if name not in names:
        raise unknown("figure", str(name), names)
    file = picture_file(options, f"results/figure-{system.name}-{name}.png")
    out = writable(file, PICTURES)
    seed = integer("seed", options.get("seed", 0), at_least=0)
    thorough = options.get("thorough", False)
    settings = _options(options.get("option", [])) | _flags_of_figure(request, name)
    resumes = "resume" in flags_of(figures(system)[name])[0]
    checkpoints = out.parent / f".{out.stem}.checkpoints" if resumes else None
    if checkpoints is not None:
        _remark_on(checkpoints, bool(settings.get("resume")))
        settings["checkpoints"] = str(checkpoints)
    with interruption() as interrupted, picture_look(options) as look:
        try:
            drawing = draw(system, name, request.entries, seed, thorough, settings)
        except (Exception, KeyboardInterrupt):
            if not interrupted.is_set():
                raise
        if interrupted.is_set():
            rest = "" if checkpoints is None else "; the same command with --resume goes on"
            print(f"attdyn: interrupted, nothing is written{rest}", file=sys.stderr)
            return 130
    if look.linear and not look.timed:
        remark = f"figure {name} has no logarithmic time axis, which --linear would change"
        print(f"attdyn: {remark}", file=sys.stderr)
    if look.needed:
        remark = f"is {2.54 * look.needed:.3g} cm wide, which its panels side by side need"
        print(f"attdyn: figure {name} {remark}", file=sys.stderr)
    _add_caption(drawing)
    files, code = write_files(out, lambda: drawing.axes, {})
    if checkpoints is not None and code == 0:
        shutil.rmtree(checkpoints, ignore_errors=True)
    document = {"figure": name, "caption": drawing.caption, "file": str(out) if files else None}
    document |= {"table": [*map(dict, drawing.table)]} if drawing.table else {}
    written = [picture_line(Path(name)) for name in files]
    lines = [drawing.caption, *_columns(drawing.table), *written]
    print_result(options, document | {"data": dict(drawing.data)}, "\n".join(lines))
    return code


def _add_caption(drawing: Drawing) -> None:
    """Prepend the figure's caption to the caption file of the picture."""
    from numpy import ravel

    from dynamics.plotting.style import CAPTION

    figure = ravel(drawing.axes)[0].figure
    parts = (drawing.caption, getattr(figure, CAPTION, ""))
    setattr(figure, CAPTION, "\n".join(filter(None, parts)))


def _remark_on(checkpoints: Path, resumed: bool) -> None:
    """Report the number of runs in a checkpoint folder, and whether they are resumed or dropped."""
    count = len([*checkpoints.glob("*.checkpoint")])
    if resumed and not count:
        raise InvalidRequest(
            f"there is nothing to resume: no runs in {str(checkpoints)!r}; run without --resume"
        )
    if count:
        runs = f"run{'s' if count > 1 else ''}"
        remark = (
            f"{count} {runs} of {checkpoints}, the last of which may be unfinished"
            if resumed
            else f"{count} {runs} of an earlier figure: without --resume it starts anew"
        )
        print(f"attdyn: {'resumes' if resumed else 'drops'} {remark}", file=sys.stderr)


def _flags_of_figure(request: CommandRequest, name: str) -> dict[str, Any]:
    """Select the flags that are options of a figure; refuse options of another figure."""
    from dynamics.verdicts.draw import figures
    from dynamics.verdicts.figure import flags_of

    every = {each: flags_of(figure) for each, figure in figures(request.system).items()}
    settings: dict[str, Any] = {}
    for each, (switches, others) in every.items():
        given = request.flags.keys() - request.entries.keys()  # excludes the model's parameters
        for flag in (flag for flag in (*switches, *others) if flag in given):
            if flag not in {**every[name][0], **every[name][1]}:
                raise InvalidRequest(f"--{flag} is an option of figure {each}, not of {name}")
            settings[flag] = 1 if flag in switches else request.flags[flag]
    return settings


def _columns(table: Sequence[Mapping[str, Any]]) -> list[str]:
    """Lines of tables; a row joins the table above it if either has all columns of the other."""
    blocks: list[list[Mapping[str, Any]]] = []
    shared: set[str] = set()
    for row in table:
        if blocks and (shared <= row.keys() or shared >= row.keys()):
            blocks[-1].append(row)
            shared |= row.keys()
        else:
            blocks.append([row])
            shared = set(row)
    lines = [line for block in blocks for line in ("", *_block(block))]
    return [*lines, ""] if lines else []


def _block(table: Sequence[Mapping[str, Any]]) -> list[str]:
    """Lines of one table with aligned columns."""
    names = list(dict.fromkeys(name for row in table for name in row))
    rows = [names, *([_written_cell(row.get(name)) for name in names] for row in table)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(f"{c:<{w}}" for c, w in zip(row, widths, strict=True)) for row in rows]
    return [*map(str.rstrip, lines)]


def _written_cell(entry: Any) -> str:
    if entry is None:
        return ""
    return f"{entry:.4g}" if isinstance(entry, float) else str(entry)


def _options(words: list[str]) -> dict[str, Any]:
    """Parse words ``name=value`` to options of a figure; commas separate several values."""
    options: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise InvalidRequest(f"option={word!r} can be name=value, as samples=250,1000")
        options[name] = values(text)
    return options
