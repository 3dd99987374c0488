"""Random requests of the command line, half of them absurd, and what every answer must be."""

import contextlib
import io
import json
import os
import re
import shutil
import signal
import traceback
from pathlib import Path

import numpy as np

from dynamics import plotting
from dynamics.cli import COMMANDS, main

LONGEST = 300
CODES = (0, 1, 2, 130)
PROGRESS = re.compile(r" \[\d+:\d\d[,<]")
"""Of a line that a slow machine shows every half minute."""
TOO_SLOW = 30.0
"""Seconds of the processor from which a request is a complaint."""
NUMBERS = ("0", "1", "-1", "2", "3", "0.5", "1e-3", "nan", "inf", "-inf", "1e308",
           "5e-324", "1e-320")  # fmt: skip
WORDS = ("", "x", "9" * 400, "1/0", f"{'9' * 400}/1", "1:2", "1:2:3:log", "0:1:2", "1,2", "None",
         "y" * 300, "\u00e9", "a b", "=", "--", "1e400", "-1e308:1e308:3", "(-1)**0.5",
         "[1]", "~", "~/x", "~nobody/x", "../x", "a\nb", "\x1b[31m", "\udc80", "$(touch x)",
         "\u540d", "<script>alert(6)</script>", "1000000", "20000")  # fmt: skip
ABSURD = (*NUMBERS, *WORDS)
LARGE = ("0", "-3", "nan", "x", "1e400", "9" * 400, "2.5", "", "1000000", "20000", "500000")
SYSTEMS = (*["positional_attention"] * 8, "shallow_vit", "masked_image_modeling")
SIZES = {
    "positional_attention": {"D": ("4", "6", "8", "5", *LARGE), "C": ("2", "3", *LARGE),
                             "q": ("0.5", "1"), "p": ("3", "5", "4"), "nu": ("1e-3", "1e2"),
                             "beta": ("1", "-50", "800"), "omega": ("0", "1e-3"),
                             "scale": ("1",), "alpha0": ("0.1", "-1", "1e100", "1e200"),
                             "random_sets": ("mixed",)},
    "shallow_vit": {"M": ("3", "4", *LARGE), "L": ("5", "8", *LARGE), "m": ("4", "6", *LARGE),
                    "xi": ("0.01", "1e200", "0"), "sigma": ("0.1", "1e160"), "delta": ("0.2",),
                    "margin": ("1", "1e200"), "loss": ("linear",), "d": LARGE},
    "masked_image_modeling": {"P": ("6", "9", *LARGE), "C_global": ("3", "4", *LARGE),
                              "C_local": ("3", "2", *LARGE), "masked": ("2", "1", *LARGE),
                              "z": ("1", "1e200", "0"), "d": ("12", *LARGE)},
}  # fmt: skip
SMALLEST = {
    "positional_attention": ("--D", "4", "--C", "2"),
    "shallow_vit": ("--M", "3", "--L", "5", "--m", "4"),
    "masked_image_modeling": ("--P", "6", "--C_global", "3", "--C_local", "3", "--masked", "2"),
}
FEW = {"steps": ("1", "3", "20", *LARGE), "eta": ("0.1", "1e-300", "1e300", "0.1,0.2"),
       "time": ("1", "1e-300", "30", *LARGE), "record": ("log", "1", "2", *LARGE),
       "rtol": ("1e-8", "1e-2"), "seed": ("0", "1", *LARGE), "samples": ("4", "5", *LARGE),
       "expectation": ("exact", "auto", "sampled"), "tolerance": ("1e-6",),
       "full": ("empirical", "population"), "batch": ("2", *LARGE), "seeds": ("1", "2", *LARGE),
       "lr": ("1",), "out": ("result", "o" * 300, "store", "/proc/x", "~/out", "~nobody/out"),
       "config": ("none.toml",), "checkpoint": ("c" * 300, "point", "~/point"),
       "csv": ("t.csv", "~/t.csv", "maps.npy")}  # fmt: skip

START = "def start(w0=0.1):\n    return {'w': [w0, w0]}\n"
LAW = "def law(q=0.5):\n    yield q, 1.0\n    yield 1 - q, 2.0\n"
LOSS = "def loss(theta, sample, xp):\n    return (xp.sum(theta['w']) - sample) ** 2\n"
UNDERFLOWING = "def law(r=0.5):\n  p = 1 - r\n  while True:\n    yield p, 1.0\n    p *= r\n"


def _loss(value):
    return LOSS.replace("return (", f"return {value} * (")


