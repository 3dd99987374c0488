"""A shallow vision transformer trained by SGD on the hinge loss (Li, Wang, Liu, Chen 2023).

Softmax attention and a two-layer perceptron classify bags of tokens: the label is the majority of
two patterns, and all other patterns are uninformative. Without noise the tokens are patterns, and
training reduces to matrices with one column per pattern; from a symmetric start, attention reduces
to 16 scalars.
"""
