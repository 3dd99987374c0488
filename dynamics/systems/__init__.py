"""The built-in systems: every folder here with a ``SYSTEM`` is one; see `dynamics.registry`."""
