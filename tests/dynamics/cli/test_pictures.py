"""Short requests of every kind: whatever they lead to, it can be drawn."""

import json
from pathlib import Path

import numpy as np
import pytest

from dynamics import plotting
from dynamics.cli import main
from dynamics.plotting import style

MODELS = Path(__file__).parents[2] / "support" / "models"


@pytest.fixture(autouse=True)
def sketched():
    """These pictures are written as users see them."""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def power(rng, low, high):
    """A number of any size, with two digits."""
    return f"{10 ** rng.uniform(low, high):.1e}"


def some(rng, *choices):
    return str(choices[rng.integers(len(choices))]).split()


def attention(rng):
    words = ["positional_attention", *some(rng, "--D 4 --C 2", "--D 8 --C 2", "--D 9 --C 3")]
    words += ["--nu", power(rng, -8, 1), "--beta", power(rng, -2, 1.5), "--p", *some(rng, 3, 5)]
    words += ["--q", f"{rng.uniform(0.05, 1):.2f}", "--random_sets", *some(rng, "any", "mixed")]
    return words + some(rng, "", "", "--full population", "--full empirical --samples 20")


def masked(rng):
    sizes = [(12, 8, 2, 3), (16, 8, 2, 4), (60, 36, 3, 20)]
    chosen = sizes[rng.integers(len(sizes))]
    names = ("--P", "--C_global", "--C_local", "--masked")
    pairs = zip(names, map(str, chosen), strict=True)
    words = ["masked_image_modeling", *(word for pair in pairs for word in pair)]
    small = ["--full population"] if chosen[0] < 20 else []
    return words + some(rng, "", "", *small, "--full empirical --samples 20")


def vit(rng):
    words = ["shallow_vit", "--m", *some(rng, 24, 48), "--L", *some(rng, 10, 20), "--d", "8"]
    words += ["--alpha_confusion", *some(rng, 0, 0.1), "--noise", *some(rng, 0, 0.01)]
    words += [
        "--margin",
        power(rng, -1, 1.5),
        "--output_weights",
        *some(rng, "shared", "per_position"),
    ]
    return words + some(rng, "", "--full population", "--full empirical --samples 6")


def own(rng):
    names = ("deep_linear", "two_samples", "linear_attention", "single_location")
    return [str(MODELS / f"{some(rng, *names)[0]}.py")]


def trained(rng):
    """A run or a comparison of few steps, or of a flow."""
    words = [attention, attention, masked, vit, own][rng.integers(5)](rng)
    if rng.random() < 0.2:
        descent = rng.random() < 0.2  # of a thousand steps at most
        time = ["--time", power(rng, -6, -5 if descent else 2)]
        return ["run", *words, *time, *(["--eta", power(rng, -8, -6)] if descent else [])]
    steps = ["--steps", *some(rng, 1, 2, 3, 7, 60), "--eta", power(rng, -9, 1.5)]
    return [*some(rng, "run", "run", "compare"), *words, *steps]


def measured(rng):
    """Attention maps of some model."""
    maps = rng.random((int(rng.integers(1, 4)), int(rng.integers(1, 5)), 9, 9)) ** rng.integers(40)
    np.save("maps.npy", maps / maps.sum(-1, keepdims=True))
    return ["diversity", "maps.npy", "--k", str(rng.integers(1, 10)), "--out", "p.png"]


def swept(rng):
    """A picture of a small sweep, which is made at the first request."""
    if not Path("s.zarr").exists():
        axes = ["--D", "4,8", "--C", "2", "--nu", "1e-9:1:3:log", "--time", "1e-3,10"]
        assert (
            main(["sweep", "positional_attention", *axes, "--workers", "0", "--out", "s.zarr"]) == 0
        )
    words = ["phase", "s.zarr", "--out", "p.png", "--quantity"]
    words += some(rng, "alpha", "gamma", "rho", "risk", "error", "time_T0", "reached(T0)", "G")
    words += some(rng, "", "--slices", "--x nu --y time", "--x nu --at D=4,time=10", "--x D --y nu")
    return words + some(rng, "", "", "--contours T0,T1", "--fit nu,time")


def ends_well(words, capsys):
    """Whether a request was drawn; nothing else than a refusal may come instead."""
    capsys.readouterr()
    code = main([*words, "--json"])
    captured = capsys.readouterr()
    assert "cannot be written" not in captured.err, (words, captured.err)
    if code == 2:
        assert captured.err.splitlines()[-1].startswith("attdyn: ")
        return False
    document = json.loads(captured.out)
    folder = Path(document.get("folder", "."))
    least = {".png": 1000, ".txt": 10}  # a picture, and its caption
    sizes = {name: (folder / name).stat().st_size for name in document["files"]}
    assert all(size > least[Path(name).suffix] for name, size in sizes.items()), (words, sizes)
    return bool(document["files"])


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
def test_every_short_request_is_drawn(capsys, seed):
    """Thirty a seed; some of them are refused, as sweeps that do not hold what is asked for."""
    rng, kinds = np.random.default_rng(seed), [trained, trained, trained, trained, measured, swept]
    requests = [kinds[k % len(kinds)](rng) for k in range(30)]
    assert sum(ends_well(words, capsys) for words in requests) > 15


