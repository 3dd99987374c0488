"""Cache on disk of compiled code and check results."""

from dynamics.cache.folder import cache_directory
from dynamics.cache.programs import compiled_program, jax, programs_kept

__all__ = ["cache_directory", "compiled_program", "jax", "programs_kept"]
