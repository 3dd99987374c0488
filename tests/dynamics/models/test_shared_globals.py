"""A global that one function sets and another reads is that of other constants, sooner or later."""

import numpy as np
import pytest

import dynamics
from dynamics.validation import InvalidRequest

START = """
def start(D=4, target=2.0):
    return {"u": np.full(D, 0.1)}
"""
RISK = """
def risk(theta, xp, target):
    return xp.sum((theta["u"] - target) ** 2) / 2
"""
SETS = """
def start(D=4, target=2.0):
    global TARGET
    TARGET = target
    return {"u": np.full(D, 0.1)}
"""
READS = """
def risk(theta, xp):
    return xp.sum((theta["u"] - TARGET) ** 2) / 2
"""
TABLE = """
TARGET = None


def table():
    global TARGET
    if TARGET is None:
        TARGET = 2.0
    return TARGET
"""
WHERE_NONE = """\
    if TARGET is None:
        TARGET = 2.0
"""
SETUP = f"""
TARGET = None


def setup():
    global TARGET
{WHERE_NONE}"""


def loaded(tmp_path, *parts):
    path = tmp_path / "mine.py"
    path.write_text("\n\n".join(("import numpy as np\n\nTARGET = 0.0", *parts)), encoding="utf-8")
    return dynamics.load_system(path)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ((SETS, READS), "start sets the global TARGET, which risk reads"),
        (
            (SETS, "def goal():\n    return TARGET", READS.replace("TARGET", "goal()")),
            "start sets the global TARGET, which risk reads",
        ),
        (
            (
                "def put(x):\n    global TARGET\n    TARGET = x",
                START.replace("return", "put(target)\n    return"),
                READS.replace("TARGET", "(lambda: TARGET)()"),
            ),
            "start sets the global TARGET, which risk reads",
        ),
        (
            (
                START.replace("0.1", "TARGET + 0.1"),
                "def fixed(target):\n    global TARGET\n    TARGET = target\n"
                "    return {'T': np.ones(1)}",
                RISK,
            ),
            "fixed sets the global TARGET, which start reads",
        ),
        (  # what risk would set itself, start has set before
            (SETS, READS.replace("    return", f"    global TARGET\n{WHERE_NONE}    return")),
            "start sets the global TARGET, which risk reads",
        ),
        (  # the same for all here, and no one can tell it from what is not
            (SETUP, START.replace("return", "setup()\n    return"), READS),
            "top of the file, or by a function that risk calls too",
        ),
    ],
)
def test_what_depends_on_the_order_of_calls_is_refused(tmp_path, parts, words):
    with pytest.raises(InvalidRequest, match=words):
        loaded(tmp_path, *parts)


@pytest.mark.parametrize(
    "parts",
    [
        (START, RISK),
        (START, READS),  # of the file, and the same for all
        (SETS, RISK),  # set, and not read
        (
            SETUP,
            START.replace("return", "setup()\n    return"),
            READS.replace("return", "setup()\n    return"),
        ),
        (TABLE, START.replace("0.1", "table() - 1.9"), READS.replace("TARGET", "table()")),
        (  # start comes before fixed, for all constants
            SETS,
            "def fixed():\n    return {'T': np.full(1, TARGET)}",
            RISK.replace("- target", "- theta['T'][0]").replace(", target", ""),
        ),
    ],
)
def test_what_does_not_is_taken(tmp_path, parts):
    system = loaded(tmp_path, *parts)
    made = [system.ReducedPopulation(system.Parameters(D=n)) for n in (3, 2, 3)]
    risks = [problem.risk(problem.initial_state) for problem in made]
    assert risks[0] == risks[2] == pytest.approx(1.5 * risks[1])


def test_models_in_memory_too():
    def start():
        global _HERE
        _HERE = 1.0
        return {"u": np.ones(1)}

    def risk(theta, xp):
        return (theta["u"][0] - _HERE) ** 2

    with pytest.raises(InvalidRequest, match="start sets the global _HERE, which risk reads"):
        dynamics.load_system(dynamics.Model(start=start, risk=risk))


class _Answering:
    """A global that has every attribute, or none that can be asked for."""

    def __init__(self, answer):
        self._answer = answer

    def __call__(self):
        return 1.0

    def __getattr__(self, name):
        return self._answer()


def _refusing():
    raise RuntimeError("asked")


@pytest.mark.parametrize("answer", [lambda: _Answering(_refusing), _refusing])
def test_objects_that_answer_anything_are_not_looked_into(answer, monkeypatch):
    monkeypatch.setitem(globals(), "_PROXY", _Answering(answer))

    def start():
        return {"u": np.ones(1)}

    def risk(theta, xp):
        return _PROXY() * theta["u"][0] ** 2  # noqa: F821

    system = dynamics.load_system(dynamics.Model(start=start, risk=risk))
    assert system.ReducedPopulation(system.Parameters()).risk([1.0]) == 1.0
