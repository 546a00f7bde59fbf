"""The ``sparsebayes`` program: its commands, its errors as one line each, and what its exit statuses mean.

Heavy imports happen inside the commands, so that ``--help`` is quick.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from sparsebayes.cli import commands
from sparsebayes.cli.exits import INTERRUPTED, WRONG_INPUT

# What a wrong file, column, option or a missing extra raises; anything else is a bug and shows its traceback.
_EXPECTED = (ValueError, TypeError, OSError, ImportError, MemoryError)

_ORDER = ("example", "fit", "predict", "report", "export", "reproduce", "bench", "demo")

_HELP = """Sparse Bayesian learning: the evidence decides which few functions stay.

Learn from a table, and get a model and a report to send on (the first line writes a table to try it with):

    sparsebayes example houses.csv

    sparsebayes fit houses.csv --target price

Predict new rows with it:

    sparsebayes predict houses.model new.csv --out prices.csv

Exit status: 0 all is well; 2 the input is wrong, and one line says how; 3 'fit' wrote a model, but it is of no use, its
error bars or probabilities are wrong, or the search ended before convergence; 4 a figure of a paper was not reproduced;
130 interrupted.
"""


class _Group(TyperGroup):
    """Commands whose expected errors are one line on stderr."""

    def list_commands(self, ctx: Any) -> list[str]:
        """In the order in which people meet them."""
        places = {name: place for place, name in enumerate(_ORDER)}
        return sorted(super().list_commands(ctx), key=lambda name: places.get(name, len(places)))

    def invoke(self, ctx: Any) -> Any:
        """Run a command; end with one line where it fails for a reason that the user can mend."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise  # the reader has gone away; typer ends quietly
        except KeyboardInterrupt as error:
            typer.echo("interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from error
        except _EXPECTED as error:
            typer.echo(f"error: {_sentence(error)}", err=True)
            raise typer.Exit(WRONG_INPUT) from error


def _sentence(error: Exception) -> str:
    """Text of an error on one line, without the number that the system gives to its own."""
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    else:
        no_memory = "there is not enough memory for this"
        text = str(error) or (no_memory if isinstance(error, MemoryError) else type(error).__name__)
    return " ".join(text.split())


def _version(show: bool) -> None:
    if show:
        from sparsebayes._version import __version__
        from sparsebayes.inference.models.compiled import library

        typer.echo(f"sparsebayes {__version__} ({'NumPy only' if library() is None else 'compiled settling'})")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version, and whether its compiled part is in use.",
            callback=_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Take the options that come before a command."""


def _build() -> typer.Typer:
    program = typer.Typer(
        cls=_Group,
        name="sparsebayes",
        help=_HELP,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    program.callback(help=_HELP)(_options)
    for module in pkgutil.iter_modules(commands.__path__):
        found = vars(import_module(f"{commands.__name__}.{module.name}"))
        if "group" in found:
            program.add_typer(found["group"], name=module.name)
        else:
            program.command(module.name)(found["command"])
    return program


app = _build()


def run() -> None:
    """Run the program; the entry point of the console script."""
    app()
