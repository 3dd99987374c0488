"""Shallow Vision Transformers trained with hinge loss, made to run."""
