"""A system: its parameters, problems, derivation, claims and default runs."""

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
"""Values of ``--full``: the full problem on the law of the data, and the full problem on
samples."""
EXPECTATION_OPTIONS = ("expectation", "tolerance")
"""Options of the reduced problem of a paper."""
SAMPLING_OPTIONS = ("samples", "seed")
"""Options of every problem on random samples."""


class Derivation:
    """Derivation of a system, symbolic or at given parameters; a call returns its page.

    The function `page` maps Parameters or None to the page of ``attdyn derive``
    (`theory.page.Page`); `formulas` maps Parameters or None to a mapping from observable to
    formula.
    """

    def __init__(
        self,
        page: Callable[..., Page],
        formulas: Callable[..., Mapping[str, sympy.Expr]] = lambda parameters=None: {},
    ) -> None:
        self.page, self.formulas = page, formulas

    def __call__(self, parameters: Any = None, rule: UpdateRule = GD, **options: Any) -> Page:
        """Page of the derivation, with a section on a rule other than gradient descent."""
        return _with_rule(self.page(parameters, **options), rule)

    def defining(
        self, parameters: Any = None, rule: UpdateRule = GD, by_array: bool = False
    ) -> Page:
        """Page of the model's defining equations and the step of an update rule."""
        page = self.page(parameters)
        return _with_rule(replace(page, sections=page.model), rule)

    def closure(self, parameters: Any = None, samples: Any = None, seed: Any = 0) -> Any:
        """Compute the closure of the training of a model file (`theory.closure.Closure`)."""
        raise InvalidRequest(
            "closure needs a model file; the reduction of a paper is derived by hand"
        )

    def expressions(self, parameters: Any = None) -> Any:
        """Risk and recursion of a model file as sympy expressions."""
        raise InvalidRequest("expressions need a model file; a paper has them in its derivation")

    def first_integrals(self, parameters: Any = None) -> Any:
        """Conserved quantities f(x) + g(y) of the flow of a model file in the scalars x and y."""
        raise InvalidRequest("first integrals need a model file; a paper has them as lemmas")


def _with_rule(page: Page, rule: UpdateRule) -> Page:
    """Append the section on `rule` to a paper's page, unless `rule` is gradient descent."""
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
        Name that `dynamics.load_system` accepts.
    presentation : Presentation
        Title, symbols, panels, events, and the model file of a user's model.
    claims : tuple of Claim
        Statements of the paper; claims of a model file contain their checks.
    derivation : Derivation
        Derived page, formulas, closure and conserved quantities.
    Parameters : type
        Frozen dataclass that validates its values on construction.
    ReducedPopulation, FullPopulation, FullEmpirical : type
        Problems made from a ``Parameters``; ``FullEmpirical`` also takes ``samples`` and ``seed``.
    default_runs : mapping
        Command (``"run"``, ``"compare"``, or ``"empirical"`` for full empirical runs) -> default.
    expectations : tuple of str
        Methods by which the reduced problem computes its expectation; the last is the default.
    model : object
        The `Model` from which the system was made, or None.

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
        """Title of the paper or the model, in one line."""
        return self.presentation.title

    @property
    def notation(self) -> Notation:
        """Table of the system's symbols."""
        return self.presentation.notation

    @property
    def origin(self) -> Origin | None:
        """Model file of a user's model, or None for a built-in system."""
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
        """Entries of the system's text form: paper, parameters and events."""
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
            Constants in the description; default: the system's default parameters.
        rule : UpdateRule or "step"
            Update rule from `dynamics.rule`; ``"step"`` is the rule that the model file defines.
        by_array : bool
            Whether training has stages, each of which trains some arrays.
        """
        from dynamics.description import describe

        return describe(self, parameters, rule, by_array)

    def risk(self, parameters: Any = None) -> sympy.Expr:
        """Population risk as an expression in the scalars of the closure and real constants.

        A number that the model's function `law`, `fixed` or `start` computes is written as the
        simplest fraction that rounds to it.

        Parameters
        ----------
        parameters : Parameters, optional
            Default: the system's default parameters.

        Raises
        ------
        InvalidRequest
            If the system is not a model file, its law can only be sampled, or sympy has no
            expression for an operation of its loss.

        Examples
        --------
        >>> import dynamics
        >>> dynamics.load_system("linear_icl").risk()
        72*s**2*u**2/31 - 4*s*u + 2
        """
        return self.derivation.expressions(parameters).risk()

    def recursion(self, parameters: Any = None) -> dict[str, sympy.Expr]:
        """Scalar -> expression of its value after one step of gradient descent.

        `parameters` default to those of the system. Raises InvalidRequest in the cases of `risk`.
        """
        return self.derivation.expressions(parameters).recursion()

    def first_integrals(self, parameters: Any = None) -> tuple[tuple[sympy.Expr, float], ...]:
        """Conserved quantities f(x) + g(y) of the flow in scalars x and y, with initial values.

        `parameters` default to those of the system. Raises InvalidRequest in the cases of `risk`.

        Examples
        --------
        >>> import dynamics
        >>> dynamics.load_system("markov_attention").first_integrals()[0][0]
        e**2 - w**2 - log(Abs(w))*sign(w)
        """
        return self.derivation.first_integrals(parameters)

    def closure(self, parameters: Any = None, samples: Any = None, seed: Any = 0) -> Any:
        """Compute the closure of the training of a model file (`theory.closure.Closure`).

        For a law that can only be sampled, `samples` and `seed` select the draws. Raises
        InvalidRequest if the system is not a model file.
        """
        return self.derivation.closure(parameters, samples, seed)

    @property
    def digests(self) -> Mapping[str, str]:
        """Part of the model (``"law"``, ...) -> short hash; empty for a built-in system."""
        return {} if self.origin is None else self.origin.digests

    @property
    def flows(self) -> bool:
        """Whether the system's problems have a gradient flow."""
        return bool(self.ReducedPopulation.flows)

    @property
    def expectation_options(self) -> tuple[str, ...]:
        """Options in `EXPECTATION_OPTIONS` that the system's reduced problem takes."""
        accepted = signature(self.ReducedPopulation).parameters
        return tuple(name for name in EXPECTATION_OPTIONS if name in accepted)

    @property
    def sampling_options(self) -> tuple[str, ...]:
        """Sampling options of every problem if the law can only be sampled, else empty."""
        return tuple(self.ReducedPopulation.sampling_options)

    @property
    def empirical_options(self) -> Mapping[str, str]:
        """Option of ``FullEmpirical`` except samples and seed -> its meaning."""
        return dict(self.FullEmpirical.options)

    @property
    def sampling_hint(self) -> str:
        """Text of the flags that select a problem with samples and a seed, for messages."""
        sampled = " or --expectation sampled" if "sampled" in self.expectations else ""
        return f"--full empirical{sampled}"

    def problem(self, parameters: Any, full: str | None, options: Mapping[str, Any]) -> Any:
        """Construct the problem for a value of ``--full``; without it, the reduced problem.

        Only the options of the constructed problem, named as on the command line, are used. Raises
        InvalidRequest for an invalid option or combination of options.
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
