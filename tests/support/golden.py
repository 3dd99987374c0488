"""Numbers of the whole software, taken through its public doors, for comparison over a rebuild.

``python tests/support/golden.py FILE`` computes them and writes FILE; with ``--check`` it compares
with what FILE holds and prints what differs by more than `TOLERANCE`. Only names that users rely on
are called, so that the same script runs before and after the house is rebuilt.
"""

import contextlib
import io
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import dynamics
from dynamics.cli import main

TOLERANCE = 1e-12
SKIPPED = {"seconds", "file", "path", "out", "origin", "reference", "digests", "model", "picture"}
"""Keys of documents that hold times and places."""
MODELS = Path(__file__).resolve().parent / "models"


def summary(value):
    """Plain values; of a long array its shape, some moments and some entries."""
    if isinstance(value, dict):
        return {str(k): summary(v) for k, v in value.items() if str(k) not in SKIPPED}
    if isinstance(value, np.ndarray) or (
        isinstance(value, (list, tuple))
        and len(value) > 12
        and not isinstance(value[0], (dict, str))
    ):
        array = np.asarray(value)
        if array.dtype.kind not in "fiu" or array.size <= 12:
            return [summary(v) for v in array.tolist()]
        finite = array[np.isfinite(array)].astype(float)
        parts = finite[np.linspace(0, finite.size - 1, 5).astype(int)] if finite.size else finite
        return {"shape": list(array.shape), "mean": float(finite.mean()) if finite.size else None,
                "size": float(np.abs(finite).mean()) if finite.size else None,
                "some": parts.tolist()}  # fmt: skip
    if isinstance(value, (list, tuple)):
        return [summary(v) for v in value]
    if isinstance(value, np.generic):
        return summary(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value


def command(*words):
    """The JSON document, or the text, that a command prints."""
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(io.StringIO()):
        code = main([*words])
    assert code == 0, (words, code)
    text = stream.getvalue()
    return json.loads(text) if "--json" in words else text.splitlines()


def events(run):
    return {n: [e.time, e.step] if e else None for n, e in run.events.items()}


def trajectory(run):
    return {"final": run.final_state, "events": events(run), "reasons": dict(run.reasons),
            "outcome": run.outcome.kind,
            "observables": {n: float(v[-1]) for n, v in run.observables.items()}}  # fmt: skip


def at(problem, spread=0.1, seed=0):
    """Gradient, risk and observables near the start."""
    start = problem.initial_state
    state = start + spread * np.random.default_rng(seed).standard_normal(start.size)
    return {"gradient": problem.gradient(state), "observables": problem.observables(state)}


def positional():
    system = dynamics.load_system("positional_attention")
    P, Reduced = system.Parameters, system.ReducedPopulation
    for name, parameters, options in [
        ("exact 16", P(), {"expectation": "exact"}),
        ("exact 9 p5", P(D=9, C=3, p=5), {"expectation": "exact"}),
        ("spectral 64", P(D=64, C=8), {"expectation": "spectral"}),
        ("spectral 1024", P(D=1024, C=16, q=0.1), {"expectation": "spectral"}),
        ("truncated 16", P(), {"expectation": "truncated"}),
        ("sampled 16", P(), {"expectation": "sampled", "samples": 2000, "seed": 3}),
    ]:
        yield f"positional {name}", lambda p=parameters, o=options: at(Reduced(p, **o))
    yield "positional full 9", lambda: at(system.FullPopulation(P(D=9, C=3)))
    for own in ({}, {"start": "symmetric"}, {"diagonal": 1, "partition": "random"}):
        yield (
            f"positional empirical {own}",
            lambda o=own: at(system.FullEmpirical(P(), samples=300, seed=1, **o)),
        )
    yield (
        "positional descend",
        lambda: trajectory(dynamics.descend(Reduced(P()), eta=0.02, steps=60_000)),
    )
    yield (
        "positional flow",
        lambda: trajectory(dynamics.flow(Reduced(P()), time=1e4)),
    )
    yield (
        "positional flow spectral",
        lambda: trajectory(dynamics.flow(Reduced(P(D=64, C=8), expectation="spectral"), time=1e5)),
    )
    yield (
        "positional diverges",
        lambda: trajectory(dynamics.descend(Reduced(P()), eta=1.5, steps=2000)),
    )
    yield (
        "positional empirical run",
        lambda: trajectory(
            dynamics.descend(system.FullEmpirical(P(q=0.25), samples=500), eta=0.02, steps=800)
        ),
    )
    yield (
        "positional overlay",
        lambda: [
            trajectory(run)
            for run in dynamics.overlay(Reduced(P()), etas=[0.01, 0.02], time=100.0).runs
        ],
    )


def masked():
    system = dynamics.load_system("masked_image_modeling")
    P, Reduced = system.Parameters, system.ReducedPopulation
    for name, given, options in [
        ("one", {}, {}),
        ("contour", {}, {"expectation": "contour"}),
        ("counts", {}, {"expectation": "counts"}),
        ("two", {"family": "two_cluster_grid"}, {}),
    ]:
        yield f"masked {name}", lambda g=given, o=options: at(Reduced(P(**g), **o))
    yield "masked descend", lambda: trajectory(dynamics.descend(Reduced(P()), eta=0.5, steps=2000))
    yield "masked flow", lambda: trajectory(dynamics.flow(Reduced(P()), time=1e4))
    yield "masked empirical", lambda: at(system.FullEmpirical(P(), samples=50, seed=2))


def vit():
    system = dynamics.load_system("shallow_vit")
    P = system.Parameters
    small = P(L=12, m=40, M=4)
    yield "vit reduced", lambda: at(system.ReducedPopulation(small), 0.01)
    yield "vit empirical", lambda: at(system.FullEmpirical(small, samples=40), 0.01)
    yield (
        "vit descend",
        lambda: trajectory(dynamics.descend(system.ReducedPopulation(small), eta=0.1, steps=300)),
    )
    yield (
        "vit empirical run",
        lambda: trajectory(
            dynamics.descend(system.FullEmpirical(small, samples=40), eta=0.1, steps=60)
        ),
    )


def commands(folder):
    names = ("positional_attention", "masked_image_modeling", "shallow_vit")
    for name in names:
        yield f"derive {name}", lambda n=name: command("derive", n)
        yield f"derive latex {name}", lambda n=name: command("derive", n, "--as", "latex")
        yield (
            f"compare {name}",
            lambda n=name: command("compare", n, "--json", "--out", f"{folder}/c-{n}"),
        )
    yield (
        "verify positional_attention",
        lambda: command("verify", names[0], "--json", "--out", f"{folder}/v0"),
    )
    yield (
        "verify masked_image_modeling",
        lambda: command("verify", names[1], "--json", "--out", f"{folder}/v1"),
    )
    yield (
        "verify shallow_vit",
        lambda: command("verify", names[2], "--json", "--out", f"{folder}/v2"),
    )
    for system, figure in [
        (0, "1b"), (0, "deviation"), (0, "plane"), (0, "transverse"),
        (1, "phases"), (1, "gap"), (1, "diversity"), (1, "scaling"),
        (2, "4"), (2, "7"), (2, "8"),
    ]:  # fmt: skip
        yield (
            f"figure {names[system]} {figure}",
            lambda n=names[system], f=figure: command(
                "figure", n, f, "--json", "--out", f"{folder}/f-{n}-{f}.png"
            ),
        )
    store = f"{folder}/sweep"
    yield (
        "sweep",
        lambda: command(
            "sweep", names[0], "--D", "8:16:4", "--C", "2,4", "--q", "0.2:0.8:4", "--time", "2e3",
            "--workers", "1", "--json", "--out", store,
        ),
    )  # fmt: skip
    yield "sweep values", lambda: arrays(dynamics.load(store))
    yield "status", lambda: command("status", store, "--json")
    yield (
        "phase",
        lambda: command(
            "phase", store, "--json", "--x", "q", "--y", "D", "--at", "C=2",
            "--out", f"{folder}/phase.png",
        ),
    )  # fmt: skip
    for model in ("positional", "softmax_icl", "deep_linear"):
        file = str(MODELS / f"{model}.py")
        yield f"derive {model}", lambda f=file: command("derive", f)
    yield (
        "compare own",
        lambda: command(
            "compare", str(MODELS / "positional.py"), "--steps", "1500", "--json",
            "--out", f"{folder}/own",
        ),
    )  # fmt: skip


def arrays(result):
    data = result.dataset
    return {name: data[name].values for name in sorted(data.data_vars)}


def drivers():
    system = dynamics.load_system("positional_attention")
    problem = system.ReducedPopulation(system.Parameters())
    state = dynamics.flow(problem, 2e3, record=[0.0, 300.0, 2e3]).states[1]
    yield "stability limit", lambda: dynamics.stability_limit(problem, state)
    yield "onsets", lambda: vars_of(dynamics.onsets(problem, state, 2000))
    rng = np.random.default_rng(0)
    maps = rng.dirichlet(np.ones(9), size=(4, 9))
    yield "diversity", lambda: vars_of(dynamics.diversity(maps, k=3))
    yield "total variation", lambda: dynamics.total_variation(maps)


def vars_of(value):
    return dict(vars(value)) if hasattr(value, "__dict__") else value


def every(folder):
    for part in (positional(), masked(), vit(), drivers(), commands(folder)):
        yield from part


def compute(names=()):
    found, times = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for name, entry in every(folder):
            if names and not any(part in name for part in names):
                continue
            begun = time.perf_counter()
            try:
                found[name] = json.loads(json.dumps(summary(entry()), default=str))
            except Exception as error:
                found[name] = f"{type(error).__name__}: {error}"
            times[name] = time.perf_counter() - begun
            print(f"{times[name]:7.1f} s  {name}", file=sys.stderr, flush=True)
    return found


def differences(one, two, where=""):
    """Places at which two documents differ by more than the tolerance."""
    if isinstance(one, dict) and isinstance(two, dict):
        for key in dict.fromkeys([*one, *two]):
            yield from differences(one.get(key), two.get(key), f"{where} / {key}")
    elif isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        for k, (a, b) in enumerate(zip(one, two, strict=True)):
            yield from differences(a, b, f"{where}[{k}]")
    elif isinstance(one, (int, float)) and isinstance(two, (int, float)):
        if abs(one - two) > TOLERANCE * max(1.0, abs(one)):
            yield f"{where}: {one!r} -> {two!r}"
    elif one != two:
        yield f"{where}: {str(one)[:200]!r} -> {str(two)[:200]!r}"


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "agg")
    file, check, names = Path(sys.argv[1]), "--check" in sys.argv, sys.argv[2:]
    names = [n for n in names if n != "--check"]
    found = compute(names)
    if check:
        before = json.loads(file.read_text(encoding="utf-8"))
        before = {n: v for n, v in before.items() if n in found}
        lines = list(differences(before, found))
        print("\n".join(lines) or f"{len(found)} entries, all equal")
        sys.exit(bool(lines))
    file.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
