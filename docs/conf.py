"""The documentation site; ``make docs`` builds it and treats every warning as an error."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))
sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from sparsebayes import __version__

project = "sparsebayes"
author = "the sparsebayes developers"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx.ext.viewcode",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "commands",
    "mathjax_here",
]

templates_path = ["_templates"]
exclude_patterns = ["_build", "_extensions", "gallery/*.ipynb", "gallery/*.py", "**/README.*"]
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
# The descriptions list attributes and methods themselves.
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "download_all_examples": False,
    "show_memory": False,
    "abort_on_example_error": True,
    "plot_gallery": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "sparsebayes"
html_theme_options = {"show_prev_next": False, "navigation_with_keys": True, "header_links_before_dropdown": 4}
# Pages that are no part of a section have the whole width.
html_sidebars = {"*": []}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
