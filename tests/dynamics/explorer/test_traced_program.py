"""Traced programs in JavaScript give what the compiled programs give."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from node import needs_node, run_script

from dynamics.explorer import traced_program
from dynamics.explorer.printing import asset
from dynamics.explorer.tables import Tables
from dynamics.explorer.traced_program import javascript
from theory.tracing import UntracedPrimitive

X = np.array([[0.3, -1.2, 2.0], [0.7, 1.1, -0.4]])
CUBE = np.linspace(-2.0, 2.0, 24).reshape(2, 3, 4)
V = np.array([1.5, -0.25, 0.75, -2.0, 0.5])
W = np.array([[0, 2], [1, 1], [2, 0]])
BODY = """
  const tables = given.tables.map((values) => Float64Array.from(values));
  return given.programs.map(({ inputs, called, size }, k) => {
    const arrays = inputs.map((values) => Float64Array.from(values));
    const run = PROGRAMS[k](tables, ...arrays.slice(called)), out = new Float64Array(size);
    run(...arrays.slice(0, called), out.fill(7));
    run(...arrays.slice(0, called), out.fill(9));
    return out;
  });
"""


def flat(values):
    return np.concatenate(
        [np.asarray(leaf, dtype=float).reshape(-1) for leaf in jax.tree.leaves(values)]
    )


def ran(cases):
    """What node computes of (function, arguments, called) and what JAX does."""
    tables, texts, programs = Tables(), [], []
    together = jax.jit(lambda given: [f(*some) for (f, *_), some in zip(cases, given, strict=True)])
    with jax.enable_x64(True):  # one compilation of all is quicker
        expected = list(map(flat, together([arguments for _, arguments, _ in cases])))
        for function, arguments, called in cases:
            texts.append(javascript(jax.make_jaxpr(function)(*arguments), called, tables))
    for (_, arguments, called), wanted in zip(cases, expected, strict=True):
        inputs = [flat(argument).tolist() for argument in arguments]
        programs.append({"inputs": inputs, "called": called, "size": wanted.size})
    script = asset("special.js") + f"\nconst PROGRAMS = [{', '.join(texts)}];"
    given = {"tables": [table.tolist() for table in tables.arrays], "programs": programs}
    results = run_script(script, BODY, json.loads(json.dumps(given)))
    return [np.array(result, dtype=float) for result in results], expected


def same(result, wanted, tolerance=1e-13):
    kinds = np.isnan(wanted), np.isposinf(wanted), np.isneginf(wanted)
    found = np.isnan(result), np.isposinf(result), np.isneginf(result)
    finite = np.isfinite(wanted)
    size = np.abs(wanted[finite]).max(initial=1e-300)
    return (
        result.shape == wanted.shape
        and all(map(np.array_equal, kinds, found))
        and np.abs(result[finite] - wanted[finite]).max(initial=0.0) <= tolerance * size
    )


def power_iteration(x):
    return lax.while_loop(
        lambda state: state[1] > 1e-9,
        lambda state: (
            jnp.tanh(state[0]) * state[0],
            jnp.abs(jnp.tanh(state[0]) * state[0] - state[0]).max(),
        ),
        (x, 1.0),
    )


def fibonacci(x, reverse):
    def turn(state, entry):
        return (state[1], state[0] + entry), {"sum": state[0] * state[1], "seen": entry * 2}

    return lax.scan(turn, (x[0], x[1]), x, reverse=reverse)


def by_gather(x, w):
    return x[:, w], x[w[:, 0] % 2, w[:, 1]], jnp.take(x, w, axis=1, mode="clip")


CASES = {
    "arithmetic": (lambda x: [x + 2, 2 - x, x * x / 3, -x, x**3, x**-2, abs(x), x % 0.7], X),
    "order of operations": (lambda x: 1.0 / (x * (x - 3.0)) / (x / (2.0 * x)) - (x - (x - 1)), X),
    "powers": (lambda x: [abs(x) ** 0.3, x**5, x**0, (x + 1) ** 2, x**100, 2.0**x], X),
    "elementary": (lambda x: [jnp.sin(x), jnp.cos(x), jnp.tan(x), jnp.tanh(x), jnp.exp(x)], X),
    "logarithms": (lambda x: [jnp.log(x), jnp.log1p(x), jnp.expm1(x), jnp.cbrt(x), jnp.exp2(x)], X),
    "inverses": (lambda x: [f(x / 3) for f in (jnp.arcsin, jnp.arccos, jnp.arctan)], X),
    "hyperbolic": (lambda x: [jnp.sinh(x), jnp.cosh(x), jnp.hypot(x, 2), jnp.arctan2(x, 2.0)], X),
    "errors": (lambda x: [lax.erf(x), lax.erfc(x), lax.erf(9 * x), lax.erfc(4 * x)], X),
    "neural": (lambda x: [jax.nn.softplus(9 * x), jax.nn.gelu(x), jax.nn.sigmoid(x)], X),
    "gelu": (lambda x: [jax.nn.gelu(x, approximate=False), jax.nn.elu(x), jax.nn.relu(x)], X),
    "rounding": (lambda x: [jnp.floor(x), jnp.ceil(x), jnp.round(5 * x), jnp.sign(x)], X),
    "halves": (lambda x: [jnp.round(x), lax.round(x)], np.array([0.5, 1.5, 2.5, -0.5, -1.5])),
    "comparisons": (lambda x: [x > 0, x == 2.0, (x < 1) & (x > 0), ~(x < 1) | (x != 0.3)], X),
    "selection": (lambda x: [jnp.where(x > 0, x, -1.0), jnp.clip(x, -1, 1)], X),
    "cases": (lambda x: lax.select_n((x > 0).astype(int) + (x > 1), x, 2 * x, 3 * x), X),
    "not finite": (lambda x: [1 / (x - x), jnp.log(x), jnp.isfinite(1 / (x - 2)), jnp.isnan(x)], X),
    "softmax": (lambda x: [jax.nn.softmax(99 * x), jax.nn.log_softmax(x, axis=0)], X),
    "logsumexp": (lambda x: [jax.nn.logsumexp(x), jnp.logaddexp(x, 1.0)], X),
    "movements": (lambda x: [x.T, x[::-1], x[:, 1:], x.reshape(3, 2), x[None], x[0, 2]], X),
    "movements of terms": (lambda x: [(x + 1).T, (2 * x)[:, ::-1].T.reshape(-1) - 1], X),
    "axes": (lambda x: [x.transpose(2, 0, 1), x.swapaxes(0, 2).reshape(4, -1), x[:, ::2, 1]], CUBE),
    "repeated": (lambda x: [jnp.tile(x, (2, 2)), jnp.repeat(x, 2, axis=1), x + x[0]], X),
    "joined": (lambda x: [jnp.hstack([x, 2 * x]), jnp.stack([x, x + 1], axis=1)], X),
    "padded": (lambda x: [jnp.pad(x, ((1, 2), (0, 1))), jnp.roll(x, 1, axis=1)], X),
    "padding": (lambda x: lax.pad(x, 7.0, ((1, -1, 2), (-1, 2, 0))), X),
    "sums": (lambda x: [x.sum(), x.sum(1), x.mean(0), x.prod(1), x.max(0), x.min(), x.var()], X),
    "sums of a cube": (lambda x: [x.sum((0, 2)), x.max(1), (x * x).sum(1), x.std(2)], CUBE),
    "truth": (lambda x: [(x > 0).all(), (x > 1.9).any(1), (x > 0).sum(0)], X),
    "running": (lambda x: [jnp.cumsum(x, 1), jnp.cumprod(x, 0), lax.cummax(x, 1, True)], X),
    "running sums": (
        lambda x: [lax.cumlogsumexp(x, 1), lax.cummin(x, 0), lax.cumsum(x, 0, True)],
        X,
    ),
    "products": (lambda x: [x @ x.T, x.T @ x, jnp.outer(x, x), x @ x[0], jnp.dot(x[0], x[1])], X),
    "products of a cube": (lambda x: jnp.einsum("aij,bik->abjk", x, 2 * x), CUBE),
    "batched": (
        lambda x: [jnp.einsum("aij,aik->ajk", x, x), jnp.einsum("aij,aij->ia", x, x)],
        CUBE,
    ),
    "constants": (lambda x: [x @ np.eye(3), x * np.arange(3), jnp.tri(3) @ x.T + jnp.eye(3, 2)], X),
    "sorted": (lambda x: [jnp.sort(x, 0), jnp.argsort(x), jnp.median(x), jnp.sort(x / (x - 2))], X),
    "extremes": (lambda x: [jnp.argmax(x, 1), jnp.argmin(x), jnp.argmax(x / (x - 2), 1)], X),
    "chosen": (lambda x: [x[:, np.array([2, 0])], x[np.array([1, 1, 0]), np.array([2, 0, 2])]], X),
    "missing": (lambda x: x.at[np.array([0, 7]), 1].get(mode="fill", fill_value=-3.0), X),
    "written": (lambda x: [x.at[0, 1].set(5.0), x.at[:, 2].add(x[:, 0]), x.at[0].multiply(2)], X),
    "added twice": (lambda x: x.at[:, np.array([0, 0, 2, 9])].add(x[:, np.array([0, 1, 2, 0])]), X),
    "segments": (lambda v: jax.ops.segment_sum(v, np.array([0, 2, 2, -1, 0]), 3), V),
    "branches": (lambda x: [lax.cond(v > 0, jnp.sin, lambda y: y * x[0, 0], v) for v in x[0]], X),
    "loop": (power_iteration, X),
    "scan": (lambda v: fibonacci(v, False), V),
    "scan backwards": (lambda v: fibonacci(v, True), V),
    "map": (lambda x: lax.map(lambda row: jnp.sort(row) * row.sum(), x), X),
    "window": (lambda v: lax.dynamic_slice(v, ((v[0] * 2).astype(int),), (2,)), V),
    "window written": (lambda v: lax.dynamic_update_slice(v, v[:2], (jnp.argmin(v),)), V),
    "nothing": (lambda x: [x[:0].sum(), jnp.zeros((0, 3)), x.sum() * 0 + 3.0], X),
    "conversion": (lambda x: [(x * 2).astype(int), (x > 0) * x, (x * 9).astype(int) // 2], X),
    "remainder": (lambda x: [(x * 9).astype(int) % 4, lax.rem(x, 0.7), lax.integer_pow(x, 7)], X),
    "derivative": (jax.grad(lambda x: (jax.nn.softmax(x @ x.T) @ x).sum() ** 2), X),
    "curvature": (jax.hessian(lambda v: jnp.log1p(jnp.exp(v @ v[::-1])) * v.prod()), V),
    "through a sort": (jax.grad(lambda x: (jnp.sort(x, 1)[:, 1] * x[:, 0]).sum()), X),
    "through a loop": (jax.grad(lambda v: fibonacci(v, False)[1]["sum"].sum()), V),
}
"""Name -> (function, argument)."""
MORE = {
    "chosen by an input": (by_gather, (X, W), 1),
    "derivative of a choice": (jax.grad(lambda x, w: (x[:, w] ** 2 * x[0, 0]).sum()), (X, W), 1),
    "batched choice": (jax.vmap(lambda row, w: row[w] * 2), (X, W[:2]), 1),
    "batched addition": (jax.vmap(lambda row, w: row.at[w].add(row[:2])), (X, W[:2]), 2),
    "clamped": (lambda x, w: x[0, w + 7], (X, W), 1),
    "what stays": (lambda x, a: x * jnp.exp(a).sum() + jnp.cumsum(a)[-1], (X, X), 1),
}


@needs_node
def test_every_primitive_gives_what_jax_gives():
    names = [*CASES, *MORE]
    cases = [(f, (x,), 1) for f, x in CASES.values()] + list(MORE.values())
    for name, result, wanted in zip(names, *ran(cases), strict=True):
        assert same(result, wanted), f"{name}: {result} is not {wanted}"


@needs_node
def test_what_no_argument_changes_is_computed_once():
    with jax.enable_x64(True):
        traced = jax.make_jaxpr(lambda x, a: x + jnp.exp(a).sum())(X, X)
    text = javascript(traced, 1, Tables())
    assert "Math.exp" in text.split("return (")[0]
    assert "Math.exp" not in text.split("return (")[1]


@needs_node
def test_a_long_function_is_cut(monkeypatch):
    def long(x):
        for k in range(5):
            x = jnp.sin(x @ x.T / 9) @ x + x[0, 0] * k / 9
        return x, x.sum()

    monkeypatch.setattr(traced_program, "LONGEST_FUNCTION", 600)
    with jax.enable_x64(True):
        text = javascript(jax.make_jaxpr(long)(X), 1, Tables())
    assert "part3(in0, out)" in text
    ((result,), (wanted,)) = ran([(long, (X,), 1)])
    assert same(result, wanted, 1e-11)


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda x: lax.erf_inv(x), "'erf_inv'"),
        (lambda x: jnp.linalg.eigvalsh(x @ x.T), "'eigh'"),
        (lambda x: jnp.sum(x.astype(jnp.float32) ** 2), "float32"),
        (lambda x: jnp.fft.fft(x).real, "complex|fft"),
        (lambda x: ~(x * 3).astype(int), "'not'.*bits"),
    ],
)
def test_what_has_no_text_is_refused_in_one_line(function, says):
    with jax.enable_x64(True):
        traced = jax.make_jaxpr(function)(X)
    with pytest.raises(UntracedPrimitive, match=says) as refused:
        javascript(traced, 1, Tables())
    assert "\n" not in str(refused.value)
