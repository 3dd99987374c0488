"""The empirical problem of masked image modelling: N samples, a random start."""
