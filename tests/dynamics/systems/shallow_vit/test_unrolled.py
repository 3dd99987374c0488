"""The printed products, run as plain Python, against numpy; rows begin with a cache line."""

import numpy as np
import pytest

from dynamics.systems.shallow_vit import kernels as unrolled


@pytest.fixture(scope="module", params=[1, 3, 5, 10, 17, 33])
def printed(request):
    functions = {"kernel": lambda function: function}
    for text in unrolled.sources(request.param):
        exec(text, functions)
    return request.param, functions


@pytest.mark.parametrize("many", [1, 2, 5, 6, 11])
def test_products_are_those_of_numpy(printed, many):
    depth, functions = printed
    generator = np.random.default_rng(many)
    rows, wide = generator.standard_normal((2, depth, 4))
    weights, tall = generator.standard_normal((many, depth)), generator.standard_normal((many, 4))
    out = np.empty((many, 4))
    functions["combine"](weights, rows, out)
    np.testing.assert_allclose(out, weights @ rows, rtol=1e-13, atol=1e-13)
    summed = wide.copy()
    functions["spread"](tall, weights, summed)
    np.testing.assert_allclose(summed, wide + weights.T @ tall, rtol=1e-13, atol=1e-13)
    beside = np.ones((depth, many))
    functions["moments"](rows, tall, beside)
    np.testing.assert_allclose(beside, 1.0 + rows @ tall.T, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("shared", [True, False])
def test_activation_keeps_the_signs_of_open_neurons(printed, shared):
    depth, functions = printed
    generator = np.random.default_rng(1)
    weights, inputs = generator.standard_normal((depth, 4)), generator.standard_normal((6, depth))
    signs = generator.choice([-0.5, 0.5], size=(1 if shared else 6, 4))
    out = np.empty((6, 4))
    total = functions["activate"](weights, inputs, signs, out)
    before = inputs @ weights
    np.testing.assert_array_equal(out, np.broadcast_to(signs, out.shape) * (before > 0))
    assert total == pytest.approx((signs * np.maximum(before, 0.0)).sum(), rel=1e-12)


def test_rows_begin_with_a_cache_line():
    for shape in ((3, 8), (2, 5, 56), (1, 24)):
        room = unrolled.aligned(*shape)
        assert room.shape == shape
        assert not room.any()
        assert all(row.ctypes.data % 64 == 0 for row in room.reshape(-1, shape[-1]))
    assert [unrolled.padded(size) for size in (1, 8, 9, 50)] == [8, 8, 16, 56]
