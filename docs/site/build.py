"""Build the site: ``python docs/site/build.py [--out build/html]``; warnings are errors.

`sources` and `pages` write the Markdown sources to ``build/site``, Sphinx converts them to HTML
that needs no server and no network, and `links` checks every link.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))


def mathjax() -> Path:
    """Path of the MathJax bundle (one file, with fonts) in its installed package."""
    (file,) = (
        path for path in metadata.files("sphinx-mathjax-offline") or () if path.name == "tex-svg.js"
    )
    return Path(str(file.locate()))


def main() -> int:
    """Build the site; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", metavar="DIR", help="build/html by default")
    options = parser.parse_args()
    if find_spec("sphinx") is None:
        parser.error("Sphinx is not installed: pip install -e '.[docs]', or make docs")
    from links import check
    from pages import write
    from sources import ROOT, gather
    from sphinx.cmd.build import main as sphinx

    out = Path(options.out or ROOT / "build" / "html")
    if out.exists() and not (out / "objects.inv").is_file() and (out.is_file() or [*out.iterdir()]):
        parser.error(f"{out} is there, and is not a site; the build would replace it")
    folder = ROOT / "build" / "site"
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("static", "extra"):
        (folder / name).mkdir(parents=True)
    shutil.copyfile(mathjax(), folder / "static" / "mathjax.js")
    write(folder)
    gather(folder)
    shutil.rmtree(out, ignore_errors=True)
    words = ["-b", "html", "-c", str(HERE), "-d", str(ROOT / "build" / "doctrees")]
    code = sphinx([*words, "-W", "--keep-going", "--fresh-env", "-q", str(folder), str(out)])
    return code or check(out)


if __name__ == "__main__":
    sys.exit(main())