MODELS = {
    "plain.py": START + LAW + LOSS,
    "exits_in_law.py": START + LAW.replace("yield q", "raise SystemExit\n    yield q") + LOSS,
    "exits.py": "import sys\nsys.exit()\n",
    "prints.py": "print('{')\n" + START + LAW + _loss("(print('x') or 1)"),
    "bom.py": "\ufeff" + START + LAW + LOSS,
    "random_loss.py": "import random\n" + START + LAW + _loss("random.random()"),
    "counts.py": "seen = []\n" + START + LAW + _loss("(seen.append(1) or len(seen))"),
    "huge.py": START + LAW + _loss(2**40),
    "floor.py": START + LAW + _loss("xp.floor(theta['w'][0] + 1.5)"),
    "underflow.py": START + UNDERFLOWING + LOSS,
    "tower.py": START + LAW + LOSS + "events = {'T': 'w_0 >= 9**9**9**9'}\n",
    "recursion.py": "def f(x):\n    return f(x)\n" + START + LAW + _loss("f(1)"),
    "nan.py": START + LAW + _loss("float('nan')"),
    "-dash.py": START + LAW + LOSS,
    "<b>&amp;.py": f'"""<script>alert(6)</script>"""\n{START}{LAW}{LOSS}',
    "\u00e9\u540d.py": START + LAW + LOSS,
    "syntax.py": "def start(:\n",
    "bytes.py": "\0",
}
"""Model files of the folder, most of them wrong, by name."""


class Requests:
    """Requests of a seed; the folder of each has a sweep ``store`` and a file ``maps.npy``."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def one(self, choices):
        return choices[int(self.random.integers(len(choices)))]

    def flags(self, table, most):
        """Flags of a table, each with a value of its own or, one time of five, an absurd one."""
        for name in self.random.permutation(list(table))[: int(self.random.integers(most + 1))]:
            value = self.one(ABSURD if self.random.random() < 0.2 else table[name])
            apart = self.random.random() < 0.5
            yield from (f"--{name}", value) if apart else (f"--{name}={value}",)

    def training(self, command):
        system = self.one(SYSTEMS)
        few = ("--steps", "2") if self.random.random() < 0.7 else ("--time", "1e-3")
        sizes = self.flags(SIZES[system], 2)
        return [command, system, *SMALLEST[system], *few, *sizes, *self.flags(FEW, 2)]

    def model(self):
        file = self.one(tuple(MODELS))
        command = self.one(("run", "run", "describe", "describe", "derive", "compare", "sweep"))
        few, ends = {"w0": ABSURD, "q": ("0.3", "0.3:0.6:2"), **FEW}, ("--steps", "3", "--eta=0.01")
        if command in ("describe", "derive"):
            few, ends = {"w0": ABSURD, "as": ("text", "latex", "x")}, ()
        if command == "sweep":
            ends = (*ends, "--workers", "0", "--q", self.one(("0.4,0.6", "0.4:0.6:2", "x")))
            few = {"w0": ABSURD, "out": FEW["out"]}
        return [command, file, *ends, *self.flags(few, 2)]

    def sweep(self):
        system = self.one(SYSTEMS)
        table = SIZES[system] | {n: FEW[n] for n in ("steps", "seed", "rtol", "lr", "out", "full")}
        grids = {"let": ("m=1:2:2", "m", "=1"), "trajectory": ("0", "2", *LARGE)}
        ends = (["--time", "1e-3"], ["--time", "1e-3:1:2"], ["--eta", "0.1", "--steps", "2"])
        flags = [*self.one(ends), *self.flags(table, 2), *self.flags(grids, 1)]
        return ["sweep", system, *SMALLEST[system], "--workers", "0", *flags]

    def phase(self):
        names = ("q", "nu", "risk", "time_T0", "reached(T0)", "risk>=1", "nothing", "risk>", "(")
        table = dict.fromkeys(("quantity", "x", "y", "facet", "contours", "boundary"), names)
        table |= {"at": ("q=0.5", "q", "q=9"), "fit": ("q", "q,nu"),
                  "out": ("p.png", "p.x", "store"), "csv": ("t.csv", "a" * 300 + ".csv"),
                  "plane": ("gamma,rho", "x")}  # fmt: skip
        return ["phase", self.one(("store", "store", "nowhere", "maps.npy")), *self.flags(table, 3)]

    def paper(self, command):
        wrong = {"claims": ("Theorem 99", "", ",", "k" * 400), "seed": ("-1", "x", "1e400"),
                 "option": ("x", "seeds=x", "="), "out": ("o.x", "o" * 300), "D": ("5", "x"),
                 "as": ("pdf", "x" * 400), "sizes": ("D=x", "="), "eta": ("x",)}  # fmt: skip
        first = {"verify": ("--claims", "nothing"), "figure": ("0x",), "derive": ("--as", "source")}
        flags = [*first[command], *self.flags(wrong, 2)]
        return [command, self.one(SYSTEMS), *flags]

    def nonsense(self):
        words = (*COMMANDS, *SYSTEMS, *ABSURD, "--help", "--json", "--version", "-h", "--D", "-D")
        return [self.one(words) for _ in range(int(self.random.integers(1, 4)))]

    def __iter__(self):
        kinds = {"run": 8, "compare": 4, "sweep": 4, "phase": 3, "status": 1, "verify": 1,
                 "figure": 1, "derive": 1, "nonsense": 3, "model": 4}  # fmt: skip
        weighted = [kind for kind, weight in kinds.items() for _ in range(weight)]
        while True:
            kind = self.one(weighted)
            if kind in ("run", "compare"):
                words = self.training(kind)
            elif kind in ("verify", "figure", "derive"):
                words = self.paper(kind)
            elif kind == "status":
                words = ["status", self.one(("store", "nowhere", "maps.npy", "s" * 400, "."))]
            else:
                words = getattr(self, kind)()
            if kind != "nonsense" and self.random.random() < 0.6:
                words.append("--json")
            yield words


def prepare(folder):
    """A small sweep and attention maps, for commands about files."""
    with contextlib.redirect_stdout(io.StringIO()):
        words = ["sweep", "positional_attention", *SMALLEST["positional_attention"]]
        grid = ["--workers", "0", "--q", "0.4,0.6", "--nu", "1e-3:1e-2:3:log", "--time", "1"]
        assert main([*words, *grid, "--out", str(folder / "store")]) == 0
    np.save(folder / "maps.npy", np.full((2, 2, 4, 4), 0.25))
    for name, text in MODELS.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder.parent / "home").mkdir()


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@contextlib.contextmanager
def undrawn():
    """Pictures are made, and empty files written for them: drawing takes longer than all else."""
    write = plotting.write
    plotting.write = lambda axes, path: Path(path).touch() or Path(path)
    try:
        yield
    finally:
        plotting.write = write


class TooLong(BaseException):
    """A request took `TOO_SLOW` seconds of the processor."""


@contextlib.contextmanager
def limited():
    """What is within ends after `TOO_SLOW` seconds of the processor."""

    def end(*_):
        raise TooLong

    earlier = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, TOO_SLOW)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, earlier)


def elsewhere(folder):
    """Files beside the folder of a request, in its user's home but for caches."""
    return [name for name in files(folder.parent) if ".cache" not in name
            and not name.startswith((folder.name, f"{folder.name}-spare"))]  # fmt: skip


