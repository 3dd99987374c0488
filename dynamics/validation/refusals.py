"""A refused request in one line: parameter, value, what is allowed, the nearest valid one."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from math import log10
from typing import NoReturn

BRIEF = 60
"""Letters of a long list or name."""
SHOWN = 100
"""Letters of a value in a message."""
LONGEST = 290
"""Letters of a message, so that a line of the command line has at most 300."""
NEAR = 0.55
"""Similarity of letters from which an unknown flag or file is answered with a known one."""
SYNONYMS = {
    "eta": ("lr", "rate", "learning_rate", "step_size", "stepsize"),
    "samples": ("n", "num_samples", "n_samples", "size"),
    "seed": ("seeds", "random_state", "rng"),
    "steps": ("epochs", "iterations", "iters", "num_steps", "n_steps"),
    "time": ("t", "tau", "horizon", "t_max"),
    "out": ("output", "o", "file", "dir"),
    "q": ("prob", "probability"),
    "batch": ("batch_size", "minibatch"),
    "rtol": ("tol",),
}
"""Name -> what else it is called elsewhere, for suggestions."""


class InvalidRequest(ValueError):
    """A request that cannot be served; the message is one line of at most 290 letters."""

    def __init__(self, message: object) -> None:
        super().__init__(one_line(str(message)))


def brief(text: str) -> str:
    """A text, or the begin of a long one."""
    return text if len(text) <= BRIEF else f"{text[: BRIEF - 4]} ..."


def one_line(text: str, longest: int = LONGEST) -> str:
    """A text in one line; of a long word or line the middle is left out: the end has the remedy.

    `longest`: letters of the line.
    """
    line = " ".join(text.split("\n"))
    if len(line) <= longest:
        return line
    if longest > SHOWN:
        line = re.sub(rf"\S{{{SHOWN + 1},}}", lambda word: one_line(word[0], SHOWN), line)
    last = longest // 3
    short = f"{line[: longest - last - 5].rstrip()} ... {line[-last:].lstrip()}"
    return line if len(line) <= longest else short


def nearest_name(name: object, names: Sequence[str], at_least: float = 0.0) -> str:
    """The name that is meant: by another word for it, by its number, or by its letters.

    `name`: flags with their dashes; `names`: at least one; the first where nothing is similar;
    `at_least`: similarity of the letters, from 0 to 1, below which no name is meant: then "".

    Examples
    --------
    >>> nearest_name("mix", ["any", "mixed"]), nearest_name("exakt", ["auto", "exact"])
    ('mixed', 'exact')
    >>> nearest_name("--learning-rate", ["--eta", "--q"]), nearest_name("fig7", ["2", "4", "phase"])
    ('--eta', '4')
    """
    bare = str(name)[:BRIEF].lstrip("-").lower().replace("-", "_")
    folded = {other.lstrip("-").lower(): other for other in names}
    for word in (bare, *(known for known, others in SYNONYMS.items() if bare in others)):
        if word in folded:
            return folded[word]
    number = re.search(r"\d{1,9}", bare)
    numbered = {o: int(m[0]) for o in folded if (m := re.match(r"\d{1,9}", o))}
    if number and numbered:
        return folded[min(numbered, key=lambda other: abs(numbered[other] - int(number[0])))]

    def likeness(other: str) -> tuple[bool, float]:
        return bool(bare) and other.startswith(bare), SequenceMatcher(None, bare, other).ratio()

    near = max(folded, key=likeness)
    begins, ratio = likeness(near)
    return folded[near] if begins or ratio >= at_least else ""


def refuse(parameter: str, value: object, problem: str, allowed: str, nearest: object) -> NoReturn:
    """Raise `InvalidRequest` in the one form that every refusal has.

    `parameter`: name as the user wrote it; `value`: the value that is refused; `problem`: why it
    cannot be, to be read after ``name=value``; `allowed`: every allowed value, to be read after
    "can be"; `nearest`: the nearest valid value; "" where none is near.
    """
    name, choice = brief(parameter), one_line(_written(nearest), SHOWN)
    front = f"{name}={shown(value)} {problem}; {name} can be "
    rest = f"; nearest: {choice}" if choice else ""
    room = LONGEST - len(front) - len(rest)
    listed = allowed if len(allowed) <= room else f"{allowed[: max(0, room - 4)]} ..."
    raise InvalidRequest(front + listed + rest)


def written(count: int) -> str:
    """A count in digits, or its power of ten where these are many."""
    return f"{count:,}" if count < 10**15 else f"10^{int(log10(count))}"


def check_cost(
    parameter: str,
    value: int,
    cost: Callable[[int], float],
    most: float,
    unit: str,
    sizes: Sequence[int] = (),
) -> None:
    """Refuse a size that costs too much, with the largest that does not.

    `parameter`: name as the user wrote it; `cost`: of a size; grows with it; `most`: largest cost;
    `unit`: of the cost, to be read after a number; `sizes`: sizes there are, ascending; whole
    numbers below the value by default.
    """
    if cost(value) <= most:
        return
    sizes = sizes or range(1, value)
    fit = bisect_right(sizes, most, key=cost)
    near = sizes[fit - 1] if fit else "none at these other parameters"
    problem = f"needs about {cost(value):.2g} {unit}"
    refuse(parameter, value, problem, f"a size that needs at most {most:.2g}", near)


def known_word(
    parameter: str, value: object, choices: Sequence[str], problem: str = "is unknown"
) -> str:
    """One of the words that a parameter can be.

    `parameter`: name as the user wrote it; `problem`: why no other word can be, to be read after
    ``name=value``. Raises InvalidRequest for anything else, with the most similar word.
    """
    if value not in choices:
        near = nearest_name(value, choices) if choices else "none"
        refuse(parameter, value, problem, ", ".join(choices), near)
    return str(value)


def _written(value: object) -> str:
    try:
        return str(value)
    except ValueError:  # a whole number of more digits than Python writes
        return type(value).__name__


def shown(value: object) -> str:
    """A value as a message has it, shortened."""
    text = _written(value) if not isinstance(value, str) else value
    return repr(one_line(text, SHOWN)) if isinstance(value, str) else one_line(text, SHOWN)


def unknown(kind: str, name: str, names: Sequence[str]) -> InvalidRequest:
    """The refusal of an unknown name, with those that are known and the nearest; of flags, if near.

    `kind`: what it is a name of; `names`: those that are known.
    """
    front = f"{kind} {brief(name)!r} is unknown; known are "
    near = nearest_name(name, names, NEAR if kind == "flag" else 0.0) if names else ""
    rest = f"; nearest: {near}" if near else ""
    listed, room = ", ".join(names) or "none", LONGEST - len(front) - len(rest)
    if len(listed) > room:
        listed = f"{listed[: room - 5].rpartition(',')[0]}, ..."
    return InvalidRequest(front + listed + rest)
