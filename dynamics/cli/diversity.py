"""``attdyn diversity FILE ...``: attention diversity and total variation of attention maps.

Each file is a layer of a model, with an array (images, heads, P, P); several files are compared.
Of three axes the first are images of one head: the heads of one image are array[None].
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamics.cli import arguments, report
from dynamics.cli.files import PICTURES, writable, write_whole
from dynamics.validation import InvalidRequest

if TYPE_CHECKING:
    from dynamics.attention_maps import Measured, Setting


def flags(parser: arguments.Parser) -> None:
    """Flags beside the first file."""
    number: dict[str, Any] = {"type": arguments.value, "metavar": "N"}
    parser.add_argument(
        "others",
        nargs="*",
        metavar="FILE",
        help="more files, to compare; each holds (images, heads, P, P), (images, P, P) of one head "
        "(save the heads of one image as array[None]), or one map (P, P)",
    )
    parser.add_argument("--name", metavar="X", help="array of .npz files (default: the only one)")
    parser.add_argument("--grid", metavar="HxW", help="grid of patches (default: the square one)")
    parser.add_argument("--k", **number, help="keys of greatest weight of a query (default 10)")
    parser.add_argument(
        "--skip", **number, help="tokens before the patches, left out: 1 for a class token"
    )
    parser.add_argument(
        "--off_diagonal", action="store_true", help="over pairs of different queries only"
    )
    parser.add_argument(
        "--out", metavar="FILE", help="box plot: .png, .svg or .pdf (default in results/)"
    )
    parser.add_argument("--csv", metavar="FILE", help="also every image and head as a table")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def execute(first: str, given: dict[str, Any]) -> int:
    """Measure, draw, print; returns the exit code."""
    paths = [first, *given.get("others", [])]
    names = _names(paths)
    default = f"results/diversity-{'-'.join(name.replace('/', '-') for name in names)}.png"
    picture = writable(given.get("out", default), PICTURES)
    table = writable(given["csv"], (".csv",)) if "csv" in given else None
    setting = _setting(given)
    results = [
        _measured(path, name, setting, given.get("name"))
        for path, name in zip(paths, names, strict=True)
    ]
    from dynamics import plotting

    axes = plotting.diversity(results)
    written = [write_whole(picture, lambda path: plotting.write(axes, path))]
    if table is not None:
        written.append(write_whole(table, lambda path: _table(results, path)))
    if given.get("json"):
        document = {"results": [_document(found) for found in results]}
        content = report.finite(document | {"files": [str(path) for path in written]})
        print(json.dumps(content, indent=2, allow_nan=False))
    else:
        for found in results:
            print(_text(found))
        for path in written:
            print(f"written  {path}")
    return 0


def _names(paths: Sequence[str]) -> list[str]:
    """What tells the files apart: their names without ending, or as they are given."""
    if len(set(paths)) < len(paths):
        twice = next(path for path in paths if paths.count(path) > 1)
        raise InvalidRequest(f"file={twice!r} is given twice; each file can be given once")
    for names in ([Path(path).stem for path in paths], [Path(path).name for path in paths]):
        if len(set(names)) == len(names):
            return names
    return list(paths)


def _setting(given: dict[str, Any]) -> Setting:
    """How to measure, as asked."""
    from dynamics.attention_maps import Setting

    chosen: dict[str, Any] = {
        name: given[name] for name in ("k", "skip", "off_diagonal") if name in given
    }
    if "grid" in given:
        sides = [arguments.value(side) for side in str(given["grid"]).lower().split("x")]
        if len(sides) != 2 or not all(isinstance(side, int) and side > 0 for side in sides):
            raise InvalidRequest(f"grid={given['grid']!r} is not HxW; grid can be like 14x14")
        chosen["grid"] = tuple(sides)
    return Setting(**chosen)


def _measured(path: str, name: str, setting: Setting, array: str | None) -> Measured:
    """One file; a refusal tells which."""
    from dynamics.attention_maps import measure, read

    attention = read(path, array)
    try:
        return measure(attention, setting, name)
    except InvalidRequest as error:
        raise InvalidRequest(f"{path}: {error}") from None


def _text(found: Measured) -> str:
    """Quartiles over images for each head, as a table."""
    from dynamics.attention_maps import quartiles

    high, wide = found.grid
    kept = f", {found.setting.skip} first left out" if found.setting.skip else ""
    pairs = "different queries" if found.setting.off_diagonal else "all P^2 pairs of queries"
    lines = [
        f"{found.name}: {_counted(found.images, 'image')}, {_counted(found.heads, 'head')}, "
        f"{high}x{wide} patches{kept}, "
        f"k={found.setting.k}, {pairs}",
        f"{'':6}{'diversity (patches)':^30}  {'mean total variation':^30}",
        f"{'head':>4}  " + "  ".join([f"{'quartile':>10}{'median':>10}{'quartile':>10}"] * 2),
    ]
    both = [quartiles(values).T for values in (found.diversity, found.total_variation)]
    for head, (places, weights) in enumerate(zip(*both, strict=True)):
        row = "".join(f"{value:10.3f}" for value in places)
        lines.append(f"{head:4}  {row}  " + "".join(f"{value:10.4f}" for value in weights))
    return "\n".join(lines) + "\n"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _document(found: Measured) -> dict[str, Any]:
    """A result as plain values: every image and head, and quartiles of each head."""
    from dynamics.attention_maps import quartiles

    both = {"diversity": found.diversity, "total_variation": found.total_variation}
    return {
        "name": found.name,
        "images": found.images,
        "heads": found.heads,
        "grid": list(found.grid),
        "k": found.setting.k,
        "skip": found.setting.skip,
        "off_diagonal": found.setting.off_diagonal,
        **both,
        "quartiles": {measure: quartiles(values).T for measure, values in both.items()},
    }


def _table(results: Sequence[Measured], path: Path) -> None:
    """One line for each file, image and head; numbers are read back bit for bit."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "image", "head", "diversity", "total_variation"])
        for found in results:
            for image in range(found.images):
                for head in range(found.heads):
                    both = (found.diversity[image, head], found.total_variation[image, head])
                    writer.writerow([found.name, image, head, *(repr(float(v)) for v in both)])