def complaint(words, folder, before):
    """What is wrong with the answer to a request in a folder of these files; empty if nothing."""
    beside = elsewhere(folder)
    said = answer(words, folder, before)
    added = set(elsewhere(folder)) - set(beside)
    if added and not any("~" in word or ".." in word for word in words):
        return said or f"{added} outside of the folder"
    given = {parts[0] for word in words if (parts := Path(word.split("=")[-1]).parts)}
    new = {Path(name).parts[0] for name in set(files(folder)) - set(before)} - given - {"results"}
    left = {name for name in new if not name.endswith(".checkpoint")}
    return said or (f"files that were not asked for: {left}" if left else "")


def answer(words, folder, before):
    """What is wrong with exit code, output and files of a request; empty if nothing."""
    out, err = io.StringIO(), io.StringIO()
    try:
        with limited(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), undrawn():
            code = main(words)
    except SystemExit as end:
        code = end.code
    except BaseException:
        return traceback.format_exc()
    text = out.getvalue()
    lines = [line for line in err.getvalue().splitlines() if not PROGRESS.search(line)]
    if "prints.py" in words:
        lines = [line for line in lines if line not in ("{", "x")]
    if code not in CODES:
        return f"exit code {code}"
    if any(len(line) > LONGEST for line in lines):
        return f"a line of {max(map(len, lines))} letters on stderr"
    if "Traceback" in err.getvalue() + text:
        return "a traceback"
    if code == 2:
        if files(folder) != before:
            return f"a refused request wrote {set(files(folder)) - set(before)}"
        said = [line for line in lines if line.startswith("attdyn: ")]
        return "" if len(said) == len(lines) <= 1 else f"{len(lines)} lines on stderr: {lines[:3]}"
    if code == 1 and not lines:
        return "a failure without a word"
    if code == 0 and "--json" in words and "--help" not in words and text:
        return _document(text)
    return ""


def _document(text):
    """What is wrong with the JSON of a request that went well."""
    try:
        content = json.loads(text, parse_constant=lambda name: 1 / 0)
    except (ValueError, ZeroDivisionError) as error:
        return f"stdout is not a JSON: {error!r}"
    if content.get("outcome") == "diverged":
        return "a diverged run went well"
    missing = [name for name, value in content.get("final", {}).items() if value is None]
    silent = [name for name in missing if name not in content["remedy"]]
    return f"final {', '.join(silent)} is null" if silent else ""


def run(seed, count, folder):
    """Try requests, each in a folder as `prepare` leaves it; the complaints, by request."""
    prepare(folder)
    before, wrong = files(folder), {}
    spare, home = folder.parent / f"{folder.name}-spare", folder.parent / "home"
    shutil.copytree(folder, spare)
    for _, words in zip(range(count), Requests(seed), strict=False):
        if problem := complaint(words, folder, before):
            wrong[tuple(words)] = problem
        for path in home.iterdir():
            if path.name != ".cache":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        if files(folder) != before:
            shutil.rmtree(folder)
            shutil.copytree(spare, folder)
            os.chdir(folder)
    return wrong
