"""Shallow Vision Transformer: parameters, starts, samples and problems."""
