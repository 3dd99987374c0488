"""A sweep in other forms: a table of points, NetCDF."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from dynamics.results.outcome import INVALID, PENDING, POINT_KINDS
from dynamics.sweep.reader import BLOCK, DONE, RECORD
from dynamics.sweep.result import Sweep
from dynamics.validation import InvalidRequest

WORDS = {INVALID: "invalid", PENDING: "not run"} | dict(enumerate(POINT_KINDS))


def table(found: Sweep, path: Path) -> None:
    """One line for each point: its axes, how it ended, every number; empty where there is none.

    Parameters
    ----------
    found : Sweep
    path : Path
        A CSV file. Numbers are written so that they are read back bit for bit.
    """
    data, dims = found.dataset, found.plan.grid.dims
    own = [name for name in dims if name in data.coords]
    numbers = sorted(
        str(name)
        for name, variable in data.data_vars.items()
        if name not in ("outcome", DONE) and RECORD not in variable.dims
    )
    shape = found.plan.grid.shape
    arrays = {name: np.broadcast_to(data[name].values, shape) for name in numbers}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*own, "outcome", *numbers])
        for index in itertools.product(*(range(data.sizes[name]) for name in dims)):
            place = dict(zip(dims, index, strict=True))
            row = [data[name].values[place[str(name)]].item() for name in own]
            code = int(data["outcome"].values[index]) if "outcome" in data else PENDING
            cells = [float(arrays[name][index]) for name in numbers]
            writer.writerow([*row, WORDS[code], *("" if np.isnan(v) else repr(v) for v in cells)])


def netcdf(found: Sweep, path: Path) -> None:
    """The dataset as NetCDF 4, without the manifest.

    Raises
    ------
    InvalidRequest
        If h5netcdf is not installed.
    """
    try:
        import h5netcdf  # noqa: F401 (what xarray writes with)
        import h5py  # noqa: F401 (what that writes with)
    except ImportError:
        raise InvalidRequest("NetCDF needs h5netcdf; pip install 'attdyn[netcdf]'") from None
    data = found.dataset.drop_dims(BLOCK)
    data.to_netcdf(path, engine="h5netcdf")


EXPORTS: Mapping[str, Callable[[Sweep, Path], None]] = {"csv": table, "netcdf": netcdf}
