"""Collect the sources of the site in one folder: pages of the repository and generated ones.

Pages of the repository are copied with their links changed to places in the site; ``README.md``
becomes the first page. A broken link raises an error. `pages` writes the generated pages.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(?<=\]\()([^)#\s]+)(?=(?:#[\w-]*)?\))")
NAMED = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "CITATION.cff": "citation.md",
    "LICENSE": "license.md",
    "docs/verdicts.md": "verdicts/index.md",
    "docs/library.md": "models/index.md",
}
"""File of the repository -> page of the site, for pages that are renamed."""
ABOVE = {"docs/verdicts.md": "How claims are measured"}
"""Page of the repository below what `pages` makes -> heading of its text there."""
CONTENTS = {
    "Start": ("python", "command_line", "own_models", "models/index", "explorer", "explorers"),
    "Concepts": ("reduction", "closure", "expectations", "events", "stability", "empirical_runs"),
    "How to": (
        "overlaps", "update_rules", "sweeps", "cluster", "phase_diagrams", "attention_maps",
        "latex",
    ),
    "Results": (
        "verdicts/index", "statements", "gallery", "masked_image_modeling", "shallow_vit",
        "real_images", "notebooks/index",
    ),
    "Reference": ("api/index", "proofs", "follow_one_gradient", "glossary"),
    "Project": ("contributing", "changelog", "citation"),
}  # fmt: skip
"""Caption -> pages, in the order of the side bar; pages missing from the site are left out."""


class BrokenLink(Exception):
    """Raised if a page of the repository links to a file that is missing from the site."""


def pages_of_repository() -> Mapping[str, str]:
    """Files of the repository that become pages: path -> path in the site."""
    files = [
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("notebooks/*.ipynb"),
        *ROOT.glob("notebooks/*.png"),
    ]
    paths = [path.relative_to(ROOT).as_posix() for path in sorted(files)]
    return {path: path.removeprefix("docs/") for path in paths} | NAMED


def targets() -> Mapping[str, str]:
    """Files of the repository that a page may link to: path -> path in the site.

    A published model's file maps to the model's page; a picture of the cache to the copy that
    `pages` makes.
    """
    models = [path for path in ROOT.glob("dynamics/models/*.py") if path.stem != "__init__"]
    described = {p.relative_to(ROOT).as_posix(): f"models/{p.stem}.md" for p in models}
    pictures = [path.relative_to(ROOT / "docs/cache") for path in ROOT.glob("docs/cache/*/*.png")]
    drawn = {f"docs/cache/{p.as_posix()}": f"pictures/{p.as_posix()}" for p in pictures}
    return described | drawn | pages_of_repository()


def led(text: str, path: str, places: Mapping[str, str]) -> str:
    """Change the links of a page to paths in the site.

    `text`: Markdown; `path`: of the page in the repository; `places`: file of the repository ->
    place in the site. Raises BrokenLink for a link to a file without a place.
    """
    depth = places[path].count("/")

    def target(match: re.Match[str]) -> str:
        link = match[1]
        if "://" in link:
            return link
        file = ((ROOT / path).parent / link).resolve()
        name = file.relative_to(ROOT).as_posix() if file.is_relative_to(ROOT) else ""
        if name not in places:
            raise BrokenLink(f"{path} links to {link}, which is not a page of the site")
        return "../" * depth + places[name]

    return LINK.sub(target, text)


def gather(folder: Path) -> None:
    """Write the pages of the repository and the table of contents to the folder of the sources."""
    places = pages_of_repository()
    for path, place in places.items():
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.endswith(".md"):
            text = led((ROOT / path).read_text(encoding="utf-8"), path, targets())
            more = target.read_text(encoding="utf-8") if target.is_file() else ""
            if path == "README.md":  # insert the cards above its sections
                cards = (folder / "doors.md").read_text(encoding="utf-8")
                text = text.replace("\n## ", f"\n{cards}\n## ", 1)
                (folder / "doors.md").unlink()
            if path in ABOVE:
                heading, _, text = text.partition("\n")
                text, more = f"{heading}\n\n{more}\n## {ABOVE[path]}\n{text}", ""
            target.write_text(f"{text.rstrip()}\n\n{more}", encoding="utf-8")
        elif path.endswith((".ipynb", ".png")):
            shutil.copyfile(ROOT / path, target)
        else:
            text = (ROOT / path).read_text(encoding="utf-8")
            heading = {"CITATION.cff": "How to cite"}.get(path, "Licence")
            target.write_text(f"# {heading}\n\n```text\n{text}```\n", encoding="utf-8")
    with (folder / "index.md").open("a", encoding="utf-8") as file:
        file.write(_contents(folder))
    (folder / "license.md").write_text(
        f"---\norphan: true\n---\n\n{(folder / 'license.md').read_text(encoding='utf-8')}",
        encoding="utf-8",
    )


def _contents(folder: Path) -> str:
    """Side bar of the site as hidden tables of contents."""
    parts = []
    for caption, names in CONTENTS.items():
        there = [
            name
            for name in names
            if any((folder / f"{name}{end}").is_file() for end in (".md", ".rst"))
        ]
        parts.append(
            "\n".join(["```{toctree}", ":hidden:", f":caption: {caption}", "", *there, "```"])
        )
    return "\n\n".join(parts) + "\n"
