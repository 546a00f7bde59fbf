"""Exports of a model of tables take the table as it is, and answer what predict answers."""

import ctypes
import datetime
import functools
import shutil
import sqlite3
import subprocess
from pathlib import Path

import numpy as np
import postgres
import pytest

import sparsebayes
from sparsebayes.export import to_c, to_onnx, to_sql
from sparsebayes.tables import Options, TableModel, learn

TOLERANCE = {"rtol": 1e-6, "atol": 1e-6}
TASKS = ["regression", "two classes", "three classes"]
KERNELS = ["rbf", "columns"]
COLUMNS = {
    "größe [m²]": "DOUBLE PRECISION",
    "rooms": "INTEGER",
    "Stadt 'x'": "TEXT",
    "garden": "BOOLEAN",
    "heated": "BOOLEAN",
    "sold": "DATE",
    "seen": "TIMESTAMP",
    "zip": "INTEGER",
    "rent": "TEXT",
}
DAY_ZERO = datetime.date(1970, 1, 1)


def raw(n, seed, new=False):
    """A table as people have it; of new rows, with cells that the training rows did not have."""
    rng = np.random.default_rng(seed)
    size = rng.uniform(20, 150, n)
    rooms = rng.integers(1, 7, n)
    town = rng.choice(["Paris", "Rome", 'O\'Hara "q"'], n)
    garden = rng.random(n) < 0.5
    heated = rng.random(n) < 0.7
    sold = [DAY_ZERO + datetime.timedelta(days=int(d)) for d in rng.integers(16000, 19800, n)]
    seen = [datetime.datetime(2021, 1, 1) + datetime.timedelta(seconds=int(s)) for s in rng.integers(0, 10**8, n)]
    code = rng.choice([75, 80, 99], n)
    rent = rng.uniform(500, 5000, n).round(2)
    season = np.cos(2 * np.pi / 365.2425 * np.array([(d - DAY_ZERO).days for d in sold]))
    value = 0.05 * size + 0.5 * rooms + 2.0 * (town == "Rome") + 1.5 * garden + season + 0.001 * rent + (code == 80)
    value = value + 0.2 * rng.normal(size=n)
    table = {
        "größe [m²]": [float(v) for v in size],
        "rooms": [int(v) for v in rooms],
        "Stadt 'x'": [str(v) for v in town],
        "garden": [bool(v) for v in garden],
        "heated": [bool(v) for v in heated],
        "sold": sold,
        "seen": seen,
        "zip": [int(v) for v in code],
        "rent": [f"$ {v:,.2f}" for v in rent],
    }
    gaps = {"größe [m²]": 2, "rooms": 5, "Stadt 'x'": 7, "garden": 11, "sold": 13, "rent": 17}
    if new:
        gaps |= {"heated": 4, "seen": 19, "zip": 6}
        table["Stadt 'x'"][1] = "Atlantis"
        table["zip"][3] = 1234
        table["sold"][8] = datetime.date(1969, 2, 28)
        table["sold"][9] = datetime.date(2000, 2, 29)
        table["sold"][10] = datetime.date(1900, 3, 1)
        table["rent"][12] = "900"
    for name, step in gaps.items():
        for row in range(step, n, 20):
            table[name][row] = None
    return table, value


def columns(table):
    """Columns as Python has them: what is missing is None."""
    return {name: np.array(cells, dtype=object) for name, cells in table.items()}


@functools.cache
def model(task, kernel):
    table, value = raw(70, 0)
    if task == "regression":
        target = value
    elif task == "two classes":
        target = np.where(value > np.median(value), "high", "lo'w")
    else:
        target = np.array(["a", "b", "c d"])[np.searchsorted(np.quantile(value, [0.33, 0.67]), value)]
    options = Options(kernel=kernel, gamma=0.1 if kernel == "rbf" else None, test=0.0, categorical=("zip",))
    return learn(columns(table) | {"target": target}, "target", options).model


@functools.cache
def new_rows():
    return raw(50, 1, new=True)[0]


def expected(task, kernel):
    return {key: values.tolist() for key, values in model(task, kernel).predict(columns(new_rows())).items()}


