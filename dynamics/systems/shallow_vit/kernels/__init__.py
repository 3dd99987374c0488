r"""Kernels of the shallow ViT; here products with one short side, d, which is written out.

Tokens, keys and values have d numbers, of which there are few, and neurons (or queries) are many.
Where the loop over d is written out, its factors stay in registers, each number loaded is used
several times, and the loops over neurons become vector instructions that run at the speed of
arithmetic; a loop over d that is not known to the compiler takes twice as long.

Rows are contiguous and should begin at multiples of 64 bytes (`aligned`): vectors that straddle two
cache lines cost twice. Printed functions, with ``rows`` and ``out`` of the shapes given there:

- ``combine(weights, rows, out)``: out[t] = sum over k of weights[t, k] rows[k];
- ``activate(weights, inputs, signs, out)``: with u[t] the same of inputs, out[t] = a 1[u[t] > 0],
  and what is returned is the sum of out u, which is that of a relu(u);
- ``spread(rows, weights, out)``: out[k] += sum over t of weights[t, k] rows[t];
- ``moments(one, two, out)``: out[k, t] += sum over n of one[k, n] two[t, n].
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

TERMS = 16
"""Terms of a sum that is written out in one loop: more do not fit into registers."""
TOKENS, OUTPUTS = 5, 5
"""Rows read for so many results at a time, where sums over rows are collected."""
PAIR = 2
"""Rows beside OUTPUTS others, where sums run along the rows."""
LINE = 8
"""Numbers of a cache line, and of the longest vector."""


def aligned(*shape: int) -> NDArray[np.float64]:
    """Zeros whose rows begin with a cache line where the last side is a multiple of LINE."""
    size = prod(shape)
    room = np.zeros(size + LINE)
    first = (-room.ctypes.data // room.itemsize) % LINE
    return room[first : first + size].reshape(shape)


def padded(size: int) -> int:
    """The least multiple of LINE that holds so many numbers."""
    return -(-size // LINE) * LINE


def sources(depth: int) -> list[str]:
    """Text of the four functions for one depth d."""
    return [_combine(depth), _activate(depth), _spread(depth), _moments(depth)]


def _groups(size: int, width: int) -> list[range]:
    """0, ..., size - 1 in runs of at most ``width``."""
    return [range(k, min(size, k + width)) for k in range(0, size, width)]


def _sum(terms: Iterable[str]) -> str:
    return " + ".join(terms)


def _function(signature: str, says: str, lines: Sequence[str]) -> str:
    body = textwrap.indent("\n".join([f'"""{says}"""', *lines]), "    ")
    return f"@kernel\ndef {signature}:\n{body}\n"


def _rows(depth: int, name: str, array: str) -> list[str]:
    return [f"{name}{k} = {array}[{k}]" for k in range(depth)]


def _combine(depth: int) -> str:
    lines = [*_rows(depth, "r", "rows"), "for t in range(out.shape[0]):", "    o = out[t]"]
    for group in _groups(depth, TERMS):
        lines += [f"    w{k} = weights[t, {k}]" for k in group]
        total = _sum(f"w{k} * r{k}[n]" for k in group)
        so_far = "o[n] + " if group.start else ""
        lines += ["    for n in range(o.size):", f"        o[n] = {so_far}{total}"]
    return _function("combine(weights, rows, out)", "Each out a sum of all rows.", lines)


def _activate(depth: int) -> str:
    lines = [
        *_rows(depth, "r", "weights"),
        "total = 0.0",
        "for t in range(out.shape[0]):",
        "    o, a = out[t], signs[t % signs.shape[0]]",
    ]
    groups = _groups(depth, TERMS)
    for group in groups:
        lines += [f"    w{k} = inputs[t, {k}]" for k in group]
        inner = _sum(f"w{k} * r{k}[n]" for k in group)
        so_far = "o[n] + " if group.start else ""
        lines.append("    for n in range(o.size):")
        if group is not groups[-1]:
            lines.append(f"        o[n] = {so_far}{inner}")
            continue
        lines += [
            f"        u = {so_far}{inner}",
            "        gate = a[n] if u > 0.0 else 0.0",
            "        total += gate * u",
            "        o[n] = gate",
        ]
    lines.append("return total")
    signature = "activate(weights, inputs, signs, out)"
    return _function(signature, "Signs where a neuron is open; sum of a relu(u).", lines)


def _spread(depth: int) -> str:
    lines = [*_rows(depth, "o", "out"), f"whole = rows.shape[0] - rows.shape[0] % {TOKENS}"]
    for loop, many in ((f"range(0, whole, {TOKENS})", TOKENS), ("range(whole, rows.shape[0])", 1)):
        lines.append(f"for t in {loop}:")
        lines += [f"    r{j} = rows[t + {j}]" for j in range(many)]
        for group in _groups(depth, OUTPUTS):
            for k in group:
                lines += [f"    w{j}_{k} = weights[t + {j}, {k}]" for j in range(many)]
            lines.append("    for n in range(r0.size):")
            for k in group:
                total = _sum(f"w{j}_{k} * r{j}[n]" for j in range(many))
                lines.append(f"        o{k}[n] += {total}")
    return _function("spread(rows, weights, out)", "All rows, weighted, added to each out.", lines)


def _moments(depth: int) -> str:
    lines = [*_rows(depth, "r", "one"), f"whole = two.shape[0] - two.shape[0] % {PAIR}"]
    for loop, many in ((f"range(0, whole, {PAIR})", PAIR), ("range(whole, two.shape[0])", 1)):
        lines.append(f"for t in {loop}:")
        lines += [f"    x{j} = two[t + {j}]" for j in range(many)]
        for group in _groups(depth, OUTPUTS):
            for k in group:
                lines += [f"    s{j}_{k} = 0.0" for j in range(many)]
            lines.append("    for n in range(x0.size):")
            for k in group:
                lines.append(f"        v{k} = r{k}[n]")
                lines += [f"        s{j}_{k} += v{k} * x{j}[n]" for j in range(many)]
            for k in group:
                lines += [f"    out[{k}, t + {j}] += s{j}_{k}" for j in range(many)]
    return _function("moments(one, two, out)", "Sums along the rows of products.", lines)
