"""The request that a store was made by, and how another one differs from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dynamics.results.presentation import Presentation
from dynamics.sweep.folder import reason
from dynamics.validation import InvalidRequest, brief

FORMAT = 1
KIND = "sweep"
PARTS = {
    "axes": dict, "fixed": dict, "derived": dict, "paired": bool, "records": int, "block": list,
    "versions": dict,
}  # fmt: skip
"""What describes a request beside the system, and of which type it is."""
MODEL = "model"
"""What only the request of a user's own model has: part of the model -> hash."""


def described(path: Path) -> dict[str, Any]:
    """The request that a store was made by.

    See `read_head` for errors.
    """
    return read_head(path)[0]


def read_head(path: Path) -> tuple[dict[str, Any], Presentation | None]:
    """The request that a store was made by, and how it is shown; older ones do not say that.

    Raises
    ------
    InvalidRequest
        If it is not a sweep, or one of another format.
    """
    try:
        text = json.loads((path / "zarr.json").read_text(encoding="utf-8"))
        found = dict(text["attributes"])
    except FileNotFoundError:
        raise InvalidRequest(f"{str(path)!r} holds no sweep; attdyn sweep makes one") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidRequest(f"{str(path)!r} cannot be read ({reason(error)})") from None
    if found.get("kind") != KIND:
        what = f"a {found['kind']}" if "kind" in found else "something else"
        raise InvalidRequest(f"{str(path)!r} holds {what}, not a sweep")
    if found.get("format") != FORMAT:
        was = found.get("format")
        raise InvalidRequest(f"{str(path)!r} has format {was}, this program reads {FORMAT}")
    try:
        parts = PARTS | ({MODEL: dict} if MODEL in found else {})
        request = {name: json.loads(found[name]) for name in parts}
        for name, kind in parts.items():
            if not isinstance(request[name], kind):
                raise ValueError(f"its {name} are no {kind.__name__}")
        return {"system": found["system"]} | request, Presentation.from_attributes(found)
    except (AttributeError, KeyError, ValueError, TypeError) as error:
        raise InvalidRequest(f"{str(path)!r} cannot be read ({reason(error)})") from None


def differences(stored: Mapping[str, Any], asked: Mapping[str, Any], path: Path) -> None:
    """Refuse to go on with the store of another request.

    Raises
    ------
    InvalidRequest
        With every difference.
    """
    before, now = _flat(stored), _flat(json.loads(json.dumps(asked)))
    told = [
        f"{name}: {_shown(before.get(name))} there, {_shown(now.get(name))} here"
        for name in dict.fromkeys([*before, *now])
        if before.get(name) != now.get(name)
    ]
    if told:
        raise InvalidRequest(f"{str(path)!r} is of another sweep ({'; '.join(told)})")
    if list(stored["axes"]) != list(asked["axes"]):
        orders = " and ".join(",".join(axes) for axes in (stored["axes"], asked["axes"]))
        raise InvalidRequest(f"{str(path)!r} is of another sweep (order of axes: {orders})")


def _flat(description: Mapping[str, Any]) -> dict[str, Any]:
    """One entry for each name; axes, formulas and fixed values by the name of the parameter."""
    found: dict[str, Any] = {}
    for name, value in description.items():
        if name == "versions":
            found |= {f"version of {program}": version for program, version in value.items()}
        elif name == MODEL:
            found |= {f"{part} of the model": digest for part, digest in value.items()}
        else:
            found |= value if isinstance(value, dict) else {name: value}
    return found


def _shown(value: Any) -> str:
    if value is None:
        return "not given"
    if isinstance(value, list) and len(value) > 3:
        return f"{value[0]:g} ... {value[-1]:g} ({len(value)} values)"
    if isinstance(value, list):
        return ",".join(f"{entry:g}" for entry in value)
    return f"{value:g}" if isinstance(value, float) else brief(str(value))
