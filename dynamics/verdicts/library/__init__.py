"""Measurements of claims, and figures, of the published models; each model has a file.

The statements of the claims are in the table beside the model file in `dynamics.models`.
"""
