"""Phase planes of reduced problems: fields, nullclines, slow manifolds, fixed points, runs."""

from dynamics.analysis.phase_portrait.elimination import Treatment
from dynamics.analysis.phase_portrait.fixed_points import FixedPoint, fixed_points
from dynamics.analysis.phase_portrait.nullclines import Nullcline, nullcline
from dynamics.analysis.phase_portrait.plane import Portrait, portrait
from dynamics.analysis.phase_portrait.slow_manifold import SlowManifold, slow_manifold
from dynamics.analysis.phase_portrait.summary import described, sentence

__all__ = [
    "FixedPoint",
    "Nullcline",
    "Portrait",
    "SlowManifold",
    "Treatment",
    "described",
    "fixed_points",
    "nullcline",
    "portrait",
    "sentence",
    "slow_manifold",
]
