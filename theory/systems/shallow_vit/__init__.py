"""A shallow vision transformer trained by SGD on the hinge loss (Li, Wang, Liu, Chen 2023).

Softmax attention and a perceptron of two layers classify bags of tokens: the label is the majority
of two patterns, the others say nothing. Without noise the tokens are patterns, and training closes
on matrices of M columns, M the number of patterns; where the start is symmetric, attention closes
on 16 scalars.

`data_law` (the numbers of tokens of each pattern), `model` (network, loss, gradients), `symmetry`
(who is equal to whom, and when), `recursion` (pattern space, Gram form, collapse), `lemmas` (the
proofs by computation), `claims`, `events`.
"""
