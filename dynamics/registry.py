"""Every system there is: by name, from a model file, or made of a `Model` object.

A built-in system is a folder of `dynamics.systems` with a ``SYSTEM``, a library model a file of
`dynamics.models`. Systems are looked up here once, where a request names one; everything after that
is given the `System`, and results carry what they are drawn with (`dynamics.results.presentation`).
"""

from __future__ import annotations

import ast
import importlib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamics.results.presentation import Origin, PlotDescription, Presentation, conditions
from dynamics.validation import NEAR, InvalidRequest, nearest_name, path_of, refuse, shown
from theory.model_file import imports_are_unchanged
from theory.summary import summarized

if TYPE_CHECKING:
    import sympy

    from dynamics.description import Description
    from theory.claims import Claim
    from theory.notation import Notation
    from theory.page import Page
    from theory.reduction import ReducedSystem

FULL = ("population", "empirical")
"""Full problems by name."""
EXPECTATION_OPTIONS = ("expectation", "tolerance")
"""Options of the reduced problem."""
SAMPLING_OPTIONS = ("samples", "seed")
"""Options of every problem with random samples."""
ENGINE = "dynamics.models.engine"
"""The module that turns model files and `Model` objects into systems."""
HERE = Path(__file__).parent
STARTS = re.compile(r"^(def start\b|start\s*=)", re.MULTILINE)
"""What tells a library model from other modules of its folder."""


@dataclass(frozen=True)
class Contrast:
    """A reduced run at other parameters, which a default comparison is laid beside.

    Attributes
    ----------
    parameters : mapping
        Those that differ.
    overlaid : tuple of str
        States and observables that are drawn of both.
    remark : callable
        Parameters -> what distinguishes the two, in one or two sentences.
    """

    parameters: Mapping[str, Any]
    overlaid: tuple[str, ...]
    remark: Callable[[Any], str]


