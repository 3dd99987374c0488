"""Claims of the library hold, and do not where the law of their model is broken."""

import pytest

import dynamics
from dynamics.library import library_file
from dynamics.verdicts import verdicts_of
from dynamics.verdicts.findings import Protocol

DIRECTIONS = ("if known == trained:", "if trained or known == trained:")
QUADRATIC = (
    'return -sample["y"] @ xp.log_softmax(logits(theta, sample))',
    'return xp.sum((logits(theta, sample) - sample["y"]) ** 2) / 2',
)
HALF = ("gap(theta, xp), xp", 'gap({"e": theta["e"], "w": theta["w"] / 2**0.5}, xp), xp')
DECAY = ("/ (p + q)\n\n\ndef obs", '/ (p + q) + 0.01 * (1 + theta["e"][0] ** 2)\n\n\ndef obs')
SIZES = {"committee": {"d": 30}}
BROKEN = [
    # A logit that counts twice grows half as fast.
    ("attention_sink", "Sink", None, ('xp.exp(sample["token"]', 'xp.exp(2 * sample["token"]')),
    # Values of the sink that count twice.
    ("attention_sink", "Drain", False, (
        '(sink * theta.get("beta"', '(2 * sink * theta.get("beta"')),
    # Attention on the sink that does not move its value.
    ("attention_sink", "Mutual reinforcement", False, (
        "(sink + W), (sink * theta", "(sink + W), (theta"), (
        "+ copies) / (sink + W)", "+ copies) / (1 + W)")),
    # Overlaps that are not in proportion to 1/d.
    ("committee", "Overlaps", False, ("rows @ rows.T / d", "rows @ rows.T / (d + 1)")),
    # A student of another size is not at the level of the teacher's.
    ("committee", "Plateau", None, ("np.repeat([1 / n, -1 / k]", "np.repeat([2 / n, -1 / k]")),
    # Where one label is that of both tokens, none pulls the other down.
    ("memory_spikes", "Spikes", None, ('"y": np.array([0.0, 1.0])', '"y": np.array([1.0, 0.0])')),
    # Steps of 10 diverge on a curvature that does not vanish, and margins end at a number.
    ("memory_spikes", "Speed", False, QUADRATIC),
    ("memory_spikes", "Margins", None, QUADRATIC),
    # Embeddings that stay correlated at alpha = 0.
    ("memory_spikes", "Interference", False, (
        "np.array([alpha, (1 - alpha**2) ** 0.5])", "np.array([0.95, 0.31])")),
    # Half as much feed-forward: another energy, and another saddle.
    *(pytest.param(("markov_attention", claim, False, HALF), marks=pytest.mark.long)
      for claim in ("Two ends", "Separatrix", "Energy")),
    # A penalty on the embedding, and a constant.
    *(pytest.param(("markov_attention", claim, None, DECAY), marks=pytest.mark.long)
      for claim in ("Global minima", "Local minima")),
    # No attention on the token, from which nothing is known but the arrow.
    ("reversal_curse", "Training", None, (
        '{"shown": shown, ', '{"shown": shown, "unknown": tokens[arrow], '), (
        'sample["shown"] * xp.exp', 'sample["unknown"] * xp.exp')),
    # All directions are trained.
    ("reversal_curse", "Reversal", False, DIRECTIONS),
    ("reversal_curse", "Asymmetry", False, DIRECTIONS),
    # Common tokens tell the next token, and distinct ones do not.
    ("scan_and_snap", "Scan", False, (
        "own[n] = (1 - share) * powers / powers.sum()\n"
        "        x = np.concatenate([np.full(common, share / common), *own])",
        "own[:] = (1 - share) / 2 * powers / powers.sum()\n"
        "        common_of_n = 2 * share / common * (np.arange(common) % 2 == n)\n"
        "        x = np.concatenate([common_of_n, *own])")),
    # The share of a token does not count in the prediction.
    ("scan_and_snap", "Order", False, (
        'theta["Y"].T @ b / ', 'theta["Y"].T @ (b / sample["x"].clip(1e-9)) / ')),
    # Without the norm one token gets all attention.
    ("scan_and_snap", "Snap", None, ("xp.sqrt(xp.sum(b**2))", "0.1")),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::dynamics.TrainingWarning")
@pytest.mark.parametrize("case", BROKEN, ids=lambda case: ", ".join(case[:2]))
def test_a_verdict_changes_where_the_law_is_broken(case, tmp_path):
    name, source, expected, *changes = case
    system = dynamics.load_system(name)
    text = library_file(name).read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "broken.py").write_text(text, encoding="utf-8")
    broken, sizes = dynamics.load_system(tmp_path / "broken.py"), SIZES.get(name, {})
    check = verdicts_of(system, "checks")[source]
    at = [Protocol(one.Parameters(**sizes)) if sizes else Protocol() for one in (system, broken)]
    assert check(system, at[0]).holds is True
    assert check(broken, at[1]).holds is expected
