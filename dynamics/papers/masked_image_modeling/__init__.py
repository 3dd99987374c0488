"""Masked image modelling: parameters, problems and the contour integral."""
