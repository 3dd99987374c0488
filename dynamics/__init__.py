"""Training dynamics: problems from `theory`, their training, comparisons, results.

>>> import dynamics
>>> system = dynamics.load_system("positional_attention")
>>> problem = system.ReducedPopulation(system.Parameters(D=16, C=4, q=0.5))
>>> run = dynamics.descend(problem, eta=0.02, steps=50_000)
>>> print(f"T1 at time {run.events['T1'].time:.0f}")
T1 at time 759

The package imports sympy with the first system, and numba with the first compiled loop.
"""

from dynamics.training.progress import is_command, leave_at_signals

if is_command():
    leave_at_signals()  # first, so that signals end the imports below too

from dynamics.analysis.comparison import compare
from dynamics.analysis.overlay import overlay
from dynamics.analysis.period_doubling import Branches, Onsets, branches, onsets
from dynamics.attention_maps import diversity, total_variation
from dynamics.library import system_names
from dynamics.loading import load
from dynamics.models import Model
from dynamics.models.counts import multinomial, multisets
from dynamics.models.overlaps import rows_with_overlaps
from dynamics.registry import load_system
from dynamics.results.comparison import Comparison, Overlay
from dynamics.results.event import Event
from dynamics.results.outcome import TrainingWarning
from dynamics.results.storage import save
from dynamics.results.trajectory import Trajectory
from dynamics.sweep import Sweep, sweep
from dynamics.system import System
from dynamics.training.descent import descend
from dynamics.training.flow import flow, flows
from dynamics.training.rules import rule
from dynamics.training.stability_limit import stability_limit
from dynamics.verdicts.draw import draw
from dynamics.verdicts.findings import Finding, Verdict
from dynamics.verdicts.verify import verify

__all__ = [
    "Branches",
    "Comparison",
    "Event",
    "Finding",
    "Model",
    "Onsets",
    "Overlay",
    "Sweep",
    "System",
    "TrainingWarning",
    "Trajectory",
    "Verdict",
    "branches",
    "compare",
    "descend",
    "diversity",
    "draw",
    "flow",
    "flows",
    "load",
    "load_system",
    "multinomial",
    "multisets",
    "onsets",
    "overlay",
    "rows_with_overlaps",
    "rule",
    "save",
    "stability_limit",
    "sweep",
    "system_names",
    "total_variation",
    "verify",
]


def __dir__() -> list[str]:
    return sorted(__all__)
