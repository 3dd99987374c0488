"""Plain functions of positional attention, compiled by numba."""
