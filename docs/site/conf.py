"""Sphinx settings of the site; `make book` runs them."""

import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(path) for path in (HERE, ROOT, ROOT / "tools" / "book")]

from api_conf import SETTINGS  # noqa: E402 - found by the line above

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

project = PROJECT["name"]
author = PROJECT["authors"][0]["name"]
copyright = author
version = release = PROJECT["version"]
language = "en"

globals().update(SETTINGS)
# The list that Sphinx makes of a signature in several lines is no valid HTML.
python_maximum_signature_line_length = None
extensions = [
    "myst_nb",
    "sphinx_copybutton",
    "site_navigation",
    "site_search",
    *SETTINGS["extensions"],
]
exclude_patterns = ["downloads"]
root_doc = "index"

# Notebooks: what is stored is shown, and no cell runs.
nb_execution_mode = "off"
nb_merge_streams = True
myst_enable_extensions = [
    "attrs_block",
    "attrs_inline",
    "colon_fence",
    "dollarmath",
]
myst_dmath_double_inline = True
myst_heading_anchors = 4

# Math, from the copy that `tools/book/site_vendor.py` made.
mathjax_path = "mathjax/es5/tex-chtml.js"

html_theme = "sphinx_book_theme"
html_title = f"bertbook {version}"
html_static_path = ["_static", "../../build/site/vendor"]
html_css_files = ["book.css"]
html_js_files = ["book.js"]
html_search_scorer = str(HERE / "search_scorer.js")
html_favicon = "_static/icon.svg"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_last_updated_fmt = None
html_context = {"default_mode": "auto"}  # as the reader's system has it
html_theme_options = {
    "repository_url": PROJECT["urls"]["Repository"],
    "use_repository_button": True,
    "use_download_button": False,
    "use_fullscreen_button": False,
    "navbar_persistent": [],
    "toc_title": "On this page",
    "search_bar_text": "Search the book",
    "footer_content_items": ["extra-footer.html"],
    "extra_footer": f"<p>Version {version}. By {author}. Code, chapters and "
    "samples are under Apache 2.0.</p>",
    "collapse_navbar": True,  # only the branch of the page, on each page
    "show_toc_level": 2,
    "home_page_in_toc": True,
}
copybutton_selector = "div.highlight:not(.cell_output *) > pre"
copybutton_prompt_text = r">>> |\.\.\. "  # the examples of docstrings
copybutton_prompt_is_regexp = True
