"""Result of a run: recorded states, observables, events, outcome."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynamics.presentation import Presentation
from dynamics.problem import FloatArray, Layout
from dynamics.results.event import Event, Events
from dynamics.results.outcome import INTERRUPTED, Outcome, TrainingWarning
from theory.summary import summarized

if TYPE_CHECKING:
    import pandas
    import xarray


@summarized
@dataclass(frozen=True)
class Trajectory:
    """A training run.

    Attributes
    ----------
    system, view : str
        Names of the system and of its problem (``"reduced population"``).
    parameters : mapping
        Parameters of the system.
    layout : Layout
        Names and shapes of the parts of a state.
    settings : mapping
        Settings of the run: ``eta`` and ``steps``, or ``time`` and ``rtol``, and those of the
        problem.
    steps : int array, shape (records,)
        Recorded steps; empty on a flow.
    time : float array, shape (records,)
        eta * steps, the same axis for gradient descent and the flow.
    states : float array, shape (records, n)
        Flat states.
    observables : mapping
        Name -> float array, shape (records,).
    events : Events
        Name -> `Event`; its truth value says whether it was reached.
    outcome : Outcome
        How the run ended.
    reasons : mapping
        Name -> why an event was not reached, or a remark on a reached one.
    presentation : Presentation
        Titles, symbols and panels for plots.
    remarks : tuple of str
        Limitations of the run: a reduction that stops being exact, or a learning rate near the
        stability limit.

    Examples
    --------
    >>> import dynamics
    >>> system = dynamics.load_system("positional_attention")
    >>> problem = system.ReducedPopulation(system.Parameters(D=8, C=2))
    >>> run = dynamics.descend(problem, eta=0.02, steps=1000, record=[0, 10, 1000])
    >>> run["alpha"].shape, run.time.tolist(), run.final_state.shape
    ((3,), [0.0, 0.2, 20.0], (3,))
    >>> run.events["T1"].reached, run.events["T1"].time, run.events["T1"].reason
    (False, nan, 'not reached by time 20')
    >>> float(run.to_xarray()["alpha"].sel(time=0.2)) - float(run["alpha"][1])
    0.0
    >>> list(run.to_dataframe())[:6]
    ['time', 'step', 'alpha', 'gamma', 'rho', 'risk']
    """

    system: str
    view: str
    parameters: Mapping[str, Any]
    layout: Layout
    settings: Mapping[str, Any]
    steps: NDArray[np.int64]
    time: FloatArray
    states: FloatArray
    observables: Mapping[str, FloatArray]
    events: Events
    outcome: Outcome
    reasons: Mapping[str, str] = field(default_factory=dict)
    presentation: Presentation = None  # type: ignore[assignment]  # set in __post_init__
    remarks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.presentation is None:
            object.__setattr__(self, "presentation", Presentation.plain(self))
        object.__setattr__(self, "events", Events.explained(self.events, self.reasons))

    def __getitem__(self, name: str) -> FloatArray:
        """A part of the state, shape (records, ...), or an observable, shape (records,)."""
        if name in self.layout.names:
            return self.layout.part(self.states, name)
        if name in self.observables:
            return self.observables[name]
        names = ", ".join((*self.layout.names, *self.observables))
        raise KeyError(f"no {name!r} in this trajectory; names are {names}")

    def series(self, name: str) -> FloatArray:
        """Scalar part of the state, or observable, shape (records,); for other names ``run[name]``.

        If an array of the state and an observable have the same name, the result is the observable.
        Raises KeyError for an unknown name; the message lists the names.
        """
        scalars = self.scalars
        return scalars[name] if name in scalars else self[name]

    @property
    def final_state(self) -> FloatArray:
        """Last flat state of the run; the last finite state if the run diverged."""
        return self.states[-1]

    @property
    def interrupted(self) -> bool:
        """Whether the run was interrupted before its end."""
        return self.outcome.kind == INTERRUPTED

    def overview(self) -> dict[str, Any]:
        """Names and values of the printed summary: system, size, events and outcome."""
        shapes = zip(self.layout.names, self.layout.shapes, strict=True)
        states = ", ".join(name + (f" {shape}" if shape else "") for name, shape in shapes)
        return {
            "system": f"{self.system}, {self.view}",
            "parameters": self.parameters,
            "settings": {n: v for n, v in self.settings.items() if not isinstance(v, list | dict)},
            "records": f"{self.time.size} to time {self.time[-1]:.6g}: {states}",
            "observables": list(self.observables),
            "events": self.events.line,
            "outcome": str(self.outcome),
        }

    @property
    def scalars(self) -> dict[str, FloatArray]:
        """Scalar parts of the state, then observables: name -> series, shape (records,)."""
        state = {name: self[name] for name in self.layout.scalars}
        return state | {name: s for name, s in self.observables.items() if name not in state}

    def to_dataframe(self) -> pandas.DataFrame:
        """Table of the records: time (eta * steps), step, scalars, risk and other observables.

        The table of a flow has no ``step``. Arrays of the state are only in `to_xarray`.
        """
        import pandas

        steps = {"step": self.steps} if self.steps.size else {}
        scalars = self.scalars
        order = sorted(scalars, key=lambda name: (name not in self.layout.names, name != "risk"))
        return pandas.DataFrame({"time": self.time, **steps, **{n: scalars[n] for n in order}})

    def to_xarray(self) -> xarray.Dataset:
        """Dataset of the records along ``time``; settings, events and outcome are JSON attributes.

        A run of gradient descent also has the coordinate ``steps``. An observable with the name of
        a part of the state is called ``observed_<name>``. The states at the events are in
        ``run.events.to_xarray()``.
        """
        records = self.stored().drop_dims("event", errors="ignore")
        return records.swap_dims(record="time")

    def stored(self) -> xarray.Dataset:
        """Dataset of the whole run along ``record``, as stored on disk.

        A run of gradient descent also has the coordinate ``steps``. An observable with the name of
        a part of the state is stored as ``observed_<name>``; ``event_state`` has the states at the
        reached events.
        """
        import xarray

        variables: dict[str, Any] = {}
        for name, shape in zip(self.layout.names, self.layout.shapes, strict=True):
            axes = tuple(f"{name}_axis_{k}" for k in range(len(shape)))
            variables[name] = (("record", *axes), self[name])
        for name, series in self.observables.items():
            variables[_stored_name(name, self.layout)] = (("record",), series)
        happened = [event for event in self.events.values() if event]
        if happened:
            stacked = np.stack([event.state for event in happened])
            variables["event_state"] = (("event", "entry"), stacked)
        records = {name: event.record() if event else None for name, event in self.events.items()}
        texts = {
            "parameters": dict(self.parameters),
            "settings": dict(self.settings),
            "layout": [self.layout.names, self.layout.shapes, self.layout.groups],
            "observables": list(self.observables),
            "events": records,
            "reasons": dict(self.reasons),
            "outcome": asdict(self.outcome),
            "remarks": list(self.remarks),
        }
        attributes = {"kind": "trajectory", "system": self.system, "view": self.view}
        attributes |= {name: json.dumps(value) for name, value in texts.items()}
        attributes |= self.presentation.attributes()
        coordinates: dict[str, Any] = {"time": ("record", self.time)}
        if self.steps.size:
            coordinates["steps"] = ("record", self.steps)
        return xarray.Dataset(variables, coordinates, attributes)

    @classmethod
    def from_stored(cls, dataset: xarray.Dataset) -> Trajectory:
        """Trajectory from a dataset made by `stored`; one without labels gets plain names."""
        read = {name: json.loads(dataset.attrs[name]) for name in TEXTS}
        names, shapes, groups = read["layout"]
        layout = Layout(tuple(names), tuple(map(tuple, shapes)), tuple(groups))
        records = dataset.sizes["record"]
        parts = [dataset[name].values.reshape(records, -1) for name in layout.names]
        happened = [name for name, record in read["events"].items() if record]
        states = dict(zip(happened, dataset["event_state"].values, strict=True)) if happened else {}
        events = {
            name: Event(name=name, state=states[name], **record)
            if record
            else Event.missing(name, layout.size)
            for name, record in read["events"].items()
        }
        observables = {n: dataset[_stored_name(n, layout)].values for n in read["observables"]}
        return cls(
            system=dataset.attrs["system"],
            view=dataset.attrs["view"],
            parameters=read["parameters"],
            layout=layout,
            settings=read["settings"],
            steps=dataset["steps"].values if "steps" in dataset else np.empty(0, dtype=np.int64),
            time=dataset["time"].values,
            states=np.concatenate(parts, axis=1),
            observables=observables,
            events=Events(events),
            outcome=Outcome(**read["outcome"]),
            reasons=read["reasons"],
            presentation=Presentation.from_attributes(dataset.attrs),  # type: ignore[arg-type]
            remarks=tuple(json.loads(dataset.attrs.get("remarks", "[]"))),
        )


def with_remarks(run: Trajectory, problem: Any) -> Trajectory:
    """Add the remark of a problem on its run to the run, and issue the remark as a warning."""
    leaving = getattr(problem, "leaving", None)
    if leaving is None or not (remark := leaving(run)):
        return run
    warnings.warn(remark, TrainingWarning, stacklevel=3)
    return replace(run, remarks=(*run.remarks, remark))


def explained(
    reasons: Mapping[str, str], problem: Any, observables: Mapping[str, FloatArray]
) -> dict[str, str]:
    """Event -> reason, followed by the problem's remark on the event, if any."""
    remarks: dict[str, str] = {}
    if observables and hasattr(problem, "remarks"):
        remarks = problem.remarks({name: float(v[-1]) for name, v in observables.items()})
    both = {name: f"{reasons[name]}; {remarks[name]}" for name in reasons.keys() & remarks.keys()}
    return {**reasons, **remarks, **both}


def first_not_finite(states: FloatArray, observables: Mapping[str, FloatArray]) -> int | None:
    """Index of the first record whose state or risk is not finite, or None if all are finite."""
    finite = np.isfinite(states).all(axis=1) & np.isfinite(observables.get("risk", 0.0))
    return None if finite.all() else int(np.argmin(finite))


def undefined(observables: Mapping[str, FloatArray]) -> str:
    """Remark on the observables that are not finite in the last record; empty if all are finite."""
    names = [name for name, values in observables.items() if not isfinite(values[-1])]
    return f"not finite at the end: {', '.join(names)}" if names else ""


TEXTS = ("parameters", "settings", "layout", "observables", "events", "reasons", "outcome")


def _stored_name(name: str, layout: Layout) -> str:
    return f"observed_{name}" if name in layout.names else name
