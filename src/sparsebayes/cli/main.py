"""The ``sparsebayes`` program: its commands, and its errors as one line each.

Heavy imports happen inside the commands, so that ``--help`` is quick.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

# What a wrong file, column, option or a missing extra raises; anything else is a bug and shows its traceback.
_EXPECTED = (ValueError, TypeError, OSError, ImportError)
_STATUS = 2


class _Group(TyperGroup):
    """Commands whose expected errors are one line on stderr."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; end with status 2 and one line where it fails for a reason that the user can mend."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise  # the reader has gone away; typer ends quietly
        except _EXPECTED as error:
            typer.echo(f"error: {_sentence(error)}", err=True)
            raise typer.Exit(_STATUS) from error


class Kernel(StrEnum):
    """Dictionaries that ``fit`` offers."""

    rbf = "rbf"
    linear = "linear"
    poly = "poly"
    laplacian = "laplacian"
    columns = "columns"


class Format(StrEnum):
    """Languages that ``export`` writes."""

    onnx = "onnx"
    c = "c"
    sql = "sql"


app = typer.Typer(
    cls=_Group,
    name="sparsebayes",
    help="Sparse Bayesian learning: the evidence decides which few functions stay.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def run() -> None:
    """Run the program; the entry point of the console script."""
    app()


def _sentence(error: Exception) -> str:
    """Text of an error on one line, without the number that the system gives to its own."""
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    else:
        text = str(error) or type(error).__name__
    return " ".join(text.split())


def _version(show: bool) -> None:
    if show:
        from sparsebayes._version import __version__

        typer.echo(f"sparsebayes {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Take the options that come before a command."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the picture; made if need be.")] = Path("demo"),
) -> None:
    """Fit two bundled problems, print what was kept and how good it is, and draw one.

    Example: sparsebayes demo
    """
    from sparsebayes.cli.demo import run_demo

    run_demo(out)


@app.command()
def fit(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Table to learn from: CSV with a header, or Parquet.")],
    target: Annotated[str, typer.Option("--target", help="Column to predict; all others are inputs.")],
    out: Annotated[Path, typer.Option("--out", help="Model file to write.")],
    kernel: Annotated[
        Kernel, typer.Option("--kernel", help="Functions on the training rows; 'columns' is a sparse linear model.")
    ] = Kernel.rbf,
    gamma: Annotated[
        str | None,
        typer.Option("--gamma", help="Kernel parameter as in scikit-learn: a number, 'scale' or 'auto'."),
    ] = None,
    noise_variance: Annotated[
        float | None, typer.Option("--noise-variance", help="Fix the noise variance; learned by default.")
    ] = None,
) -> None:
    """Fit a regression to a table of numbers and save it.

    Example: sparsebayes fit houses.csv --target price --out houses.model
    """
    from sparsebayes.cli.fitting import fit_file

    fit_file(data, target=target, out=out, kernel=kernel.value, gamma=gamma, noise_variance=noise_variance)


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file that 'fit' wrote.")],
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="Table with the model's input columns; others are ignored.")
    ],
    out: Annotated[Path, typer.Option("--out", help="Table to write, .csv or .parquet: columns mean and std.")],
) -> None:
    """Predict the rows of a table: the mean, and the standard deviation of a new observation.

    Example: sparsebayes predict houses.model new.csv --out prices.csv
    """
    from sparsebayes.cli.fitting import predict_file

    predict_file(model, data, out=out)


@app.command()
def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file that 'fit' or sparsebayes.save wrote.")],
    language: Annotated[Format, typer.Option("--format", help="ONNX graph, one C99 file, or an SQL query.")],
    out: Annotated[Path, typer.Option("--out", help="File to write.")],
    name: Annotated[str, typer.Option("--name", help="What the names in the C file start with.")] = "model",
    table: Annotated[str, typer.Option("--table", help="Table that the SQL query reads.")] = "data",
) -> None:
    """Write a model in another language: it takes the table's own units and predicts as 'predict' does.

    Example: sparsebayes export houses.model --format c --name houses --out houses.c
    """
    from sparsebayes.cli.exporting import export_file

    export_file(model, language=language.value, out=out, name=name, table=table)
