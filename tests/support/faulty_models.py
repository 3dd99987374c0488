"""A model file that is right, and its text with some of it replaced."""

from pathlib import Path

BASE = (Path(__file__).parent / "models/two_samples.py").read_text(encoding="utf-8")

LOSS = '    return (a * xp.sum(theta["w"] * sample["x"]) + theta["b"] - sample["y"]) ** 2\n'
WEIGHTS = "np.full(n, 0.1)"
FIRST = "np.eye(n)[0]"
LAW = BASE[BASE.index("def law") : BASE.index("def loss")]
OTHER_LINE = BASE.count("\n") + 2
"""Of the first line after the model."""
SWAP = 'axes = {"w": ("i",), "b": ()}\n\ndef symmetry():\n    return [{"i": (1, 0)}]\n'
LINE = BASE[: BASE.index(LOSS)].count("\n") + 1
"""Of the first line of the loss."""


def bent(*changes, more=""):
    """The model with some of its text replaced."""
    text = BASE
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text + "\n" + more


def lost(body, more=""):
    """The model with another loss."""
    return bent((LOSS, body), more=more)


DRAWN = bent(
    (LAW, 'def sample(rng, n, q=0.5):\n    return {"x": rng.standard_normal(n), "y": q}\n\n\n')
)
