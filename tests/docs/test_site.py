"""What the documentation site promises: every public name has a page, and so has every command."""

import importlib
import inspect
import re
import shlex
from pathlib import Path

import pytest
import typer

import sparsebayes
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


@pytest.mark.parametrize("name", [name for name in sparsebayes.__all__ if inspect.isclass(getattr(sparsebayes, name))])
def test_the_parameters_described_are_those_that_there_are(name):
    cls = getattr(sparsebayes, name)
    _, _, described = inspect.getdoc(cls).partition("Parameters\n----------\n")
    described = re.split(r"\n\w+\n-+\n", described)[0]
    names = [one for line in re.findall(r"^(\w[\w, ]*) :", described, re.M) for one in line.split(", ")]
    assert names
    assert sorted(names) == sorted(inspect.signature(cls).parameters)


def _commands():
    groups = typer.main.get_command(app).commands
    for name, command in groups.items():
        inner = getattr(command, "commands", None)
        yield from ([(name, f"{name} {sub}") for sub in inner] if inner else [(name, name)])


@pytest.mark.parametrize(("page", "command"), list(_commands()))
def test_every_command_has_a_page_and_the_overview_links_to_it(page, command):
    text = (DOCS / "guide" / "commands" / f"{page}.md").read_text(encoding="utf-8")
    assert any(f"```{{command}} {shown}\n" in text for shown in (page, command))
    assert f"(commands/{page}.md)" in (DOCS / "guide" / "command-line.md").read_text(encoding="utf-8")


def _lines():
    """Commands that a reader may copy: from blocks, from code within a line, and from the commands' own help."""
    root = DOCS.parent
    for path in sorted([root / "README.md", *DOCS.glob("*.md"), *DOCS.glob("guide/**/*.md")]):
        text = path.read_text(encoding="utf-8")
        for block in re.findall(r"^```console\n(.*?)^```", text, re.S | re.M):
            yield from (line for line in block.splitlines() if line.startswith("sparsebayes "))
        yield from (" ".join(found.split()) for found in re.findall(r"`(sparsebayes [^`]* [^`]*)`", text))
    for _, name in _commands():
        command = typer.main.get_command(app)
        for word in name.split():
            command = command.commands[word]
        yield from (line.strip() for line in (command.help or "").splitlines() if line.startswith("  sparsebayes "))


@pytest.mark.parametrize("line", sorted(set(_lines())))
def test_every_command_that_is_shown_is_understood(line):
    words = shlex.split(re.split(r" [|>] ", line)[0], comments=True)[1:]
    if any(word.isupper() or "[" in word for word in words):  # a line with names to be filled in
        words = [word.strip("[]").lower() for word in words]
    command, name = typer.main.get_command(app), "sparsebayes"
    with command.make_context(name, list(words), resilient_parsing=False) as context:
        while isinstance(command, typer.core.TyperGroup):
            rest = [*context._protected_args, *context.args] if hasattr(context, "_protected_args") else context.args
            name, command, words = command.resolve_command(context, rest)
            context = command.make_context(name, words, parent=context)


def test_studies_have_headings_that_mean_something():
    text = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)$", text, re.M)
    for study in all_studies().values():
        assert title({"paper": study.paper, "what": study.what}) in headings
        assert study.name not in headings
