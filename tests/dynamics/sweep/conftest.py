"""What the tests of sweeps share."""

import hashlib

import pytest
from sweeps import GIVEN, SYSTEM

import dynamics


@pytest.fixture(scope="session")
def files():
    """Every file of a store and the hash of its bytes."""

    def hashed(store):
        return {
            str(path.relative_to(store)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(store.rglob("*"))
            if path.is_file()
        }

    return hashed


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """A finished sweep in this process."""
    out = tmp_path_factory.mktemp("sweep") / "s.zarr"
    return out, dynamics.sweep(SYSTEM, GIVEN, out, workers=0, trajectory=5)
