"""Positional attention and patch association (Jelassi, Sander, Li, NeurIPS 2022).

A one-layer, single-head transformer, whose attention matrix A depends on positions only, learns
which patches belong together. Under the idealised problem (P), A closes on three scalars and v on
one: gradient descent is a recursion on (alpha, gamma, rho).

`linear_rules` holds Theorems 3.1 and 5.2, `constructions` Theorem 3.2.
"""
