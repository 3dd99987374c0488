"""Functions of a model, traced by JAX in double precision: risk, gradient, observables.

A `Program` belongs to one model and one set of static constants (integers, words, booleans). Real
constants, weights, samples and untrained arrays are arguments of the compiled functions, so new
values reuse the compiled code. States are flat vectors of every trained entry; sums over the law
are computed in blocks that fit in memory. Double precision is set in a context, not globally.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from math import ceil, prod
from typing import Any, NamedTuple

import numpy as np

from dynamics.cache import compiled_program, jax
from dynamics.models.engine.tracing import namespace, refusals
from dynamics.validation import InvalidRequest
from theory.law import Law, ModelError
from theory.model import HELD_OUT, LEADING, Model, check_name

BLOCK_NUMBERS = 1 << 22
"""Approximate maximum count of numbers in memory for the losses of one block of samples."""
LEAST_BLOCK = 64


class Data(NamedTuple):
    """Arguments of a traced function after the state.

    `weights`, shape (N,), is empty if the risk is in closed form; the arrays of `samples` have N
    rows; `fixed` has the untrained arrays, `held_out` the weights and samples of the held-out law,
    `reals` the real constants.
    """

    weights: Any
    samples: Any
    fixed: Any
    held_out: Any
    reals: Any

    @property
    def of_held_out(self) -> Data:
        """Data in which the held-out law replaces the law."""
        weights, samples = self.held_out
        return self._replace(weights=weights, samples=samples, held_out=None)


class Program:
    """Traced functions of a model at static constants.

    `statics` has the constants that are not real numbers; `shapes` has the shape of each trained
    array, in the order of the flat state. `compiled_descent` returns risk and gradient,
    `compiled_slopes` the gradient of the loss of each sample; each is compiled at its first call.
    """

    def __init__(
        self, model: Model, statics: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]
    ) -> None:
        self.model, self.statics, self.shapes = model, dict(statics), dict(shapes)
        self.size = sum(prod(shape) for shape in shapes.values())
        self._observed: dict[str, tuple[str, ...]] = {}
        self.observed_names: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
        self._counted: dict[Any, int] = {}
        slopes = jax.vmap(jax.grad(self.sample_loss), (None, 0, None))
        self.compiled_slopes = compiled_program(slopes)
        descent = partial(self.value_and_gradient, lambda flat: flat)
        self.compiled_descent = compiled_program(descent)

    def theta(self, flat: Any, fixed: Any) -> dict[str, Any]:
        """Arrays by name: trained arrays cut from the flat state, and the untrained arrays."""
        result, first = dict(fixed), 0
        for name, shape in self.shapes.items():
            count = prod(shape)
            result[name] = flat[first : first + count].reshape(shape)
            first += count
        return result

    def call(self, role: str, theta: Any, sample: Any, data: Data) -> Any:
        """Call a function of the model, with a sample if it takes one; traced by JAX."""
        constants = {**self.statics, **data.reals}
        arguments = {name: constants[name] for name in self.model.arguments[role]}
        leading = (theta, sample) if "sample" in LEADING[role] else (theta,)
        with refusals(role, self.model.path):
            return getattr(self.model, role)(*leading, namespace(), **arguments)

    def sample_loss(self, flat: Any, sample: Any, data: Data) -> Any:
        """Loss of one sample, or the risk if it is in closed form; traced by JAX."""
        return self.call(self.expectation, self.theta(flat, data.fixed), sample, data)

    @property
    def has_law(self) -> bool:
        """Whether the risk is a sum over samples."""
        return self.model.risk is None

    @property
    def expectation(self) -> str:
        """Name of the function of the model that training minimizes: ``loss`` or ``risk``."""
        return "loss" if self.has_law else "risk"

    def block(self, data: Data) -> int:
        """Number of samples in one block of the sum over the law."""
        count = int(data.weights.shape[0])
        most = max(LEAST_BLOCK, BLOCK_NUMBERS // max(1, self.numbers_of_a_sample(data)))
        return ceil(count / ceil(count / most))

    def numbers_of_a_sample(self, data: Data) -> int:
        """Approximate count of numbers in memory for the loss of one more sample."""
        flat = jax.ShapeDtypeStruct((self.size,), data.weights.dtype)
        shapes = jax.tree.map(lambda part: (part.shape[1:], str(part.dtype)), data.samples)
        key = str(shapes), str(flat.dtype)

        def numbers(count: int) -> int:
            samples = jax.tree.map(
                lambda part: jax.ShapeDtypeStruct((count, *part.shape[1:]), part.dtype),
                data.samples,
            )
            losses = jax.vmap(self.sample_loss, (None, 0, None))
            program = jax.make_jaxpr(lambda f, s: losses(f, s, data))(flat, samples)
            return sum(prod(v.aval.shape) for eqn in program.eqns for v in eqn.outvars)

        if key not in self._counted:
            self._counted[key] = numbers(2) - numbers(1)
        return self._counted[key]

    def blocks(self, data: Data) -> tuple[Any, Any, int]:
        """Weights and samples, shape (blocks, samples per block, ...), padded; number of blocks."""
        count, size = int(data.weights.shape[0]), self.block(data)
        number = ceil(count / size)

        def cut(part: Any) -> Any:
            rest = number * size - count
            if rest:
                part = jax.numpy.concatenate([part, jax.numpy.repeat(part[-1:], rest, axis=0)])
            return part.reshape((number, size, *part.shape[1:]))

        weights = jax.numpy.concatenate(
            [data.weights, jax.numpy.zeros(number * size - count, data.weights.dtype)]
        )
        return weights.reshape(number, size), jax.tree.map(cut, data.samples), number

    def weighted_loss(self, flat: Any, block: tuple[Any, Any], data: Data) -> Any:
        """Sum of weights times losses over a pair (weights, samples); traced by JAX."""
        weights, samples = block
        losses = jax.vmap(lambda sample: self.sample_loss(flat, sample, data))(samples)
        return (weights * losses).sum()

    def _summed(self, of: Callable[[Any], Any], data: Data) -> Any:
        """Sum over blocks of a function of (weights, samples); traced by JAX."""
        weights, samples, number = self.blocks(data)
        if number == 1:
            return of((data.weights, data.samples))
        parts = jax.lax.map(of, (weights, samples))
        return jax.tree.map(lambda values: values.sum(), parts)

    def risk(self, flat: Any, data: Data) -> Any:
        """Risk at a flat state; traced by JAX."""
        if not self.has_law:
            return self.sample_loss(flat, None, data)
        return self._summed(lambda block: self.weighted_loss(flat, block, data), data)

    def value_and_gradient(self, embed: Any, state: Any, data: Data) -> tuple[Any, Any]:
        """Risk of the entries ``embed(state)``, and its gradient by the state; traced by JAX."""
        if not self.has_law or self.block(data) == data.weights.shape[0]:
            return jax.value_and_grad(lambda z: self.risk(embed(z), data))(state)

        def add(total: Any, block: Any) -> tuple[Any, None]:
            value, slope = jax.value_and_grad(lambda z: self.weighted_loss(embed(z), block, data))(
                state
            )
            return (total[0] + value, total[1] + slope), None

        zero = jax.numpy.zeros((), state.dtype), jax.numpy.zeros_like(state)
        return jax.lax.scan(add, zero, self.blocks(data)[:2])[0]

    def observables(self, flat: Any, data: Data) -> dict[str, Any]:
        """Name -> observable at a state, on the law and on the held-out law; traced by JAX."""
        result: dict[str, Any] = {}
        if self.model.observables is not None:
            result |= self.call("observables", self.theta(flat, data.fixed), None, data)
        result |= self.averages(flat, data)
        if data.held_out is not None:
            held_out = data.of_held_out
            found = {"risk": self.risk(flat, held_out), **self.averages(flat, held_out)}
            result |= {HELD_OUT + name: value for name, value in found.items()}
        return result

    def averages(self, flat: Any, data: Data) -> dict[str, Any]:
        """Means of ``observe`` over the law; traced by JAX."""
        if self.model.observe is None:
            return {}
        theta = self.theta(flat, data.fixed)

        def averaged(block: Any) -> Any:
            weights, samples = block
            each = jax.vmap(lambda s: self.call("observe", theta, s, data))(samples)
            sums = jax.tree.map(lambda values: (weights * values).sum(), each)
            return {"sums": sums, "weights": weights.sum()}

        # The division by the rounded sum of weights makes the mean of a constant exact.
        found = self._summed(averaged, data)
        return dict(jax.tree.map(lambda values: values / found["weights"], found["sums"]))

    def check(self, data: Data) -> tuple[str, ...]:
        """Trace every function of the model once, and return the sorted names of its observables.

        Raises InvalidRequest with the line that cannot be traced. Data of shapes met before are not
        traced again.
        """
        path = self.model.path
        # Shapes with the weak types of `data`: the first `compiled_descent` reuses this trace.
        abstract = jax.tree.map(
            lambda part: jax.ShapeDtypeStruct(part.shape, part.dtype, weak_type=part.weak_type),
            data,
        )
        flat = jax.ShapeDtypeStruct((self.size,), np.float64)
        key = str(abstract)
        if key in self._observed:
            return self._observed[key]
        names: dict[str, tuple[str, ...]] = {}
        first = self.expectation
        others: dict[str, Any] = {**self.statics, **data.reals, **self.shapes}
        with jax.enable_x64(True):
            for role in (first, "observables", "observe"):
                if getattr(self.model, role) is None:
                    continue
                with refusals(role, path):
                    shapes = self._traced_twice(role, flat, abstract)
                    if role == first:
                        _one_number(role, shapes)
                        continue
                    _numbers_by_name(role, shapes)
                    for name in shapes:
                        check_name(role, name, others)
                others |= shapes
                names[role] = tuple(sorted(shapes))
            with refusals(first, path):
                self.compiled_descent.eval_shape(flat, abstract)
        self.observed_names = names.get("observables", ()), names.get("observe", ())
        held_out = () if data.held_out is None else self.held_out_names
        self._observed[key] = tuple(sorted({*itertools.chain(*self.observed_names, held_out)}))
        return self._observed[key]

    @property
    def held_out_names(self) -> tuple[str, ...]:
        """Names of the observables on a held-out law: its risk, then its means of ``observe``."""
        return tuple(HELD_OUT + name for name in ("risk", *self.observed_names[1]))

    def _traced_twice(self, role: str, flat: Any, data: Any) -> Any:
        """Shapes of the result of a model's function; raise ModelError if two traces differ."""

        def traced() -> tuple[Any, Any]:
            values = partial(self.first_values, role)
            return jax.make_jaxpr(lambda *both: values(*both), return_shape=True)(flat, data)

        (first, shapes), (second, _) = traced(), traced()
        if traced_text(first) != traced_text(second):
            raise ModelError(
                f"{role} returns another result in a second call: it draws random numbers or "
                "counts its calls, but may use only its arguments"
            )
        return shapes

    def first_values(self, role: str, flat: Any, data: Data) -> Any:
        """Result of a model's function, at the first sample if it takes one; traced by JAX."""
        sample = jax.tree.map(lambda part: part[0], data.samples)
        values = self.call(role, self.theta(flat, data.fixed), sample, data)
        for leaf in jax.tree.leaves(values):
            plain = np.isscalar(leaf) and not isinstance(leaf, str)
            if not plain and not hasattr(leaf, "__array__"):
                raise ModelError(f"{role} returns {type(leaf).__name__}, which is not a number")
        return values


