"""Measurements of claims, and figures, of the published models, one file for each model.

The statements of the claims are in the table beside the model file in `dynamics.models`.
"""
