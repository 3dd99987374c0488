"""Analyses of problems and runs: reduced beside full, step sizes, stability, planes."""
