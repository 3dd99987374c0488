"""The description of the toy model of mock_worker.js: one of each kind of control."""

from pathlib import Path

from dynamics.explorer.page import page


def letter(text, index=""):
    base = f"<mi>{text}</mi>"
    return f"<math>{f'<msub>{base}<mn>{index}</mn></msub>' if index else base}</math>"


def constant(name, kind, default, meaning, **entries):
    usual = {
        "mathml": letter(name), "minimum": None, "maximum": None, "open_minimum": False,
        "open_maximum": False, "values": None, "logarithmic": False, "ends": "",
    }  # fmt: skip
    return {"name": name, "kind": kind, "default": default, "meaning": meaning} | usual | entries


DIVISORS = {str(D): [C for C in range(2, 13) if D % C == 0] or [D] for D in range(4, 25)}
DESCRIPTION = {
    "name": "toy",
    "title": "Two scalars that wait for each other",
    "source": "A toy model of the tests",
    "summary": "x stays on its plateau until y has grown, and y grows as x does: <three> events.",
    "command": "attdyn run toy",
    "constants": [
        constant("D", "whole", 16, "patches", minimum=4, maximum=24,
                 ends="D > 24 has more configurations than a browser sums in a frame"),
        constant("C", "whole", 4, "sets of patches", minimum=2, maximum=12,
                 divides="D", divisors=DIVISORS),
        constant("q", "real", 0.5, "probability of a nonzero sign", minimum=0, maximum=1,
                 open_minimum=True, open_maximum=True),
        constant("p", "whole", 3, "degree of the activation", minimum=1, maximum=7,
                 values=[1, 3, 5, 7]),
        constant("nu", "real", 1e-3, "start", mathml=letter("ν"), minimum=1e-6, maximum=1,
                 logarithmic=True),
        constant("law", "word", "mixed", "law of the sets", mathml="", values=["mixed", "any"]),
    ],
    "presets": {"a late start": {"D": 24, "nu": 0.002, "time": 5000}},
    "states": [
        {"name": "x", "mathml": letter("x"), "meaning": "the first scalar", "group": 0},
        {"name": "y", "mathml": letter("y"), "meaning": "the second scalar", "group": 1},
    ],
    "groups": ["x", "y"],
    "observables": [{"name": "risk", "mathml": letter("R"), "meaning": "population risk"}],
    "events": [
        {"name": "T0", "mathml": letter("T", "0"), "meaning": "x reaches 0.1"},
        {"name": "T1", "mathml": letter("T", "1"), "meaning": "y reaches 1/2"},
        {"name": "late_event", "mathml": letter("T", "2"), "meaning": "x reaches 0.999"},
    ],
    "panels": [
        {"names": ["x", "y"], "logarithmic": False, "title": "scalars"},
        {"names": ["risk"], "logarithmic": True, "title": "risk"},
    ],
    "matrices": [
        {"name": "S", "title": "attention", "meaning": "rows sum to 1", "classes": [
            {"label": "itself", "value": "a"}, {"label": "same set", "value": "b"},
            {"label": "other sets", "value": "c"}]},
    ],
    "plane": {"x": "x", "y": "y"},
    "derivation": (
        "<math display='block'><mfrac><mrow><mi>d</mi><mi>x</mi></mrow><mrow><mi>d</mi><mi>τ</mi>"
        "</mrow></mfrac><mo>=</mo><mi>x</mi><mi>y</mi><mo>(</mo><mn>1</mn><mo>-</mo><mi>x</mi>"
        "<mo>)</mo></math>"
        "<math display='block'><mtable><mtr><mtd columnalign='right'><mi>x</mi></mtd>"
        "<mtd columnalign='left'><mo>=</mo><mn>1</mn></mtd></mtr><mtr><mtd columnalign='right'>"
        "<mi>wide</mi></mtd><mtd columnalign='left'><mo>=</mo><mi>wider</mi></mtd></mtr></mtable>"
        "</math>"
    ),
    "run": {"eta": 0.1, "steps": 5000, "horizon": 1000.0, "least_time": 0.1},
    "version": "0.0.0",
}  # fmt: skip


def worker():
    return (Path(__file__).with_name("mock_worker.js")).read_text(encoding="utf-8")


def write(path, **changes):
    """Write the page of the toy model, and return its address."""
    path.write_text(page(DESCRIPTION | changes, worker()), encoding="utf-8")
    return path.as_uri()
