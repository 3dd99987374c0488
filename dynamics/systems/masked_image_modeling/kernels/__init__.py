"""Plain functions of masked image modelling that numba compiles."""
