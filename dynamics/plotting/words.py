"""Words on pictures of sweeps: labels of parameters and quantities, and what is held fixed.

Letters come from the notation table that a result carries; a name that is not in it, such as the
name of a free axis of a sweep, is written out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from dynamics.phase_diagrams.selection import TIME, Quantity
from dynamics.validation import brief
from theory.notation import NotationEntry

Letters = Mapping[str, NotationEntry]
"""A notation table, or nothing."""
WORDS = {
    "samples": "samples $N$",
    "patch_association": "share of associated rows",
    "certificate": "bound / gross gradient",
    "T0": "$T_0$",
    "T1": "$T_1$",
    "T1_paper": "$T_1$ (paper)",
    "event_III": "of Event III",
}
LETTERS = {"samples": "N"}
SHORT = 20
"""Characters up to which the meaning of a letter stands before it."""
STAR = "\ue000"
"""Stands for the asterisk of a letter while those of a formula are written as products."""
SIGNS = {
    "<=": r"\leq", ">=": r"\geq", "==": "=", "!=": r"\neq", "<": "<", ">": ">",
}  # fmt: skip


def letter(notation: Letters, name: str) -> str:
    """A name as LaTeX without dollar signs, as short as can be."""
    if name in LETTERS:
        return LETTERS[name]
    if name in notation:
        return notation[name].latex
    spaced = name.replace("_", r"\ ")
    return name if len(name) == 1 else rf"\mathrm{{{spaced}}}"


def label(notation: Letters, name: str) -> str:
    """A name on an axis: its letter, with its meaning where that is short."""
    if name in WORDS:
        return WORDS[name]
    if name not in notation:
        return f"${name}$" if len(name) == 1 else name.replace("_", " ")
    meaning = re.split("[:,(]", notation[name].meaning)[0].strip()
    symbol = f"${notation[name].latex}$"
    return f"{meaning} {symbol}" if len(meaning) <= SHORT else symbol


def quantity(notation: Letters, asked: Quantity) -> str:
    """A quantity on an axis, a colour bar or in a legend; a time is said to be one."""
    event = asked.name.removeprefix(TIME)
    written = WORDS.get(event, f"of {event.replace('_', ' ')}")
    if asked.relation == "reached":
        return f"{written.removeprefix('of ')} reached"
    name = f"time {written}" if asked.is_time else label(notation, asked.name)
    if asked.yes_no:
        return f"{name} ${SIGNS[asked.relation]} {number(asked.number)}$"
    return name


def number(value: float) -> str:
    """A number as LaTeX without dollar signs: 0.5, or 10^{5}."""
    mantissa, _, power = f"{value:.4g}".partition("e")
    if not power and value and float(f"{value:.0e}") == value and not 1e-2 <= abs(value) < 1e4:
        mantissa, _, power = f"{value:.0e}".partition("e")
    if not power:
        return mantissa
    ten = f"10^{{{int(power)}}}"
    return {"1": ten, "-1": f"-{ten}"}.get(mantissa, rf"{mantissa} \times {ten}")


def formula(notation: Letters, text: str) -> str:
    """A formula of `dynamics.results.expression` as LaTeX without dollar signs."""
    functions = r"([A-Za-z_]\w*)(?=\s*\()"
    written = re.sub(functions, lambda found: rf"\mathrm{{{found[1]}}}", text)
    names = r"(?<![\w.{\\])([A-Za-z_]\w*)(?![\w}])"
    written = re.sub(names, lambda found: letter(notation, found[1]).replace("*", STAR), written)
    written = re.sub(r"\s*\*\*\s*(-?[\w.]+)", r"^{\1}", written)
    written = written.replace("**", r"{\ast\ast}").replace("*", r"\,").replace("%", r"\%")
    return written.replace(STAR, "*")


def fixed(
    notation: Letters,
    held: Mapping[str, Any],
    derived: Mapping[str, str],
    width: float,
    seeds: int = 0,
) -> str:
    """What is held fixed, in lines that fit into a width in inches."""
    items = [_item(notation, name, value) for name, value in held.items() if value is not None]
    items += [f"${letter(notation, name)} = {formula(notation, f)}$" for name, f in derived.items()]
    if seeds:
        items.append(f"median of {seeds} seeds")
    return "\n".join(_lines(items, int(width * 14)))


def _item(notation: Letters, name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return f"{name.replace('_', ' ')} {brief(str(value))}"
    if name == "time":
        return f"up to time ${number(value)}$"
    return f"${letter(notation, name)} = {number(value)}$"


def _lines(items: Iterable[str], width: int) -> list[str]:
    lines: list[str] = []
    for item in items:
        longer = f"{lines[-1]}, {item}" if lines else item
        seen = re.sub(r"\\[a-zA-Z]+|[${}^\\ ]", "", longer) + " " * longer.count(" ")
        if lines and len(seen) <= width:
            lines[-1] = longer
        else:
            lines.append(item)
    return lines
