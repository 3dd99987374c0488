"""Configuration of Sphinx; `build.py` puts the sources together and calls it."""

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

# Markdown as GitHub has it, with formulas between dollar signs, anchors of headings, and figures.
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # notebooks are shown with the outputs that they hold

# Docstrings: numpydoc; a name between single backticks is a reference where there is such a name.
default_role = "py:obj"
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autosummary_generate = True
autosummary_imported_members = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
suppress_warnings = ["ref.python"]  # names of fields that several classes have
nitpicky = True
nitpick_ignore_regex = [
    ("py:class", ".*"),  # types of parameters are words, some of which are names
    ("py:obj", ".*"),  # what stands between backticks has no page where it is not public
]

html_theme = "furo"
html_title = "attdyn"
html_static_path = ["_static", "../../build/site/static"]
html_extra_path = ["../../build/site/extra"]  # pages to explore, as they are
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
mathjax_path = "mathjax.js"  # in one file, which `build.py` puts there: no network
mathjax3_config = {"svg": {"scale": 0.92}}  # letters as high as those of the text
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"


def named(app: Any, env: Any, node: Any, contnode: Any) -> Any:
    """The reference of a name without its package, where one object alone is called so.

    Parameters
    ----------
    app, env, node, contnode
        As Sphinx calls what answers a reference that it cannot resolve.
    """
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
    """Let Sphinx ask `named`."""
    app.connect("missing-reference", named)
