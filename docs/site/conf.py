"""Configuration of Sphinx; `build.py` writes the sources and runs it."""

from importlib import metadata
from typing import Any

project = "attdyn"
author = "The attdyn developers"
copyright = "the attdyn developers; Apache-2.0"
release = version = metadata.version("attdyn")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "myst_nb",
    "sphinx_design",
    "sphinx.ext.mathjax",
]
root_doc = "index"
exclude_patterns = ["static", "extra"]

# Markdown of GitHub, with formulas between dollar signs, heading anchors and figures.
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # notebooks are shown with their stored outputs
nb_render_markdown_format = "myst"  # formulas in Markdown outputs

# Docstrings: numpydoc; a name in single backticks links to its documentation if it has one.
default_role = "py:obj"
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autosummary_generate = True
autosummary_imported_members = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
suppress_warnings = ["ref.python"]  # several classes have fields of the same name
nitpicky = True
nitpick_ignore_regex = [
    ("py:class", ".*"),  # parameter types are plain words; some are also names of classes
    ("py:obj", ".*"),  # private names in backticks have no page
]

html_theme = "furo"
html_title = "attdyn"
html_static_path = ["_static", "../../build/site/static"]
html_extra_path = ["../../build/site/extra"]  # pages to explore, copied unchanged
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
mathjax_path = "mathjax.js"  # local copy, put there by `build.py`: no network
mathjax3_config = {"svg": {"scale": 0.92}}  # letters of formulas as high as those of the text
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"


def named(app: Any, env: Any, node: Any, contnode: Any) -> Any:
    """Resolve a reference to a name without its package, if one object alone has this name."""
    if node.get("refdomain") != "py":
        return None
    objects = env.domains["py"].objects
    found = {name for name in objects if f".{name}".endswith(f".{node['reftarget']}")}
    if len(found) != 1:
        return None
    from sphinx.util.nodes import make_refnode

    (name,) = found
    entry = objects[name]
    page = node.get("refdoc", env.docname)
    return make_refnode(app.builder, page, entry.docname, entry.node_id, contnode, name)


def setup(app: Any) -> None:
    """Connect `named` to Sphinx's event ``missing-reference``."""
    app.connect("missing-reference", named)
