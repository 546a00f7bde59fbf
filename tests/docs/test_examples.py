"""Every example in a docstring and in the documentation runs."""

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import sparsebayes

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(sparsebayes.__path__, "sparsebayes.")
    if not module.name.startswith(("sparsebayes.studies", "sparsebayes.cli"))
)
PAGES = sorted(
    path.relative_to(ROOT)
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    if ">>>" in path.read_text(encoding="utf-8") and "_build" not in path.parts and "gallery" not in path.parts
)


def test_every_docstring(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    ran = 0
    for name in MODULES:
        result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
        assert result.failed == 0, name
        ran += result.attempted
    result = doctest.testmod(sparsebayes)
    assert result.failed == 0
    assert ran > 20


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_page(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    result = doctest.testfile(str(ROOT / page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > 0
    assert result.failed == 0
