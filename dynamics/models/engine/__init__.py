"""Engine of model files: trace a loss by JAX, find its closure, train scalars or every entry."""

from dynamics.models.engine.system import load, system_of

__all__ = ["load", "system_of"]
