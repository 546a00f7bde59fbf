"""The directive ``command``: what a command of the program says of itself, so that its page cannot fall behind it."""

from __future__ import annotations

from typing import Any

import typer
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from sparsebayes.cli.main import app as program


def find(name: str) -> Any:
    """The command of that name; a word after a space is a command of a group."""
    found: Any = typer.main.get_command(program)
    for word in name.split():
        found = found.commands[word]
    return found


def as_markdown(name: str) -> str:
    """Usage, description, arguments and options of a command, or of each command of a group."""
    command = find(name)
    if hasattr(command, "commands"):
        parts = [f"**sparsebayes {name} {inner}**\n\n{as_markdown(f'{name} {inner}')}" for inner in command.commands]
        return "\n\n".join(parts)
    context = command.make_context(name, [], resilient_parsing=True)
    usage = " ".join(["sparsebayes", name, *command.collect_usage_pieces(context)])
    lines = ["```console", usage, "```", "", *_description(command.help or "")]
    rows = [record for found in command.params if (record := _record(found, context))]
    lines += ["", "| argument or option | for |", "|---|---|"]
    lines += [f"| {' '.join(f'`{part}`' for part in names)} | {text} |" for names, text in rows]
    return "\n".join(lines)


def _description(text: str) -> list[str]:
    """Paragraphs as they are, and what stands verbatim (after a backspace) as commands."""
    lines: list[str] = []
    for block in text.split("\n\n"):
        if not block.startswith("\b"):
            lines += [block.replace("``", "`"), ""]
            continue
        heading, *examples = block.removeprefix("\b").strip().splitlines()
        lines += [heading, "", "```console", *(example.strip() for example in examples), "```", ""]
    return lines


def _record(parameter: Any, context: Any) -> tuple[list[str], str] | None:
    found = parameter.get_help_record(context)
    if found is None or "--help" in parameter.opts:
        return None
    names = [part.strip().replace("list[str]", "str") for part in found[0].split(",")]
    return names, found[1].replace("``", "`").replace("|", "\\|")


class Command(SphinxDirective):
    """``{command} fit``: the command's own help, as a page has it."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return what the help says, parsed like the rest of the page."""
        return self.parse_text_to_nodes(as_markdown(self.arguments[0]))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("command", Command)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
