r"""Update rules: the change of each entry in a step of training, from its gradient.

A rule is a function of one entry: it maps gradient, memory, entry, step and learning rate to the
change of the entry and a new memory. Memory starts at 0, and steps count from 1. Names, defaults
and formulas are those of optax. Equal entries with equal gradients stay equal under any rule;
opposite entries with opposite gradients stay opposite under an odd rule. A linear space that
contains all gradients is conserved only by rules that are linear in them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from dataclasses import field as of_class
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from theory.law import ModelError
from theory.program import Ids, NoProgram, Program, Values, build, field, read
from theory.program.identities import Identities
from theory.summary import summarized

Step = Callable[..., Any]
ARGUMENTS = ("gradient", "memory", "entry", "step", "eta", "xp")
INPUTS = ("gradient", "entry", "step", "eta", "norm")
"""Leading inputs of the program of a rule; memory and constants follow."""
MOST_MEMORY = 4
"""Maximum count of numbers that a rule stores for each entry; above it, a step is refused."""


@summarized
@dataclass(frozen=True)
class UpdateRule:
    """Update rule of training.

    `function` maps (gradient, memory, entry, step, eta, xp, constants by name) to (change, memory),
    where memory is one number or a tuple of numbers. `constants` holds values by name; a boolean
    selects a formula. `memory` is the count of numbers stored for each entry. `spaces` says whether
    the rule keeps linear spaces: a change is then a linear map of all gradients so far, and this
    map is the same for every entry. Before the rule, `weight_decay` times each entry is added to
    the gradient of the entry.
    """

    name: str
    function: Step
    constants: Mapping[str, float] = of_class(default_factory=dict)
    memory: int = 0
    spaces: bool = False
    weight_decay: float = 0.0

    def overview(self) -> dict[str, Any]:
        """Name and constants of the rule."""
        return {"name": self.name, **self.options}

    @property
    def plain(self) -> bool:
        """Whether the rule is gradient descent without weight decay."""
        return self.function is gd and not self.weight_decay

    @property
    def decays(self) -> bool:
        """Whether weight decay moves entries that have no gradient."""
        return bool(self.weight_decay or self.constants.get("weight_decay"))

    @property
    def with_norm(self) -> bool:
        """Whether the rule uses the norm of the gradient with respect to all entries."""
        return "norm" in inspect.signature(self.function).parameters

    @property
    def options(self) -> dict[str, float]:
        """Constants that a user can choose, with their values."""
        return {"weight_decay": self.weight_decay, **self.constants}

    @property
    def numbers(self) -> dict[str, float]:
        """Constants in the formulas, without booleans, which select a formula."""
        return {n: float(v) for n, v in self.constants.items() if not isinstance(v, bool)}

    @property
    def key(self) -> tuple[Any, ...]:
        """Key of the formulas of the rule, independent of its numbers."""
        chosen = tuple((n, v) for n, v in self.constants.items() if isinstance(v, bool))
        return self.function, chosen, tuple(self.numbers), self.memory

    def changed(self, **constants: float) -> UpdateRule:
        """Copy of the rule with other constants, or ModelError for an unknown constant."""
        for name in constants.keys() - self.options.keys():
            known = ", ".join(self.options)
            raise ModelError(f"the rule {self.name} has no constant {name!r}; it has {known}")
        own = {name: constants.get(name, value) for name, value in self.constants.items()}
        coupled = 0.0
        if "weight_decay" not in own:
            coupled = constants.get("weight_decay", self.weight_decay)
        return replace(self, constants=own, weight_decay=coupled)

    def apply(
        self, gradient: Any, memory: Any, entry: Any, step: Any, eta: Any, xp: Any,
        norm: Any = None, numbers: Mapping[str, Any] | None = None,
    ) -> tuple[Any, list[Any]]:  # fmt: skip
        """Change of entries and their new memory, from gradients that include weight decay.

        Steps count from 1. `xp` is the array namespace, numpy or JAX; `norm` is the norm of the
        gradient with respect to all entries. Values in `numbers`, such as traced ones, replace the
        attribute `numbers`.
        """
        known = {**self.constants, **(self.numbers if numbers is None else numbers)}
        if self.with_norm:
            known["norm"] = norm
        kept = _structured(memory)
        change, kept = self.function(gradient, kept, entry, step, eta, xp, **known)
        listed = list(kept) if isinstance(kept, (tuple, list)) else [kept]
        if self.memory and len(listed) != self.memory:
            raise TypeError(f"memory has {self.memory} numbers, but {len(listed)} are returned")
        return change, listed[: self.memory]

    @property
    def program(self) -> Program:
        """Program of the rule, from `INPUTS`, memory and `numbers` to ``change`` and ``memory``."""
        return _traced(self.key).program

    @property
    def odd(self) -> bool:
        """Whether opposite entries with opposite gradients always get opposite changes."""
        return _traced(self.key).odd

    def expressions(self, symbols: Mapping[str, Any]) -> tuple[list[Any], Any]:
        """New memory, and the change in terms of the new memory, as SymPy expressions.

        `symbols` gives the symbol of each input of `program`, and of the new memory as ``new_1``,
        ...
        """
        from theory.program.symbolic import expressions

        traced = _traced(self.key)
        change, *memory = traced.outputs.tolist()
        given = {k: symbols[traced.values.names[k]] for k in traced.inputs.tolist()}
        kept = expressions(traced.values, memory, given)
        new = {value: symbols[f"new_{k + 1}"] for k, value in enumerate(memory)}
        return kept, expressions(traced.values, [change], given | new)[0]


def _structured(memory: Any) -> Any:
    """Memory in the format of a rule: a number, or a tuple of several numbers."""
    return (memory[0] if len(memory) else 0.0) if len(memory) < 2 else tuple(memory)


class Traced(NamedTuple):
    """Table of values of a traced rule; its inputs, outputs (change, new memory) and program.

    `odd` says whether the change is odd in gradient and entry, with each memory odd or even.
    """

    values: Values
    inputs: Ids
    outputs: Ids
    program: Program
    odd: bool


@lru_cache(maxsize=64)
def _traced(key: tuple[Any, ...]) -> Traced:
    """Trace a rule for one entry by JAX, into a table whose inputs include the rule's constants."""
    import jax

    function, chosen, names, memory = key
    rule = UpdateRule("", function, dict(chosen) | dict.fromkeys(names, 0.5), memory)

    def of_numbers(gradient: Any, entry: Any, step: Any, eta: Any, norm: Any, *others: Any) -> Any:
        numbers = dict(zip(names, others[memory:], strict=True))
        arguments = gradient, others[:memory], entry, step, eta, jax.numpy, norm
        change, kept = rule.apply(*arguments, numbers=numbers)
        return [jax.numpy.asarray(each, float) for each in (change, *kept)]

    inputs = [*INPUTS, *(f"memory_{k + 1}" for k in range(memory)), *names]
    values = Values()
    with jax.enable_x64(True):
        made = jax.make_jaxpr(of_numbers)(*([1.0] * len(inputs)))
    ids = values.inputs(inputs)
    outputs = np.array([int(each) for each in read(values, made, [np.asarray(k) for k in ids])])
    program = build(values, ids.tolist(), {"change": outputs[:1], "memory": outputs[1:]})
    return Traced(values, ids, outputs, program, _is_odd(values, ids, outputs, memory))


