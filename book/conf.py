"""Sphinx's configuration. `make book` stages the sources and starts it: see website.py."""

import sys
from pathlib import Path
from typing import Any

BOOK = Path(__file__).resolve().parent
sys.path.insert(0, str(BOOK))

from docstrings import restructured  # noqa: E402

import companion  # noqa: E402

project = html_title = "Trust regions and PPO"
author = "The trust-region companion's authors"
version = release = companion.__version__
language = "en"
highlight_language = "none"  # of a block that names no language: commands, not Python

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx.ext.napoleon"]
exclude_patterns = ["README.md", "downloads", "generated"]
nitpicky = True
# Types in signatures have pages of their own at best elsewhere, as have names outside the package.
nitpick_ignore_regex = [(r"py:class", ".*"), (r"py:.*", r"(?!companion\.).*")]
suppress_warnings = ["myst.header"]  # the references are headings of the third level

nb_execution_mode = "off"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
mathjax_path = "mathjax/tex-svg-full.js"
mathjax3_config = {"options": {"enableMenu": False}}

default_role = "py:obj"
autodoc_inherit_docstrings = False
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
autodoc_type_aliases = {"FloatArray": "FloatArray", "ArrayLike": "ArrayLike"}
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_custom_sections = [("Reference", "References")]

html_theme = "sphinx_book_theme"
html_static_path = ["_static", "../build/site-static"]
html_favicon = "_static/favicon.svg"
html_css_files = ["book.css"]
html_js_files = ["live.js"]
html_copy_source = False
html_domain_indices = html_use_index = False
html_show_sourcelink = False
html_show_search_summary = False  # it fetches pages, which a page opened from a file may not
html_context = {"default_mode": "auto"}
html_theme_options = {
    "footer_content_items": "",
    "navbar_persistent": [],  # the side bar has the search
    "home_page_in_toc": True,
    "max_navbar_depth": 1,
    "show_toc_level": 2,
    "use_download_button": False,
    "use_fullscreen_button": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def restructure(_app: Any, _what: str, _name: str, _obj: Any, _opts: Any, lines: list[str]) -> None:
    lines[:] = restructured(lines)


def skip(_app: Any, _what: str, _name: str, obj: Any, _skip: bool, _options: Any) -> bool | None:
    """Leave out what named tuples say of their fields by themselves."""
    return (
        True if (getattr(obj, "__doc__", "") or "").startswith("Alias for field number") else None
    )


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", restructure, priority=100)  # before napoleon
    app.connect("autodoc-skip-member", skip)
