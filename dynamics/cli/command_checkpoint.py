"""Checkpoints as the command line keeps them: where they are, when one is used, when it goes.

The state of a run under way lies in a hidden file beside its result, ``.NAME.checkpoint`` for
``--out NAME``. It goes when the result is written, and stays where the run was interrupted or
killed, for the same command with ``--resume``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynamics.analysis.comparison import parts
from dynamics.training.checkpoint import Checkpoint
from dynamics.validation import InvalidRequest


@dataclass(frozen=True)
class Kept:
    """The checkpoint of a command.

    Attributes
    ----------
    place : Checkpoint
        What the driver is given.
    files : tuple of Checkpoint
        The files there are: itself, or one for each run of a comparison.
    """

    place: Checkpoint
    files: tuple[Checkpoint, ...]

    def exists(self) -> bool:
        """Whether there is anything to go on from."""
        return any(file.exists() for file in self.files)

    def discard(self) -> None:
        """Remove all of it."""
        for file in self.files:
            file.discard()

    def tell(self) -> None:
        """Say how to go on, where that is possible."""
        if self.exists():
            told = "the same command with --resume goes on from there"
            print(f"attdyn: {told} (checkpoint {self.place.path})", file=sys.stderr)

    @contextmanager
    def in_use(self, resumed: bool) -> Iterator[None]:
        """Around a run and the writing of its result; a run that is not resumed begins anew."""
        if self.exists() and not resumed:
            told = "the checkpoint of an earlier run is dropped: without --resume a run starts anew"
            print(f"attdyn: {told}", file=sys.stderr)
            self.discard()
        try:
            yield
        except KeyboardInterrupt:
            self.tell()
            raise

    def close(self, interrupted: bool) -> None:
        """After the result was written."""
        if interrupted:
            self.tell()
        else:
            self.discard()


def kept(
    command: str, out: Path, chosen: Mapping[str, Any], fulls: int = 1, reduced: int = 1
) -> Kept | None:
    """The checkpoint of a request, checked before anything is compiled; None for a flow.

    Parameters
    ----------
    command : str
        ``"run"`` or ``"compare"``.
    out : Path
        Where the result goes.
    chosen : mapping
        Flags as given.
    fulls : int
        Full runs of a comparison.
    reduced : int
        Its reduced runs.

    Raises
    ------
    InvalidRequest
        If there is nothing to resume, or the file cannot be used.
    """
    if "time" in chosen:
        for name in ("resume", "checkpoint"):
            if name in chosen:
                raise InvalidRequest(f"{name} is of gradient descent and time of the flow")
        return None
    path = Path(str(chosen.get("checkpoint", out.with_name(f".{out.name}.checkpoint"))))
    if path.resolve().is_relative_to(out.resolve()):
        allowed = "a file outside of it"
        raise InvalidRequest(
            f"checkpoint={str(path)!r} is inside the result; checkpoint can be {allowed}"
        )
    place = Checkpoint(path, keep=True)
    files = tuple(parts(place, fulls, reduced)) if command == "compare" else (place,)
    found = Kept(place, files)
    for file in found.files:
        file.check()
    if chosen.get("resume") and not found.exists():
        raise InvalidRequest(
            f"there is nothing to resume: no checkpoint {str(path)!r}; run without --resume"
        )
    return found
