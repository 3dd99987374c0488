"""``attdyn derive``, ``verify`` and ``figure``: what a paper derives, claims and draws."""

from __future__ import annotations

import dataclasses
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamics.cli.arguments import CommandRequest, Parser, value, values
from dynamics.cli.files import (
    PICTURES,
    complain,
    json_text,
    print_result,
    writable,
    write_files,
)
from dynamics.cli.folders import write_folder
from dynamics.training.progress import interruption
from dynamics.validation import InvalidRequest, integer, unknown

if TYPE_CHECKING:
    from dynamics.experiments.verify import Verdict
    from dynamics.registry import System
    from theory.claims import Claim
    from theory.page import Page

COMMENT = {"text": "", "latex": "% ", "source": "# "}
FORMS = tuple(COMMENT)
"""What a derivation is printed as."""
PAGE = "verdicts"
"""Name of the files of a report."""
WIDTH = 110
CLAIM = 30
"""Columns of the name of a claim."""
WORD = 30
"""Columns of a verdict."""


def add_flags(parser: Parser) -> None:
    """Add the flags beside the parameters."""
    command, system = parser.command, parser.system
    if command == "derive":
        _derive_flags(parser, system)
        return
    if command == "verify":
        parser.add_flags({"claims": "as Lemma 4.1,Theorem 4.1 (default all)"}, metavar="LIST")
        parser.add_switches({"thorough": "try more sizes and seeds, which takes longer"})
        parser.add_flags({"report": "folder for a page to read, HTML and Markdown"}, metavar="DIR")
        out = {"out": "folder of the evidence (default results/verify-SYSTEM)"}
    else:
        from dynamics.experiments.figure import figures, flags_of

        for name, figure in figures(system).items():
            switches, own = flags_of(figure)
            parser.add_switches(switches, group=f"figure {name}")
            parser.add_flags(own, metavar="X", group=f"figure {name}")
        parser.add_argument(
            "name", nargs="?", metavar="NAME", help=f"one of {', '.join(figures(system))}"
        )
        parser.add_switches({"thorough": "the protocol of the paper in full, which takes longer"})
        option = "setting of the figure, as seeds=3; may be repeated"
        parser.add_argument("--option", action="append", metavar="NAME=VALUE", help=option)
        out = {"out": "picture: .png, .svg or .pdf (default results/figure-SYSTEM-NAME.png)"}
    parser.add_flags({"seed": "random seed (default 0)"}, value)
    parser.add_flags(out, metavar="DIR" if command == "verify" else "FILE")


def execute(request: CommandRequest) -> int:
    """Run a command; returns the exit code."""
    return {"derive": _derive, "verify": _verify, "figure": _figure}[request.command](request)


def _seed(request: CommandRequest) -> int:
    return integer("seed", request.flags.get("seed", 0), at_least=0)


def _derive_flags(parser: Parser, system: System) -> None:
    parser.add_flags(
        {"as": f"form of what is printed: {', '.join(FORMS)} (default text)"}, metavar="FORM"
    )
    parser.add_switches({"standalone": "a whole LaTeX document, not its body alone"})
    if system.model is None:
        pieces = "print what is compiled instead: definitions, blocks, second derivatives"
        prove = "also check the lemmas by symbolic computation"
        parser.add_switches({"pieces": pieces, "prove": prove})
        return
    parser.add_switches({"prove": "also check the closure at 50 digits"})
    run = {
        "eta": "learning rate of the run along which the closure is looked at",
        "steps": "number of steps of that run",
    }
    parser.add_flags(run, value)
    sizes = {"sizes": 'multiplicities as polynomials over sizes: "D=4:10:4,C=2"'}
    parser.add_flags(sizes, metavar="LIST")


