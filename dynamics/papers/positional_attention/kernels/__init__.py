"""Plain functions of positional attention that numba compiles."""
