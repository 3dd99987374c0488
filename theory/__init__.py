"""Models, data laws, symmetries and the reduced recursions, derived by sympy.

What a user of theory calls is here: a model from a file or from functions, classes of equal
parameters, and a derivation as a page. `theory.notation`, `theory.claims` and `theory.events` hold
the types that papers fill in `theory.papers.<paper>`; `theory.closure` is what training of a model
closes on. Nothing here runs a simulation, and nothing here imports `dynamics`, numba or matplotlib.
sympy is imported with the first name that needs it.
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