def _derive(request: CommandRequest) -> int:
    """Print the derivations, of the parameters if any are given; returns the exit code."""
    flags, system = request.flags, request.system
    standalone = bool(flags.get("standalone"))
    form = flags.get("as", "latex" if standalone else "text")
    if form not in FORMS:
        raise unknown("form", str(form), FORMS)
    if standalone and (form != "latex" or flags.get("pieces")):
        raise InvalidRequest("standalone is of the page as latex")
    parameters = system.Parameters(**request.entries)
    if system.model is not None:
        return _derive_model(request, form, parameters)
    specific = parameters if request.entries else None
    if form == "source":
        print(system.ReducedPopulation(parameters).source)
    elif flags.get("pieces"):
        from theory.rendering import as_latex, as_text

        render = as_text if form == "text" else as_latex
        for reduction in system.derivations(specific).values():
            print(render(reduction))
    else:
        print(_written(system.derivation(specific), form, standalone))
    if flags.get("prove"):
        print(_remark(_proofs(system.claims), form))
    return 0


def _remark(text: str, form: str) -> str:
    """Lines as comments of what is printed, which stays Python, or LaTeX."""
    return textwrap.indent(text, COMMENT[form])


def _written(page: Page, form: str, standalone: bool) -> str:
    return page.as_text() if form == "text" else page.as_latex(standalone)


def _derive_model(request: CommandRequest, form: str, parameters: Any) -> int:
    """Print the page of a user's model."""
    from dynamics.models.engine import derivation
    from dynamics.models.engine.symbolic import prove

    if form == "source":
        raise InvalidRequest(
            "a model of one's own has no generated source; as can be text or latex"
        )
    options, definition = request.flags, request.system.ReducedPopulation.definition
    walk = definition.walk(options.get("eta"), options.get("steps"))
    page = request.system.derivation(parameters, options.get("eta"), options.get("steps"))
    if "sizes" in options:
        grids = _size_grids(str(options["sizes"]), request.system)
        fixed = {n: v for n, v in dataclasses.asdict(parameters).items() if n not in grids}
        sizes = derivation.size_table(definition, grids, fixed, walk)
        page = dataclasses.replace(page, sections=(*page.sections, sizes))
    model = definition.realization(parameters)
    closure = model.closure(walk)
    if options.get("prove"):
        closure = dataclasses.replace(closure, proof=prove(model, closure))
    if options.get("json"):
        print(json_text(closure.document()))
        return 0
    print(_written(page, form, bool(options.get("standalone"))))
    if closure.proof is not None:
        print(_remark(closure.proof["text"], form))
    return 0


def _size_grids(text: str, system: System) -> dict[str, list[int]]:
    """``"D=4:10:4,C=2,3"`` as values of whole constants."""
    from dynamics.sweep.axes import Axis, parsed

    names = [f.name for f in dataclasses.fields(system.Parameters) if isinstance(f.default, int)]
    grids: dict[str, list[int]] = {}
    for part in re.findall(r"\w+\s*=[^=]*(?=,\s*\w+\s*=|$)", text) or [text]:
        name, _, values = (word.strip() for word in part.partition("="))
        if name not in names:
            raise unknown("whole constant", name, names or ["none"])
        entry = parsed(name, values.rstrip(","))
        numbers = entry.values if isinstance(entry, Axis) else (entry,)
        grids[name] = [number for number in numbers if isinstance(number, int)]
        if len(grids[name]) < len(numbers):
            raise InvalidRequest(f"sizes: {name}={values} can be whole numbers, as {name}=4:10:4")
    return grids


def _proofs(claims: Sequence[Claim]) -> str:
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


