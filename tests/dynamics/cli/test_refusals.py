"""Absurd requests end in one short line, exit code 2 and nothing written; failed runs in 1."""

import json

import pytest

from dynamics.cli import main

MANY = "9" * 400
ATTENTION = "positional_attention"
SMALL = [ATTENTION, "--D", "4", "--C", "2"]


FILES = {
    "unknown.toml": "nuu = 1.0", "words.toml": 'D = "16"', "syntax.toml": "D = = 16",
    "thesis.tex": "years of work",
}  # fmt: skip
COMPARE, RUN, SWEEP = (f"{command} {ATTENTION}" for command in ("compare", "run", "sweep"))
PHASE_RUN = f"{RUN} --D 8 --C 2 --steps 20"
REFUSED = {
    "comprae positional_attention": "command 'comprae' is unknown",
    "compare positional": "system 'positional' is unknown",
    "systems all": "takes no words",
    f"{COMPARE} --D 16 --C 5": "C=5 does not divide D=16; C can be 2, 4, 8; nearest: 4",
    f"{COMPARE} --D 16 --C 16": "C=16 equals D=16; C can be 2, 4, 8; nearest: 8",
    f"{COMPARE} --D -4": "D=-4 is too small; D can be a whole number of at least 4; nearest: 4",
    f"{COMPARE} --p 4": "p=4 is even; p can be an odd number of at least 3",
    f"{COMPARE} --steps 0": "steps=0 is too small; steps can be a whole number of at least 1",
    f"{COMPARE} --D 16 --C 4": "D=16 needs about 2.1e+06 configurations",
    f"{COMPARE} --out .": "out='.' is the working folder or holds it",
    f"{COMPARE} --seeds 2": "seeds needs --full empirical",
    f"{COMPARE} --width 2": "width=2 is too small",
    f"{COMPARE} --config missing.toml": "cannot be read (no such file or directory)",
    f"{COMPARE} --config unknown.toml": "'nuu' is unknown; known are C, D",
    f"{COMPARE} --config words.toml": "D='16' is not a number",
    f"{COMPARE} --config syntax.toml": "config='syntax.toml' is not TOML",
    f"{RUN} --q 0.1:0.5:3": "q='0.1:0.5:3' needs attdyn sweep, or one value",
    f"{RUN} --D {MANY}": "at most 1,000,000; nearest: 1000000",
    f"{RUN} --time 1 --steps 9": "give steps (descent) or time (flow)",
    f"{RUN} --time 1 --eta 0.1,-3": "eta=-3 is too small",
    f"{RUN} --time 1 --eta 1e-300": "at least 1e-12",
    f"{RUN} --out {'o' * 300}": "file name too long",
    f"{RUN} --format jpg": "format='jpg' is unknown; format can be png, svg, pdf",
    f"{RUN} --full empiric": "full problem 'empiric' is unknown",
    f"{RUN} --full empirical --D 12 --C 4 --partition grid": "grid",
    f"{RUN} --full empirical --expectation exact": "expectation needs the reduced problem",
    f"{RUN} --full empirical --time 1 --batch 2": "batch",
    f"{RUN} --lr 3": "flag '--lr' is unknown; known are --C, --D",
    f"{RUN} --seeds 3": "; nearest: --seed",
    f"{PHASE_RUN} --csv t.txt": "can end in .csv",
    f"{PHASE_RUN} --out r --csv r/t.csv": "csv='r/t.csv' is inside the result",
    f"{PHASE_RUN} --out=~nobody_here/x": "out='~nobody_here/x' begins with ~nobody_here",
    f"{SWEEP} --time 5 --out ~nobody_here/x": "out='~nobody_here/x' begins with ~nobody_here",
    f"{PHASE_RUN} --resume": "there is nothing to resume: no checkpoint",
    f"{RUN} --resume --time 9": "resume needs gradient descent",
    f"{PHASE_RUN} --checkpoint thesis.tex": "checkpoint='thesis.tex' cannot be read",
    f"{PHASE_RUN} --out x --checkpoint x/inside": "'x/inside' is inside the result",
    f"{PHASE_RUN} --checkpoint thesis.tex/c": "checkpoint='thesis.tex/c' cannot be written",
    f"{SWEEP} --nu floor((-1)**0.5)": "not real",
    f"{SWEEP} --C 3 --D 16": "C=3 does not divide D=16",
    f"{SWEEP} --C 2,3 --D 16 --strict": "1 points cannot be run: C=3 does not divide",
    f"{SWEEP} --let q=1": "give it as --q",
    f"{SWEEP} --let m=3": "no formula uses it",
    f"{SWEEP} --time 1 --eta 0.1": "not both",
    f"{SWEEP} --workers -1": "workers=-1 is too small",
    f"{SWEEP} --workers 1 --scheduler tcp://x:1": "exclude each other",
    f"phase store --out {'a' * 300}.png": "file name too long",
    "phase none": "holds no sweep; attdyn sweep makes one",
    f"verify {ATTENTION} --claims {'k' * 999}": "nearest",
    f"figure {ATTENTION} phase --q 0.3": "q is an axis",
    f"figure {ATTENTION} deviation --option seeds=many": "a whole number, not 'many'",
    f"figure {ATTENTION} 4 --format svg --out p.png": "format='svg' does not fit out='p.png'",
    f"derive {ATTENTION} --standalone --as text": "standalone needs as=latex",
    "gallery shallow_vit": "shallow_vit is not a model file; gallery needs one",
}


@pytest.mark.parametrize("words", REFUSED, ids=lambda words: words[:60])
def test_a_wrong_request_is_one_line_exit_code_2_and_nothing_written(elsewhere, capsys, words):
    for name, text in FILES.items():
        (elsewhere / name).write_text(text)
    assert main(words.split()) == 2
    out, err = capsys.readouterr()
    assert REFUSED[words] in err
    assert (out, err.count("\n"), err[:8]) == ("", 1, "attdyn: ")
    assert len(err) <= 400
    assert {path.name: path.read_text() for path in elsewhere.iterdir()} == FILES


@pytest.mark.parametrize("command", ["phase", "status"])
def test_a_store_whose_description_is_nested_without_end_is_refused(command, tmp_path, capsys):
    store = tmp_path / "store"
    store.mkdir()
    (store / "zarr.json").write_text("[" * 100_000 + "]" * 100_000)
    assert main([command, str(store)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["run", *SMALL, "--steps", "1", "--out", str(store)]) == 2
    assert "is not a result" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:constrained_layout")
@pytest.mark.parametrize(
    "words",
    [
        ["shallow_vit", "--xi", "1e200", "--steps", "1"],
        ["shallow_vit", "--xi", "1e200", "--steps", "3", "--full", "population", "--m", "4"],
        [*SMALL, "--alpha0", "1e160", "--steps", "1", "--eta", "1e-300"],
        [*SMALL, "--alpha0", "1e160", "--time", "1e-200"],
        [ATTENTION, "--alpha0", "1e100", "--time", "288"],
    ],
)
def test_a_risk_or_state_that_is_not_finite_is_an_outcome(words, capsys):
    assert main(["run", *words, "--json"]) == 1
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert document["outcome"] in ("diverged", "precision lost")
    assert document["remedy"]
    assert f"attdyn: {document['outcome']} at " in printed.err.splitlines()[-1]
