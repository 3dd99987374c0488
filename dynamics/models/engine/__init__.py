"""The engine of model files: traced by JAX, closed, run reduced and full.

`load` takes a file, `system_of` a `theory.model.Model`.
"""

from dynamics.models.engine.system import load, system_of

__all__ = ["load", "system_of"]
