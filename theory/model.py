r"""Models defined by a few functions: trained arrays at the start, data law, loss.

The keyword arguments of the functions are the constants of the model, with the defaults of the
arguments. The risk, an expectation over the data, has one of three forms:

1. ``law`` and ``loss``: a finite law; the risk is the exact expectation of the loss;
2. ``risk``: the population risk in closed form;
3. ``sample``, ``loss`` and ``symmetry``: a law that can be sampled, with the symmetry stated.

`theory.closure` finds the entries that stay equal under gradient descent, the engine of `dynamics`
runs the model, and `theory.model_file` reads a model from a Python file.
"""

from __future__ import annotations

import inspect
import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from theory.documentation import Documentation
from theory.law import (
    FloatArray,
    Law,
    ModelError,
    blamed,
    is_number,
    leading_axis,
    line_of_function,
    named_arrays,
    numbers_in,
    own_arrays,
    pairs,
    select_samples,
    stacked,
)
from theory.summary import summarized

LEADING: Mapping[str, tuple[str, ...]] = {
    "start": (),
    "fixed": (),
    "law": (),
    "held_out": (),
    "loss": ("theta", "sample", "xp"),
    "risk": ("theta", "xp"),
    "sample": ("rng",),
    "samples": ("rng", "count"),
    "observables": ("theta", "xp"),
    "observe": ("theta", "sample", "xp"),
    "names": (),
    "events": (),
    "symmetry": (),
    "reduced": ("scalars", "sample", "xp"),
    "sizes": (),
    "configurations": (),
    "reduced_observables": ("scalars", "xp"),
    "reduced_observe": ("scalars", "sample", "xp"),
    "step": ("gradient", "memory", "entry", "step", "eta", "xp"),
}
"""Leading arguments of each function of a model; its other arguments are constants."""
TABLES: Mapping[str, tuple[type, ...]] = {
    "names": (Mapping,),
    "events": (Mapping,),
    "groups": (Mapping,),
    "starts": (Mapping,),
    "axes": (Mapping,),
    "sizes": (Mapping,),
    "held_at": (Mapping,),
    "panels": (tuple, list),
    "limits": (tuple, list),
    "claims": (tuple, list, Mapping),
}
"""Allowed types of each part given as a plain value; names, events, sizes can also be functions."""
DECLARED = ("reduced", "sizes", "configurations", "names")
"""Parts that a declared reduction must define together."""
SETTINGS = ("eta", "steps", "rule", "schedule", "stages")
"""Settings of a run in a model file, given as plain values."""
RESERVED = frozenset({
    "time", "rtol", "eta", "steps", "rule", "schedule", "stages", "record", "samples", "seeds",
    "full", "expectation",
    "tolerance", "batch", "out", "json", "config", "resume", "checkpoint",
    "report", "prove", "sizes", "name", "option", "claims", "thorough", "let", "paired", "strict",
    "workers", "scheduler", "trajectory", "theta", "sample", "xp", "rng", "print_config", "at",
    "standalone", "latex", "force", "csv", "coordinates", "as", "help", "eliminate",
    "point", "risk", "outside", "outcome", "end_time", "entries", "scalars", "free", "done",
    "block", "R",
})  # fmt: skip
"""Names forbidden for constants: names of flags, arguments and results, and letters of pages."""
SHARED = frozenset({
    "omega", "seed", "format", "width", "linear", "start", "dtype", "test_samples",
    "momentum", "nesterov", "b1", "b2", "eps", "weight_decay", "plane", "basins", "x", "y",
})  # fmt: skip
"""Names of flags that a model may use for constants; the flag then sets the constant."""
QUANTITIES = frozenset({
    "risk", "outside", "time", "steps", "record", "event", "entry", "event_state", "outcome",
    "end_time", "entries", "scalars", "free", "done", "block", "point", "R", "eta",
})  # fmt: skip
"""Names used by results and pages, forbidden for scalars and observables."""
DECLARED_START = "declared"
"""Name of the start that the function ``start`` returns, among all starts of a model."""
HELD_OUT = "held_out_"
"""Prefix of the names of results on the held-out law."""
BEGINNINGS = ("d_", "time_", "path_", "uncertainty_", "observed_", HELD_OUT)
"""Prefixes forbidden for names of scalars and observables."""
SUM_TOLERANCE = 1e-12
MOST_SAMPLES = 5_000_000
"""Maximum number of samples of an enumerated law, including samples with probability 0."""
MOST_NUMBERS = 2**29
"""Maximum count of numbers in all samples of an enumerated law: 4 GiB in double precision."""


