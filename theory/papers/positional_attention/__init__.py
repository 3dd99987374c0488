"""Positional attention and patch association (Jelassi, Sander, Li, NeurIPS 2022).

A one-layer, single-head transformer, whose attention matrix A depends on positions only, learns
which patches belong together. For the idealised problem (P) of the paper, the trained entries of A
and of v reduce to three scalars: gradient descent is a recursion on (alpha, gamma, rho).
"""
