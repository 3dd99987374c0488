"""The empirical problem of the shallow Vision Transformer: N samples, a random start."""
