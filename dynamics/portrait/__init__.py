"""Phase planes of reduced problems: fields, nullclines, slow manifolds, fixed points, runs."""

from dynamics.portrait.fixed import FixedPoint, fixed_points
from dynamics.portrait.hidden import Treatment
from dynamics.portrait.nullclines import Nullcline, nullcline
from dynamics.portrait.plane import Portrait, portrait
from dynamics.portrait.slow import SlowManifold, slow_manifold
from dynamics.portrait.told import described, sentence

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
