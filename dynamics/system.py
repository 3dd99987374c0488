"""A system: parameters, the square of problems, derivation, claims, default runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamics.default_runs import DefaultRun
from dynamics.library import in_library
from dynamics.presentation import Origin, Presentation
from dynamics.validation import InvalidRequest
from theory.summary import summarized
from theory.update_rules import GD, UpdateRule

if TYPE_CHECKING:
    import sympy

    from dynamics.description import Description
    from theory.claims import Claim
    from theory.notation import Notation
    from theory.page import Page

FULL = ("population", "empirical")
"""Full problems by name."""
EXPECTATION_OPTIONS = ("expectation", "tolerance")
"""Options of the reduced problem of a paper."""
SAMPLING_OPTIONS = ("samples", "seed")
"""Options of every problem with random samples."""


class Derivation:
    """Derivation of a system, in letters or at parameters; a call returns its page.

    `page`: Parameters or None -> the page that ``attdyn derive`` prints (`theory.page.Page`);
    `formulas`: Parameters or None -> the formulas of observables, by name.
    """

    def __init__(
        self,
        page: Callable[..., Page],
        formulas: Callable[..., Mapping[str, sympy.Expr]] = lambda parameters=None: {},
    ) -> None:
        self.page, self.formulas = page, formulas

    def __call__(self, parameters: Any = None, rule: UpdateRule = GD, **options: Any) -> Page:
        """The page of the derivation, with a section on the update rule that is asked for."""
        return _with_rule(self.page(parameters, **options), rule)

    def defining(
        self, parameters: Any = None, rule: UpdateRule = GD, by_array: bool = False
    ) -> Page:
        """Defining equations of the model, and the step of an update rule."""
        page = self.page(parameters)
        return _with_rule(replace(page, sections=page.model), rule)

    def closure(self, parameters: Any = None, samples: Any = None, seed: Any = 0) -> Any:
        """Closure of the training of a model file (`theory.closure.Closure`)."""
        raise InvalidRequest("a paper is not a model file: its reduction is derived by hand")

    def expressions(self, parameters: Any = None) -> Any:
        """Risk and recursion as expressions, of a model file."""
        raise InvalidRequest("a paper is not a model file: its derivation has risk and recursion")

    def first_integrals(self, parameters: Any = None) -> Any:
        """Laws f(x) + g(y) of the flow, of a model file."""
        raise InvalidRequest("a paper is not a model file: its conserved sums are lemmas")


def _with_rule(page: Page, rule: UpdateRule) -> Page:
    """A page of a paper, which is of gradient descent, and a section on a rule in its place."""
    if rule.plain:
        return page
    from theory.rule_page import SPELLED, rule_section

    section = rule_section(rule)
    words = "in place of the step of gradient descent above"
    section = replace(section, sentences=(words, *section.sentences))
    letters = {**SPELLED, **page.letters}
    return replace(page, sections=(*page.sections, section), letters=letters)


@summarized
@dataclass(frozen=True)
class System:
    """Everything that a driver, a command or a picture may ask of a system.

    Attributes
    ----------
    name : str
        Code name.
    presentation : Presentation
        Title, letters, panels, events, and the model file of a model of one's own.
    claims : tuple of Claim
        The paper's statements; those of a model of one's own bring their checks.
    derivation : Derivation
        Parameters or None -> the page that ``attdyn derive`` prints, and what else is derived.
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
    model : object
        The model itself, where the system was made of one.

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
    presentation: Presentation
    claims: tuple[Claim, ...]
    derivation: Derivation
    Parameters: type[Any]
    ReducedPopulation: type[Any]
    FullPopulation: type[Any]
    FullEmpirical: type[Any]
    default_runs: Mapping[str, DefaultRun]
    expectations: tuple[str, ...] = ()
    model: Any = None

    @property
    def title(self) -> str:
        """The paper, or the model, in one line."""
        return self.presentation.title

    @property
    def notation(self) -> Notation:
        """The table of letters."""
        return self.presentation.notation

    @property
    def origin(self) -> Origin | None:
        """The model file of a model of one's own; None for a built-in system."""
        return self.presentation.origin

    @property
    def reference(self) -> str:
        """Key for `load_system`: the path of a user's model file, else a name."""
        if self.origin is None or not self.origin.path:
            return self.name
        # A store that names a library model is read on every machine.
        return Path(self.origin.path).stem if self.in_library else self.origin.path

    @property
    def in_library(self) -> bool:
        """Whether it is a published model of `dynamics.models`."""
        return self.origin is not None and in_library(self.origin.path)

    def overview(self) -> dict[str, Any]:
        """Summary: the paper, its parameters and events."""
        return {
            "name": self.name,
            "title": self.title,
            "parameters": list(self.Parameters.__dataclass_fields__),
            "events": list(self.presentation.event_latex),
            "expectations": self.expectations,
            "claims": len(self.claims),
        }

    def describe(
        self, parameters: Any = None, rule: Any = GD, by_array: bool = False
    ) -> Description:
        """Description: the model in a few equations, its symbols, observables, events and claims.

        Parameters
        ----------
        parameters : Parameters, optional
            Where a model is described; its defaults by default.
        rule : UpdateRule or "step"
            Of training, as of `dynamics.rule`, or that of the model file.
        by_array : bool
            Whether training has stages.

        Returns
        -------
        Description
            Printed as text, shown by a notebook as HTML; ``as_latex()``, ``document()``.
        """
        from dynamics.description import describe

        return describe(self, parameters, rule, by_array)

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
            If the system is not a model file, its law can only be drawn from, or something in its
            loss has no expression.

        Examples
        --------
        >>> import dynamics
        >>> dynamics.load_system("linear_icl").risk()
        72*s**2*u**2/31 - 4*s*u + 2
        """
        return self.derivation.expressions(parameters).risk()

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
        return self.derivation.expressions(parameters).recursion()

    def first_integrals(self, parameters: Any = None) -> tuple[tuple[sympy.Expr, float], ...]:
        """Laws f(x) + g(y) of two scalars that the flow keeps, with their values at the start.

        Parameters
        ----------
        parameters : Parameters, optional
            Its defaults by default.

        Raises
        ------
        InvalidRequest
            As for `risk`.

        Examples
        --------
        >>> import dynamics
        >>> dynamics.load_system("markov_attention").first_integrals()[0][0]
        e**2 - w**2 - log(Abs(w))*sign(w)
        """
        return self.derivation.first_integrals(parameters)

    def closure(self, parameters: Any = None, samples: Any = None, seed: Any = 0) -> Any:
        """Closure of the training of a model file, at its defaults or at parameters.

        Parameters
        ----------
        parameters : Parameters, optional
        samples, seed : int
            Of the draws, where the law can only be sampled.

        Returns
        -------
        theory.closure.Closure

        Raises
        ------
        InvalidRequest
            If the system is not a model file.
        """
        return self.derivation.closure(parameters, samples, seed)

    @property
    def digests(self) -> Mapping[str, str]:
        """Part of the model -> short hash; empty for a built-in system."""
        return {} if self.origin is None else self.origin.digests

    @property
    def flows(self) -> bool:
        """Whether there is a gradient flow beside gradient descent."""
        return bool(self.ReducedPopulation.flows)

    @property
    def expectation_options(self) -> tuple[str, ...]:
        """Options that its reduced problem takes, of `EXPECTATION_OPTIONS`."""
        accepted = signature(self.ReducedPopulation).parameters
        return tuple(name for name in EXPECTATION_OPTIONS if name in accepted)

    @property
    def sampling_options(self) -> tuple[str, ...]:
        """Options of samples that every problem takes: where few stand for the population."""
        return tuple(self.ReducedPopulation.sampling_options)

    @property
    def empirical_options(self) -> Mapping[str, str]:
        """Options of ``FullEmpirical`` beside samples and seed -> their meaning."""
        return dict(self.FullEmpirical.options)

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
        kinds = {"population": self.FullPopulation, "empirical": self.FullEmpirical}
        kind = self.ReducedPopulation if full is None else kinds[full]
        names = ["coordinates", *self.sampling_options]
        names += EXPECTATION_OPTIONS if full is None else ()
        if full == "empirical" or (full is None and options.get("expectation") == "sampled"):
            names += SAMPLING_OPTIONS
        if full == "empirical":
            names += self.empirical_options
        selected = {name: options[name] for name in dict.fromkeys(names) if name in options}
        accepted = signature(kind).parameters.values()
        known = {parameter.name for parameter in accepted}
        if all(parameter.kind is not parameter.VAR_KEYWORD for parameter in accepted):
            for name in selected.keys() - known:
                raise InvalidRequest(
                    f"{name} is not an option of the {kind.view} problem of {self.name}"
                )
        return kind(parameters, **selected)
