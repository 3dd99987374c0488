r"""Training runs that the checks of masked image modelling share, and when a claim can be checked.

Time is counted in units of :math:`K P / C_s`, in which all phases last about equally long at every
size: alpha_m starts at about :math:`\gamma (1 - \gamma) (C_s - 1) / (P K)`. With a constant
latent z scores z Phi move :math:`z^4` times as fast: every time is divided by :math:`E[z^4]`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isnan
from typing import Any

import numpy as np

from dynamics.problem import FloatArray
from dynamics.results.power_law import exponent
from dynamics.system import System
from dynamics.training.descent import descend
from dynamics.validation import refuse
from dynamics.verdicts.figure import FigureRequest
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.rules import Repeat
from dynamics.verdicts.study import Case as PlainCase
from dynamics.verdicts.study import Study, computed_once
from theory.papers.masked_image_modeling.model import latent_moment
from theory.papers.masked_image_modeling.required_sizes import Condition, least_patches

POSITIVE = {"P": 4096, "C_global": 2048, "C_local": 16}
NEGATIVE = {"P": 4096, "C_global": 128, "C_local": 64}
SLIGHT = ({"P": 4096, "C_global": 832, "C_local": 64}, {"P": 4096, "C_global": 704, "C_local": 64})
"""Gaps of 0.117 and 0.077, positive and small."""
SMALL = {"P": 12, "C_global": 8, "C_local": 2, "masked": 3}
MORE_SIZES = (512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536)
SIZES = MORE_SIZES[:5]
EXPONENTS = (0.9, 0.3)
"""kappa_c and kappa_s of the family along P, Delta near 1/2."""
FINE = 0.01
"""Learning rate in units of time, at which the switch is right to a percent."""
LARGEST = 2.0
"""Largest learning rate over K: rapid growth takes a time of order K however large P is."""
LONG = 20.0
"""Horizon in units of time."""
LEAST_TIME = 500.0
"""Horizon at small sizes, over K: the loss above the floor falls to K/(4 t) at all sizes."""
RECORDS = 800
DENSE = 5.0
"""Largest time between records over K: rapid growth takes a time of about 30 K."""
ORDER_ONE = 0.1
"""Size of Delta from which on it is of order one."""
SAME_POWER = 0.1
"""Difference up to which two exponents of P are the same: constants still count."""
SPREAD = 4.0
"""Largest latent over the least up to which one step size and one horizon do for both."""
SMALL_SHARE = 0.1
"""Share of the leading correlation up to which another one is small, close to 0."""
MANY = 1 + 1 / SMALL_SHARE
"""Patches of an area from which on a mate of a patch makes a small share."""
SAME_ORDER = 2.0
"""Factor up to which a share is of the order of another: leading orders are right to a half."""
UNITS = r"time in units of $K P / C_s$"
AS_MEASURED = Repeat()


class Case(PlainCase):
    """A reduced problem with its gradient descent from Q = 0."""

    @property
    def unit(self) -> float:
        """K P / C_s, the unit of time."""
        return unit(self.parameters)

    @property
    def scaled(self) -> FloatArray:
        """Times of the records after the start in that unit."""
        return np.asarray(self.run.time[1:] / self.unit)

    @property
    def crossings(self) -> int:
        """How often rho passes 1."""
        rho = self.run["rho"]
        return int(np.count_nonzero(np.diff(np.sign(rho[np.isfinite(rho)] - 1))))

    @property
    def two_phases(self) -> bool:
        """Whether training starts in Phase I (E0) and leaves it once, for good."""
        return self.time("E0") == 0.0 and self.crossings == 1

    @property
    def switches(self) -> bool:
        """Whether there is a Phase I that ends: rho falls to 1 after the start (E2)."""
        return self.time("E2") > 0

    @property
    def sizes(self) -> dict[str, Any]:
        """The parameters that a verdict is about, as plain values."""
        return sizes_of(self.parameters)

    @property
    def gap(self) -> str:
        """Delta, in a legend."""
        return rf"$\Delta = {self.parameters.Delta:.3f}$"

    @property
    def size(self) -> str:
        """P, in a legend."""
        return f"$P = {self.parameters.P}$"

    def time(self, event: str) -> float:
        """Time of an event; NaN where the run has no such event."""
        return self.run.events[event].time

    def at(self, event: str) -> dict[str, float]:
        """State and observables at an event; all NaN where the run has no such event."""
        occurrence = self.run.events[event]
        if not occurrence:
            return dict.fromkeys((*self.run.layout.names, *self.run.observables), float("nan"))
        values = dict(zip(self.run.layout.names, map(float, occurrence.state), strict=True))
        return values | self.problem.observables(occurrence.state)

    def after(self, event: str) -> slice:
        """Records from an event on; none where the run has no such event."""
        first, count = self.time(event), len(self.run.time)
        return slice(count if isnan(first) else int(np.searchsorted(self.run.time, first)), count)

    def row(self, local: bool) -> str:
        """Name of the row that stands for local, or for global, patches."""
        _, _, near, far = self.problem.rows.references
        return str(self.problem.rows.names[near if local else far])

    def others(self, local: bool) -> list[str]:
        """Every state of a row but Phi of the own area and, of a local one, of the global area."""
        rows = self.problem.rows
        number = rows.names.index(self.row(local))
        names = rows.scalars[rows.starts[number] : rows.starts[number + 1]]
        return [name for name in names if name not in self._leading(local)]

    def leading(self, local: bool) -> str:
        """The state Phi of the own area of a row."""
        return self._leading(local)[0]

    def _leading(self, local: bool) -> list[str]:
        rows = self.problem.rows
        if local:
            return [rows.scalars[index] for index in rows.references[:2]]
        far = rows.views[1]
        phi = rows.starts[far.row] + len(rows.types[far.row].ups_names)
        return [rows.scalars[phi + far.own]]

    def in_units(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Time in units of K P / C_s, and values, at every record but the start."""
        return self.scaled, values[1:]

    def in_time(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Time, and values, at every record but the start."""
        return self.run.time[1:], values[1:]


def unit(parameters: Any) -> float:
    """K P / C_s over E[z^4], the unit of time; of the global area where no other is."""
    size = parameters.C_local or parameters.C_global
    return float(parameters.K * parameters.P / size) / speed(parameters)


def speed(parameters: Any) -> float:
    """E[z^4], how much faster z Phi moves than with z = 1: loss z^2 f(z Phi), gradient z^3 f'."""
    return float(latent_moment(parameters.z, parameters.odds, 4))


@computed_once(32)
def trained(
    make: Any, parameters: Any, horizon: float = LONG, repeat: Repeat = AS_MEASURED
) -> Case:
    """The gradient descent of the reduced problem in fine steps, computed once for all checks.

    Parameters
    ----------
    make : System
    parameters : Parameters
    horizon : float
        In units of time.
    repeat : Repeat
        Factors of the step size and of the horizon.
    """
    problem = make(parameters)
    fast = parameters.K / speed(parameters)
    eta = min(FINE * unit(parameters), LARGEST * fast) * repeat.eta_factor
    end = max(horizon * unit(parameters), LEAST_TIME * fast) * repeat.time_factor
    steps = int(np.ceil(end / eta))
    count = min(steps, max(RECORDS, int(np.ceil(steps * eta / (DENSE * fast)))))
    spaced = np.linspace(0, steps, count + 1), np.geomspace(1, steps, 200)
    record = np.unique(np.concatenate(spaced).round().astype(np.int64))
    return Case(parameters, problem, descend(problem, eta, steps, record=record))


def sizes_along(P: int, exponents: Sequence[float] = EXPONENTS) -> dict[str, int]:
    """Sizes of one cluster at P that are nearest to P^kappa_c and P^kappa_s, by name.

    Parameters
    ----------
    P : int
    exponents : (float, float)
        kappa_c and kappa_s.
    """
    core, local = exponents
    size = max(2, round(P**local))
    left = P - round(P**core)
    return {"P": P, "C_global": P - (left - left % size), "C_local": size}


def along(system: System, P: int, exponents: Sequence[float] = EXPONENTS) -> Any:
    """The parameters of `sizes_along`.

    Parameters
    ----------
    system : System
    P : int
    exponents : (float, float)
        kappa_c and kappa_s.
    """
    return system.Parameters(**sizes_along(P, exponents))


def family(study: Study, exponents: Sequence[float] = EXPONENTS) -> list[Case]:
    """Runs of the user's parameters, or of the family along P.

    Parameters
    ----------
    study : Study
    exponents : (float, float)
        kappa_c and kappa_s of the family.
    """
    sizes = MORE_SIZES if study.thorough else SIZES
    return cases_of(study, *[sizes_along(P, exponents) for P in sizes])


def cases_of(study: Study, *default: Mapping[str, Any]) -> list[Case]:
    """Runs of the user's parameters, or of the default cases of a check.

    Parameters
    ----------
    study : Study
    *default : mapping
        Parameters by their names.
    """
    laws = study.laws(*default)
    for law in laws:
        if law.U > SPREAD * law.L:
            reason = (
                f"steps and horizon are one for all latents, here from {law.L:g} to {law.U:g}: "
                f"scores move as their fourth power, {(law.U / law.L) ** 4:.0e} times apart"
            )
            raise Undecided(reason, "time", parameters=sizes_of(law))
    return [trained(study.system, law, LONG, study.repeat) for law in laws]


def needed(law: Any, condition: Condition) -> float:
    """Least P, not below that of a law, at which a statement can be measured at its exponents.

    Parameters
    ----------
    law : Parameters
    condition : function
        Of `theory.papers.masked_image_modeling.required_sizes`.
    """
    return least_patches(condition, (law.kappa_c, law.kappa_s), law.gamma, law.P)


def near(size: float) -> str:
    """A number of patches in words: its order of magnitude."""
    return f"P near {size:.0e}".replace("e+0", "e").replace("e+", "e")


def sizes_of(parameters: Any) -> dict[str, Any]:
    """The parameters that a verdict is about, as plain values."""
    names = ("family", "P", "C_global", "C_local", "masked", "Delta", "Delta_eff")
    return {name: getattr(parameters, name) for name in names} | {"z": list(parameters.z)}


def at_size(study: Study) -> str:
    """The one size that a request measures an identity at, to end a reason; empty by default.

    Parameters
    ----------
    study : Study
    """
    law = study.parameters
    if law is None:
        return ""
    return f"; at this one size, P={law.P}, K={law.K}, {law.masked} masked, z={list(law.z)}"


def requires(
    sign: int = 0, large: bool = False, local: bool = True, many: bool = False
) -> Callable[[Any], None]:
    """A function that raises `Undecided` for parameters that do not meet a claim's hypothesis.

    Parameters
    ----------
    sign : int
        Sign that Delta must have, 0 for any.
    large : bool
        Delta must be of order one, of either sign.
    local : bool
        Whether the claim is about a local patch, which needs a mate, or about a global one.
    many : bool
        Its area, of P^kappa patches, must be so large that one mate in it can be negligible.
    """

    def require(law: Any) -> None:
        reason, missing = "", "law"
        if not (law.area_ids > 0).any():
            reason = "there is no local area, and no information gap"
        elif local and isnan(law.Delta_eff):
            reason = "no local patch has a mate from which to draw its content"
        elif not local and (law.area_ids == 0).sum(axis=1).max() < 2:
            reason = "no global patch has a mate from which to draw its content"
        elif sign and sign * law.Delta <= 0:
            needed = "positive" if sign > 0 else "negative"
            reason = f"the claim is about a {needed} information gap, here Delta={law.Delta:.3g}"
        elif large and abs(law.Delta) < ORDER_ONE:
            reason = (
                f"the claim is about an information gap of order one, here Delta={law.Delta:.3g}, "
                f"less than {ORDER_ONE:g}"
            )
        elif many:
            reason, missing = _too_few(law, local), "size"
        if reason:
            raise Undecided(reason, missing, parameters=sizes_of(law))

    return require


def _too_few(law: Any, local: bool) -> str:
    """Why a mate of a patch cannot be negligible in its area, with the P that it needs; else ""."""
    size, power = (law.C_local, law.kappa_s) if local else (law.C_global, law.kappa_c)
    if size >= MANY:
        return ""
    return (
        f"the claim is about areas of P^kappa patches, P large: of {size - 1} mates none can be "
        f"negligible; at kappa={power:.3g} areas of {MANY:g} need {near(MANY ** (1 / power))}"
    )


def of_one_cluster(system: System, request: FigureRequest, sizes: Mapping[str, Any]) -> Any:
    """The parameters of a figure; its sizes are the default of one cluster alone.

    Parameters
    ----------
    system : System
    request : FigureRequest
    sizes : mapping
        By name.
    """
    one_cluster = request.user_parameters.get("family", "one_cluster") == "one_cluster"
    return request.make_parameters(system, (), **(sizes if one_cluster else {}))


def only_one_cluster(law: Any) -> None:
    """Refuse parameters of another family than one cluster."""
    if law.family != "one_cluster":
        reason = "is not what this figure is about"
        refuse("family", law.family, reason, "one_cluster", "one_cluster")


def compared(sizes: Sequence[float], times: Mapping[str, Sequence[float]]) -> str:
    """How times grow with P, in words; empty where they have no exponent.

    Parameters
    ----------
    sizes : sequence of float
        P.
    times : mapping
        Name -> times in units of K P / C_s.
    """
    powers = {name: exponent(sizes, values) for name, values in times.items()}
    powers = {name: power for name, power in powers.items() if not isnan(power)}
    if not powers:
        return ""
    words = ", ".join(f"{name} goes as P^{power:.2g}" for name, power in powers.items())
    if len(powers) == 1:
        return f"in that unit {words}"
    same = max(powers.values()) - min(powers.values()) <= SAME_POWER
    return f"in that unit {words}: {'the same power' if same else 'different powers'} of P"


def patches_of(study: Study) -> str:
    """P of every row of the table, in words."""
    return ", ".join(map(str, study.column("P")))
