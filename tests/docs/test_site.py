"""What the documentation site promises: every public name has a page, and so has every command."""

import importlib
import inspect
import re
from pathlib import Path

import pytest
import typer

from sparsebayes.cli.main import app
from sparsebayes.studies.page import title
from sparsebayes.studies.registry import all_studies

DOCS = Path(__file__).parents[2] / "docs"
PACKAGES = [
    "sparsebayes",
    "sparsebayes.applications",
    "sparsebayes.applications.approximation",
    "sparsebayes.applications.images",
    "sparsebayes.basis",
    "sparsebayes.datasets",
    "sparsebayes.design",
    "sparsebayes.estimators",
    "sparsebayes.explain",
    "sparsebayes.export",
    "sparsebayes.inference",
    "sparsebayes.likelihood",
    "sparsebayes.posterior",
    "sparsebayes.report",
    "sparsebayes.tables",
    "sparsebayes.testing",
]


def _listed():
    """Objects that the API page lists."""
    found, home = [], ""
    for line in (DOCS / "api" / "index.md").read_text(encoding="utf-8").splitlines():
        if line.startswith(".. currentmodule::"):
            home = line.split("::")[1].strip()
        elif re.fullmatch(r"   \w+", line):
            found.append(getattr(importlib.import_module(home), line.strip()))
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_on_the_api_page(package):
    module = importlib.import_module(package)
    public = {name: getattr(module, name) for name in module.__all__}
    described = {name: found for name, found in public.items() if inspect.isclass(found) or inspect.isfunction(found)}
    listed = _listed()
    assert described
    assert [name for name, found in described.items() if not any(found is other for other in listed)] == []


def _commands():
    groups = typer.main.get_command(app).commands
    for name, command in groups.items():
        inner = getattr(command, "commands", None)
        yield from ([(name, f"{name} {sub}") for sub in inner] if inner else [(name, name)])


@pytest.mark.parametrize(("page", "command"), list(_commands()))
def test_every_command_has_a_page_and_the_overview_links_to_it(page, command):
    text = (DOCS / "guide" / "commands" / f"{page}.md").read_text(encoding="utf-8")
    assert f"```{{command}} {command}\n" in text
    assert f"(commands/{page}.md)" in (DOCS / "guide" / "command-line.md").read_text(encoding="utf-8")


def test_studies_have_headings_that_mean_something():
    text = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)$", text, re.M)
    for study in all_studies().values():
        assert title({"paper": study.paper, "what": study.what}) in headings
        assert study.name not in headings