SHORT = [
    "run positional_attention --D 8 --C 2 --steps 2 --eta 1e-5",
    "run positional_attention --D 4 --C 2 --steps 3 --eta 1e-9 --alpha0 0.3 --full population",
    "run masked_image_modeling --P 12 --C_global 8 --C_local 2 --masked 3 --steps 2 --eta 1e-9",
    # Nothing of a logarithmic panel is positive.
    "compare positional_attention --D 4 --C 2 --nu 3.3 --beta 6.5 --p 5 --q .32 "
    "--random_sets mixed --steps 7 --eta 1.2",
]


@pytest.mark.parametrize("words", SHORT)
def test_almost_constant_curves_are_drawn(capsys, words):
    assert ends_well(words.split(), capsys)


NARROW = [(3.162e-2, 1e-4), (3.162e-2, 1e-13), (0.689031, 1e-6), (123456.0, 1e-3), (1e300, 0.5)]


def test_values_that_differ_by_rounding_are_drawn_as_a_constant(tmp_path):
    """Logarithms of limits one rounding apart are equal, and no axis has a width of 0."""
    _, (rounded, constant) = style.new_figure(3, 4, nrows=2)
    value = 0.1630455455472131
    rounded.plot([1, 2], [value, np.nextafter(value, 1.0)])
    constant.plot([1, 2], [value, value])
    for axes in (rounded, constant):
        style.logarithmic(axes)
    plotting.write(rounded, tmp_path / "p.svg")
    assert rounded.get_ylim() == constant.get_ylim()
    assert rounded.get_ylim()[1] > 2 * rounded.get_ylim()[0]


@pytest.mark.parametrize(("low", "width"), NARROW)
def test_ticks_of_an_axis_differ_however_narrow_it_is(low, width, tmp_path):
    _, (linear, logarithmic) = style.new_figure(3, 4, nrows=2)
    for axes in (linear, logarithmic):
        axes.plot([1, 2], [low, low * (1 + width)])
    linear.set_ylabel("y")
    style.offset_in_label(linear)
    style.logarithmic(logarithmic)
    plotting.write(linear, tmp_path / "p.svg")
    low, high = logarithmic.get_ylim()
    ticks = [
        text.get_text()
        for text, place in zip(logarithmic.get_yticklabels(), logarithmic.get_yticks(), strict=True)
        if low <= place <= high
    ]
    assert len(set(ticks)) == len(ticks)


def test_format_width_and_time_are_chosen(capsys):
    words = ["run", "positional_attention", "--D", "4", "--C", "2", "--steps", "3", "--out", "x"]
    assert main([*words, "--format", "svg", "--width", "8.6", "--linear", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"] == ["training.svg"]
    assert 'width="243.7' in Path("x/training.svg").read_text()
    assert main([*words, "--format", "pdf", "--force"]) == 0
    assert Path("x/training.pdf").exists()
    assert not Path("x/training.svg").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("run --format jpg", "format='jpg' is unknown; format can be png, svg, pdf"),
        ("compare --width 2", "width=2 is too small"),
        ("run --width wide", "width='wide' is not a number"),
        ("figure 4 --format svg --out p.png", "format='svg' does not fit out='p.png'; nearest: "),
        ("figure 4 --width 0", "width=0 is too small"),
    ],
)
def test_wrong_formats_and_widths_are_one_line(capsys, words, said):
    command, *rest = words.split()
    assert main([command, "positional_attention", *rest]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not Path("results").exists()


def test_constants_that_have_no_room_are_in_a_caption(capsys, elsewhere):
    names = ", ".join(f"c{k}={k}.0" for k in range(130))
    text = "import numpy as np\n\n\ndef start(n=2):\n    return {'w': np.ones(n)}\n\n\n"
    text += f"def risk(theta, xp, {names}):\n    return 0.5 * xp.sum((theta['w'] - c0 * c1) ** 2)\n"
    (elsewhere / "many.py").write_text(text)
    assert main(["run", "many.py", "--steps", "20", "--eta", "0.1", "--out", "x"]) == 0
    assert "caption  x/training.caption.txt" in capsys.readouterr().out
    caption = Path("x/training.caption.txt").read_text()
    assert all(f" = {k}$" in caption for k in range(130))
    assert "training.caption.txt" in json.loads(Path("x/summary.json").read_text())["files"]
