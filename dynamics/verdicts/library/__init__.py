"""Measurements and figures of the published models of `dynamics.models`, one file each.

A file has the experiments of its claims (`dynamics.verdicts.claim`) and ``FIGURES`` (name ->
figure). The statements of the claims are in the table beside the model file.
"""
