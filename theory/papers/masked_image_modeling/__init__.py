"""Masked image modeling: feature-position correlations (Huang, Wen, Chi, Liang 2024).

A one-layer, single-head transformer with one trained matrix Q reconstructs the masked patches of an
image from the unmasked ones. Images come from clusters; each cluster partitions the patches into
areas that share a feature. Training changes only e_p^T Q, the row of Q of each patch p, with e_p
the position of p. The rows do not interact. By symmetry each row of Q reduces to a few correlations
of p with features (Phi) and with positions (Ups).
"""
