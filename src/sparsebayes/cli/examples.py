"""The tables that ``sparsebayes example`` writes: bundled data with names that need no explanation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsebayes.atomic import check_target
from sparsebayes.cli.summary import tell
from sparsebayes.datasets import load
from sparsebayes.tables import write_table
from sparsebayes.tables.files import check_output

_HOUSES = {
    "rm": "rooms",
    "lstat": "poor_people_percent",
    "age": "old_houses_percent",
    "crim": "crime_rate",
    "chas": "at_the_river",
    "nox": "nitric_oxides",
    "dis": "distance_to_work",
    "rad": "motorways",
    "tax": "property_tax",
    "ptratio": "pupils_per_teacher",
    "indus": "industry_percent",
    "zn": "large_lots_percent",
}
_PATIENTS = {
    "npreg": "pregnancies",
    "glu": "glucose",
    "bp": "blood_pressure",
    "skin": "skin_fold",
    "bmi": "body_mass_index",
    "ped": "pedigree",
    "age": "age",
}


def write_example(path: Path) -> None:
    """Write a bundled table.

    Parameters
    ----------
    path : Path
        File to write; its stem, ``houses`` or ``patients``, says which table.
    """
    if path.stem not in _TABLES:
        raise ValueError(f"{path}: expected a name such as houses.csv or patients.csv, which says which table to write")
    check_output(path)
    check_target(path)
    columns, target = _TABLES[path.stem]()
    write_table(path, columns)
    rows = len(next(iter(columns.values())))
    tell(f"{rows} rows of {len(columns)} columns written to {path}; now: sparsebayes fit {path} --target {target}")


def _houses() -> tuple[dict[str, NDArray[Any]], str]:
    """Houses around Boston in 1970: the price is the median of a neighbourhood, in thousands of dollars."""
    data = load("boston_mass")
    columns = dict(zip(data.feature_names, np.asarray(data.data).T, strict=True))
    table: dict[str, NDArray[Any]] = {name: columns[key] for key, name in _HOUSES.items()}
    table["at_the_river"] = np.where(columns["chas"] == 1.0, "True", "False")
    return table | {"price": np.asarray(data.target)}, "price"


def _patients() -> tuple[dict[str, NDArray[Any]], str]:
    """Women of the Pima near Phoenix, and whether they had diabetes."""
    data = load("pima_ripley")
    columns = dict(zip(data.feature_names, np.asarray(data.data).T, strict=True))
    table: dict[str, NDArray[Any]] = {name: columns[key] for key, name in _PATIENTS.items()}
    return table | {"diabetes": np.where(np.asarray(data.target) == 1, "yes", "no")}, "diabetes"


_TABLES = {"houses": _houses, "patients": _patients}
