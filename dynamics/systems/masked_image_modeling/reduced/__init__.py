"""Exact expectations over masks and latents, and which of them is taken.

`counts` sums over how many patches of each class are unmasked; `contour` takes an integral over two
parameters at which patches are independent. Both are exact: the first is a finite sum, the second
converges geometrically to rounding.
"""