def _verify(request: CommandRequest) -> int:
    """Check, print every verdict as it comes, write evidence; returns the exit code."""
    from dynamics.experiments.verify import sources, verdicts
    from dynamics.results import storage

    options, system = request.flags, request.system
    out = Path(str(options.get("out", f"results/verify-{system.name}")))
    report = Path(str(options["report"])) if "report" in options else None
    storage.check_writable(out)
    if report is not None:
        storage.check_writable(report, "report")
        if report.resolve() == out.resolve():
            raise InvalidRequest(f"report and out are both {str(out)!r}; they can be two folders")
    claims = sources(system, None)
    if "claims" in options:
        words = separated(str(options["claims"]), claims)
        claims = sources(system, words or [str(options["claims"])])
    parameters = system.Parameters(**request.entries) if request.entries else None
    checked = verdicts(system, parameters, claims, options.get("thorough", False), _seed(request))
    quiet = options.get("json", False)
    if not quiet:
        columns = f"{'claim':<{CLAIM}}{'verdict':<{WORD}}{'measured':>12}{'bound':>12}  quantity"
        print(f"{system.title}\n\n{columns}", flush=True)
    done, interrupted = _collect(checked, quiet)
    if interrupted:
        written = "" if done else ", nothing is written"
        print(f"attdyn: interrupted after {len(done)} claims{written}", file=sys.stderr)
    if not done:
        return 130
    claimed = [verdict.document() for verdict in done]
    document = {"system": system.name, "claims": claimed, "interrupted": interrupted}
    lines = [""]
    try:
        if report is not None:
            write_folder(report, document, _pictures(done), texts=_report(request, done))
            lines.append(f"report   {report / PAGE}.html")
        document = write_folder(out, document, _pictures(done))[1]
        lines.append(f"evidence {out}")
    except OSError as error:
        complain(out, error, "; the verdicts are printed")
    print_result(options, document, "\n".join(lines))
    return 130 if interrupted else 0 if "files" in document else 1


