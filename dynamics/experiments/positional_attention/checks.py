"""One function a claim of Jelassi, Sander, Li (2022): the experiment that could contradict it."""

from __future__ import annotations

from collections.abc import Mapping

from dynamics.experiments.verify import Check

CHECKS: Mapping[str, Check] = {}
