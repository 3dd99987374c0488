"""Programs of JAX: compiled with what XLA has, and stored beside the other generated files."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

from dynamics.codegen import cache_directory, compiled_program, programs, store_programs


def test_a_program_is_the_function():
    points = np.linspace(-2, 2, 7, dtype=np.float32)
    made = compiled_program(jax, lambda x, power: jax.numpy.tanh(x) ** power, static_argnums=1)
    np.testing.assert_allclose(made(points, 3), np.tanh(points) ** 3, rtol=1e-5)


@pytest.mark.parametrize("missing", [(), ("xla_backend_optimization_level",)])
def test_all_options_that_xla_has_are_given_and_no_others(missing):
    given = []

    def jit(function, compiler_options, **others):
        given.append(compiler_options)
        compiled = SimpleNamespace(compile=lambda: None)
        if set(missing) & compiler_options.keys():
            raise ValueError("no such option")
        return SimpleNamespace(lower=lambda number: compiled)

    # Hashable, unlike a namespace: what is known of an installed JAX is remembered.
    compiled_program(type("Jax", (), {"jit": staticmethod(jit)}), abs)
    assert given[-1] == {n: v for n, v in programs.OPTIONS.items() if n not in missing}


@pytest.mark.parametrize("chosen", [None, "elsewhere"])
def test_programs_are_stored_where_the_user_wants_them(chosen):
    settings = {}
    config = SimpleNamespace(jax_compilation_cache_dir=chosen, update=settings.__setitem__)
    store_programs(SimpleNamespace(config=config))
    expected = None if chosen else str(cache_directory() / "jax")
    assert settings.get("jax_compilation_cache_dir") == expected
