"""``attdyn gallery``: a page on a model file, with its closure, pictures, figures and verdicts."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

from dynamics.cli.arguments import CommandRequest, Parser
from dynamics.cli.files import print_result
from dynamics.cli.folders import write_folder
from dynamics.validation import InvalidRequest, integer

PAGE = "index"


def add_flags(parser: Parser) -> None:
    """Add the command's flags."""
    parser.add_flags({"out": "folder of the page"}, metavar="DIR")
    parser.add_flags({"seed": "random seed (default 0)"}, metavar="N")


def execute(request: CommandRequest) -> int:
    """Train, draw, verify, write the page, and return the exit code."""
    from dynamics import plotting
    from dynamics.analysis.comparison import compare
    from dynamics.results import storage
    from dynamics.results.hypertext import html
    from dynamics.verdicts import gallery, verdicts_of
    from dynamics.verdicts.draw import draw
    from dynamics.verdicts.stability import stability_of
    from dynamics.verdicts.verify import verify

    options, system = request.flags, request.system
    gallery.source_of(system)
    out = Path(str(options.get("out", f"results/gallery-{system.name}")))
    storage.check_writable(out)
    seed = integer("seed", options.get("seed", 0), at_least=0, at_most=2**62)
    own, default = request.entries, system.default_runs["compare"]
    parameters = system.Parameters(**own)
    reduced, full = system.ReducedPopulation(parameters), system.FullPopulation(parameters)
    comparison = compare(reduced, full, default.eta, default.steps)
    drawings, names = {}, list(verdicts_of(system, "figures"))
    if 2 <= reduced.closure.scalars <= gallery.MOST_DERIVED:
        names.append("plane")
    for name in names:
        try:
            drawings[name] = draw(system, name, seed=seed, parameters=own)
        except InvalidRequest as refusal:
            print(f"attdyn: without figure {name}: {refusal}", file=sys.stderr)
    verdicts = verify(system, parameters if own else None, seed=seed) if system.claims else []
    files = {"training": "training.png"} | {name: f"figure-{name}.png" for name in drawings}
    captions = {name: drawing.caption for name, drawing in drawings.items()}
    horizon = float(comparison.reduced.time[-1])
    stable = stability_of(system, parameters, horizon, default.eta)
    page = gallery.markdown(system, comparison, verdicts, captions, files, stable)
    pictures: list[tuple[str, Any]] = [("training.png", partial(plotting.comparison, comparison))]
    pictures += [
        (files[name], partial(getattr, drawing, "axes")) for name, drawing in drawings.items()
    ]
    document = {
        "system": system.name,
        "deviation": comparison.deviation,
        "figures": captions,
        "claims": [verdict.document() for verdict in verdicts],
    }
    texts, pages = {f"{PAGE}.md": page}, {f"{PAGE}.html": partial(html, system.title, page)}
    folder, document = write_folder(out, document, pictures, texts=texts, pages=pages)
    print_result(options, document, f"page     {folder / PAGE}.html")
    return 0