def _is_odd(values: Values, ids: Ids, outputs: Ids, memory: int) -> bool:
    """Whether the change is exactly odd in gradient and entry, with each memory odd or even."""
    identities, point = Identities(values, outputs), values.triples[ids]
    turned_inputs = {INPUTS.index("gradient"), INPUTS.index("entry")}
    found = identities.at(ids, point[:, None])[:, 0]
    for parities in product((True, False), repeat=memory):
        odd = turned_inputs | {len(INPUTS) + k for k in range(memory) if parities[k]}
        mask = np.isin(np.arange(len(ids)), list(odd))[:, None]
        other = np.where(mask, field.negative(point), point)
        turned = identities.at(ids, other[:, None])[:, 0]
        signs = np.array([True, *parities])[:, None]
        if (turned == np.where(signs, field.negative(found), found)).all():
            return True
    return False


def gd(gradient: Any, memory: Any, entry: Any, step: Any, eta: Any, xp: Any) -> Any:
    """Gradient descent: change -eta times the gradient."""
    return -(eta * gradient), memory


def _momentum(
    gradient: Any, memory: Any, entry: Any, step: Any, eta: Any, xp: Any, momentum: Any,
    nesterov: bool,
) -> Any:  # fmt: skip
    """Heavy-ball momentum, or Nesterov momentum with the gradient one step ahead."""
    memory = gradient + momentum * memory
    return -(eta * (gradient + momentum * memory if nesterov else memory)), memory


