"""Results are shown in a few lines, and in a table whose texts are escaped."""

import dataclasses
from typing import Any

import numpy as np

from theory.summary import ROWS, WIDTH, summarized


@summarized
@dataclasses.dataclass(frozen=True)
class Many:
    first: Any = "<b>bold</b> & more"
    numbers: Any = None
    table: Any = None
    rows: Any = ()
    a: float = 1 / 3
    b: bool = True
    c: int = 7
    d: Any = None
    e: str = ""
    presentation: str = "hidden"


def test_arrays_and_long_texts_are_cut():
    shown = Many(
        numbers=np.linspace(0, 2, 9).reshape(3, 3),
        table={"none": None, **{f"k{n}": 0.5 for n in range(999)}},
        rows=[Many()] * 40, d={"x": [1, 2]},
    )  # fmt: skip
    name, *lines = repr(shown).splitlines()
    assert name == "Many"
    assert len(lines) == ROWS
    assert lines[0].split() == ["first", "<b>bold</b>", "&", "more"]
    assert lines[1].endswith("float64 array (3, 3), 0 to 2")
    assert lines[2].split(maxsplit=1)[1].startswith("k0=0.5, k1=0.5, ")
    assert lines[2].endswith("...")
    assert lines[3].split(maxsplit=1) == ["rows", "40 Many"]
    assert lines[6].split(maxsplit=1) == ["and", "c, d"]
    assert max(map(len, lines)) <= WIDTH + 2 + len("numbers") + 2
    assert "hidden" not in repr(shown)


def test_little_is_shown_in_one_line():
    assert repr(Many("word", np.array([1.0, 2.5]))) == (
        "Many(first=word, numbers=[1, 2.5], rows=, a=0.333333, b=True, c=7)"
    ).replace("rows=, ", "")
    assert "first=Many" in repr(Many(Many(table=dict.fromkeys(range(99), 0.5))))
