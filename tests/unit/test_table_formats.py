"""A column means the same whatever the file is: one table in every format gives one model."""

import datetime
import gzip
import json
import zipfile

import numpy as np
import pytest
from commands import succeed

from sparsebayes.export import load
from sparsebayes.tables import Options, as_table, learn, read_table

pandas = pytest.importorskip("pandas", reason="needs the extra files")
pytest.importorskip("pyarrow", reason="needs the extra files")

N = 40


def frame():
    rng = np.random.default_rng(0)
    garden = rng.random(N) < 0.5
    days = rng.integers(16000, 19800, N)
    size = rng.uniform(20, 150, N)
    data = pandas.DataFrame(
        {
            "size": size,
            "short": rng.uniform(0, 1, N).astype(np.float32),
            "rooms": rng.integers(1, 7, N),
            "gaps": np.where(rng.random(N) < 0.2, np.nan, rng.integers(0, 3, N)),
            "town": rng.choice(["Pisa", "Rome", "Ulm"], N),
            "garden": garden,
            "sold": pandas.to_datetime(days, unit="D").astype("datetime64[ns]"),
            "seen": pandas.to_datetime(rng.integers(10**9, 2 * 10**9, N), unit="s"),
            "new": pandas.array([True, False, None, True] * (N // 4), dtype="boolean"),
        }
    )
    data["town"] = data["town"].where(np.arange(N) % 9 != 4, None)
    data["price"] = 3.0 * size + 40.0 * garden + 10.0 * data["rooms"] + rng.normal(size=N)
    return data


def formats(data, folder):
    """The same table, in files and as data frames."""
    text = data.to_csv(index=False)
    files = {name: folder / f"t.{name}" for name in ("csv", "tsv", "csv.gz", "zip", "parquet", "feather", "xlsx")}
    files["csv"].write_text(text, encoding="utf-8")
    data.to_csv(files["tsv"], index=False, sep="\t")
    files["csv.gz"].write_bytes(gzip.compress(text.encode()))
    with zipfile.ZipFile(files["zip"], "w") as archive:
        archive.writestr("t.csv", text)
    data.to_parquet(files["parquet"])
    data.to_feather(files["feather"])
    files["semicolons"] = folder / "semicolons.csv"
    data.to_csv(files["semicolons"], index=False, sep=";", decimal=",")
    # Where a short float has become a double before it arrives, its digits are those of the double.
    doubles = data.assign(short=data["short"].astype(str).astype(float))
    found = {name: (lambda path=path: read_table(path)) for name, path in files.items()}

    def excel():
        pytest.importorskip("openpyxl", reason="needs the extra excel")
        doubles.to_excel(files["xlsx"], index=False)
        return read_table(files["xlsx"])

    def polars():
        return pytest.importorskip("polars").from_pandas(data)

    return found | {
        "xlsx": excel,
        "polars": polars,
        "pandas": lambda: data,
        "categories": lambda: data.assign(town=data["town"].astype("category")),
        "objects": lambda: doubles.astype(object),
        "dates": lambda: data.assign(sold=[stamp.date() for stamp in data["sold"]]),
        "arrow": lambda: data.convert_dtypes(dtype_backend="pyarrow"),
        "lists": lambda: {name: doubles[name].tolist() for name in data.columns},
    }


FORMATS = [
    "arrow", "categories", "csv.gz", "dates", "feather", "lists", "objects", "pandas", "parquet", "polars",
    "semicolons", "tsv", "xlsx", "zip",
]  # fmt: skip
OPTIONS = Options(kernel="columns", test=0.25)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    return formats(frame(), tmp_path_factory.mktemp("formats"))


@pytest.fixture(scope="module")
def from_csv(tables):
    return learn(tables["csv"](), "price", OPTIONS)


def test_every_kind_of_column_is_there(from_csv):
    kinds = [(column.name, type(column).__name__) for column in from_csv.model.encoder.columns]
    assert kinds == [
        ("size", "Numeric"),
        ("short", "Numeric"),
        ("rooms", "Numeric"),
        ("gaps", "Numeric"),
        ("town", "Category"),
        ("garden", "Category"),
        ("sold", "Date"),
        ("seen", "Date"),
        ("new", "Category"),
    ]
    assert from_csv.model.encoder.columns[5].levels == ("False", "True")
    assert from_csv.model.encoder.columns[6].cycles == ("year",)
    assert from_csv.model.encoder.columns[7].cycles == ("year", "day")
    assert from_csv.model.encoder.columns[8].levels == ("", "False", "True")


def as_in_a_sheet(data):
    """The table with the sixteen digits that a sheet keeps of its numbers."""
    floats = data.select_dtypes("float64").columns
    return data.assign(**{name: [float(f"{value:.16g}") for value in data[name]] for name in floats})


@pytest.mark.parametrize("kind", FORMATS)
def test_the_same_model(kind, tables, from_csv):
    table = tables[kind]()
    study = learn(table, "price", OPTIONS)
    assert study.model.encoder.names == from_csv.model.encoder.names
    assert [type(c) for c in study.model.encoder.columns] == [type(c) for c in from_csv.model.encoder.columns]
    np.testing.assert_allclose(study.X, from_csv.X, rtol=0, atol=1e-12)
    # The small weights of this model move by a part of 2e-11 with the last digit of the prices.
    same = learn(as_in_a_sheet(tables["pandas"]()), "price", OPTIONS) if kind == "xlsx" else from_csv
    np.testing.assert_allclose(study.model.estimator.coef_, same.model.estimator.coef_, rtol=1e-12, atol=1e-12)
    assert study.notes == from_csv.notes
    if kind != "xlsx":  # which does not keep the last digit
        assert as_table(table).fingerprint == tables["csv"]().fingerprint
    # A model of one format predicts another.
    for ours, theirs in zip(
        from_csv.model.predict(table).values(), from_csv.model.predict(tables["csv"]()).values(), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("target", ["garden", "rooms"])
def test_the_same_classes(target, tables):
    options = Options(kernel="columns", task="classification", test=0.0)
    labels = [learn(tables[kind](), target, options).model.estimator.classes_.tolist() for kind in ("csv", *FORMATS)]
    assert all(found == labels[0] for found in labels)
    assert labels[0] == (["False", "True"] if target == "garden" else ["1", "2", "3", "4", "5", "6"])


def test_a_number_that_was_0_and_1_takes_truth_values(tables):
    data = frame()
    numbers = learn(data.assign(garden=data["garden"].astype(int)), "price", OPTIONS).model
    np.testing.assert_array_equal(
        numbers.predict(data)["mean"], numbers.predict(data.assign(garden=data["garden"].astype(int)))["mean"]
    )
    truths = learn(data, "price", OPTIONS).model
    np.testing.assert_array_equal(
        truths.predict(data)["mean"], truths.predict(data.assign(garden=data["garden"].astype(int)))["mean"]
    )


def test_a_model_from_csv_on_parquet_from_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    formats(frame(), tmp_path)
    for kind in ("csv", "parquet"):
        output = succeed("fit", f"t.{kind}", "-t", "price", "--kernel", "columns", "--json", "--out", f"{kind}.model")
        assert json.loads(output)["inputs"][-1] == "new"
    np.testing.assert_array_equal(load("csv.model").coef_, load("parquet.model").coef_)


@pytest.mark.parametrize(
    ("cell", "days"),
    [
        ("1970-01-02", 1.0),
        ("1970/1/2", 1.0),
        ("1970-01-01T12:00", 0.5),
        ("1970-01-01 06:00:00.5", 0.25 + 0.5 / 86400),
        ("1970-01-01T01:00:00+01:00", 0.0),
        ("1970-01-01T00:00:00Z", 0.0),
        ("2 Jan 1970", 1.0),
        ("Jan 2, 1970", 1.0),
        ("2-January-1970", 1.0),
        ("31.12.1969", -1.0),
        ("12/31/1969", -1.0),
        ("2000-02-29", (datetime.date(2000, 2, 29) - datetime.date(1970, 1, 1)).days),
    ],
)
def test_dates(cell, days):
    table = as_table({"d": [cell, ""]})
    assert table.meaning("d").kind == "date"
    values = table.days("d", table.meaning("d").day_first)
    assert values[0] == pytest.approx(days, abs=1e-12)
    assert np.isnan(values[1])


@pytest.mark.parametrize("cell", ["2001-02-29", "13/13/2020", "1.5.2020.1", "2020-13-01", "1/2", "3 Foo 2020"])
def test_what_is_no_date(cell):
    assert as_table({"d": [cell, "2020-01-01"]}).meaning("d").kind == "text"


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["$1,200", "$ 950.50", "-$3"], [1200, 950.5, -3]),
        (["12 %", "7%", "0.5 %"], [12, 7, 0.5]),
        (["1,234,567", "12", "1,000.25"], [1234567, 12, 1000.25]),
        (["1.234,50 €", "12,00 €", "3 €"], [1234.5, 12, 3]),
        (["12 kg", "7.5 kg"], [12, 7.5]),
        (["1'234.5", "17"], [1234.5, 17]),
        (["1 234", "17 999 000"], [1234, 17999000]),
        (["EUR 5", "EUR 1,000"], [5, 1000]),
    ],
)
def test_numbers_with_signs(cells, values):
    table = as_table({"x": [*cells, ""]})
    assert table.numbers("x")[:-1].tolist() == values
    assert np.isnan(table.numbers("x")[-1])


@pytest.mark.parametrize(
    "cells",
    [["12 kg", "300 g"], ["A12", "A13"], ["Q1", "Q2"], ["1-2", "3-4"], ["1st", "2nd"], ["12a", "7a"], ["$", "€"]],
)
def test_texts_that_are_no_numbers(cells):
    assert as_table({"x": cells}).meaning("x").kind == "text"