def _sign(gradient: Any, memory: Any, entry: Any, step: Any, eta: Any, xp: Any) -> Any:
    return -(eta * xp.sign(gradient)), memory


def _adam(
    gradient: Any, memory: Any, entry: Any, step: Any, eta: Any, xp: Any, b1: Any, b2: Any, eps: Any
) -> Any:
    """Adam: means of the gradient and of its square, both corrected for their start at 0."""
    first, second = memory
    first = (1 - b1) * gradient + b1 * first
    second = (1 - b2) * gradient**2 + b2 * second
    mean, square = first / (1 - b1**step), second / (1 - b2**step)
    return -(eta * (mean / (xp.sqrt(square) + eps))), (first, second)


def _adamw(
    gradient: Any, memory: Any, entry: Any, step: Any, eta: Any, xp: Any, b1: Any, b2: Any,
    eps: Any, weight_decay: Any,
) -> Any:  # fmt: skip
    """Adam with weight decay added to the change; the means are those of the gradient alone."""
    change, memory = _adam(gradient, memory, entry, step, eta, xp, b1, b2, eps)
    return change - eta * weight_decay * entry, memory


def _normalized(
    gradient: Any, memory: Any, entry: Any, step: Any, eta: Any, xp: Any, eps: Any, norm: Any
) -> Any:
    """Step of length eta against the gradient with respect to all entries."""
    return -(eta * (gradient / (norm + eps))), memory


ADAM = {"b1": 0.9, "b2": 0.999, "eps": 1e-8}
RULES = {
    rule.name: rule
    for rule in (
        UpdateRule("gd", gd, spaces=True),
        UpdateRule("momentum", _momentum, {"momentum": 0.9, "nesterov": False}, 1, True),
        UpdateRule("sign", _sign),
        UpdateRule("adam", _adam, ADAM, 2),
        UpdateRule("adamw", _adamw, {**ADAM, "weight_decay": 1e-4}, 2),
        UpdateRule("normalized", _normalized, {"eps": 1e-6}, spaces=True),
    )
}
"""Update rules by name; ``momentum`` with ``nesterov=True`` is Nesterov momentum."""
GD = RULES["gd"]
CONSTANTS = tuple(dict.fromkeys(name for rule in RULES.values() for name in rule.options))
OPTIONS = ("rule", "schedule", "stages", *CONSTANTS, *(f"rule.{name}" for name in CONSTANTS))
"""Settings of rules in commands and sweeps; ``rule.b1`` is unambiguous if a model has a constant
``b1``."""


def own_rule(function: Step, constants: Mapping[str, float] | None = None) -> UpdateRule:
    """Update rule of a user's function ``step(gradient, memory, entry, step, eta, xp, ...)``.

    The function returns (change, memory) of one entry. Arguments after `xp` are constants, with
    values in `constants` or defaults. Raises ModelError if the function takes other arguments,
    returns something other than a change and a memory, mixes entries, or cannot be traced.
    """
    parameters = list(inspect.signature(function).parameters.values())
    if tuple(p.name for p in parameters[: len(ARGUMENTS)]) != ARGUMENTS:
        raise ModelError(f"step must begin: def step({', '.join(ARGUMENTS)})")
    own = {}
    for parameter in parameters[len(ARGUMENTS) :]:
        known = (constants or {}).get(parameter.name, parameter.default)
        if known is parameter.empty:
            raise ModelError(f"step has the argument {parameter.name!r}, which is not a constant")
        own[parameter.name] = known
    failure: Exception | None = None
    for memory in range(1, MOST_MEMORY + 1):
        rule = UpdateRule(function.__name__, function, own, memory)
        try:
            rule.program  # noqa: B018
        except Exception as error:  # any error of the user's function
            failure = failure or error
            if isinstance(error, NoProgram):
                break
        else:
            return rule
    raise ModelError(f"step has no program: {failure}") from failure
