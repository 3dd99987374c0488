"""Random requests, many of them absurd: an exit code, short lines, no traceback, finite numbers."""

import contextlib
import io
import json
import os
import re
import shutil
import traceback
from pathlib import Path

import numpy as np
import pytest

from dynamics import plotting
from dynamics.cli import COMMANDS, main

PROGRESS = re.compile(r" \[\d+:\d\d[,<]")
"""Of a line that a slow machine shows every half minute."""
ABSURD = (
    "0", "-3", "nan", "x", "1e400", "9" * 400, "2.5", "", "1000000", "20000", "500000",
    "1", "-1", "1e-3", "inf", "-inf", "1e308", "5e-324", "1/0", f"{'9' * 400}/1", "1:2",
    "1:2:3:log", "0:1:2", "1,2", "None", "y" * 300, "\u00e9", "a b", "=", "--", "-1e308:1e308:3",
    "(-1)**0.5", "[1]", "~", "~/x", "~nobody/x", "a\nb", "\x1b[31m", "\udc80", "$(touch x)",
    "\u540d", "<script>alert(6)</script>",
)  # fmt: skip
START = "def start(w0=0.1):\n    return {'w': [w0, w0]}\n"
LAW = "def law(q=0.5):\n    yield q, 1.0\n    yield 1 - q, 2.0\n"
LOSS = "def loss(theta, sample, xp):\n    return {} * (xp.sum(theta['w']) - sample) ** 2\n"
UNDERFLOWING = "def law(r=0.5):\n  p = 1 - r\n  while True:\n    yield p, 1.0\n    p *= r\n"
PLAIN = START + LAW + LOSS.format(1)
MODELS = {
    "mine.py": PLAIN,
    "exits_in_law.py": PLAIN.replace("yield q", "raise SystemExit\n    yield q"),
    "exits.py": "import sys\nsys.exit()\n",
    "prints.py": "print('{')\n" + START + LAW + LOSS.format("(print('x') or 1)"),
    "bom.py": "\ufeff" + PLAIN,
    "random_loss.py": "import random\n" + START + LAW + LOSS.format("random.random()"),
    "counts.py": "seen = []\n" + START + LAW + LOSS.format("(seen.append(1) or len(seen))"),
    "huge.py": START + LAW + LOSS.format(2**40),
    "floor.py": START + LAW + LOSS.format("xp.floor(theta['w'][0] + 1.5)"),
    "underflow.py": START + UNDERFLOWING + LOSS.format(1),
    "tower.py": PLAIN + "events = {'T': 'w_0 >= 9**9**9**9'}\n",
    "recursion.py": "def f(x):\n    return f(x)\n" + START + LAW + LOSS.format("f(1)"),
    "nan.py": START + LAW + LOSS.format("float('nan')"),
    "-dash.py": PLAIN,
    "<b>&amp;.py": f'"""<script>alert(6)</script>"""\n{PLAIN}',
    "\u00e9\u540d.py": PLAIN,
    "syntax.py": "def start(:\n",
    "bytes.py": "\0",
}
"""Model files of the folder, most of them wrong, by name."""
SYSTEMS = {
    "positional_attention": ("--D 4 --C 2", {
        "D": ("4", "6", "8", "5"), "C": ("2", "3"), "q": ("0.5", "1"),
        "p": ("3", "5", "4"), "nu": ("1e-3", "1e2"), "beta": ("1", "-50", "800"),
        "omega": ("0", "1e-3"), "alpha0": ("0.1", "-1", "1e100", "1e200"),
        "random_sets": ("mixed",),
    }),
    "shallow_vit": ("--M 3 --L 5 --m 4", {
        "M": ("3", "4"), "L": ("5", "8"), "m": ("4", "6"),
        "xi": ("0.01", "1e200", "0"), "sigma": ("0.1", "1e160"), "loss": ("linear",), "d": ("6",),
    }),
    "masked_image_modeling": ("--P 6 --C_global 3 --C_local 3 --masked 2", {
        "P": ("6", "9"), "C_global": ("3", "4"), "C_local": ("3", "2"),
        "masked": ("2", "1"), "z": ("1", "1e200", "0"),
    }),
    **dict.fromkeys(MODELS, ("", {"w0": ABSURD, "q": ("0.3", "0.3:0.6:2")})),
}  # fmt: skip
FEW = {
    "steps": ("1", "3", "20"), "eta": ("0.1", "1e-300", "1e300", "0.1,0.2"),
    "time": ("1", "1e-300", "30"), "record": ("log", "1", "2"),
    "rtol": ("1e-8", "1e-2"), "seed": ("0", "1"), "samples": ("4", "5"),
    "expectation": ("exact", "auto", "sampled"), "full": ("empirical", "population"),
    "batch": ("2",), "seeds": ("1", "2"),
    "out": ("result", "o" * 300, "store", "/proc/x", "~/out", "~nobody/out"),
    "checkpoint": ("c" * 300, "point", "~/point"), "csv": ("t.csv", "~/t.csv", "maps.npy"),
}  # fmt: skip
ENDS = {
    "run": ("--steps 2", "--time 1e-3", "--full empirical --steps 2 --samples 4"),
    "compare": ("--steps 2", "--time 1e-3", "--full empirical --steps 2 --samples 4"),
    "sweep": ("--workers 0 --time 1e-3", "--workers 0 --time 1e-3:1:2", "--workers 0 --eta 0.1"),
}  # fmt: skip
QUANTITIES = ("q", "nu", "risk", "time_T0", "reached(T0)", "risk>=1", "nothing", "risk>", "(")
OTHERS = {
    "phase": (("store", "store", "nowhere", "maps.npy"), {
        **dict.fromkeys(("quantity", "x", "y", "facet", "contours", "boundary"), QUANTITIES),
        "at": ("q=0.5", "q", "q=9"), "fit": ("q", "q,nu"), "out": ("p.png", "p.x", "store"),
        "csv": ("t.csv", "a" * 300 + ".csv"), "plane": ("gamma,rho", "x"),
    }),
    "diversity": (("maps.npy", "nowhere.npy", "store", "f" * 300), {
        "k": ("1", "2"), "skip": ("0", "1"), "grid": ("2x2", "2x3", "0x4"),
        "out": ("d.png", "d.txt"), "csv": ("d.csv", "d"),
    }),
    "status": (("store", "nowhere", "maps.npy", "s" * 400, "."), {}),
    "derive": (tuple(SYSTEMS), {"as": ("text", "source", "x" * 400)}),
    "describe": (tuple(MODELS), {"w0": ABSURD, "as": ("text", "latex", "x")}),
}  # fmt: skip
KINDS = (*["run"] * 8, *["compare"] * 4, *["sweep"] * 4, *["nonsense"] * 3, *OTHERS, *OTHERS)


