"""Make the figures and verdicts of the site by ``attdyn`` commands; store them in ``docs/cache``.

``python docs/site/cache.py [NAME ...] [--again]`` runs the commands whose result is missing or
lacks a verdict on a new claim, for all systems or those named; ``NAME`` is a system or
``system/figure-x``. ``--again`` repeats stored results too. The build of the site only reads the
cache.

A result is a picture with a reduced palette and a JSON file with command, caption and run time; for
verdicts, it is the report of `dynamics.verdicts.verdict_report`.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dynamics.library import system_names
from dynamics.registry import load_system
from dynamics.verdicts.draw import figures
from dynamics.verdicts.verdict_report import prose

CACHE = Path(__file__).resolve().parents[1] / "cache"
REDUCED = ((1500, 256), (1500, 128), (1300, 128), (1100, 128))
"""Width limits (pixels) and numbers of colours, tried in order until a picture is small enough."""
MOST_BYTES = 120_000


@dataclass(frozen=True)
class Item:
    """Result of one command; `name`: ``"training"``, ``"verdicts"`` or ``"figure-<name>"``."""

    system: str
    name: str

    @property
    def words(self) -> list[str]:
        """Words of the command, without the flags for its output."""
        if self.name.startswith("figure-"):
            return ["attdyn", "figure", self.system, self.name.removeprefix("figure-")]
        return ["attdyn", {"training": "compare", "verdicts": "verify"}[self.name], self.system]

    @property
    def record(self) -> Path:
        """Path of the JSON file of the item."""
        return CACHE / self.system / f"{self.name}.json"

    @property
    def picture(self) -> Path:
        """Path of the picture of the item; verdicts have a folder instead."""
        return self.record.with_suffix(".png")

    def read(self) -> dict[str, Any] | None:
        """Stored JSON content; None if it is missing or the command refused."""
        if not self.record.is_file():
            return None
        content: dict[str, Any] = json.loads(self.record.read_text(encoding="utf-8"))
        return None if "refused" in content else content

    def unmeasured(self) -> list[str]:
        """Claims of the system without a verdict in the stored report; empty for other items."""
        if self.name != "verdicts" or not self.record.is_file():
            return []
        text = (self.record.with_suffix("") / "verdicts.md").read_text(encoding="utf-8")
        headings = {line.removeprefix("## ") for line in text.splitlines()}
        sources = [prose(claim.source) for claim in load_system(self.system).claims]
        return [source for source in sources if source not in headings]

    def is_current(self) -> bool:
        """Whether the cache holds the item, with a verdict on every claim."""
        return self.record.is_file() and not self.unmeasured()


def items() -> Iterator[Item]:
    """Yield every item that the site shows, in the order of the systems."""
    for name in system_names():
        system = load_system(name)
        yield Item(name, "training")
        yield from (Item(name, f"figure-{figure}") for figure in figures(system))
        if system.claims:
            yield Item(name, "verdicts")


def make(item: Item) -> str:
    """Run the command of an item and store its result; return a one-line summary."""
    with TemporaryDirectory() as folder:
        words = [*item.words[1:], "--json", *_destination(item, Path(folder))]
        begin = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "dynamics", *words], capture_output=True, text=True, cwd=folder
        )
        seconds = round(time.monotonic() - begin, 1)
        item.record.parent.mkdir(parents=True, exist_ok=True)
        if done.returncode == 2:
            refusal = done.stderr.strip().splitlines()[-1].removeprefix("attdyn: ")
            if (
                "pip install" in refusal
            ):  # this environment lacks a package; not the figure's refusal
                return f"failed: {refusal}"
            _write(item.record, {"command": shlex.join(item.words), "refused": refusal})
            return f"refused: {refusal}"
        if done.returncode:
            return f"failed with code {done.returncode}: {done.stderr.strip()[-300:]}"
        document = json.loads(done.stdout)
        record = {"command": shlex.join(item.words), "seconds": seconds}
        record |= _kept(item, Path(folder), document)
        _write(item.record, record)
    return f"{seconds:.0f} s"


def _destination(item: Item, folder: Path) -> list[str]:
    if item.name == "verdicts":
        return ["--report", str(folder / "report"), "--out", str(folder / "out")]
    return ["--out", str(folder / ("run" if item.name == "training" else "picture.png"))]


def _kept(item: Item, folder: Path, document: dict[str, Any]) -> dict[str, Any]:
    """Store the pictures in the cache; return further fields of the item's record."""
    if item.name == "verdicts":
        report = folder / "report"
        target = item.record.with_suffix("")
        shutil.rmtree(target, ignore_errors=True)  # pictures of removed claims, too
        for picture in sorted(report.glob("*.png")):
            _reduce(picture, target / picture.name)
        text = (report / "verdicts.md").read_text(encoding="utf-8")
        target.mkdir(parents=True, exist_ok=True)
        (target / "verdicts.md").write_text(text, encoding="utf-8")
        return {"verdicts": {claim["claim"]: _words(claim) for claim in document["claims"]}}
    if item.name == "training":
        _reduce(folder / "run" / "training.png", item.picture)
        return {"parameters": document["parameters"], "eta": document.get("eta")}
    _reduce(folder / "picture.png", item.picture)
    return {"caption": document["caption"]}


def _words(claim: dict[str, Any]) -> dict[str, str]:
    """Word of the verdict on a claim, and on its literal words if it has another reading."""
    literal = {"literal": claim["literal"]["verdict"]} if "literal" in claim else {}
    return {"verdict": claim["verdict"], **literal}


def _reduce(source: Path, target: Path) -> None:
    """Write a picture with few colours and a limited width."""
    from PIL import Image

    target.parent.mkdir(parents=True, exist_ok=True)
    with Image.open(source) as image:
        whole = image.convert("RGB")
    for widest, colours in REDUCED:
        plain = whole
        if whole.width > widest:
            height = round(whole.height * widest / whole.width)
            plain = whole.resize((widest, height), Image.Resampling.LANCZOS)
        # MAXCOVERAGE picks distant colours and k-means averages, so colours of a scale differ.
        few = plain.quantize(
            colours, method=Image.Quantize.MAXCOVERAGE, kmeans=2, dither=Image.Dither.NONE
        )
        few.save(target, optimize=True)
        if target.stat().st_size <= MOST_BYTES:
            return


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> None:
    """Make the items of the command line that are missing from the cache."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="a system, or system/item")
    parser.add_argument("--again", action="store_true", help="make what is there anew, too")
    options = parser.parse_args()
    every = list(items())
    known = {item.system for item in every} | {f"{item.system}/{item.name}" for item in every}
    for name in options.names:
        if name not in known:
            system = name.partition("/")[0]
            items_of = [one for one in known if one.startswith(f"{system}/")]
            near = items_of or [one for one in known if "/" not in one]
            parser.error(f"{name!r} is unknown; known are {', '.join(sorted(near))}")
    for item in every:
        wanted = not options.names or {item.system, f"{item.system}/{item.name}"} & {*options.names}
        if wanted and (options.again or not item.is_current()):
            print(f"{item.system}/{item.name}: {make(item)}", flush=True)


if __name__ == "__main__":
    main()
