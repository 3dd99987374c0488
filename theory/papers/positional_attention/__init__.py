"""Positional attention and patch association (Jelassi, Sander, Li, NeurIPS 2022).

A one-layer, single-head transformer learns which patches belong together; its attention matrix A
depends only on positions. In the idealised problem (P) of the paper, the trained entries of A and
of the value vector v reduce to three scalars. Gradient descent is a recursion on (alpha, gamma,
rho).
"""
