"""Masked image modeling: feature-position correlations (Huang, Wen, Chi, Liang 2024).

A one-layer, single-head transformer with one trained matrix Q reconstructs masked patches from
unmasked ones. Images come from clusters; each cluster partitions the patches into areas that share
a feature. Training moves only the rows e_p^T Q of Q, which do not interact; by symmetry each row
closes on a few correlations of the patch p with features (Phi) and with positions (Ups).

`symmetry` holds the classes of rows, positions and features; `information_gap` computes equation
(4.1) at finite size.
"""
