"""Programs of JAX: compiled with what XLA has, and stored beside the other generated files."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

from dynamics.codegen import (
    OFTEN,
    SELDOM,
    cache_directory,
    compiled_program,
    programs,
    store_programs,
)


@pytest.mark.parametrize("level", [OFTEN, SELDOM])
def test_a_program_is_the_function(level):
    points = np.linspace(-2, 2, 7, dtype=np.float32)
    made = compiled_program(
        jax, lambda x, power: jax.numpy.tanh(x) ** power, level, static_argnums=1
    )
    np.testing.assert_allclose(made(points, 3), np.tanh(points) ** 3, rtol=1e-5)


def test_options_that_xla_does_not_have_are_left_out(monkeypatch):
    monkeypatch.setitem(programs.OPTIONS, "xla_of_another_version", True)
    assert compiled_program(jax, lambda x: x + 1, OFTEN)(1.0) == 2.0


@pytest.mark.parametrize("chosen", [None, "elsewhere"])
def test_programs_are_stored_where_the_user_wants_them(chosen):
    settings = {}
    config = SimpleNamespace(jax_compilation_cache_dir=chosen, update=settings.__setitem__)
    store_programs(SimpleNamespace(config=config))
    expected = None if chosen else str(cache_directory() / "jax")
    assert settings.get("jax_compilation_cache_dir") == expected
