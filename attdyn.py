"""`import attdyn` is `import dynamics`, and so with the modules below."""

import importlib
import sys
from importlib.machinery import ModuleSpec
from typing import Any

import dynamics


class _Alias:
    """Finds ``attdyn.x`` where ``dynamics.x`` is: the same module, loaded once."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """A specification for names below ``attdyn``."""
        return ModuleSpec(name, self) if name.startswith("attdyn.") else None

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to Python to make an empty module, which is replaced."""

    def exec_module(self, module: Any) -> None:
        """Put the module of ``dynamics`` in its place."""
        name = module.__name__
        sys.modules[name] = importlib.import_module(name.replace("attdyn", "dynamics", 1))


sys.meta_path.insert(0, _Alias())
sys.modules[__name__] = dynamics
