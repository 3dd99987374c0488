"""A shallow vision transformer trained by SGD on the hinge loss (Li, Wang, Liu, Chen 2023).

Softmax attention and a perceptron of two layers classify bags of tokens: the label is the majority
of two patterns, the others say nothing. Without noise the tokens are patterns, and training closes
on matrices of M columns, M the number of patterns; where the start is symmetric, attention closes
on 16 scalars.

`notation` (letters, events), `data_law` (the numbers of tokens of each pattern), `model` (network,
loss, gradients), `symmetry` (classes of pairs of patterns, and when they hold), `recursion`
(pattern space, Gram form, collapse), `lemmas` (the proofs by computation), `attention_limits`
(what attention can reach, and what the paper assumes of the start), `claims`.
"""
