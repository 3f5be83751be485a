"""Sphinx's configuration of the documentation site; `make site` builds it.

No page loads anything from another host, so that the site works offline and from ``file://``.
"""

import sys
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from docs.pages import links  # noqa: E402 - found by the line above
from docs.pages.highlighting import ConsoleLexer, HloLexer  # noqa: E402

project = "hlo-indexing"
release = metadata.version(project)
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
nitpicky = True
default_role = "py:obj"  # single backquotes in docstrings: a link if the name is documented

html_theme = "furo"
html_title = project
html_domain_indices = False  # the reference is sorted by room
html_copy_source = False
html_show_copyright = False
pygments_dark_style = "a11y-high-contrast-dark"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_theme_options = {"navigation_with_keys": True}

myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline"]  # anchors in rows of tables
myst_links_external_new_tab = False
nb_execution_mode = "off"  # outputs are those in the notebooks; a test executes them
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # would be loaded from another host

autodoc_default_options = {"inherited-members": "object"}
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
napoleon_custom_sections = [("Attributes", "params_style"), ("Class attributes", "params_style")]
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def setup(app: Any) -> None:
    """Register lexers and the resolution of links."""
    app.add_lexer("hlo", HloLexer)
    app.add_lexer("console", ConsoleLexer)
    app.add_post_transform(links.PlainNames)
    app.connect("autodoc-process-docstring", links.keep_returns, priority=400)  # before napoleon
    app.connect("autodoc-process-signature", links.without_private)
    app.connect("autodoc-skip-member", links.is_skipped)
    app.connect("missing-reference", links.resolve_reference)
