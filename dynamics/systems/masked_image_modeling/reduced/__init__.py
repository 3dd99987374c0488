"""The reduced population problem of masked image modelling, its expectations exact.

A sum over counts is finite; a contour integral converges geometrically to rounding.
"""
