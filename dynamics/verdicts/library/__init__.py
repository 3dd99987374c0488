"""Measurements of claims, and figures, of the published models; each model has a file.

The claims on a model are stated in a TOML table beside its model file in `dynamics.models`.
"""