def compare(task, kernel, rows):
    """Rows of mean and std, or of the label and the probabilities, against predict."""
    answer = expected(task, kernel)
    assert len(rows) == 50
    numbers = np.array([row if task == "regression" else row[1:] for row in rows], dtype=float)
    if task != "regression":
        assert [row[0] for row in rows] == answer.pop("class")
    np.testing.assert_allclose(numbers, np.column_stack(list(answer.values())), **TOLERANCE)


def test_every_kind_of_column_takes_part():
    kept = model("regression", "columns")
    assert {type(column).__name__ for column in kept.encoder.columns} == {"Numeric", "Category", "Date"}
    assert [column.name for column in kept.encoder.columns] == list(COLUMNS)
    assert np.ptp(expected("regression", "columns")["std"]) > 0.0


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("task", TASKS)
class TestEverywhere:
    def test_sqlite(self, task, kernel):
        connection = sqlite3.connect(":memory:")
        create(connection.execute, connection.executemany)
        compare(task, kernel, connection.execute(to_sql(model(task, kernel), "new")).fetchall())
        connection.close()

    def test_sqlite_with_a_table_of_texts(self, task, kernel):
        """As the import of a CSV file makes it: every cell a text, and an empty one where a value is missing."""
        connection = sqlite3.connect(":memory:")
        names = ", ".join(quoted(name) for name in COLUMNS)
        connection.execute(f"CREATE TABLE new ({names})")
        rows = [["" if cell is None else str(cell) for cell in row] for row in zip(*new_rows().values(), strict=True)]
        connection.executemany(f"INSERT INTO new VALUES ({', '.join('?' * len(COLUMNS))})", rows)
        compare(task, kernel, connection.execute(to_sql(model(task, kernel), "new")).fetchall())
        connection.close()

    def test_postgresql(self, task, kernel, postgresql):
        compare(task, kernel, postgresql(to_sql(model(task, kernel), "new") + ";"))

    def test_duckdb(self, task, kernel):
        duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
        connection = duckdb.connect()
        create(connection.execute, connection.executemany)
        compare(task, kernel, connection.execute(to_sql(model(task, kernel), "new")).fetchall())
        connection.close()

    def test_onnx(self, task, kernel):
        pytest.importorskip("onnx", reason="needs the extra onnx")
        runtime = pytest.importorskip("onnxruntime", reason="needs the package onnxruntime")
        session = runtime.InferenceSession(
            to_onnx(model(task, kernel)).SerializeToString(), providers=["CPUExecutionProvider"]
        )
        assert [item.name for item in session.get_inputs()] == list(COLUMNS)
        assert [item.type for item in session.get_inputs()] == [
            "tensor(string)" if name in ("Stadt 'x'", "garden", "heated", "zip") else "tensor(double)"
            for name in COLUMNS
        ]
        first, second = session.run(None, feeds())
        rows = [[a, *np.atleast_1d(b)] for a, b in zip(first.tolist(), second, strict=True)]
        compare(task, kernel, rows)

    def test_c(self, task, kernel, tmp_path):
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            pytest.skip("no C compiler is installed")
        source = tmp_path / "model.c"
        source.write_text(to_c(model(task, kernel), name="house"), encoding="ascii")
        flags = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", "-shared", "-fPIC"]
        subprocess.run([compiler, *flags, str(source), "-o", str(tmp_path / "m.so"), "-lm"], check=True)
        library = ctypes.CDLL(str(tmp_path / "m.so"))
        library.house_days.restype = ctypes.c_double
        rows = []
        for values in zip(*new_rows().values(), strict=True):
            row = Row(*(in_c(library, name, cell) for name, cell in zip(COLUMNS, values, strict=True)))
            if task == "regression":
                mean, std = ctypes.c_double(), ctypes.c_double()
                library.house_predict(ctypes.byref(row), ctypes.byref(mean), ctypes.byref(std))
                rows.append([mean.value, std.value])
            else:
                classes = model(task, kernel).estimator_.classes_
                p = (ctypes.c_double * len(classes))()
                place = library.house_predict(ctypes.byref(row), p)
                rows.append([classes[place], *p])
        compare(task, kernel, rows)


