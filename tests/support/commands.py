"""The command line in tests: runs that must succeed, and runs that must fail cleanly."""

import csv
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from sparsebayes.cli.main import app


def write(path, names, columns):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(zip(*columns, strict=True))


def problem(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3)) * [1.0, 10.0, 100.0] + [0.0, 5.0, -300.0]
    return X, 2.0 * X[:, 0] - 0.3 * X[:, 1] + 0.1 * rng.standard_normal(n)


def write_problem(path="data.csv", n=40):
    X, y = problem(n)
    write(path, ["a", "b [m]", "größe", "y"], [*X.T.tolist(), y.tolist()])
    return X, y


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def succeed(*arguments, status=0):
    result = call(*arguments)
    assert result.exit_code == status, result.output
    assert result.stderr == ""
    return result.stdout


def fail(*arguments):
    """One line on stderr, status 2, no traceback, and nothing written."""
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    result = call(*arguments)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before
    return result.stderr
