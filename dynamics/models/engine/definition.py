"""What is made of a model once: parameters, notation table, panels, fingerprint, realizations.

The notation table comes from the names that the model gives to its scalars and constants. Its runs
are plotted in its own panels, or in one for each array.

The fingerprint is a short hash of each part of the model. A part is hashed by its value at the
default constants (the start, every sample and its probability, the traced program) and by the
syntax of its function, with that of what the function uses of the same file: so data that a file
imports count, and so does what only other constants reach. Comments, docstrings and the layout of
the text do not.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic.dataclasses import dataclass as checked_dataclass

from dynamics.models.engine.limits import check_limits
from dynamics.models.engine.realization import Realization, Walk
from dynamics.models.engine.tracing import refusals, require_jax
from dynamics.results.presentation import (
    LOOKS,
    Origin,
    Panel,
    PlotDescription,
    Presentation,
    conditions,
)
from dynamics.validation import (
    STRICT,
    check_parameters,
    integer,
    learning_rate,
    number,
    refusing,
    whole,
)
from theory.events import EventRule
from theory.law import ModelError
from theory.model import LEADING, Model
from theory.notation import Notation

if TYPE_CHECKING:
    from dynamics.models.engine.realization import Realization

GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "zeta": "ζ",
    "eta": "η", "theta": "θ", "iota": "ι", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν",
    "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "upsilon": "υ", "phi": "φ",
    "chi": "χ", "psi": "ψ", "omega": "ω",
}  # fmt: skip


def latex_of(name: str) -> str:
    r"""A code name as LaTeX: ``alpha0`` is ``\alpha_{0}``, ``A_0_1`` is ``A_{0,1}``.

    Words below a letter stand apart, as in ``A_{to mask}``.
    """
    base, *below = name.split("_")
    digits = re.fullmatch(r"([A-Za-z]+?)(\d+)", base)
    if digits:
        base, below = digits[1], [digits[2], *below]
    folded = base.lower()
    if folded in GREEK:
        capital = base[0].isupper() and folded not in ("alpha", "beta", "epsilon", "zeta", "eta")
        letter = "\\" + (folded.capitalize() if capital else folded)
    elif len(base) == 1:
        letter = base
    else:
        letter = rf"\mathrm{{{base}}}"
    written, was_word = "", False
    for part in filter(None, below):
        word = not part.isdigit() and len(part) > 1
        apart = (r"\ " if word or was_word else ",") if written else ""
        written += apart + (rf"\mathrm{{{part}}}" if word else part)
        was_word = word
    return letter + (f"_{{{written}}}" if written else "")


def notation_of(model: Model, scalars: tuple[str, ...], observables: tuple[str, ...]) -> Notation:
    """The table of constants, scalars, rates and observables of a model.

    Parameters
    ----------
    model : Model
    scalars : tuple of str
        Names of the scalars of the reduction.
    observables : tuple of str
        Names of what the model observes.
    """
    kinds = {
        "constant of the model": model.constants,
        "scalar of the reduction": scalars,
        "observable of the model": observables,
    }
    rows = {
        name: (name, GREEK.get(name, name), latex_of(name), kind)
        for kind, names in kinds.items()
        for name in names
    }
    for name in (*scalars, *observables):
        rate, latex = f"d_{name}", rf"\dot{{{latex_of(name)}}}"
        rows[rate] = rate, rate, latex, f"rate of {name}, per unit of time"
    rows["risk"] = "risk", "R", "R", "population risk"
    outside = "largest distance from the closed space"
    rows["outside"] = "outside", "outside", r"\mathrm{outside}", outside
    return Notation(model.source or model.title or model.name, rows.values())


MOST_PANELS = 5
"""Panels of scalars, where the model does not say which."""


def plot_description(
    model: Model, scalars: Sequence[str], observables: Sequence[str], events: Sequence[str]
) -> PlotDescription:
    """Panels, and a mark for each event.

    Parameters
    ----------
    model : Model
        Its ``panels`` are tuples of names, one a panel; a name with ``log`` before it, as
        ``"log risk"``, makes the axis of its panel logarithmic.
    scalars, observables : sequence of str
        Names that a panel can show.
    events : sequence of str
        Names of the events.

    Raises
    ------
    ModelError
        If a panel names something that the model does not have.
    """
    allowed = [*scalars, *observables, "risk"]
    if model.panels:
        panels = [_panel(entry, allowed) for entry in model.panels]
    else:
        panels = [_numbered(names) for names in _together(scalars)[:MOST_PANELS]]
        panels += [_numbered(names) for names in _together(observables)[:2]]
        panels.append(Panel((("risk", 5),), logarithmic=True))
    return PlotDescription(
        panels=tuple(panels),
        marks={name: name.replace("_", " ") for name in events},
        overlaid=(*scalars[:4], "risk"),
    )


def _together(names: Sequence[str]) -> list[list[str]]:
    """Names that share a panel; where there are many, those that begin with the same letters."""
    groups: dict[str, list[str]] = {}
    for name in names:
        letters = re.match(r"[A-Za-z]*", name)
        groups.setdefault(letters[0] if letters and len(names) > LOOKS else "", []).append(name)
    return [group[k : k + LOOKS] for group in groups.values() for k in range(0, len(group), LOOKS)]


def _numbered(names: Sequence[str], logarithmic: bool = False) -> Panel:
    return Panel(tuple((name, k % LOOKS) for k, name in enumerate(names)), logarithmic)


def _panel(entry: object, allowed: Sequence[str]) -> Panel:
    names = [entry] if isinstance(entry, str) else entry
    if not isinstance(names, (tuple, list)) or not names:
        raise ModelError(f"panels: {entry!r} is no panel; a panel is a tuple of names")
    logarithmic, words = False, []
    for name in names:
        word = str(name)
        if word.startswith("log "):
            logarithmic, word = True, word[4:].strip()
        if word not in allowed:
            raise ModelError(f"panels: {word!r} is unknown; known are {', '.join(allowed[:20])}")
        words.append(word)
    return _numbered(words, logarithmic)


ADDRESSES = re.compile(r"0x[0-9a-f]+")
"""Addresses in the text of a traced program."""


def digests(made: Realization) -> dict[str, str]:
    """Part of a model -> short hash of what counts in it.

    Parameters
    ----------
    made : Realization
        Of the model at its default constants.
    """
    jax = require_jax()
    model, program = made.model, made.program
    parts: dict[str, list[Any]] = {
        "constants": sorted((n, repr(v)) for n, v in model.constants.items()),
        "start": [(n, a.shape, _bytes(a)) for n, a in made.arrays.items()],
        "fixed": [(n, _bytes(a)) for n, a in made.data.fixed.items()],
    }
    for role in ("names", "events"):
        table = model.table(role, made.constants)
        parts[role] = sorted((name, repr(entry)) for name, entry in table.items())
    if made.law is not None:
        leaves = jax.tree.leaves(made.law.samples)
        parts["law"] = [_bytes(made.law.weights), *map(_bytes, leaves)]
    abstract = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), made.data)
    flat = jax.ShapeDtypeStruct((program.size,), np.float64)
    with jax.enable_x64(True):
        role = program.expectation
        traced = jax.make_jaxpr(partial(program.first_values, role))(flat, abstract)
        parts[role] = [_text(traced)]
        if made.observable_names:
            parts["observables"] = [_text(jax.make_jaxpr(program.observables)(flat, abstract))]
    for role, text in syntax(model.path).items():
        parts.setdefault("observables" if role == "observe" else role, []).append(text)
    return {name: _short(repr(part)) for name, part in parts.items()}


def syntax(path: Path | None) -> dict[str, str]:
    """Function of a model file -> its syntax, with that of what it uses of the file.

    Nothing for a model without a file, or one whose file is not there any more.
    """
    if path is None or not path.exists():
        return {}
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named: dict[str, list[ast.stmt]] = {}
    for statement in tree.body:
        for name in _names(statement):
            named.setdefault(name, []).append(statement)
    return {role: _closure(role, named) for role in LEADING if role in named}


def _names(statement: ast.stmt) -> set[str]:
    """Names that a statement at the top of a file binds."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return {statement.name}
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {(alias.asname or alias.name).split(".")[0] for alias in statement.names}
    bound = (n for n in ast.walk(statement) if isinstance(n, ast.Name))
    return {n.id for n in bound if isinstance(n.ctx, ast.Store)}


