"""``attdyn derive --standalone``: documents that a TeX compiles, where there is one."""

import shutil
import subprocess

import pytest

import dynamics

TEX = next((t for t in ("tectonic", "pdflatex", "lualatex", "xelatex") if shutil.which(t)), None)


@pytest.mark.long
@pytest.mark.skipif(TEX is None, reason="there is no TeX")
@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("positional_attention", {}),
        ("positional_attention", {"p": 5, "random_sets": "mixed"}),
        ("masked_image_modeling", {}),
        ("masked_image_modeling", {"family": "two_cluster_grid"}),
        ("shallow_vit", {}),
        ("shallow_vit", {"data": "iid", "loss": "linear"}),
        ("softmax_icl", {"N": 4}),
    ],
)
def test_documents_compile(tmp_path, name, given):
    system = dynamics.load_system(name)
    made = system.derivation(system.Parameters(**given) if given else None)
    (tmp_path / "page.tex").write_text(made.as_latex(standalone=True))
    flags = [] if TEX == "tectonic" else ["-interaction=nonstopmode", "-halt-on-error"]
    done = subprocess.run([TEX, *flags, "page.tex"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "page.pdf").stat().st_size > 10_000
    if not given:
        assert "Overfull" not in done.stdout