def traced_text(program: Any) -> str:
    """Text of a traced program without memory addresses, followed by hashes of its constants."""
    text = re.sub("0x[0-9a-f]+", "", str(program.jaxpr))
    return text + "".join(array_hash(constant) for constant in program.consts)


def array_hash(array: Any) -> str:
    """Hash of the shape, dtype and entries of an array."""
    plain = np.ascontiguousarray(array)
    return hashlib.sha256(plain.tobytes() + str((plain.shape, plain.dtype)).encode()).hexdigest()


def _description(value: Any) -> str:
    """A traced value in words, such as ``float64 of shape (2,)``, or the name of its type."""
    if not hasattr(value, "shape"):
        return type(value).__name__
    return str(value.dtype) + (f" of shape {value.shape}" if value.shape else "")


def _one_number(role: str, shape: Any) -> None:
    if getattr(shape, "shape", None) != () or np.dtype(shape.dtype).kind != "f":
        raise InvalidRequest(f"{role} returns {_description(shape)}; it must be one real number")


def _numbers_by_name(role: str, shapes: Any) -> None:
    if not isinstance(shapes, Mapping):
        raise InvalidRequest(f"{role} returns {_description(shapes)}; it must be a dict of numbers")
    for name, shape in shapes.items():
        if getattr(shape, "shape", None) != () or np.dtype(shape.dtype).kind not in "biuf":
            raise InvalidRequest(f"{role}: {name!r} is {_description(shape)}, not one real number")


