"""A portrait in plain values and in words."""

from __future__ import annotations

from typing import Any

from dynamics.analysis.phase_portrait.plane import Portrait


def described(found: Portrait) -> dict[str, Any]:
    """A portrait as plain values."""
    return {
        "box": [list(side) for side in found.box],
        "hidden": {name: how.kind for name, how in found.hidden.items()},
        "nullclines": {
            name: {
                "branches": [branch.tolist() for branch in line.branches],
                "settled": line.settled,
                "unresolved": line.unresolved,
            }
            for name, line in found.nullclines.items()
        },
        "fixed_points": [
            {
                "place": point.place.tolist(),
                "kind": point.kind,
                "eigenvalues": [[value.real, value.imag] for value in point.eigenvalues],
            }
            for point in found.fixed_points
        ],
        "slow_branches": 0 if found.slow is None else len(found.slow.values),
        "gradients": found.gradients,
    }


def sentence(found: Portrait) -> str:
    """What a portrait shows, in a sentence with its numbers."""
    counts = ", ".join(
        f"{len(line.branches)} of d{name}/dt = 0" + ("" if line.settled else " (not settled)")
        for name, line in found.nullclines.items()
    )
    fixed = ", ".join(
        f"a {point.kind} at ({point.place[0]:.4g}, {point.place[1]:.4g})"
        for point in found.fixed_points
    )
    return (
        f"({', '.join(found.plane)}): nullcline branches: {counts}; fixed points of the plane: "
        f"{fixed or 'none'}; {found.gradients:,} gradients beside the runs."
    )
