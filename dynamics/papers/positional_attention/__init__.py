"""Positional attention: parameters, problems and the spectral sum."""
