r"""The functions of a model, traced by JAX in double precision: risk, gradient, what is observed.

A `Program` belongs to one model and one set of static constants (whole numbers, words, truth
values). Real constants, weights, samples and untrained arrays are arguments, so that another value
of them is no new compilation. States are flat vectors of every trained entry; sums over the law are
taken in blocks that fit in memory.

JAX's switch for double precision is a context here, never the global flag of the process.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache, partial
from math import ceil, prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynamics.models.engine.tracing import namespace, refusals, require_jax
from dynamics.validation import InvalidRequest
from theory.law import Law, ModelError
from theory.model import Model, check_name

FloatArray = NDArray[np.float64]

BLOCK_NUMBERS = 1 << 22
"""Numbers that the samples of one block may need at a time."""
LEAST_BLOCK = 64


class Data(NamedTuple):
    """What a traced function needs beside the state.

    Attributes
    ----------
    weights : float array, shape (N,)
        Empty where the risk is in closed form.
    samples : nested arrays, each of shape (N, ...)
    fixed : dict of arrays
        Untrained arrays.
    reals : dict of float
        Real constants.
    """

    weights: Any
    samples: Any
    fixed: Any
    reals: Any


def split_constants(constants: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, float]]:
    """Static constants, and real ones."""
    reals = {name: value for name, value in constants.items() if isinstance(value, float)}
    return {n: v for n, v in constants.items() if n not in reals}, reals


class Program:
    """The traced functions of a model.

    Parameters
    ----------
    model : Model
    statics : mapping
        Constants that are no real numbers.
    shapes : mapping
        Trained array -> shape, in the order of the flat state.
    """

    def __init__(
        self, model: Model, statics: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]
    ) -> None:
        self.model, self.statics, self.shapes = model, dict(statics), dict(shapes)
        self.size = sum(prod(shape) for shape in shapes.values())
        self._checked: set[str] = set()

    def theta(self, flat: Any, fixed: Any) -> dict[str, Any]:
        """Every array by its name, trained and fixed."""
        result, first = dict(fixed), 0
        for name, shape in self.shapes.items():
            count = prod(shape)
            result[name] = flat[first : first + count].reshape(shape)
            first += count
        return result

    def _constants(self, role: str, data: Data) -> dict[str, Any]:
        constants = {**self.statics, **data.reals}
        return {name: constants[name] for name in self.model._arguments[role]}

    def sample_loss(self, flat: Any, sample: Any, data: Data) -> Any:
        """The loss of one sample."""
        assert self.model.loss is not None
        theta = self.theta(flat, data.fixed)
        return self.model.loss(theta, sample, namespace(), **self._constants("loss", data))

    def closed_risk(self, flat: Any, data: Data) -> Any:
        """The risk that the model gives in closed form; traced."""
        assert self.model.risk is not None
        theta = self.theta(flat, data.fixed)
        return self.model.risk(theta, namespace(), **self._constants("risk", data))

    @property
    def has_law(self) -> bool:
        """Whether the risk is a sum over samples."""
        return self.model.risk is None

    def block(self, data: Data) -> int:
        """Samples of a block."""
        count = int(data.weights.shape[0])
        most = max(LEAST_BLOCK, BLOCK_NUMBERS // max(1, self.numbers_of_a_sample(data)))
        return ceil(count / ceil(count / most))

    def numbers_of_a_sample(self, data: Data) -> int:
        """Numbers that the loss of one sample needs at a time, roughly."""
        import jax

        one = jax.tree.map(lambda part: jax.ShapeDtypeStruct(part.shape[1:], part.dtype),
                           data.samples)  # fmt: skip
        flat = jax.ShapeDtypeStruct((self.size,), data.weights.dtype)
        key = (tuple((s.shape, str(s.dtype)) for s in jax.tree.leaves(one)), str(flat.dtype))
        if key not in self._counted:
            program = jax.make_jaxpr(lambda f, s: self.sample_loss(f, s, data))(flat, one)
            shapes = [v.aval.shape for eqn in program.eqns for v in eqn.outvars]
            self._counted[key] = sum(prod(shape) for shape in shapes)
        return self._counted[key]

    @cached_property
    def _counted(self) -> dict[Any, int]:
        return {}

    def blocks(self, data: Data) -> tuple[Any, Any, int]:
        """Weights and samples cut into blocks, (blocks, M, ...), the last filled with weight 0."""
        import jax
        import jax.numpy as jnp

        count, size = int(data.weights.shape[0]), self.block(data)
        number = ceil(count / size)

        def cut(part: Any) -> Any:
            rest = number * size - count
            if rest:
                part = jnp.concatenate([part, jnp.repeat(part[-1:], rest, axis=0)])
            return part.reshape((number, size, *part.shape[1:]))

        weights = jnp.concatenate(
            [data.weights, jnp.zeros(number * size - count, data.weights.dtype)]
        )
        return weights.reshape(number, size), jax.tree.map(cut, data.samples), number

    def weighted_loss(self, flat: Any, weights: Any, samples: Any, data: Data) -> Any:
        """Sum of weights times losses of samples; traced."""
        import jax

        losses = jax.vmap(lambda sample: self.sample_loss(flat, sample, data))(samples)
        return (weights * losses).sum()

    def risk(self, flat: Any, data: Data) -> Any:
        """The risk at a flat state; traced."""
        import jax

        if not self.has_law:
            return self.closed_risk(flat, data)
        weights, samples, number = self.blocks(data)
        if number == 1:
            return self.weighted_loss(flat, data.weights, data.samples, data)
        parts = jax.lax.map(
            lambda wx: self.weighted_loss(flat, wx[0], wx[1], data), (weights, samples)
        )
        return parts.sum()

    def value_and_gradient(self, embed: Any, state: Any, data: Data) -> tuple[Any, Any]:
        """Risk of the entries ``embed(state)``, and its gradient by the state; traced."""
        import jax

        if not self.has_law:
            return jax.value_and_grad(lambda z: self.closed_risk(embed(z), data))(state)
        weights, samples, number = self.blocks(data)
        if number == 1:
            return jax.value_and_grad(
                lambda z: self.weighted_loss(embed(z), data.weights, data.samples, data)
            )(state)

        def add(total: Any, block: Any) -> tuple[Any, None]:
            value, slope = jax.value_and_grad(
                lambda z: self.weighted_loss(embed(z), block[0], block[1], data)
            )(state)
            return (total[0] + value, total[1] + slope), None

        zero = jax.numpy.zeros((), state.dtype), jax.numpy.zeros_like(state)
        return jax.lax.scan(add, zero, (weights, samples))[0]

    def observed(self, flat: Any, data: Data) -> dict[str, Any]:
        """Everything the model observes at a state, by name; traced."""
        import jax

        result: dict[str, Any] = {}
        theta = self.theta(flat, data.fixed)
        model, xp = self.model, namespace()
        if model.observables is not None:
            result |= model.observables(theta, xp, **self._constants("observables", data))
        if model.observe is not None:
            arguments = self._constants("observe", data)

            def averaged(block: Any) -> Any:
                weights, samples = block
                each = jax.vmap(lambda s: model.observe(theta, s, xp, **arguments))(samples)  # type: ignore[misc]
                return jax.tree.map(lambda values: (weights * values).sum(), each)

            weights, samples, number = self.blocks(data)
            if number == 1:
                result |= averaged((data.weights, data.samples))
            else:
                parts = jax.lax.map(averaged, (weights, samples))
                result |= jax.tree.map(lambda values: values.sum(), parts)
        return result

    def signatures(self, flat: Any, direction: Any, data: Data) -> Any:
        """Numbers of each sample that equal samples share, shape (numbers, N); traced.

        Its loss, the derivative of this along a direction, and what ``observe`` says of it.
        """
        import jax
        import jax.numpy as jnp

        model, xp = self.model, namespace()

        def one(sample: Any) -> Any:
            loss, along = jax.jvp(
                lambda f: self.sample_loss(f, sample, data), (flat,), (direction,)
            )
            values = [loss, along]
            if model.observe is not None:
                theta = self.theta(flat, data.fixed)
                values_of_sample = model.observe(
                    theta, sample, xp, **self._constants("observe", data)
                )
                values += [jnp.asarray(v, loss.dtype) for v in values_of_sample.values()]
            return jnp.stack(values)

        _, samples, number = self.blocks(data)
        count = data.weights.shape[0]
        if number == 1:
            return jax.vmap(one)(data.samples).T
        parts = jax.lax.map(jax.vmap(one), samples)
        return parts.reshape(-1, parts.shape[-1])[:count].T

    # Compiled doors; double precision unless said otherwise.

    @cached_property
    def compiled_gradient(self) -> Any:
        """``(flat, data) -> gradient``, compiled on first call."""
        import jax

        return jax.jit(lambda flat, data: self.value_and_gradient(lambda z: z, flat, data)[1])

    @cached_property
    def compiled_risk(self) -> Any:
        """``(flat, data) -> risk``, compiled on first call."""
        import jax

        return jax.jit(self.risk)

    @cached_property
    def compiled_signatures(self) -> Any:
        """``(flat, direction, data) -> numbers of each sample``, compiled on first call."""
        import jax

        return jax.jit(self.signatures)

    def check(self, data: Data) -> None:
        """Trace every function once, so that what cannot be traced is refused with its line.

        Data of the same shapes are traced alike, and only the first of them is looked at.

        Raises
        ------
        InvalidRequest
        """
        jax = require_jax()
        path = self.model.path
        abstract = jax.tree.map(lambda part: jax.ShapeDtypeStruct(part.shape, part.dtype), data)
        flat = jax.ShapeDtypeStruct((self.size,), np.float64)
        key = str(abstract)
        if key in self._checked:
            return
        first = "loss" if self.has_law else "risk"
        others: dict[str, Any] = {**self.statics, **data.reals, **self.shapes}
        with jax.enable_x64(True):
            with refusals(first, path):
                _one_number(first, jax.eval_shape(self.first_value, flat, abstract))
            for role in ("observables", "observe"):
                if getattr(self.model, role) is not None:
                    with refusals(role, path):
                        shapes = jax.eval_shape(partial(self._observe, role), flat, abstract)
                        _numbers_by_name(role, shapes)
                        for name in shapes:
                            check_name(role, name, others)
                    others |= shapes
            with refusals(first, path):
                jax.eval_shape(
                    lambda f, d: self.value_and_gradient(lambda z: z, f, d)[1], flat, abstract
                )
        self._checked.add(key)

    def first_value(self, flat: Any, data: Data) -> Any:
        """The loss of the first sample, or the risk; traced."""
        import jax

        if not self.has_law:
            return _arrays_only("risk", self.closed_risk(flat, data))
        first = jax.tree.map(lambda part: part[0], data.samples)
        return _arrays_only("loss", self.sample_loss(flat, first, data))

    def _observe(self, role: str, flat: Any, data: Data) -> Any:
        """What ``observables``, or ``observe`` of the first sample, gives; traced."""
        import jax

        theta, xp, arguments = (
            self.theta(flat, data.fixed),
            namespace(),
            self._constants(role, data),
        )
        if role == "observables":
            return _arrays_only(role, self.model.observables(theta, xp, **arguments))  # type: ignore[misc]
        sample = jax.tree.map(lambda part: part[0], data.samples)
        return _arrays_only(role, self.model.observe(theta, sample, xp, **arguments))  # type: ignore[misc]


def _description(value: Any) -> str:
    """A traced value as words: ``float64 of shape (2,)``, or its type."""
    if not hasattr(value, "shape"):
        return type(value).__name__
    return str(value.dtype) + (f" of shape {value.shape}" if value.shape else "")


def _arrays_only(role: str, values: Any) -> Any:
    """What a function gives, where all of it can be numbers."""
    import jax

    for leaf in jax.tree.leaves(values):
        plain = np.isscalar(leaf) and not isinstance(leaf, str)
        if not plain and not hasattr(leaf, "__array__"):
            raise ModelError(f"{role} gives {type(leaf).__name__}, which is no number")
    return values


def _one_number(role: str, shape: Any) -> None:
    if getattr(shape, "shape", None) != () or np.dtype(shape.dtype).kind != "f":
        raise InvalidRequest(f"{role} gives {_description(shape)}; {role} can give one real number")


def _numbers_by_name(role: str, shapes: Any) -> None:
    if not isinstance(shapes, Mapping):
        raise InvalidRequest(
            f"{role} gives {_description(shapes)}; {role} can give a dict of numbers"
        )
    for name, shape in shapes.items():
        if getattr(shape, "shape", None) != () or np.dtype(shape.dtype).kind not in "biuf":
            raise InvalidRequest(f"{role}: {name!r} is {_description(shape)}, not one real number")


@lru_cache(maxsize=64)
def _program(model: Any, statics: tuple[Any, ...], shapes: tuple[Any, ...]) -> Program:
    return Program(model.model, dict(statics), dict(shapes))


class _ById:
    """A model as a key: two are equal when they are the same object."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def __hash__(self) -> int:
        return id(self.model)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ById) and other.model is self.model


def program_of(
    model: Model, statics: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]
) -> Program:
    """The program of a model at static constants; the same object for the same ones.

    Parameters
    ----------
    model : Model
    statics : mapping
        Constants that are no real numbers.
    shapes : mapping
        Trained array -> shape.
    """
    return _program(_ById(model), tuple(statics.items()), tuple(shapes.items()))


def device_data(law: Law | None, fixed: Mapping[str, Any], reals: Mapping[str, float]) -> Data:
    """Data as arrays of JAX in double precision.

    Parameters
    ----------
    law : Law or None
    fixed : mapping
        Untrained arrays.
    reals : mapping
        Real constants.
    """
    jax = require_jax()
    with jax.enable_x64(True):
        weights = np.zeros(0) if law is None else law.weights
        samples = () if law is None else law.samples
        return jax.tree.map(jax.numpy.asarray, Data(weights, samples, dict(fixed), dict(reals)))