def _closure(role: str, named: dict[str, list[ast.stmt]]) -> str:
    """The syntax of a function and of everything of the file that it uses."""
    pending, observables = [role], {role}
    texts = []
    for name in pending:
        for statement in named[name]:
            plain = _without_docstrings(statement)
            texts.append(ast.dump(plain))
            used = {n.id for n in ast.walk(plain) if isinstance(n, ast.Name)}
            fresh = sorted(used & named.keys() - observables)
            observables |= set(fresh)
            pending += fresh
    return " ".join(texts)


def _without_docstrings(statement: ast.stmt) -> ast.stmt:
    """A statement whose functions have no docstrings."""
    for node in ast.walk(statement):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
    return statement


def _text(program: Any) -> str:
    """A traced program and its constant arrays as text."""
    text = ADDRESSES.sub("", str(program.jaxpr))
    return text + "".join(_bytes(np.asarray(constant)) for constant in program.consts)


def _bytes(array: Any) -> str:
    plain = np.ascontiguousarray(array)
    return hashlib.sha256(plain.tobytes() + str((plain.shape, plain.dtype)).encode()).hexdigest()


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


CACHED = 6
"""Realizations that a definition holds: points of a sweep come and go."""
DRAWS = 4000
"""Samples of a law that can only be sampled, by default."""
MOST_STEPS = 10**12