@lru_cache(maxsize=64)
def program_of(
    model: Model,
    statics: tuple[tuple[str, Any], ...],
    shapes: tuple[tuple[str, tuple[int, ...]], ...],
) -> Program:
    """Traced functions of a model at static constants; equal arguments give the same object."""
    return Program(model, dict(statics), dict(shapes))


def data_of(
    law: Law | None,
    fixed: Mapping[str, Any],
    reals: Mapping[str, float],
    held_out: Law | None = None,
) -> Data:
    """Arguments of traced functions, made of laws and constants, as numpy arrays."""
    weights = np.zeros(0) if law is None else law.weights
    samples = () if law is None else law.samples
    held = None if held_out is None else (held_out.weights, held_out.samples)
    return Data(weights, samples, dict(fixed), held, dict(reals))


def on_device(tree: Any) -> Any:
    """Copy of a tree with its numbers and arrays as JAX arrays in double precision."""

    def moved(part: Any) -> Any:
        # `device_put` compiles nothing; `asarray` compiles a program for each shape.
        array = isinstance(part, np.ndarray) and part.dtype.kind in "biuf"
        return jax.device_put(part.copy()) if array else jax.numpy.asarray(part)

    with jax.enable_x64(True):
        return jax.tree.map(moved, tree)


def evaluated(function: Callable[..., Any], *arguments: Any) -> Any:
    """Result of a compiled function in double precision, as a tree of numpy arrays."""
    # Later calls of a compiled function skip the look-up of the cache directory.
    compiled = getattr(function, "_cache_size", int)() > 0
    with jax.enable_x64(True, kept=not compiled):
        return jax.tree.map(np.asarray, function(*arguments))
