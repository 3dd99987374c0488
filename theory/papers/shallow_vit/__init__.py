"""A shallow vision transformer trained by SGD on the hinge loss (Li, Wang, Liu, Chen 2023).

Softmax attention and a two-layer perceptron classify bags of tokens: the label is the majority of
two patterns, and all other patterns are uninformative. Without noise the tokens are patterns, and
training closes on matrices with one column per pattern; from a symmetric start, attention closes on
16 scalars.

`data_law` holds the counts of tokens per pattern, `symmetry` the classes of pairs of patterns,
`attention_limits` the bounds of attention and the assumptions on the start.
"""
