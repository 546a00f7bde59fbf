"""MathJax beside the pages, so that formulas are set where there is no network.

The scripts and fonts come from the package ``sphinx-mathjax-offline``; only what the pages use is copied.
"""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

# The script itself, the macros that it fetches when they are met, and its fonts.
_USED = ("tex-chtml.js", "input/tex/extensions", "output/chtml/fonts/woff-v2")


def _copy(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    found = find_spec("sphinx-mathjax-offline")
    if found is None or found.origin is None:
        raise ImportError("MathJax is not installed: pip install sphinx-mathjax-offline (the extra 'docs' has it)")
    source, target = Path(found.origin).parent / "static" / "mathjax", Path(app.outdir) / "_static" / "mathjax"
    for used in _USED:
        if (source / used).is_dir():
            shutil.copytree(source / used, target / used, dirs_exist_ok=True)
        else:
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy(source / used, target / used)


def setup(app: Sphinx) -> dict[str, Any]:
    """Point the pages to the copy, and make it when they are written."""
    app.setup_extension("sphinx.ext.mathjax")
    app.config.mathjax_path = "mathjax/tex-chtml.js"
    app.connect("build-finished", _copy)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
