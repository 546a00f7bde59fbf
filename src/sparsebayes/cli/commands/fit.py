"""``sparsebayes fit``: a table in, a tested model and a report out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="Table to learn from: CSV, Parquet, Feather or Excel, .gz or .zip.")
    ],
    target: Annotated[str | None, typer.Option("--target", "-t", help="Column to predict.", show_default=False)] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Model file to write; by default DATA's name with .model.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="Report to write; by default the model's name with .html.")
    ] = None,
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no report.")] = False,
    task: Annotated[
        str | None, typer.Option("--task", help="regression or classification; by default what the target suggests.")
    ] = None,
    kernel: Annotated[
        str,
        typer.Option(
            "--kernel",
            help="rbf, laplacian, poly or linear: functions on the rows; columns: a sparse linear model; both; "
            "auto: the best of rbf, columns and both, or rbf where --gamma is given.",
        ),
    ] = "auto",
    likelihood: Annotated[
        str, typer.Option("--likelihood", help="Of the noise: gaussian, outliers, student-t, or poisson for counts.")
    ] = "gaussian",
    gamma: Annotated[
        str | None,
        typer.Option(
            "--gamma",
            help="Kernel parameter as in scikit-learn, or how it is learned: evidence (one width, the default), ard "
            "(one for each input), multiscale (several together).",
        ),
    ] = None,
    noise_variance: Annotated[
        float | None, typer.Option("--noise-variance", help="Fix the noise variance; learned by default.")
    ] = None,
    noise: Annotated[
        str, typer.Option("--noise", help="constant, or varies: learned as a function of the inputs (regression).")
    ] = "constant",
    solver: Annotated[
        str,
        typer.Option(
            "--solver",
            help="How functions are found: sequential, mackay, em, variational, backfitting, subset or single-effects.",
        ),
    ] = "sequential",
    effort: Annotated[
        str, typer.Option("--effort", help="From how many places the search begins: fast, default or thorough.")
    ] = "default",
    test: Annotated[
        float, typer.Option("--test", help="Part of the rows to hold back for the test; 0 for none.")
    ] = 0.2,
    seed: Annotated[int, typer.Option("--seed", help="Of the shuffle that chooses the test rows.")] = 0,
    drop: Annotated[
        list[str] | None, typer.Option("--drop", help="Column to leave out; may be given again.", show_default=False)
    ] = None,
    categorical: Annotated[
        list[str] | None,
        typer.Option("--categorical", help="Column of numbers that name categories; may be given again."),
    ] = None,
    use: Annotated[
        list[str] | None,
        typer.Option("--use", help="Column to take although it looks like names of the rows; may be given again."),
    ] = None,
    baseline: Annotated[
        bool, typer.Option("--baseline", help="Compare with a random forest and support vectors as well.")
    ] = False,
    cv: Annotated[
        int, typer.Option("--cv", help="Also test on all rows, each left out once in so many folds.", min=0)
    ] = 0,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Also say which columns carry effects, how sure that is, and what each does to each row."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Learn a model from a table, test it on rows held back, and write the model and a report.

    \b
    Examples:
      sparsebayes fit houses.csv --target price
      sparsebayes fit patients.parquet -t outcome --drop id --out triage.model
      sparsebayes fit genes.csv -t level --kernel columns --test 0
      sparsebayes fit energy.csv -t load --gamma ard --effort fast
      sparsebayes fit crash.csv -t acceleration --noise varies
      sparsebayes fit visits.csv -t count --likelihood poisson --cv 5
      sparsebayes fit houses.csv -t price --explain
      sparsebayes fit wine.csv -t quality --task classification --json

    The width of the functions and the noise are learned from the data: there is nothing to tune. Numbers are
    standardised, texts and categorical columns become an indicator for each category, dates a number of days and the
    time of the year, and missing numbers the median. A target of texts or categories, or of two values, is a
    classification. The model that is saved is the one that was tested; the verdict comes first, and exit status 3 means
    that it is not good.
    """
    from sparsebayes.cli.work import fit_table
    from sparsebayes.tables.learning import Options

    options = Options(
        task=task,
        kernel=kernel,
        likelihood=likelihood,
        gamma=_gamma(gamma),
        noise_variance=noise_variance,
        noise=noise,
        solver=solver,
        effort=effort,
        test=test,
        seed=seed,
        drop=tuple(drop or ()),
        categorical=tuple(categorical or ()),
        use=tuple(use or ()),
    )
    model = Path(f"{data.stem}.model") if out is None else out
    page = model.parent / f"{model.stem}.html" if report is None else report
    fit_table(
        data,
        target,
        options,
        model=model,
        page=None if no_report else page,
        as_json=as_json,
        baseline=baseline,
        cv=cv,
        explain=explain,
    )


def _gamma(text: str | None) -> str | float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return text
