"""Ways to take the expectation over the types of the random sets, one module each.

`enumerate` is exact: all multisets of types. `truncate` keeps the most probable of them, with a
bound on the rest. `spectral` is exact to a tolerance at any size: one contour integral and one
Fourier transform for each sum of the random sets. `sample` draws from the law. `choose` makes one
by its name, and decides for ``"auto"`` by predicted cost. `taken` is what they have in common,
`weighted` what the sums over configurations have, `configurations` their layout.
"""