@summarized
@dataclass(frozen=True, eq=False)
class Model:
    """Functions of a model; their keyword arguments are its constants.

    Attributes
    ----------
    start : callable
        ``start(**constants)`` -> dict of trained arrays at step 0.
    law : callable, optional
        ``law(**constants)`` -> (probability, sample) pairs.
    held_out : callable, optional
        ``held_out(**constants)`` -> (probability, sample) pairs of a second law, like those of
        ``law``, not used in training: its mean loss and the means of ``observe`` are recorded as
        ``held_out_risk`` and ``held_out_`` with each name.
    loss : callable, optional
        ``loss(theta, sample, xp, **constants)`` -> one number; ``xp`` is the array namespace.
    risk : callable, optional
        ``risk(theta, xp, **constants)`` -> the population risk.
    sample : callable, optional
        ``sample(rng, **constants)`` -> one sample, by a numpy Generator.
    samples : callable, optional
        ``samples(rng, count, **constants)`` -> `count` samples, with a leading axis, in one call.
    fixed : callable, optional
        ``fixed(**constants)`` -> dict of untrained arrays, with other names than ``start``.
    observables : callable, optional
        ``observables(theta, xp, **constants)`` -> dict of numbers.
    observe : callable, optional
        ``observe(theta, sample, xp, **constants)`` -> dict of numbers, averaged over the law.
    names : mapping or callable, optional
        Name of a scalar -> one of its entries: ``{"alpha": ("v", 0), "gamma": ("A", 0, 1)}``.
    events : mapping or callable, optional
        Name -> rule, as text: ``{"T1": "G >= D/2"}``; see `theory.events`.
    groups : mapping, optional
        Array -> parameter group; each group may have its own learning rate.
    starts : mapping, optional
        Name -> function ``(rng, **constants)`` -> trained arrays of another start of runs on draws.
    symmetry : callable, optional
        ``symmetry(**constants)`` -> generators; each maps index sets to permutations.
    axes : mapping, optional
        Array -> the index set of each of its axes, for ``symmetry``.
    reduced : callable, optional
        ``reduced(scalars, sample, xp, **constants)`` -> the loss of one configuration in the
        scalars (a dict of numbers): a reduction derived by the author. It is compared with start,
        law and loss at sizes whose law can be listed, and runs at any size.
    sizes : callable or mapping, optional
        Name of a scalar, one of ``names`` -> number of its entries.
    configurations : callable, optional
        ``configurations(**constants)`` -> (probability, configuration) pairs.
    held_at : mapping, optional
        Constant -> value: a size whose law can be listed, for comparisons of the declared reduction
        if the law at the default constants cannot be listed.
    reduced_observables : callable, optional
        ``reduced_observables(scalars, xp, **constants)`` -> dict of numbers; ``observables`` in
        the scalars.
    reduced_observe : callable, optional
        ``reduced_observe(scalars, sample, xp, **constants)`` -> dict of numbers, averaged over the
        configurations; ``observe`` in the scalars.
    panels : sequence, optional
        Panels of the plot of a run: tuples of names, one a panel.
    limits : sequence of str, optional
        Conditions on the constants: ``("K >= 2", "0 < p < 1")``.
    claims : mapping or sequence, optional
        Functions ``claim(system, protocol) -> Finding``; the docstring is the statement.
    step : callable, optional
        ``step(gradient, memory, entry, step, eta, xp, **constants)`` -> (change, memory): an update
        rule for one entry, named ``step``; see `theory.update_rules`.
    eta, steps : float, int
        Default learning rate and number of steps of a run.
    rule, schedule, stages : str, str, sequence
        Default update rule of a run (``step`` if defined, else ``gd``), schedule and stages;
        see `dynamics.descend`.
    name, title, source : str
        Code name, a line for readers, and the paper.
    documentation : str
        Docstring of the file: the model and the meaning of its symbols (`theory.documentation`).
    path : Path or None
        Model file.
    imported : mapping
        Source file outside installed packages that the model file imports -> hash.

    Raises
    ------
    ModelError
        If the expectation has none of the three forms, a function has wrong arguments, or a
        constant has no default, two different defaults, or a reserved name.

    Examples
    --------
    >>> from theory import Model
    >>> def start(w0=0.1):
    ...     return {"w": [w0, w0]}
    >>> def risk(theta, xp, target=1.0):
    ...     return (theta["w"][0] * theta["w"][1] - target) ** 2 / 2
    >>> model = Model(start=start, risk=risk)
    >>> model.constants
    {'w0': 0.1, 'target': 1.0}
    >>> model.starting_arrays(model.constants)["w"].tolist()
    [0.1, 0.1]
    """

    start: Callable[..., Any]
    law: Callable[..., Any] | None = None
    held_out: Callable[..., Any] | None = None
    loss: Callable[..., Any] | None = None
    risk: Callable[..., Any] | None = None
    sample: Callable[..., Any] | None = None
    samples: Callable[..., Any] | None = None
    fixed: Callable[..., Any] | None = None
    observables: Callable[..., Any] | None = None
    observe: Callable[..., Any] | None = None
    names: Any = None
    events: Any = None
    groups: Mapping[str, str] = field(default_factory=dict)
    starts: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    symmetry: Callable[..., Any] | None = None
    axes: Mapping[str, Any] = field(default_factory=dict)
    reduced: Callable[..., Any] | None = None
    sizes: Any = None
    configurations: Callable[..., Any] | None = None
    held_at: Any = None
    reduced_observables: Callable[..., Any] | None = None
    reduced_observe: Callable[..., Any] | None = None
    panels: Any = None
    limits: Any = None
    claims: Any = None
    step: Callable[..., Any] | None = None
    eta: float = 0.02
    steps: int = 3000
    rule: str = ""
    schedule: str | None = None
    stages: Any = None
    name: str = "model"
    title: str = ""
    source: str = ""
    documentation: str = ""
    path: Path | None = None
    imported: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for role in LEADING:
            function = getattr(self, role)
            if not (function is None or role in TABLES or callable(function)):
                raise ModelError(f"{role} is {type(function).__name__}, not a function")
        if not callable(self.start):
            raise ModelError("a model needs start(...), the trained arrays at step 0")
        if self.risk is None:
            if self.loss is None or (self.law is None and not self.can_be_drawn):
                raise ModelError(
                    "a model needs law and loss, or risk, or sample, loss and symmetry"
                )
            if self.law is None and self.symmetry is None:
                raise ModelError(
                    "sample needs symmetry: a finite draw has no exact symmetry of its own; "
                    "give symmetry(...) and axes, or a finite law(...)"
                )
        elif self.law is not None:
            raise ModelError("a model has a law or a closed risk, not both; leave one of them out")
        if self.observe is not None and self.law is None and not self.can_be_drawn:
            raise ModelError("observe is averaged over a law, but this model has a closed risk")
        if self.held_out is not None and (self.risk is not None or self.reduced is not None):
            other = "risk in closed form" if self.risk is not None else "declared reduction"
            raise ModelError(
                f"held_out is evaluated by loss on every entry, but this model has a {other}; "
                "leave one of them out"
            )
        declared = [role for role in DECLARED[:3] if getattr(self, role) is not None]
        missing = [role for role in DECLARED if getattr(self, role) is None]
        if declared and missing:
            raise ModelError(f"{declared[0]} needs {' and '.join(missing)} as well")
        if declared and self.law is None:
            raise ModelError("reduced is compared with law and loss, but this model has no law")
        if self.symmetry is not None and not self.axes:
            raise ModelError("symmetry needs axes: the index set of each axis of each array")
        rate_ok = is_number(self.eta) and 0 < self.eta < math.inf
        steps_ok = is_number(self.steps) and isinstance(self.steps, int) and self.steps >= 1
        if not rate_ok or not steps_ok:
            raise ModelError("eta must be a positive number and steps a whole number of at least 1")
        self._check_tables()
        self.constants  # raises ModelError for invalid constants  # noqa: B018

    def _check_tables(self) -> None:
        """Raise ModelError for a part of `TABLES` that has a wrong type or an unknown name."""
        for role, kinds in TABLES.items():
            value = getattr(self, role)
            if value is None or (role in LEADING and callable(value)):
                continue
            if not isinstance(value, kinds):
                form = "a dict" if kinds == (Mapping,) else "a tuple or a list"
                raise ModelError(f"{role} is {type(value).__name__}; {role} can be {form}")
        if unknown := sorted(set(self.held_at or ()) - set(self.constants)):
            raise ModelError(f"held_at: {unknown[0]!r} is not a constant")
        for name, function in self.starts.items():
            if not (isinstance(name, str) and name.isidentifier()) or name == DECLARED_START:
                raise ModelError(f"starts: {name!r} is not a valid name of a start; use a word")
            if not callable(function):
                raise ModelError(f"starts: {name} is {type(function).__name__}, not a function")
        for array, group in self.groups.items():
            if not isinstance(group, str) or not group.isidentifier():
                raise ModelError(f"groups: {group!r} of {array!r} is not a word such as 'value'")

    @cached_property
    def documented(self) -> Documentation:
        """Parsed documentation."""
        return Documentation(self.documentation)

    def meaning(self, name: str) -> str:
        """Meaning of a symbol from the documentation; "" if missing."""
        words, base = self.documented.meaning(name), name.removeprefix(HELD_OUT)
        if words or base == name:
            return words
        known = "mean of the loss" if base == "risk" else self.documented.meaning(base) or base
        return f"{known}, on the held-out law"

    @cached_property
    def constants(self) -> dict[str, Any]:
        """Default of each constant, in the order of the functions' arguments."""
        defaults: dict[str, Any] = {}
        first: dict[str, str] = {}
        missing: dict[str, str] = {}
        for role, names in self.arguments.items():
            for name, parameter in names.items():
                if name in RESERVED or name.startswith(HELD_OUT):
                    raise ModelError(
                        f"constant {name!r} of {role} has the name of a setting or a result of "
                        f"runs; rename it, e.g. {name}_0"
                    )
                if parameter.default is inspect.Parameter.empty:
                    missing.setdefault(name, role)
                    continue
                default = _plain(name, parameter.default)
                if name in defaults and not _same(defaults[name], default):
                    raise ModelError(
                        f"constant {name!r} has two defaults, {defaults[name]!r} in {first[name]} "
                        f"and {default!r} in {role}; give it one"
                    )
                defaults.setdefault(name, default)
                first.setdefault(name, role)
        for name, role in missing.items():
            if name not in defaults:
                raise ModelError(
                    f"constant {name!r} of {role} has no default anywhere; give it one: {name}=..."
                )
        return {name: defaults[name] for names in self.arguments.values() for name in names}

    @property
    def only_drawn(self) -> bool:
        """Whether the data law can only be sampled, not enumerated."""
        return self.law is None and self.risk is None

    @property
    def can_be_drawn(self) -> bool:
        """Whether the model has ``sample`` or ``samples``."""
        return self.sample is not None or self.samples is not None

    @cached_property
    def functions(self) -> dict[str, Callable[..., Any]]:
        """Functions of the model by role, such as ``law`` or ``starts, random``."""
        roles = {role: getattr(self, role) for role in LEADING}
        roles |= {_start(name): function for name, function in self.starts.items()}
        return {role: function for role, function in roles.items() if callable(function)}

    @cached_property
    def arguments(self) -> dict[str, dict[str, inspect.Parameter]]:
        """Constants of each function of the model, by role."""
        result: dict[str, dict[str, inspect.Parameter]] = {}
        for role, function in self.functions.items():
            leading = LEADING.get(role, ("rng",))
            parameters = list(inspect.signature(function).parameters.values())
            names = [parameter.name for parameter in parameters]
            form = f"{role}({', '.join((*leading, '...'))})"
            if tuple(names[: len(leading)]) != leading and len(names) < len(leading):
                raise ModelError(f"{role}({', '.join(names)}) can be {form}")
            for parameter in parameters:
                if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                    raise ModelError(
                        f"{role} takes *{parameter.name}; constants are named arguments"
                    )
            result[role] = {p.name: p for p in parameters[len(leading) :]}
        return result

    def call(self, role: str, *leading: Any, constants: Mapping[str, Any]) -> Any:
        """Call a function of the model at some constants; its error becomes a ModelError."""
        arguments = {name: constants[name] for name in self.arguments[role]}
        with self.blamed(role):
            return self.functions[role](*leading, **arguments)

    def blamed(self, role: str) -> AbstractContextManager[None]:
        """Context that turns errors of a user's function into messages of one line."""
        return blamed(role, self.path)

    def starting_arrays(self, constants: Mapping[str, Any]) -> dict[str, FloatArray]:
        """Trained arrays at step 0; raises ModelError for an invalid name or array."""
        result = named_arrays("start", self.call("start", constants=constants))
        for name in result:
            if name in constants or name in QUANTITIES:
                raise ModelError(
                    f"start names an array {name!r}, a reserved name or a constant; rename it"
                )
            if name.removeprefix("d_") != name and name.removeprefix("d_") in result:
                raise ModelError(
                    f"start names an array {name!r}, which is the name of the rate of "
                    f"{name.removeprefix('d_')!r}; rename it"
                )
        for name in self.groups:
            if name not in result:
                raise ModelError(
                    f"groups: no trained array is named {name!r}; names: {', '.join(result)}"
                )
        return result

    def random_start(
        self, name: str, generator: np.random.Generator, constants: Mapping[str, Any]
    ) -> dict[str, FloatArray]:
        """Trained arrays of one of ``starts``, with the names and shapes of ``start``.

        Raises ModelError if names or shapes differ, or an entry is not a finite number.
        """
        role = _start(name)
        found = named_arrays(role, self.call(role, generator, constants=constants))
        usual = {n: a.shape for n, a in self.starting_arrays(constants).items()}
        if usual != (given := {n: a.shape for n, a in found.items()}):
            raise ModelError(
                f"{role} gives {_shapes(given)}; start gives {_shapes(usual)}"
                f"{line_of_function(self.functions[role], self.path)}"
            )
        return {name: found[name] for name in usual}

    def fixed_arrays(self, constants: Mapping[str, Any]) -> dict[str, FloatArray]:
        """Untrained arrays; empty if the model has no ``fixed``."""
        if self.fixed is None:
            return {}
        return named_arrays("fixed", self.call("fixed", constants=constants))

    def enumerated_law(
        self,
        constants: Mapping[str, Any],
        watched: Callable[[Iterable[Any]], Iterable[Any]] = iter,
        role: str = "law",
    ) -> Law:
        """Every sample of a finite law; `role` is ``law`` or ``held_out``.

        The function `watched` wraps the iterable of (probability, sample) pairs, to show progress.
        Raises ModelError if the probabilities do not sum to 1, if the samples differ in shape, or
        if there are too many samples.
        """
        weights: list[float] = []
        samples: list[Any] = []
        given = size = 0
        with self.blamed(role):
            for probability, sample in watched(pairs(self.call(role, constants=constants), role)):
                if isinstance(probability, (str, bytes, complex)) or np.ndim(probability):
                    raise ModelError(f"{role} gives the probability {probability!r} to a sample")
                value = float(probability)
                if not value >= 0 or math.isinf(value):
                    raise ModelError(f"{role} gives the probability {value:g} to a sample")
                given += 1
                if value > 0:
                    weights.append(value)
                    samples.append(own_arrays(sample))
                    size = size or numbers_in(samples[0])
                if given > MOST_SAMPLES:
                    raise ModelError(
                        f"{role} gives more than {MOST_SAMPLES:,} samples, {len(samples):,} of "
                        "them with a probability above 0; take a smaller size, or define sample to "
                        "draw from the law"
                    )
                if len(samples) * size > MOST_NUMBERS:
                    raise ModelError(
                        f"{role} gives more than {MOST_NUMBERS:,} numbers, {size:,} in each "
                        f"sample; at most {MOST_NUMBERS // size:,} samples of this size can be "
                        "listed"
                    )
        if not samples:
            raise ModelError(f"{role} gives no sample")
        total = math.fsum(weights)
        if abs(total - 1) > SUM_TOLERANCE:
            raise ModelError(f"the probabilities of {role} sum to {total:.12g}, not to 1")
        return Law(np.array(weights), stacked(samples, role))

    def held_out_law(self, constants: Mapping[str, Any], like: Law) -> Law:
        """Every sample of the second law ``held_out``.

        Raises ModelError in the cases of `enumerated_law`, and if the samples differ in parts,
        shapes or types from the samples of `like`, the law of training.
        """
        law = self.enumerated_law(constants, role="held_out")
        place = line_of_function(self.held_out, self.path)
        return Law(
            law.weights, leading_axis(law.samples, law.size, like.samples, place, "held_out")
        )

    def draw_samples(
        self, constants: Mapping[str, Any], count: int, seed: Any, law: Law | None = None
    ) -> Law:
        """Samples drawn by ``samples``, by ``sample``, or from ``law``, with equal weights.

        The result of ``samples`` is checked against `law`, which may hold earlier draws. Raises
        ModelError if the samples have no leading axis of length `count`, or if their form differs
        from that of the samples of `law`.
        """
        generator, weights = np.random.default_rng(seed), np.full(count, 1 / count)
        if self.samples is not None:
            drawn = self.call("samples", generator, count, constants=constants)
            place = line_of_function(self.samples, self.path)
            return Law(weights, leading_axis(drawn, count, law and law.samples, place))
        if self.sample is not None:
            samples = [
                own_arrays(self.call("sample", generator, constants=constants))
                for _ in range(count)
            ]
            return Law(weights, stacked(samples, "sample"))
        listed = self.enumerated_law(constants) if law is None else law
        index = generator.choice(listed.size, size=count, p=listed.weights / listed.weights.sum())
        return Law(weights, select_samples(listed.samples, index))

    def table(self, role: str, constants: Mapping[str, Any]) -> dict[str, Any]:
        """Part ``names``, ``events`` or ``sizes`` of the model at some constants, as a dict."""
        value = getattr(self, role)
        if callable(value):
            value = self.call(role, constants=constants)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise ModelError(f"{role} is {type(value).__name__}; {role} can be a dict")
        return dict(value)


def check_name(role: str, name: Any, others: Mapping[str, Any]) -> None:
    """Raise ModelError if a name of a scalar or an observable is not a word, or is taken."""
    if not isinstance(name, str) or not name.isidentifier():
        raise ModelError(f"{role}: {name!r} is not a word such as alpha or S_12")
    if name in others or name in QUANTITIES or name.startswith(BEGINNINGS):
        raise ModelError(f"{role}: {name!r} is a reserved name or already used; rename it")


def _start(name: str) -> str:
    """Role of a start, used in messages and in `Model.functions`."""
    return f"starts, {name}"


def _shapes(shapes: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {shape}" for name, shape in shapes.items())


def _plain(name: str, default: Any) -> Any:
    """Default of a constant as a plain value: int, float, str, bool or None."""
    if isinstance(default, np.generic):
        default = default.item()
    if isinstance(default, (bool, str)) or default is None:
        return default
    if isinstance(default, numbers.Integral):
        return int(default)
    if isinstance(default, numbers.Real) and math.isfinite(default):
        return float(default)
    raise ModelError(
        f"constant {name!r} has the default {default!r}; defaults can be numbers and words"
    )


def _same(one: Any, two: Any) -> bool:
    return type(one) is type(two) and one == two