def separated(text: str, names: list[str]) -> list[str]:
    """The names in a list with commas, some of which may belong to a name.

    Parameters
    ----------
    text : str
    names : list of str
        Those that there are, in any case of their letters.

    Returns
    -------
    list of str
        From left to right the longest of these names; what is none, up to the next comma.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    folded, separate = {name.lower() for name in names}, []
    while parts:
        whole = [n for n in range(len(parts), 1, -1) if ", ".join(parts[:n]).lower() in folded]
        count = whole[0] if whole else 1
        separate.append(", ".join(parts[:count]))
        parts = parts[count:]
    return separate


def _collect(checked: Iterator[Verdict], quiet: bool) -> tuple[list[Verdict], bool]:
    """The verdicts, printed as they come, and whether an interruption cut them short.

    What a check makes of a run that was cut short, an error included, is not a verdict.
    """
    done: list[Verdict] = []
    with interruption() as interrupted:
        while True:
            try:
                verdict = next(checked, None)
            except (Exception, KeyboardInterrupt):
                if interrupted.is_set():
                    return done, True
                raise
            if verdict is None or interrupted.is_set():
                return done, verdict is not None
            done.append(verdict)
            if not quiet:
                print(_row(verdict), flush=True)


def _pictures(done: list[Verdict]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """File names of the evidence of verdicts, and what draws it and returns axes."""
    from dynamics import plotting

    for verdict in done:
        if verdict.evidence.get("plot"):
            yield _file_name(verdict), partial(plotting.evidence, verdict)


def _report(request: CommandRequest, done: list[Verdict]) -> dict[str, str]:
    """File name -> text of the page on the verdicts."""
    from dynamics.experiments.verdict_report import markdown
    from dynamics.results.hypertext import html

    system, flags = request.system, request.flags
    words = ["attdyn", "verify", str(system.origin or system.name)]
    words += [f"--{name}={entry}" for name, entry in request.entries.items()]
    words += ["--thorough"] if flags.get("thorough") else []
    words += [f"--seed={flags['seed']}"] if "seed" in flags else []
    pictures = {v.claim.source: _file_name(v) for v in done if v.evidence.get("plot")}
    page = markdown(system.title, done, shlex.join(words), pictures)
    return {f"{PAGE}.md": page, f"{PAGE}.html": html(system.title, page)}


def _file_name(verdict: Verdict) -> str:
    """Of the picture of the evidence."""
    return re.sub(r"\W+", "_", verdict.claim.source.lower()) + ".png"


def _row(verdict: Verdict) -> str:
    """A verdict as a line, with its reason and what is measured of the literal words under it."""
    document: dict[str, Any] = verdict.document()
    lines = [_line(document["claim"], verdict.word, document, str(verdict.evidence["quantity"]))]
    lines += _indented(str(verdict.evidence["reason"]))
    literal = document.get("literal")
    if literal is not None:
        lines.append(_line("  literal words", literal["verdict"], literal, literal["quantity"]))
        lines += _indented(literal["reason"])
    return "\n".join(lines)


def _line(name: str, word: str, numbers: Mapping[str, Any], quantity: str) -> str:
    """A verdict as a line; words that are too long for their column push the rest on."""
    return (
        f"{name:<{CLAIM}}{word:<{WORD - 2}}  {numbers['measured']:>12.4g}"
        f"{numbers['bound']:>12.4g}  {quantity}"
    )


def _indented(text: str) -> list[str]:
    return [f"{'':{CLAIM}}{line}" for line in textwrap.wrap(text, WIDTH - CLAIM)]


def _figure(request: CommandRequest) -> int:
    """Draw and write; returns the exit code."""
    from dynamics.experiments.figure import draw, figures

    options, system = request.flags, request.system
    names = list(figures(system))
    if not names:
        raise InvalidRequest(f"{system.name} has no figures")
    name = options.get("name")
    if name is None:
        raise InvalidRequest(f"figure takes a name: {', '.join(names)}")
    if name not in names:
        raise unknown("figure", str(name), names)
    out = writable(options.get("out", f"results/figure-{system.name}-{name}.png"), PICTURES)
    seed, thorough = _seed(request), options.get("thorough", False)
    settings = _options(options.get("option", [])) | _flags_of_figure(request, name)
    checkpoints = out.parent / f".{out.stem}.checkpoints" if _resumes(system, name) else None
    if checkpoints is not None:
        _remark_on(checkpoints, bool(settings.get("resume")))
        settings["checkpoints"] = str(checkpoints)
    with interruption() as interrupted:
        try:
            drawing = draw(system, name, None, seed, thorough, settings, request.entries)
        except (Exception, KeyboardInterrupt):
            if not interrupted.is_set():
                raise
        if interrupted.is_set():
            rest = "" if checkpoints is None else "; the same command with --resume goes on"
            print(f"attdyn: interrupted, nothing is written{rest}", file=sys.stderr)
            return 130
    files, code = write_files(out, lambda: drawing.axes, {})
    if checkpoints is not None and code == 0:
        shutil.rmtree(checkpoints, ignore_errors=True)
    document = {"figure": name, "caption": drawing.caption, "file": str(out) if files else None}
    document |= {"table": [*map(dict, drawing.table)]} if drawing.table else {}
    lines = [drawing.caption, *_columns(drawing.table), *(f"picture  {file}" for file in files)]
    print_result(options, document | {"data": dict(drawing.data)}, "\n".join(lines))
    return code


def _resumes(system: System, name: str) -> bool:
    """Whether a figure keeps its runs until it is written."""
    from dynamics.experiments.figure import figures, flags_of

    return "resume" in flags_of(figures(system)[name])[0]


def _remark_on(checkpoints: Path, resumed: bool) -> None:
    """Say which runs a figure resumes, or drops.

    Raises
    ------
    InvalidRequest
        If there is nothing to resume.
    """
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
    """The options of a figure that were given as flags; those of another figure are refused."""
    from dynamics.experiments.figure import figures, flags_of

    every = {each: flags_of(figure) for each, figure in figures(request.system).items()}
    settings: dict[str, Any] = {}
    for each, (switches, others) in every.items():
        for flag in (flag for flag in (*switches, *others) if flag in request.flags):
            if flag not in {**every[name][0], **every[name][1]}:
                raise InvalidRequest(f"--{flag} is of figure {each}, not of {name}")
            settings[flag] = 1 if flag in switches else request.flags[flag]
    return settings


def _columns(table: Sequence[Mapping[str, Any]]) -> list[str]:
    """Tables as lines, numbers with four digits; rows whose columns are nested are one table."""
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
    """One table as lines."""
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
    """Options of the figure, ``name=value`` each; several values are separated by commas."""
    options: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise InvalidRequest(f"option={word!r} can be name=value, as samples=250,1000")
        options[name] = values(text)
    return options