class Row(ctypes.Structure):
    _fields_ = [
        ("groe", ctypes.c_double),
        ("rooms", ctypes.c_double),
        ("town", ctypes.c_char_p),
        ("garden", ctypes.c_char_p),
        ("heated", ctypes.c_char_p),
        ("sold", ctypes.c_double),
        ("seen", ctypes.c_double),
        ("zip", ctypes.c_char_p),
        ("rent", ctypes.c_double),
    ]


def in_c(library, name, cell):
    if name in ("Stadt 'x'", "garden", "heated", "zip"):
        return None if cell is None else str(cell).encode()
    if cell is None:
        return float("nan")
    if isinstance(cell, datetime.date):
        clock = cell.hour * 3600 + cell.minute * 60 + cell.second if isinstance(cell, datetime.datetime) else 0
        return library.house_days(cell.year, cell.month, cell.day) + clock / 86400
    return float(cell.replace("$", "").replace(",", "")) if isinstance(cell, str) else float(cell)


def feeds():
    found = {}
    for name, cells in new_rows().items():
        if name in ("Stadt 'x'", "garden", "heated", "zip"):
            found[name] = np.array(["" if cell is None else str(cell) for cell in cells], dtype=object)
            continue
        values = []
        for cell in cells:
            if isinstance(cell, str):
                cell = float(cell.replace("$", "").replace(",", ""))
            elif isinstance(cell, datetime.datetime):
                cell = (cell - datetime.datetime(1970, 1, 1)) / datetime.timedelta(days=1)
            elif isinstance(cell, datetime.date):
                cell = (cell - DAY_ZERO).days
            values.append(np.nan if cell is None else float(cell))
        found[name] = np.array(values)
    return found


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def create(execute, executemany):
    """A typed table of the new rows."""
    execute(f"CREATE TABLE new ({', '.join(f'{quoted(name)} {kind}' for name, kind in COLUMNS.items())})")
    rows = [
        [str(cell) if isinstance(cell, datetime.date) else cell for cell in row]
        for row in zip(*new_rows().values(), strict=True)
    ]
    executemany(f"INSERT INTO new VALUES ({', '.join('?' * len(COLUMNS))})", rows)


@pytest.fixture(scope="module")
def postgresql():
    reason = postgres.unavailable()
    if reason:
        pytest.skip(reason)
    with postgres.server() as ask:

        def literal(cell):
            return "NULL" if cell is None else "'" + str(cell).replace("'", "''") + "'"

        def executemany(_, rows):
            values = ", ".join(f"({', '.join(map(literal, row))})" for row in rows)
            ask(f"INSERT INTO new VALUES {values};")

        create(lambda sql: ask(sql + ";"), executemany)
        yield ask


class TestNothingIsSilentlyWrong:
    def ask(self, sql, without=(), **cells):
        connection = sqlite3.connect(":memory:")
        names = [name for name in COLUMNS if name not in without]
        connection.execute(f"CREATE TABLE new ({', '.join(map(quoted, names))})")
        row = {name: column[0] for name, column in new_rows().items()} | cells
        row = [str(row[name]) if isinstance(row[name], datetime.date) else row[name] for name in names]
        connection.execute(f"INSERT INTO new VALUES ({', '.join('?' * len(names))})", row)
        return connection.execute(sql).fetchall()

    def test_a_column_that_is_not_there(self):
        with pytest.raises(sqlite3.OperationalError, match="no such column"):
            self.ask(to_sql(model("regression", "rbf"), "new"), without=["Stadt 'x'"])

    @pytest.mark.parametrize(
        "cells",
        [
            {"rooms": "many"},
            {"rooms": "2 1/2"},
            {"sold": "31 Dec 2020"},
            {"sold": "abcd-ef-gh"},
            {"seen": "2020-01-01 10:00:00+02"},
        ],
    )
    def test_a_cell_that_cannot_be_read_gives_null(self, cells):
        assert self.ask(to_sql(model("regression", "rbf"), "new"), **cells) == [(None, None)]

    def test_gaps_as_databases_and_files_write_them(self):
        sql = to_sql(model("regression", "rbf"), "new")
        for name in ("rooms", "sold", "Stadt 'x'", "garden"):
            answers = {self.ask(sql, **{name: gap})[0] for gap in (None, "", " NA ", "NaN", "null")}
            assert len(answers) == 1


