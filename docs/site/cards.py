"""Write cards with pictures and bars of verdicts: first page, gallery, index of verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cache import CACHE, Item

ACROSS = 520
"""Width of a thumbnail in pixels."""
DOORS = (
    ("positional_attention/training", "models/positional_attention", "Positional attention",
     "Three scalars and three events (Jelassi, Sander, Li 2022)"),
    ("masked_image_modeling/training", "models/masked_image_modeling", "Masked image modelling",
     "Attention by position and by feature (Huang, Wen, Chi, Liang 2024)"),
    ("shallow_vit/training", "models/shallow_vit", "The shallow ViT",
     "Relevant and confusing tokens (Li, Wang, Liu, Chen 2023)"),
    ("induction_head/figure-rounds", "models/index", "Published models",
     "Learning in context, induction heads, topics, staircases, ..."),
    ("topic_model/figure-classes", "own_models", "A model of your own",
     "Twenty lines in, reduced dynamics out"),
    ("positional_attention/figure-plane", "explorers", "Explore",
     "Move the constants and see training follow"),
)  # fmt: skip
"""Cards of the first page: picture in the cache, page, title, text."""
KINDS = {
    "holds": "holds", "read": "holds as read", "part": "holds in part",
    "open": "not decidable", "fails": "does not hold",
}  # fmt: skip
"""Segment of a bar of verdicts -> its name."""


def thumbnail(picture: Path, folder: Path) -> str:
    """Write a small copy of a cached picture to the site's sources; return its path in the site."""
    from PIL import Image

    target = folder / "thumbnails" / picture.relative_to(CACHE)
    target.parent.mkdir(parents=True, exist_ok=True)
    with Image.open(picture) as image:
        small = image.convert("RGB")
    small.thumbnail((ACROSS, ACROSS))
    small.save(target, optimize=True)
    return target.relative_to(folder).as_posix()


def card(picture: str, page: str, title: str, text: str = "") -> str:
    """Markdown of one card that links to a page."""
    lines = [":::{grid-item-card} " + title, f":img-top: {picture}", f":img-alt: {title}"]
    return "\n".join([*lines, f":link: /{page}", ":link-type: doc", "", text, ":::"])


def grid(cards: Sequence[str], columns: str) -> str:
    """Markdown of a grid of cards; `columns`: for phone, tablet, laptop and wide screen."""
    return "\n".join([f"::::{{grid}} {columns}", ":gutter: 3", "", *cards, "::::"])


def doors(folder: Path) -> str:
    """Cards of the first page; cards without a picture or a page are left out."""
    cards = []
    for name, page, title, text in DOORS:
        picture = (CACHE / name).with_suffix(".png")
        if picture.is_file() and (page != "explorers" or (folder / "explorers.md").is_file()):
            cards.append(card(thumbnail(picture, folder), page, title, text))
    return grid(cards, "1 2 3 3")


def called(item: Item) -> str:
    """Title of a picture: a figure of a paper by its number, others by their name."""
    name = item.name.removeprefix("figure-")
    return f"Figure {name}" if name[0].isdigit() else name.replace("_", " ")


def gallery(title: str, of_models: Mapping[str, Sequence[Item]], folder: Path) -> Iterator[str]:
    """Yield the Markdown of the gallery: thumbnails by model, linked to their pages.

    `of_models`: heading -> items with a picture; `folder`: of the site's sources.
    """
    yield f"# {title}"
    yield "Each picture has a page with its caption and the command that makes it."
    pages = []
    for heading, some in of_models.items():
        yield f"## {heading}"
        names = [f"gallery/{item.system}-{item.name}" for item in some]
        pages += names
        yield grid([
            card(thumbnail(item.picture, folder), page, called(item))
            for item, page in zip(some, names, strict=True)
        ], "2 3 3 4")  # fmt: skip
    yield "\n".join(["```{toctree}", ":hidden:", "", *pages, "```"])


def kind(verdict: Mapping[str, Any]) -> str:
    """Segment of the bar that counts a verdict, a name in `KINDS`.

    The verdict on the literal words decides; ``read``: only another reading of the claim holds.

    >>> kind({"verdict": "holds, as read here", "literal": "does not hold here"})
    'read'
    """
    word, literal = verdict["verdict"], verdict.get("literal", verdict["verdict"])
    if "in part" in word:
        return "part"
    if word.startswith("holds"):
        return "holds" if literal.startswith("holds") and "here" not in literal else "read"
    return "open" if literal.startswith("not decidable") else "fails"


def bar(verdicts: Sequence[Mapping[str, Any]]) -> str:
    """Bar of verdicts as HTML: one segment per kind, as wide as its number of verdicts."""
    counts = Counter(map(kind, verdicts))
    parts = [
        f'<span class="{name}" style="flex:{counts[name]}" title="{counts[name]} {words}">'
        f"{counts[name]}</span>"
        for name, words in KINDS.items()
        if counts[name]
    ]
    return f'<div class="bar">{"".join(parts)}</div>'


def legend() -> str:
    """Legend of the bars as HTML: the name of each segment."""
    parts = [f'<span class="{name}">{words}</span>' for name, words in KINDS.items()]
    return f'<div class="bar legend">{"".join(parts)}</div>'
