"""Phase planes of reduced problems: fields, nullclines, fixed points, slow manifolds, basins."""

from dynamics.analysis.phase_portrait.basins import Basin, basins
from dynamics.analysis.phase_portrait.elimination import Elimination
from dynamics.analysis.phase_portrait.nullclines import Nullcline, nullcline
from dynamics.analysis.phase_portrait.plane import (
    Portrait,
    SlowManifold,
    portrait,
    sentence,
    summary,
)
from dynamics.analysis.phase_portrait.roots import FixedPoint, fixed_points

__all__ = [
    "Basin",
    "Elimination",
    "FixedPoint",
    "Nullcline",
    "Portrait",
    "SlowManifold",
    "basins",
    "fixed_points",
    "nullcline",
    "portrait",
    "sentence",
    "summary",
]
