"""No damage to a stored result goes unnoticed."""

import json

import numpy as np
import pytest
from runs import same

import dynamics
from dynamics.validation import InvalidRequest

MUTATIONS = 80


@pytest.fixture(scope="module")
def result():
    system = dynamics.load_system("positional_attention")
    parameters = system.Parameters(D=4, C=2)
    problems = system.ReducedPopulation(parameters), system.FullPopulation(parameters)
    return dynamics.compare(*problems, eta=0.02, steps=20)


def _loaded(store):
    """A result and no refusal, or none and the refusal."""
    try:
        return dynamics.load(store), ""
    except InvalidRequest as error:
        return None, str(error)


def test_a_flipped_bit_or_a_cut_file_is_refused_under_its_name(result, tmp_path):
    store = dynamics.save(result, tmp_path / "x")
    files = sorted(path for path in store.rglob("*") if path.is_file())
    rng, refused = np.random.default_rng(17), 0
    for _ in range(MUTATIONS):
        path = files[rng.integers(len(files))]
        content = bytearray(whole := path.read_bytes())
        place = int(rng.integers(len(content)))
        if rng.random() < 0.7:
            content[place] ^= 1 << int(rng.integers(8))
        else:
            del content[place:]
        path.write_bytes(content)
        loaded, refusal = _loaded(store)
        if refusal:
            assert path.relative_to(store).as_posix() in refusal
            assert "\n" not in refusal
            refused += 1
        else:  # 1e-5 may become 1E-5
            same(loaded.reduced, result.reduced)
            same(loaded.full, result.full)
        path.write_bytes(whole)
    assert refused > 0.95 * MUTATIONS
    same(dynamics.load(store).full, result.full)


def test_a_file_or_a_sum_that_is_gone_is_refused(result, tmp_path):
    store = dynamics.save(result.reduced, tmp_path / "x")
    group = json.loads((store / "zarr.json").read_text())
    (store / "alpha" / "c" / "0").unlink()
    with pytest.raises(InvalidRequest, match="its alpha/c/0 is missing"):
        dynamics.load(store)
    del group["attributes"]["checksum"]
    (store / "zarr.json").write_text(json.dumps(group))
    with pytest.raises(InvalidRequest, match=r"its zarr\.json is damaged"):
        dynamics.load(store)
