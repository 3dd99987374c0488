"""Ways to take the expectation over the types of the random sets, one module each.

`enumerate` is exact: all multisets of types.
"""
