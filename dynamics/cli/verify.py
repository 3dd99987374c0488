"""``attdyn verify``: a measured verdict on each listed claim of a paper, with its evidence."""

from __future__ import annotations

import re
import shlex
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamics.cli.arguments import CommandRequest, Parser, value
from dynamics.cli.files import complain, print_result
from dynamics.cli.folders import write_folder
from dynamics.training.progress import interruption
from dynamics.validation import InvalidRequest, integer

if TYPE_CHECKING:
    from dynamics.verdicts.findings import Verdict

PAGE = "verdicts"
"""Stem of the names of the files of a report."""
WIDTH = 110
CLAIM = 30
"""Width of the column of claims, in characters."""
WORD = 30
"""Width of the column of verdicts, in characters."""


def add_flags(parser: Parser) -> None:
    """Add the flags except the parameters of the system."""
    parser.add_flags({"claims": "as Lemma 4.1,Theorem 4.1 (default all)"}, metavar="LIST")
    parser.add_switches({"thorough": "try more sizes and seeds, which takes longer"})
    parser.add_flags({"report": "folder for a page to read, HTML and Markdown"}, metavar="DIR")
    parser.add_flags({"seed": "random seed (default 0)"}, value)
    out = {"out": "folder of the evidence (default results/verify-SYSTEM)"}
    parser.add_flags(out, metavar="DIR")


def execute(request: CommandRequest) -> int:
    """Check claims, print each verdict at once, write evidence, and return the exit code."""
    from dynamics.results import storage
    from dynamics.verdicts.verify import sources, verdicts

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
    seed = integer("seed", options.get("seed", 0), at_least=0)
    checked = verdicts(system, parameters, claims, options.get("thorough", False), seed)
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
            texts, pages = _report(request, done)
            write_folder(report, document, _pictures(done), texts=texts, pages=pages)
            lines.append(f"report   {report / PAGE}.html")
        document = write_folder(out, document, _pictures(done))[1]
        lines.append(f"evidence {out}")
    except OSError as error:
        complain(out, error, "; the verdicts are printed")
    print_result(options, document, "\n".join(lines))
    return 130 if interrupted else 0 if "files" in document else 1


def separated(text: str, names: list[str]) -> list[str]:
    """Split a list at the commas that are not part of a known name (case-insensitive).

    At each place the longest matching name is taken; text without a match ends at the next comma.
    """
    flat, known = (re.sub(r"\s*,\s*", ",", "\n".join(words)).strip() for words in ([text], names))
    longest_first = sorted(map(re.escape, known.split("\n")), key=len, reverse=True)
    found = re.findall(rf"(?:{'|'.join(longest_first)})(?=,|$)|[^,]+", flat, re.IGNORECASE)
    return [name.replace(",", ", ") for name in found]


def _collect(checked: Iterator[Verdict], quiet: bool) -> tuple[list[Verdict], bool]:
    """Print each verdict when it is known; return all verdicts, and whether Ctrl-C came."""
    done: list[Verdict] = []
    with interruption() as interrupted:
        try:
            for verdict in checked:
                done.append(verdict)
                if not quiet:
                    print(_row(verdict), flush=True)
            return done, False
        except KeyboardInterrupt:
            if not interrupted.is_set():
                raise
            return done, True


def _pictures(done: list[Verdict]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """File names of the pictures of the evidence, and functions that return the pictures' axes."""
    from dynamics import plotting

    for verdict in done:
        if verdict.evidence.get("plot"):
            yield _file_name(verdict), partial(plotting.evidence, verdict)


def _report(
    request: CommandRequest, done: list[Verdict]
) -> tuple[dict[str, str], dict[str, Callable[[Path], str]]]:
    """Markdown text of the report on verdicts, and function that makes its HTML, by file name."""
    from dynamics.results.hypertext import html
    from dynamics.verdicts.verdict_report import markdown

    system, flags = request.system, request.flags
    words = ["attdyn", "verify", system.reference]
    words += [f"--{name}={entry}" for name, entry in request.entries.items()]
    words += ["--thorough"] if flags.get("thorough") else []
    words += [f"--seed={flags['seed']}"] if "seed" in flags else []
    pictures = {v.claim.source: _file_name(v) for v in done if v.evidence.get("plot")}
    page = markdown(system.title, done, shlex.join(words), pictures)
    return {f"{PAGE}.md": page}, {f"{PAGE}.html": partial(html, system.title, page)}


def _file_name(verdict: Verdict) -> str:
    """File name of the picture of a verdict's evidence."""
    return re.sub(r"\W+", "_", verdict.claim.source.lower()) + ".png"


def _row(verdict: Verdict) -> str:
    """Lines of a verdict and its reason, then of the verdict on the claim's exact words, if any."""
    document: dict[str, Any] = verdict.document()
    lines = [_line(document["claim"], verdict.word, document, str(verdict.evidence["quantity"]))]
    lines += _indented(str(verdict.evidence["reason"]))
    literal = document.get("literal")
    if literal is not None:
        lines.append(_line("  literal words", literal["verdict"], literal, literal["quantity"]))
        lines += _indented(literal["reason"])
    return "\n".join(lines)


def _line(name: str, word: str, numbers: Mapping[str, Any], quantity: str) -> str:
    """Line of a verdict in columns; long words shift the remaining columns."""
    return (
        f"{name:<{CLAIM}}{word:<{WORD - 2}}  {numbers['measured']:>12.4g}"
        f"{numbers['bound']:>12.4g}  {quantity}"
    )


def _indented(text: str) -> list[str]:
    return [f"{'':{CLAIM}}{line}" for line in textwrap.wrap(text, WIDTH - CLAIM)]
