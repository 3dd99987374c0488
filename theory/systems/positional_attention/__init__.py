"""Positional attention and patch association (Jelassi, Sander, Li, NeurIPS 2022).

A one-layer, single-head transformer whose attention matrix A depends on positions only learns
which patches belong together. Under the idealised problem (P), A collapses onto three numbers and
v onto one: gradient descent is a recursion on (alpha, gamma, rho).

`data_law` (Definition 2.1, Assumption 1), `model` (equation (T)), `symmetry` (who is equal to
whom), `recursion` (the reduction), `lemmas` (the proofs by computation), `claims`, `events`.
"""
