"""What the tests of sweeps share."""

import hashlib

import pytest


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
