"""Analyses of problems and runs: comparison with full training, stability, phase planes."""
