"""Engine of model files: trace with JAX, find the closure, run the reduced and the full model.

`load` takes a file, `system_of` a `theory.model.Model`.
"""

from dynamics.models.engine.system import load, system_of

__all__ = ["load", "system_of"]