@dataclass(frozen=True)
class DefaultRun:
    """Defaults of a command: the showcase of its system.

    Attributes
    ----------
    parameters : mapping
        Those that differ from the defaults of ``Parameters``. A flag changes its own one only.
    eta : float
    steps, samples : int
    contrast : Contrast or None
    presumes : mapping
        Parameters -> values without which ``parameters`` do not count, such as a family.
    remarks : mapping
        Parameter -> sentence that is printed where the showcase sets it.
    """

    parameters: Mapping[str, Any]
    eta: float
    steps: int
    samples: int = 0
    contrast: Contrast | None = None
    presumes: Mapping[str, Any] = field(default_factory=dict)
    remarks: Mapping[str, str] = field(default_factory=dict)

    def beside(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters that count beside those that a user gave.

        Parameters
        ----------
        given : mapping
            Name -> value.
        """
        if any(given.get(name, value) != value for name, value in self.presumes.items()):
            return {}
        return {name: value for name, value in self.parameters.items() if name not in given}


FLOW_GRADIENTS = 3000.0
"""Gradients of a flow, about: those of steps do not depend on the horizon."""


@summarized
@dataclass(frozen=True)
class System:
    """Everything that a driver, a command or a picture may ask of a system.

    Attributes
    ----------
    name, title : str
        Code name, and the paper in one line.
    notation : Notation
        The table of letters.
    claims : tuple of Claim
        The paper's statements.
    derivation : callable
        Parameters or None -> the page that ``attdyn derive`` prints (`theory.page.Page`).
    derivations : callable
        Parameters or None -> the reductions that are compiled, by name.
    Parameters : type
        Frozen, validated on construction.
    ReducedPopulation, FullPopulation, FullEmpirical : type
        The problems, made from a ``Parameters``; the empirical one also from a number of samples
        and a seed.
    default_runs : mapping
        Command (``"run"``, ``"compare"``) -> what it does by default; ``"empirical"``, with its
        number of samples, is what both do with the full empirical problem.
    expectations : tuple of str
        How the reduced problem can take its expectation, the default last.
    empirical_options : mapping
        Options of ``FullEmpirical`` that the command line offers -> their meaning.
    sampling_options : tuple of str
        Those options, ``samples`` and ``seed`` among them, that every problem of the system takes:
        where starts are random, or few samples stand for the population.
    plot_description : PlotDescription
        What its runs are drawn as.
    cost_model : callable
        Parameters, the name of a full problem or None, options -> predicted time of one gradient,
        in seconds for a built-in system: the order of the points of a sweep, the size of its
        blocks, the hint at the flow (`dynamics.cli.forecast`) and which sizes a check can afford
        rest on it, and no number.
    origin : Origin or None
        The model file of a model of one's own; None for a built-in system.
    model : object
        The model itself, where the system was made of one.
    reduced_options, full_options : tuple of str
        Options of the reduced problem, and of both full ones, beside those above.
    closure : callable or None
        Parameters -> what training closes on (`theory.closure.Closure`), of a model of one's own.
    defining : callable or None
        Parameters or None -> what defines a model of one's own, in a few equations
        (`theory.page.Page`); of a built-in system ``derivation(...).model`` does.
    expressions : callable or None
        Parameters or None -> risk and recursion as expressions, of a model of one's own.
    checks, figures : mapping or None
        Source of a claim -> its check, name -> figure; those of the paper in
        `dynamics.experiments` where None.

    Examples
    --------
    >>> import dynamics
    >>> system = dynamics.load_system("positional_attention")
    >>> system.title
    'Positional attention and patch association (Jelassi, Sander, Li 2022)'
    >>> system.ReducedPopulation(system.Parameters(D=8, C=2)).state_names
    ('alpha', 'gamma', 'rho')
    """

    name: str
    title: str
    notation: Notation
    claims: tuple[Claim, ...]
    derivation: Callable[..., Page]
    derivations: Callable[..., Mapping[str, ReducedSystem]]
    Parameters: type[Any]
    ReducedPopulation: type[Any]
    FullPopulation: type[Any]
    FullEmpirical: type[Any]
    default_runs: Mapping[str, DefaultRun]
    expectations: tuple[str, ...]
    empirical_options: Mapping[str, str]
    plot_description: PlotDescription
    cost_model: Callable[[Any, str | None, Mapping[str, Any]], float]
    sampling_options: tuple[str, ...] = ()
    origin: Origin | None = None
    model: Any = None
    checks: Mapping[str, Callable[..., Any]] | None = None
    reduced_options: tuple[str, ...] = EXPECTATION_OPTIONS
    full_options: tuple[str, ...] = ()
    closure: Callable[..., Any] | None = None
    figures: Mapping[str, Callable[..., Any]] | None = None
    defining: Callable[..., Page] | None = None
    expressions: Callable[..., Any] | None = None

    @property
    def reference(self) -> str:
        """What `load_system` finds it by: the path of a model file of one's own, else a name."""
        if self.origin is None or not self.origin.path:
            return self.name
        # A store that names a library model is read on every machine.
        return Path(self.origin.path).stem if self.in_library else self.origin.path

    @property
    def in_library(self) -> bool:
        """Whether it is a published model of `dynamics.models`."""
        return self.origin is not None and in_library(self.origin.path)

    def overview(self) -> dict[str, Any]:
        """What is shown of it: the paper, its parameters and events."""
        return {
            "name": self.name,
            "title": self.title,
            "parameters": list(self.Parameters.__dataclass_fields__),
            "events": list(self.presentation.event_latex),
            "expectations": self.expectations,
            "claims": len(self.claims),
        }

    def describe(self, parameters: Any = None) -> Description:
        """What it is: the model in a few equations, its symbols, observables, events and claims.

        Parameters
        ----------
        parameters : Parameters, optional
            Where a model is described; its defaults by default.

        Returns
        -------
        Description
            Printed as text, shown by a notebook as HTML; ``as_latex()``, ``document()``.
        """
        from dynamics.description import describe

        return describe(self, parameters)

    def risk(self, parameters: Any = None) -> sympy.Expr:
        """The population risk, carried out over the law, in the scalars and real constants.

        What passes through the law, `fixed` and `start` is the number at the parameters, read as
        the simplest fraction that rounds to it. Scalars are those of the classes of equal entries.

        Parameters
        ----------
        parameters : Parameters, optional
            Its defaults by default.

        Raises
        ------
        InvalidRequest
            If the system is no model file, its law can only be drawn from, or something in its
            loss has no expression.

        Examples
        --------
        >>> import dynamics
        >>> dynamics.load_system("linear_icl").risk()
        72*s**2*u**2/31 - 4*s*u + 2
        """
        return self._expressions(parameters).risk()

    def recursion(self, parameters: Any = None) -> dict[str, sympy.Expr]:
        """Scalar -> its value after one step of gradient descent, as `risk` is written.

        Parameters
        ----------
        parameters : Parameters, optional
            Its defaults by default.

        Raises
        ------
        InvalidRequest
            As for `risk`.
        """
        return self._expressions(parameters).recursion()

    def _expressions(self, parameters: Any) -> Any:
        if self.expressions is None:
            raise InvalidRequest(
                f"{self.name} is no model file: its derivation has risk and recursion"
            )
        return self.expressions(parameters)

    @property
    def digests(self) -> Mapping[str, str]:
        """Part of the model -> short hash; empty for a built-in system."""
        return {} if self.origin is None else self.origin.digests

    @property
    def presentation(self) -> Presentation:
        """Titles and letters of results of the whole system, such as sweeps."""
        rules = getattr(self.ReducedPopulation, "events", ())
        return Presentation(
            title=self.title,
            notation=self.notation,
            plot=self.plot_description,
            event_latex=conditions(rules),
            origin=self.origin,
            unused=getattr(getattr(self.ReducedPopulation, "presentation", None), "unused", ()),
        )

    @property
    def flows(self) -> bool:
        """Whether there is a gradient flow beside gradient descent."""
        return bool(self.ReducedPopulation.flows)

    @property
    def expectation_options(self) -> tuple[str, ...]:
        """Options that its reduced problem takes, of `EXPECTATION_OPTIONS`."""
        accepted = signature(self.ReducedPopulation).parameters
        options = set(accepted) & set(EXPECTATION_OPTIONS)
        return tuple(name for name in self.reduced_options if name in options)

    @property
    def sampling_hint(self) -> str:
        """Flags that choose a problem with samples and a seed, for messages."""
        sampled = " or --expectation sampled" if "sampled" in self.expectations else ""
        return f"--full empirical{sampled}"

    def problem(self, parameters: Any, full: str | None, options: Mapping[str, Any]) -> Any:
        """The problem that options ask for; those of other problems are passed over.

        Parameters
        ----------
        parameters : Parameters
        full : str or None
            ``"population"``, ``"empirical"``, or the reduced problem.
        options : mapping
            Name -> value, as on the command line.

        Raises
        ------
        InvalidRequest
            If the problem cannot be made.
        """
        names: tuple[str, ...]
        if full == "population":
            names, kind = (*self.sampling_options, *self.full_options), self.FullPopulation
        elif full == "empirical":
            names = (*SAMPLING_OPTIONS, *self.empirical_options, *self.full_options)
            kind = self.FullEmpirical
        else:
            sampled = SAMPLING_OPTIONS if options.get("expectation") == "sampled" else ()
            names = (*self.reduced_options, *dict.fromkeys((*sampled, *self.sampling_options)))
            kind = self.ReducedPopulation
        selected = {name: options[name] for name in names if name in options}
        accepted = signature(kind).parameters
        for name in selected:
            if name not in accepted and "VAR_KEYWORD" not in {
                p.kind.name for p in accepted.values()
            }:
                raise InvalidRequest(
                    f"{name} is no option of the {kind.view} problem of {self.name}"
                )
        return kind(parameters, **selected)


def built_in_names() -> tuple[str, ...]:
    """Names of the built-in systems."""
    return tuple(sorted(p.parent.name for p in (HERE / "systems").glob("*/parameters.py")))


def library_names() -> tuple[str, ...]:
    """Names of the library models; the files of built-in systems are none."""
    files = sorted((HERE / "models").glob("[!_]*.py"))
    names = tuple(p.stem for p in files if STARTS.search(p.read_text(encoding="utf-8")))
    return tuple(name for name in names if name not in built_in_names())


def in_library(path: str | os.PathLike[str] | None) -> bool:
    """Whether a model file is one of the library, found by its name.

    Parameters
    ----------
    path : path-like or None
    """
    if path is None or Path(path).stem in built_in_names():
        return False
    return Path(path).parent == HERE / "models"


def system_names() -> tuple[str, ...]:
    """Names of the built-in systems, then of the library models.

    Examples
    --------
    >>> import dynamics
    >>> dynamics.system_names()[:3]
    ('masked_image_modeling', 'positional_attention', 'shallow_vit')
    """
    return (*built_in_names(), *library_names())


def title(name: str) -> str:
    """The title of a built-in system or a library model; of a model, without loading it.

    Parameters
    ----------
    name : str
        One of `system_names`.
    """
    if name in built_in_names():
        return load_system(name).title
    module = ast.parse(_library_file(name).read_text(encoding="utf-8"))
    return (ast.get_docstring(module) or name).splitlines()[0].rstrip(".")


def is_model_file(source: str) -> bool:
    """Whether a word is the path of a model file: it ends in ``.py``, or there is such a file."""
    return source.endswith(".py") or os.path.isfile(os.path.expanduser(source))


def load_system(source: Any) -> System:
    """The system of a name, of a model file, or of a model.

    Parameters
    ----------
    source : str, path-like, Model or System
        Name of a built-in system or of a library model; path of a model file, which is anything
        that ends in ``.py`` or is a file; a `Model`; a `System` is returned as it is.

    Returns
    -------
    System

    Raises
    ------
    InvalidRequest
        If there is none of that name, the file is missing, or it is none of these.

    Examples
    --------
    >>> import dynamics
    >>> dynamics.load_system("positional_attention").Parameters().D
    16
    """
    if isinstance(source, System):
        return source
    if isinstance(source, (str, os.PathLike)):
        return _named(os.fspath(source))
    if hasattr(source, "start") and (hasattr(source, "loss") or hasattr(source, "risk")):
        made: System = importlib.import_module(ENGINE).system_of(source)
        return made
    raise InvalidRequest(
        f"system={shown(source)} is no system; system can be a name, a model file, a Model "
        f"or a System; nearest: {built_in_names()[0]!r}"
    )


def load_unchanged(reference: str, digests: Mapping[str, str]) -> System:
    """The system of a reference, if its model still is what it was.

    Parameters
    ----------
    reference : str
        `System.reference`.
    digests : mapping
        `System.digests` of then; empty for a built-in system.

    Raises
    ------
    InvalidRequest
        If it cannot be loaded, or with the parts of the model that are different now.
    """
    system = load_system(reference)
    if _changed(system, digests) and system.origin is not None:
        # What a model imports may have changed although its file has not.
        system = _from_file(system.origin.path, anew=True)
    if changed := _changed(system, digests):
        name = os.path.basename(reference)
        raise InvalidRequest(
            f"model {name!r} was changed since the sweep began: {', '.join(changed)}"
        )
    return system


def can_be_loaded_again(system: System) -> bool:
    """Whether another process finds the very system by its reference."""
    if system.origin is not None:
        return bool(system.origin.path)
    return system.name in built_in_names() and load_system(system.name) is system


def _changed(system: System, digests: Mapping[str, str]) -> list[str]:
    """Parts of the model that are not what they were; none where there are no digests of then."""
    if not digests:
        return []
    parts = dict.fromkeys([*digests, *system.digests])
    return [part for part in parts if digests.get(part) != system.digests.get(part)]


def _named(source: str) -> System:
    if source in built_in_names():
        system: System = importlib.import_module(f"dynamics.systems.{source}").SYSTEM
        return system
    if source in library_names():
        return _from_file(str(_library_file(source)))
    if is_model_file(source):
        return _from_file(source)
    names = system_names()
    allowed = f"{', '.join(names)}, or a model file"
    refuse("system", source, "is unknown", allowed, nearest_name(source, names))


def _library_file(name: str) -> Path:
    return HERE / "models" / f"{name}.py"


def _imports_are_unchanged(system: System) -> bool:
    imported = getattr(system.model, "imported", None)
    return not imported or imports_are_unchanged(system.model)


_FILES: dict[tuple[str, int, int], System] = {}
"""Path, time of change and size of a model file -> its system."""


def _from_file(source: str, anew: bool = False) -> System:
    path = os.path.abspath(path_of("system", source))
    try:
        status = os.stat(path)
    except OSError as error:
        beside = Path(path).parent
        files = [p.name for p in beside.glob("*.py")] if beside.is_dir() else []
        near = get_close_matches(Path(path).name, files, 1, NEAR) or ["the path of a file"]
        missing = isinstance(error, FileNotFoundError)
        why = "is missing" if missing else f"cannot be read ({str(error.strerror).lower()})"
        refuse("system", source, why, "a model file or a name", near[0])
    key = (path, status.st_mtime_ns, status.st_size)
    if anew or key not in _FILES or not _imports_are_unchanged(_FILES[key]):
        _FILES[key] = importlib.import_module(ENGINE).load(path)
    return _FILES[key]
