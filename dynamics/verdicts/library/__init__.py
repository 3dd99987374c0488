"""Measurements and figures of the published models of `dynamics.models`, one file per model.

A file has the measurements of its claims (`dynamics.verdicts.claim`) and ``FIGURES`` (name ->
figure). The statements of the claims are in the table next to the model file.
"""
