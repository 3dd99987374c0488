"""Models, data laws, symmetries and reduced recursions, derived with SymPy.

The public names read a model from a file or build it from functions, and compute classes of equal
parameters. `theory.notation`, `theory.claims` and `theory.events` define the types used by
`theory.papers.<paper>`; `theory.closure` computes the closure of a model's training. This package
runs no simulation and never imports `dynamics`, numba or matplotlib.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from theory.law import ModelError
    from theory.model import Model
    from theory.model_file import read_model
    from theory.symmetry import Partition, PermutationGroup, classes

__all__ = [
    "Model",
    "ModelError",
    "Partition",
    "PermutationGroup",
    "classes",
    "read_model",
]

_MODULES = {"Model": "model", "ModelError": "law", "read_model": "model_file"}
_MODULES |= dict.fromkeys(("Partition", "PermutationGroup", "classes"), "symmetry")


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'theory' has no attribute {name!r}")
    return getattr(import_module(f"theory.{_MODULES[name]}"), name)
