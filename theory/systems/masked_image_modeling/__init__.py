"""Masked image modelling: feature-position correlations (Huang, Wen, Chi, Liang 2024).

A one-layer, single-head transformer with one matrix Q reconstructs masked patches from the others.
Images come from clusters, each with its own partition of the patches into areas of one feature.
Only the rows e_p^T Q of Q live, they never interact, and by symmetry each collapses onto a few
correlations of the patch p with features (Phi) and with positions (Ups).

`data_law` (clusters, areas, masks), `model` (attention and the loss), `symmetry` (who is equal to
whom), `recursion` (the reduction), `lemmas` (the proofs by computation), `claims`, `events`.
"""
