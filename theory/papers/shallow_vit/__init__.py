"""Shallow vision transformer trained by SGD on the hinge loss (Li, Wang, Liu, Chen 2023).

Softmax attention and a two-layer perceptron classify bags of tokens. The label tells which of two
patterns has more tokens; all other patterns are uninformative. Without noise every token is a
pattern, and training reduces to matrices with one column per pattern. From a symmetric start,
attention reduces to 16 scalars.
"""
