"""Checks and figures of the published models of `dynamics.models`, one file each.

A file has ``CHECKS`` (source of a claim -> check) and ``FIGURES`` (name -> figure), as the folder
of a built-in system. The statements of the claims are in the model file.
"""
