"""Results on disk: xarray datasets in zarr v3, written atomically.

A `Trajectory` is one zarr group. A `Comparison` has the sub-groups ``reduced`` and ``full``, with
``full_1``, ... (and ``reduced_1``, ...) for further seeds. An `Overlay` has the sub-groups
``run_0``, ``run_1``, ..., and optionally ``flow``. The command line writes a result's store as
``result.zarr`` into a folder with pictures; `load` reads a store or such a folder. Every file has a
checksum, and `load` refuses a damaged file. Parameters, settings, events, outcome and program
versions are JSON attributes. Clock times are not stored, so equal runs give equal stores.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import itertools
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamics.results.comparison import Comparison, Overlay
from dynamics.results.trajectory import Trajectory
from dynamics.validation import InvalidRequest, path_of, refuse

if TYPE_CHECKING:
    import xarray

FORMAT = 1
INSIDE = "result.zarr"
Result = Trajectory | Comparison | Overlay
KINDS = ("trajectory", "comparison", "overlay")
VERSIONS = ("attdyn", "numpy", "scipy", "numba", "sympy")
ZARR, LISTED = "zarr.json", "consolidated_metadata"
"""File with the metadata of a zarr group; key, in this file, of the metadata of the arrays."""
OTHERS, OWN = "checksums", "checksum"
"""Attributes of the root group: checksums of other files as JSON; checksum of ``zarr.json``."""
SCRATCH = ".attdyn-"
"""Prefix of temporary folders, removed at the end of a command unless it is killed."""
LOOKS = 3
"""Maximum number of attempts to read a path that another process may replace."""
FEW = 3
"""Maximum number of differences between two requests that a message lists."""


@functools.cache
def versions() -> dict[str, str]:
    """Name of each program that results depend on -> its installed version."""
    return {name: metadata.version(name) for name in VERSIONS}


def differences(
    stored: Mapping[str, Any], requested: Mapping[str, Any]
) -> list[tuple[str, Any, Any]]:
    """Differences between two requests, as tuples (name, stored value, requested value).

    Names of nested entries are joined by points; the value of a missing entry is None.

    Examples
    --------
    >>> differences({"eta": 0.1, "versions": {"numpy": "2.0"}}, {"versions": {"numpy": "2.1"}})
    [('eta', 0.1, None), ('versions.numpy', '2.0', '2.1')]
    """
    before, now = _flat(stored), _flat(json.loads(json.dumps(requested)))
    return [
        (name, before.get(name), now.get(name))
        for name in {**before, **now}
        if before.get(name) != now.get(name)
    ]


def different(stored: Mapping[str, Any], requested: Mapping[str, Any]) -> str:
    """Text of the first few `differences` between two requests; empty for equal requests."""
    pairs = [f"{name}: stored {a}, requested {b}" for name, a, b in differences(stored, requested)]
    more = f", and {len(pairs) - FEW} more" if len(pairs) > FEW else ""
    return "; ".join(pairs[:FEW]) + more


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, entry in tree.items():
        nested = isinstance(entry, Mapping)
        flat |= _flat(entry, f"{prefix}{name}.") if nested else {f"{prefix}{name}": entry}
    return flat


def _stamped(dataset: xarray.Dataset) -> xarray.Dataset:
    return dataset.assign_attrs(format=FORMAT, versions=json.dumps(versions()))


def save(result: Result, path: str | os.PathLike[str]) -> Path:
    """Write a result; an earlier result at the same path is replaced.

    Parameters
    ----------
    result : Trajectory, Comparison or Overlay
    path : path-like
        The zarr store, a folder.

    Returns
    -------
    Path
        The path written.

    Raises
    ------
    InvalidRequest
        If the path holds anything but a result, or cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import dynamics
    >>> system = dynamics.load_system("positional_attention")
    >>> problem = system.ReducedPopulation(system.Parameters(D=8, C=2))
    >>> run = dynamics.descend(problem, eta=0.02, steps=100)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = dynamics.save(run, f"{folder}/run.zarr")
    ...     same = dynamics.load(path)
    >>> (same.states == run.states).all(), same.outcome == run.outcome
    (np.True_, True)
    """
    if not isinstance(result, Result):
        refuse(
            "result",
            result,
            "is not a result",
            "a Trajectory, Comparison or Overlay",
            "a Trajectory",
        )
    target = path_of("out", path)
    with fresh_folder(target) as fresh:
        write_groups(result, fresh)
        return put(fresh, target)


@contextmanager
def fresh_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Context with a temporary folder in the parent folder of ``path``, removed at the end."""
    parent = check_writable(path).parent
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent, prefix=SCRATCH) as folder:
        fresh = Path(folder) / "result"
        fresh.mkdir()
        yield fresh


