"""``attdyn diversity FILE ...``: attention diversity and total variation of attention maps.

Each file holds the maps of one layer of a model, an array of shape (images, heads, P, P) for P
tokens. The layers of several files are compared. An array of three axes holds the maps of one head
for several images; the heads of one image can be saved as ``array[None]``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.cli.arguments import CommandRequest, Parser, value
from dynamics.cli.files import PICTURES, print_result, table_path, writable, write_files
from dynamics.validation import InvalidRequest

if TYPE_CHECKING:
    from dynamics.attention_maps import Measured, Setting


def add_flags(parser: Parser) -> None:
    """Add the command's flags, and an argument for the files after the first."""
    parser.add_argument(
        "others",
        nargs="*",
        metavar="FILE",
        help="more files, to compare; each holds (images, heads, P, P), (images, P, P) of one head "
        "(save the heads of one image as array[None]), or one map (P, P)",
    )
    parser.add_flags({"name": "array of .npz files (default: the only one)"})
    parser.add_flags({"grid": "grid of patches (default: the square one)"}, metavar="HxW")
    numbers = {
        "k": "keys of greatest weight of a query (default 10)",
        "skip": "number of tokens before the patches to leave out: 1 for a class token",
    }
    parser.add_flags(numbers, value, "N")
    parser.add_switches({
        "off_diagonal": "over pairs of different queries only",
        "force": "overwrite the file of --csv",
    })  # fmt: skip
    files = {
        "out": "box plot: .png, .svg or .pdf (default in results/)",
        "csv": "also every image and head as a table",
    }
    parser.add_flags(files, metavar="FILE")


def execute(request: CommandRequest) -> int:
    """Measure attention maps, draw and print the results, and return the exit code."""
    options = request.flags
    paths = [request.path, *options.get("others", [])]
    names = _names(paths)
    default = f"results/diversity-{'-'.join(name.replace('/', '-') for name in names)}.png"
    picture = writable(options.get("out", default), PICTURES)
    table = table_path(options)
    setting = _setting(options)
    layers = [
        _measured(path, name, setting, options.get("name"))
        for path, name in zip(paths, names, strict=True)
    ]
    from dynamics import plotting

    tables = {} if table is None else {table: partial(_write_table, layers)}
    files, code = write_files(picture, partial(plotting.diversity, layers), tables)
    lines = [*map(_text, layers), *(f"written  {name}" for name in files)]
    document = {"results": [_document(layer) for layer in layers], "files": files}
    print_result(options, document, "\n".join(lines))
    return code


def _names(paths: Sequence[str]) -> list[str]:
    """Distinct names of the files: stems if possible, else names with suffix, else whole paths."""
    if len(set(paths)) < len(paths):
        twice = next(path for path in paths if paths.count(path) > 1)
        raise InvalidRequest(f"file={twice!r} is given twice; each file can be given once")
    for names in ([Path(path).stem for path in paths], [Path(path).name for path in paths]):
        if len(set(names)) == len(names):
            return names
    return list(paths)


def _setting(options: Mapping[str, Any]) -> Setting:
    """Settings of the measurement from the flags."""
    from dynamics.attention_maps import Setting

    settings = {name: options[name] for name in ("k", "skip", "off_diagonal") if name in options}
    if "grid" in options:
        sides = [value(side) for side in str(options["grid"]).lower().split("x")]
        if len(sides) != 2 or not all(isinstance(side, int) and side > 0 for side in sides):
            raise InvalidRequest(f"grid={options['grid']!r} is not HxW; grid can be like 14x14")
        settings["grid"] = tuple(sides)
    return Setting(**settings)


def _measured(path: str, name: str, setting: Setting, array: str | None) -> Measured:
    """Measure one file; error messages name the file."""
    from dynamics.attention_maps import measure, read

    attention = read(path, array)
    try:
        return measure(attention, setting, name)
    except InvalidRequest as error:
        raise InvalidRequest(f"{path}: {error}") from None


def _text(layer: Measured) -> str:
    """Text of a table with the quartiles over images for each head."""
    from dynamics.attention_maps import quartiles

    high, wide = layer.grid
    skipped = f", {layer.setting.skip} first left out" if layer.setting.skip else ""
    pairs = "different queries" if layer.setting.off_diagonal else "all P^2 pairs of queries"
    images = f"{layer.images} image{'' if layer.images == 1 else 's'}"
    heads = f"{layer.heads} head{'' if layer.heads == 1 else 's'}"
    lines = [
        f"{layer.name}: {images}, {heads}, {high}x{wide} patches{skipped}, "
        f"k={layer.setting.k}, {pairs}",
        f"{'':6}{'diversity (patches)':^30}  {'mean total variation':^30}",
        f"{'head':>4}  " + "  ".join([f"{'quartile':>10}{'median':>10}{'quartile':>10}"] * 2),
    ]
    both = [quartiles(values).T for values in (layer.diversity, layer.total_variation)]
    for head, (distances, variations) in enumerate(zip(*both, strict=True)):
        row = "".join(f"{number:10.3f}" for number in distances)
        lines.append(f"{head:4}  {row}  " + "".join(f"{number:10.4f}" for number in variations))
    return "\n".join(lines) + "\n"


def _document(layer: Measured) -> dict[str, Any]:
    """JSON-ready values of a result: values of every image and head, and quartiles of each head."""
    from dynamics.attention_maps import quartiles

    both = {"diversity": layer.diversity, "total_variation": layer.total_variation}
    return {
        "name": layer.name,
        "images": layer.images,
        "heads": layer.heads,
        "grid": list(layer.grid),
        "k": layer.setting.k,
        "skip": layer.setting.skip,
        "off_diagonal": layer.setting.off_diagonal,
        **both,
        "quartiles": {measure: quartiles(values).T for measure, values in both.items()},
    }


def _write_table(layers: Sequence[Measured], path: Path) -> None:
    """Write a CSV line for each file, image and head, with all digits of numbers."""
    import pandas

    rows = [
        (layer.name, image, head, layer.diversity[image, head], layer.total_variation[image, head])
        for layer in layers
        for image, head in np.ndindex(layer.diversity.shape)
    ]
    names = ["name", "image", "head", "diversity", "total_variation"]
    pandas.DataFrame(rows, columns=names).to_csv(path, index=False)