class Digests(Mapping[str, str]):
    """Part of a model -> short hash, computed when it is first looked at."""

    def __init__(self, compute: Callable[[], dict[str, str]]) -> None:
        self._compute = compute

    @cached_property
    def _values(self) -> dict[str, str]:
        return self._compute()

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class Definition:
    """A model, ready to be realized at any constants.

    Parameters
    ----------
    model : Model
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.name = model.name
        with refusals():
            self.Parameters = parameters_of(model)
        self.digests = Digests(lambda: digests(self.realization(self.Parameters())))
        self._made: OrderedDict[Any, Realization] = OrderedDict()

    @property
    def origin(self) -> Origin:
        """Where the model is, and its fingerprint."""
        path = "" if self.model.path is None else str(self.model.path)
        return Origin(path, self.digests)

    def realization(self, parameters: Any, samples: Any = None, seed: Any = 0) -> Realization:
        """The model at some parameters; the same object for the same ones.

        Raises
        ------
        InvalidRequest
            In one line, for anything that is wrong with the model there.
        """
        check_parameters(parameters, self.Parameters, self.name)
        constants = dataclasses.asdict(parameters)
        count = 0
        if self.model.law is None and self.model.sample is not None and self.model.risk is None:
            usual = DRAWS if samples is None else samples
            count = integer("samples", usual, at_least=1, at_most=10**8)
        seed = integer("seed", seed, at_least=0, at_most=2**63 - 1) if count else 0
        key = (tuple(constants.items()), count, seed)
        if key not in self._made:
            made = Realization(self.model, constants, count, seed)
            self._made[key] = made
            while len(self._made) > CACHED:
                self._made.popitem(last=False)
        self._made.move_to_end(key)
        return self._made[key]

    def walk(self, eta: Any = None, steps: Any = None) -> Walk:
        """The run along which a closure is looked at; the model's own settings by default."""
        rates = learning_rate(self.model.eta if eta is None else eta, None)
        steps = self.model.steps if steps is None else steps
        return Walk(rates, integer("steps", steps, at_least=1, at_most=MOST_STEPS))

    def presentation(
        self, scalars: tuple[str, ...], made: Realization, events: tuple[EventRule, ...]
    ) -> Presentation:
        """Letters, panels and events of a problem."""
        observables = made.observable_names
        with refusals():
            notation = notation_of(self.model, scalars, observables)
            plot = plot_description(
                self.model, scalars, observables, [rule.name for rule in events]
            )
        return Presentation(
            self.model.title or self.name, notation, plot, conditions(events), self.origin
        )


def parameters_of(model: Model) -> type[Any]:
    """The frozen, validated type of a model's constants, within its limits."""
    fields: list[Any] = []
    for name, default in model.constants.items():
        if isinstance(default, bool):
            kind: Any = bool
        elif isinstance(default, int):
            kind = whole(-(2**31))
        elif isinstance(default, float):
            kind = number()
        elif isinstance(default, str):
            kind = str
        else:
            kind = number(optional=True)
        fields.append((name, kind, dataclasses.field(default=default)))
    limits = tuple(model.limits or ())

    def check(self: Any) -> None:
        check_limits(limits, model.name, {name: getattr(self, name) for name in model.constants})

    namespace = {"__doc__": f"Constants of {model.name}.", "__post_init__": check}
    plain = dataclasses.make_dataclass(
        "Parameters", fields, namespace=namespace, frozen=True, kw_only=True
    )
    check_limits(limits, model.name, model.constants)
    return refusing(checked_dataclass(plain, config=STRICT, frozen=True, kw_only=True))