def request(draw):
    """Words of a command with up to three flags, one value of four absurd."""

    def one(choices):
        return choices[int(draw.integers(len(choices)))]

    kind = one(KINDS)
    if kind == "nonsense":
        words = (*COMMANDS, *SYSTEMS, *ABSURD, "--help", "--json", "--version", "-h", "--D", "-D")
        return [one(words) for _ in range(int(draw.integers(1, 4)))]
    if kind in OTHERS:
        subjects, flags = OTHERS[kind]
        words = [kind, one(subjects)]
    else:
        system = one((*["positional_attention"] * 30, *SYSTEMS))
        smallest, sizes = SYSTEMS[system]
        words, flags = [kind, system, *smallest.split(), *one(ENDS[kind]).split()], sizes | FEW
    for name in draw.permutation(list(flags))[: int(draw.integers(4))]:
        value = one(ABSURD if draw.random() < 0.25 else flags[name])
        words += (f"--{name}", value) if draw.random() < 0.5 else (f"--{name}={value}",)
    return words + ["--json"] * (draw.random() < 0.6)


def answer(words):
    """Exit code, stdout and lines on stderr of a request, or a traceback."""
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(words)
    except SystemExit as end:
        code = end.code
    except BaseException:
        return traceback.format_exc(), "", []
    lines = [line for line in err.getvalue().splitlines() if not PROGRESS.search(line)]
    return code, out.getvalue(), [line for line in lines if line not in ("{", "x")]


def complaint(words, code, out, lines, changed):
    """What is wrong with an answer; empty if nothing."""
    if code not in (0, 1, 2, 130):
        return f"exit code {code}"
    if "Traceback" in out or any("Traceback" in line or len(line) > 300 for line in lines):
        return f"said {lines}"
    if code == 2 and (
        changed or len(lines) > 1 or not all(x.startswith("attdyn: ") for x in lines)
    ):
        return f"refused with {lines}, wrote {changed}"
    if code == 1 and not lines:
        return "a failure without a word"
    if code == 0 and "--json" in words and "--help" not in words and out:
        content = json.loads(out, parse_constant=lambda name: {}[name])
        final, remedy = content.get("final", {}), content.get("remedy", "")
        silent = [name for name in final if final[name] is None and name not in remedy]
        if content.get("outcome") == "diverged" or silent:
            return f"went well: {content['outcome']}, without {silent}"
    return ""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A small sweep, attention maps and models, for commands about files; nothing is drawn."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(plotting, "write", lambda axes, path: Path(path).touch() or Path(path))
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    words = "sweep positional_attention --D 4 --C 2 --workers 0 --q 0.4,0.6 --nu 1e-3:1e-2:3:log"
    assert main([*words.split(), "--time", "1", "--out", "store", "--json"]) == 0
    np.save("maps.npy", np.full((2, 2, 4, 4), 0.25))
    for name, text in MODELS.items():
        Path(name).write_text(text, encoding="utf-8")
    return here


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("seed", "count"), [(7, 60), pytest.param(0, 3000, marks=pytest.mark.long)]
)
def test_every_request_ends_well_or_in_one_line(seed, count, folder, tmp_path):
    def files():
        return {path for path in tmp_path.rglob("*") if not {"spare", ".cache"} & {*path.parts}}

    spare, draw, wrong = (
        shutil.copytree(folder, tmp_path / "spare"),
        np.random.default_rng(seed),
        {},
    )
    before = files()
    for words in (request(draw) for _ in range(count)):
        code, out, lines = answer(words)
        if problem := complaint(words, code, out, lines, files() - before):
            wrong[tuple(words)] = problem
        if files() != before:
            shutil.rmtree(tmp_path / "home", ignore_errors=True)
            shutil.rmtree(folder)
            shutil.copytree(spare, folder)
            os.chdir(folder)
    assert wrong == {}
