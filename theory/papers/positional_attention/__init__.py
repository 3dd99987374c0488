"""Positional attention and patch association (Jelassi, Sander, Li, NeurIPS 2022).

A one-layer, single-head transformer whose attention matrix A depends on positions only learns
which patches belong together. Under the idealised problem (P), A collapses onto three numbers and
v onto one: gradient descent is a recursion on (alpha, gamma, rho).

`notation` (letters, events), `model` (the law of Definition 2.1, the orbits of Lemma 4.1, equation
(T)), `recursion` (the reduction), `lemmas` (the proofs by computation), `claims`; `linear_rules`
(Theorems 3.1 and 5.2) and `constructions` (Theorem 3.2).
"""
