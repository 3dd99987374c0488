"""Masked image modelling: feature-position correlations (Huang, Wen, Chi, Liang 2024).

A one-layer, single-head transformer with one matrix Q reconstructs masked patches from the others.
Images come from clusters, each with its own partition of the patches into areas of one feature.
Only the rows e_p^T Q of Q live, they never interact, and by symmetry each collapses onto a few
correlations of the patch p with features (Phi) and with positions (Ups).

`notation` (letters, events), `model` (areas and masks, attention and the loss), `symmetry` (equal
rows, classes of positions and features), `recursion` (the reduction), `information_gap` (equation
(4.1) at finite size), `lemmas` (the proofs by computation), `claims`.
"""
