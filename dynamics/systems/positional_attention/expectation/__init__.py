"""Ways to take the expectation over the types of the random sets, one module each.

`enumerate` is exact: all multisets of types. `spectral` is exact to a tolerance at any size: one
contour integral and one Fourier transform for each sum of the random sets. `sample` draws from the
law. `configurations` lays out weighted configurations for the kernels.
"""
