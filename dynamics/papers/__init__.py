"""The three papers: what each has beside its model file in `dynamics.models` and the engine."""
