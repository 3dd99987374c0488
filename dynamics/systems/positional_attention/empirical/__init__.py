"""The empirical problem of positional attention: N samples, a random start."""