def put(fresh: Path, target: Path) -> Path:
    """Rename a completely written folder to its target in one step; the last writer wins.

    An earlier result at the target is replaced. Raises InvalidRequest if the target exists and is
    not a result.
    """
    for attempt in itertools.count():
        try:
            os.rename(fresh, target)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        else:
            break
        check_writable(target)
        # Another process may move the target at the same moment.
        with suppress(FileNotFoundError):
            os.rename(target, fresh.with_name(f"replaced_{attempt}"))
    return target


def write_groups(result: Result, folder: Path) -> None:
    """Write the groups of a result into a new folder."""
    import xarray

    groups: Mapping[str | None, xarray.Dataset]
    if isinstance(result, Trajectory):
        groups = {None: _stamped(result.stored())}
    else:
        if isinstance(result, Comparison):
            counts = {"seeds": len(result.fulls), "partners": len(result.partners)}
            attributes = {"kind": "comparison", "format": FORMAT, **counts}
            dimension, coordinate = "record", {"time": ("record", result.time)}
        else:
            over_flow = int(result.flow is not None)
            attributes = {"kind": "overlay", "format": FORMAT, "flow": over_flow}
            dimension, coordinate = "run", {"eta": ("run", result.etas)}
        deviations = {name: (dimension, values) for name, values in result.deviations.items()}
        groups = {None: xarray.Dataset(deviations, coordinate, attributes)}
        groups |= {name: _stamped(run.stored()) for name, run in result.named_runs.items()}
    for group, dataset in groups.items():
        dataset.to_zarr(folder, group=group, mode="a", zarr_format=3, consolidated=False)
    consolidate(folder, [name or "" for name in groups])
    _seal(folder)


def consolidate(store: Path, groups: Iterable[str] = ("",)) -> None:
    """Copy the metadata of all arrays, sorted by path, into the group files that xarray reads."""
    for folder in (store / group for group in groups):
        files = sorted(folder.rglob(ZARR))
        parts = {f.parent.relative_to(folder).as_posix(): json.loads(f.read_bytes()) for f in files}
        group = parts.pop(".")
        for part in parts.values():
            part.pop(LISTED, None)
        group[LISTED] = {"kind": "inline", "must_understand": False, "metadata": parts}
        partial = folder / f"zarr.{'0' * 32}.partial"
        partial.write_text(json.dumps(group, indent=2), encoding="utf-8")
        os.replace(partial, folder / ZARR)


def check_writable(path: str | os.PathLike[str], flag: str = "out") -> Path:
    """Check that a result can be written to a path, without leaving files.

    `flag` names the option of the path in messages. Raises InvalidRequest if the path cannot be
    written or holds anything but a result.
    """
    target = path_of(flag, path)

    def refused(problem: str) -> InvalidRequest:
        allowed = "a new folder or an earlier result; nearest: results"
        return InvalidRequest(f"{flag}={str(target)!r} {problem}; {flag} can be {allowed}")

    try:
        if target.is_symlink():
            raise refused("is a link")
        if Path.cwd().is_relative_to(target.resolve()):
            raise refused("is the working folder or holds it")
        if strange := obstacle(target):
            raise refused(strange)
        standing = next(folder for folder in target.absolute().parents if folder.exists())
        with tempfile.TemporaryDirectory(dir=standing) as folder:
            (Path(folder) / target.name).mkdir()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise refused(f"cannot be written ({reason})") from None
    return target


def obstacle(path: Path) -> str:
    """Reason why a path cannot be replaced by a result; empty if it can."""
    strange = ""
    for _ in range(LOOKS):
        with suppress(FileNotFoundError):
            strange = _foreign(path)
            if not strange:
                break
    return strange


def _foreign(path: Path) -> str:
    """Reason why a path is not a result, or holds an entry that is not part of one; else empty."""
    if not os.path.lexists(path):
        return ""
    if path.is_dir() and not any(path.iterdir()):
        return ""
    if not path.is_dir():
        return "exists and is not a result"
    store, written = _store_in(path), _written(path)
    is_result = store is not None and attributes(store).get("kind") in KINDS
    if not is_result and (store is not None or not written):
        return "exists and is not a result"
    own = {"zarr.json"} if store == path else {INSIDE, "summary.json", *written}
    for entry in path.iterdir():
        part = store == path and (entry / "zarr.json").exists()
        if entry.name not in own and not part and not entry.name.startswith(SCRATCH):
            return f"holds {entry.name!r}, which is not part of a result"
    return ""


def _written(path: Path) -> set[str]:
    """Names of a command's summary and of the files listed in it; empty without a summary."""
    try:
        summary = json.loads((path / "summary.json").read_text(encoding="utf-8"))
        return {"summary.json", *summary["files"]}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return set()


