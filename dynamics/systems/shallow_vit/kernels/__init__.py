"""Plain functions of the shallow Vision Transformer that numba compiles."""