class TestDatesAsPeopleWriteThem:
    """A database that took a CSV file as it was has its dates as texts, in the order in which they were written."""

    @pytest.mark.parametrize(
        ("write", "cells"),
        [
            ("%d.%m.%Y", ["1.2.2021", "01.2.2021", "28.02.2020", "", "3.11.1969"]),
            ("%m/%d/%Y", ["2/1/2021", "12/31/2020 23:15", "02/9/2020 01:02:03.5", "NA"]),
            ("%Y/%m/%d", ["2021/2/1", "2020/12/31", "2019/1/09"]),
            ("%Y-%m", ["2021-02", "1999-12"]),
        ],
    )
    @pytest.mark.parametrize("database", ["sqlite", "postgresql", "duckdb"])
    def test_the_query_reads_them_as_predict_does(self, write, cells, database, request):
        days = [DAY_ZERO + datetime.timedelta(days=int(d)) for d in np.random.default_rng(0).integers(16000, 19800, 40)]
        # About zero at the end of 2020, so that the minutes of a day there are seen.
        y = np.array([(day - DAY_ZERO).days - 18627 for day in days]) + np.random.default_rng(1).normal(size=40)
        train = {"when": np.array([day.strftime(write) for day in days], dtype=object), "y": y}
        fitted = learn(train, "y", Options(kernel="columns", test=0.0)).model
        rows = [*cells, *train["when"][:5]]
        expected = np.column_stack(list(fitted.predict({"when": np.array(rows, dtype=object)}).values()))
        sql = to_sql(fitted, "dated")
        values = ", ".join(f"('{cell}')" for cell in rows)
        statements = ["DROP TABLE IF EXISTS dated", 'CREATE TABLE dated ("when" TEXT)']
        statements.append(f"INSERT INTO dated VALUES {values}")
        if database == "postgresql":
            ask = request.getfixturevalue("postgresql")
            for statement in statements:
                ask(statement + ";")
            found = ask(sql + ";")
        else:
            module = sqlite3 if database == "sqlite" else pytest.importorskip("duckdb", reason="not installed")
            connection = module.connect(":memory:")
            for statement in statements:
                connection.execute(statement)
            found = connection.execute(sql).fetchall()
            connection.close()
        np.testing.assert_allclose(np.array(found, dtype=float), expected, **TOLERANCE)


class TestLoad:
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)

    def test_returns_the_model_of_tables(self):
        pandas = pytest.importorskip("pandas", reason="needs the extra files")
        model("regression", "rbf").save("house.model")
        opened = sparsebayes.load("house.model")
        assert isinstance(opened, TableModel)
        assert opened.estimator_ is opened.estimator
        assert opened.encoder == model("regression", "rbf").encoder
        answer = opened.predict(pandas.DataFrame(new_rows()))
        assert answer["mean"].tolist() == expected("regression", "rbf")["mean"]

    def test_one_line_says_what_it_is(self):
        assert repr(model("regression", "rbf")).startswith("TableModel('target' from 9 columns, estimator=RVR(")
        assert len(repr(model("regression", "rbf"))) < 120

    def test_an_array_has_no_columns(self):
        with pytest.raises(TypeError, match=r"ndarray: expected a data frame, or a mapping.*estimator_"):
            model("regression", "rbf").predict(np.zeros((2, 9)))

    def test_returns_the_estimator_that_was_saved(self):
        est = sparsebayes.RVR().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.5])
        sparsebayes.save(est, "a.model", metadata={"columns": ["x"]})
        assert isinstance(sparsebayes.load("a.model"), sparsebayes.RVR)
        assert sparsebayes.load("a.model", with_metadata=True)[1] == {"columns": ["x"]}

    def test_export_from_the_command_line_reads_the_table(self):
        from commands import succeed

        model("regression", "rbf").save("house.model")
        succeed("export", "house.model", "--format", "sql", "--table", "new", "--out", "house.sql")
        assert Path("house.sql").read_text(encoding="utf-8") == to_sql(model("regression", "rbf"), "new") + ";\n"