def attributes(store: Path) -> dict[str, object]:
    """Attributes of a zarr group; empty if missing."""
    try:
        group = json.loads((store / "zarr.json").read_text(encoding="utf-8"))
        return dict(group.get("attributes", {}))
    except (OSError, ValueError, AttributeError, RecursionError):
        return {}


def _store_in(path: Path) -> Path | None:
    """Path of the store of a result: the folder itself, or ``result.zarr`` in it."""
    stores = (store for store in (path, path / INSIDE) if (store / "zarr.json").exists())
    return next(stores, None)


def load(path: str | os.PathLike[str]) -> Result:
    """Read a result from a zarr store or from the folder of a command.

    Raises InvalidRequest if the path holds no result, or a result of unknown format, or a damaged
    one.
    """
    path = path_of("path", path)
    store = _store_in(path)
    if store is None:
        raise InvalidRequest(f"path={str(path)!r} holds no result; path can be one from save")
    stored = attributes(store)
    if stored.get("kind") not in KINDS or stored.get("format") != FORMAT:
        format_ = f"format {stored.get('format')}" if "format" in stored else "no known format"
        raise InvalidRequest(
            f"path={str(path)!r} has {format_}, but this program reads format {FORMAT}; or its "
            "zarr.json is damaged"
        )
    try:
        _check(store)
        result = _read(store)
    except (ValueError, KeyError, OSError, RuntimeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InvalidRequest(f"path={str(path)!r} cannot be read ({reason})") from error
    if attributes(store) != stored:
        raise InvalidRequest(f"path={str(path)!r} was replaced while it was read; load it again")
    return result


def _read(store: Path) -> Result:
    import xarray

    def group(name: str | None) -> xarray.Dataset:
        return xarray.open_zarr(store, group=name, consolidated=False, chunks=None).load()

    root = group(None)
    if root.attrs["kind"] == "trajectory":
        return Trajectory.from_stored(root)
    if root.attrs["kind"] == "overlay":
        runs = [Trajectory.from_stored(group(f"run_{k}")) for k in range(root.sizes["run"])]
        smooth = Trajectory.from_stored(group("flow")) if root.attrs.get("flow", 1) else None
        return Overlay(smooth, tuple(runs), _deviations(root, runs[0]))
    first = Trajectory.from_stored(group("reduced"))
    deviations = _deviations(root, first)
    names = ["full", *(f"full_{k}" for k in range(1, root.attrs.get("seeds", 1)))]
    full, *others = (Trajectory.from_stored(group(name)) for name in names)
    more = range(1, 1 + root.attrs.get("partners", 0))
    partners = tuple(Trajectory.from_stored(group(f"reduced_{k}")) for k in more)
    return Comparison(first, full, deviations, tuple(others), partners)


def _deviations(root: xarray.Dataset, run: Trajectory) -> dict[str, Any]:
    """State -> stored deviations, one for each record (Comparison) or run (Overlay)."""
    return {name: root[name].values for name in run.layout.names if name in root.data_vars}


def _seal(store: Path) -> None:
    """Write the checksums of all files of a store into its root group."""
    group = json.loads((store / ZARR).read_text(encoding="utf-8"))
    files = sorted(path for path in store.rglob("*") if path.is_file())
    names = [path.relative_to(store).as_posix() for path in files]
    digests = {n: _digest((store / n).read_bytes()) for n in names if n != ZARR}
    group["attributes"][OTHERS] = json.dumps(digests)
    group["attributes"][OWN] = _own(group)
    (store / ZARR).write_text(json.dumps(group, indent=2), encoding="utf-8")


def _check(store: Path) -> None:
    """Raise ValueError for a damaged or missing file; a store without checksums is accepted."""
    try:
        group = json.loads((store / ZARR).read_text(encoding="utf-8"))
        stored = group["attributes"]
        if OWN not in stored and OTHERS not in stored:
            return
        whole = stored.get(OWN) == _own(group)
        digests = json.loads(stored[OTHERS]) if whole else {}
    except (ValueError, KeyError, TypeError, AttributeError):
        whole = False
    if not whole:
        raise ValueError(f"its {ZARR} is damaged")
    for name, digest in digests.items():
        path = store / name
        if not path.is_file():
            raise ValueError(f"its {name} is missing")
        if _digest(path.read_bytes()) != digest:
            raise ValueError(f"its {name} is damaged")


def _own(group: dict[str, Any]) -> str:
    """Checksum of the metadata of a group, without the checksum itself."""
    others = {name: entry for name, entry in group["attributes"].items() if name != OWN}
    return _digest(json.dumps(group | {"attributes": others}, sort_keys=True).encode())


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()
