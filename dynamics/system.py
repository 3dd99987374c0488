"""A system: parameters, problems, derivation, claims, default runs."""

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
"""Names of the full problems."""
EXPECTATION_OPTIONS = ("expectation", "tolerance")
"""Options of a paper's reduced problem."""
SAMPLING_OPTIONS = ("samples", "seed")
"""Options of every problem with random samples."""


class Derivation:
    """Derivation of a system, symbolic or at parameters; a call returns its page.

    `page`: function Parameters or None -> page that ``attdyn derive`` prints (`theory.page.Page`);
    `formulas`: function Parameters or None -> observable -> formula.
    """

    def __init__(
        self,
        page: Callable[..., Page],
        formulas: Callable[..., Mapping[str, sympy.Expr]] = lambda parameters=None: {},
    ) -> None:
        self.page, self.formulas = page, formulas

    def __call__(self, parameters: Any = None, rule: UpdateRule = GD, **options: Any) -> Page:
        """Page of the derivation, with a section on the requested update rule."""
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
        """Risk and recursion of a model file as expressions."""
        raise InvalidRequest("a paper is not a model file: its derivation has risk and recursion")

    def first_integrals(self, parameters: Any = None) -> Any:
        """Conserved quantities f(x) + g(y) of the flow of a model file."""
        raise InvalidRequest("a paper is not a model file: its conserved sums are lemmas")


def _with_rule(page: Page, rule: UpdateRule) -> Page:
    """Page of a paper, with the step of gradient descent replaced by that of another rule."""
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
    """A system: its problems, parameters and texts.

    Attributes
    ----------
    name : str
        Name in the code.
    presentation : Presentation
        Title, symbols, panels, events, and the model file of a user's model.
    claims : tuple of Claim
        The paper's statements; those of a user's model include their checks.
    derivation : Derivation
        Derived page, formulas, closure and conserved quantities.
    Parameters : type
        Frozen dataclass, validated on construction.
    ReducedPopulation, FullPopulation, FullEmpirical : type
        The problems, constructed from a ``Parameters``; the empirical one also from a number of
        samples and a seed.
    default_runs : mapping
        Command (``"run"``, ``"compare"``) -> its default run; ``"empirical"`` for the full
        empirical problem of both.
    expectations : tuple of str
        Methods by which the reduced problem computes its expectation, the default last.
    model : object
        The model, if the system was made from one.

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
        """Title of the paper or the model."""
        return self.presentation.title

    @property
    def notation(self) -> Notation:
        """Table of symbols."""
        return self.presentation.notation

    @property
    def origin(self) -> Origin | None:
        """Model file of a user's model; None for a built-in system."""
        return self.presentation.origin

    @property
    def reference(self) -> str:
        """Argument of `load_system`: the path of a user's model file, else a name."""
        if self.origin is None or not self.origin.path:
            return self.name
        # By name, so that a store of a library model can be read on every machine.
        return Path(self.origin.path).stem if self.in_library else self.origin.path

    @property
    def in_library(self) -> bool:
        """Whether the system is a library model of `dynamics.models`."""
        return self.origin is not None and in_library(self.origin.path)

    def overview(self) -> dict[str, Any]:
        """Entries of the text form: paper, parameters and events."""
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
        """Describe the system: model in a few equations, symbols, observables, events and claims.

        Parameters
        ----------
        parameters : Parameters, optional
            Constants of the description; default: those of the system.
        rule : UpdateRule or "step"
            Update rule, as for `dynamics.rule`, or that of the model file.
        by_array : bool
            Whether training has stages.

        Returns
        -------
        Description
            Prints as text, displays as HTML in a notebook; ``as_latex()``, ``document()``.
        """
        from dynamics.description import describe

        return describe(self, parameters, rule, by_array)

    def risk(self, parameters: Any = None) -> sympy.Expr:
        """Population risk as an expression in the scalars and real constants.

        Values computed by the law, `fixed` and `start` are numbers at the parameters, written as
        the simplest fraction that rounds to them. The scalars are those of the classes of equal
        entries.

        Parameters
        ----------
        parameters : Parameters, optional
            Default: those of the system.

        Raises
        ------
        InvalidRequest
            If the system is not a model file, its law can only be sampled, or its loss has an
            operation without an expression.

        Examples
        --------
        >>> import dynamics
        >>> dynamics.load_system("linear_icl").risk()
        72*s**2*u**2/31 - 4*s*u + 2
        """
        return self.derivation.expressions(parameters).risk()

    def recursion(self, parameters: Any = None) -> dict[str, sympy.Expr]:
        """Scalar -> expression of its value after one step of gradient descent.

        Parameters
        ----------
        parameters : Parameters, optional
            Default: those of the system.

        Raises
        ------
        InvalidRequest
            As for `risk`.
        """
        return self.derivation.expressions(parameters).recursion()

    def first_integrals(self, parameters: Any = None) -> tuple[tuple[sympy.Expr, float], ...]:
        """Conserved quantities f(x) + g(y) of the flow in two scalars, with their initial values.

        Parameters
        ----------
        parameters : Parameters, optional
            Default: those of the system.

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
        """Closure of the training of a model file, at its defaults or given parameters.

        Parameters
        ----------
        parameters : Parameters, optional
        samples, seed : int
            Number and seed of draws, for a law that can only be sampled.

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
        """Whether the system has a gradient flow."""
        return bool(self.ReducedPopulation.flows)

    @property
    def expectation_options(self) -> tuple[str, ...]:
        """The options among `EXPECTATION_OPTIONS` that its reduced problem takes."""
        accepted = signature(self.ReducedPopulation).parameters
        return tuple(name for name in EXPECTATION_OPTIONS if name in accepted)

    @property
    def sampling_options(self) -> tuple[str, ...]:
        """Sampling options that every problem takes, because samples replace the population."""
        return tuple(self.ReducedPopulation.sampling_options)

    @property
    def empirical_options(self) -> Mapping[str, str]:
        """Options of ``FullEmpirical`` other than samples and seed -> meaning."""
        return dict(self.FullEmpirical.options)

    @property
    def sampling_hint(self) -> str:
        """Flags that select a problem with samples and a seed, for messages."""
        sampled = " or --expectation sampled" if "sampled" in self.expectations else ""
        return f"--full empirical{sampled}"

    def problem(self, parameters: Any, full: str | None, options: Mapping[str, Any]) -> Any:
        """Construct the problem selected by options; options of other problems are ignored.

        Parameters
        ----------
        parameters : Parameters
        full : str or None
            ``"population"``, ``"empirical"``, or None for the reduced problem.
        options : mapping
            Name -> value, as on the command line.

        Raises
        ------
        InvalidRequest
            If an option or a combination of options is invalid.
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
