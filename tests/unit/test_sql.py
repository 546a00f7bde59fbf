"""The query, run by SQLite, gives what predict gives."""

import sqlite3

import numpy as np
import pytest
from exported import CLASSIFICATIONS, REGRESSIONS, ROWS, X, Y, expected, model
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsebayes import RVC, RVR, SparseBayesRegressor
from sparsebayes.basis import RBF
from sparsebayes.export import to_sql

N = 1000
TOLERANCE = {"rtol": 1e-6, "atol": 1e-6}


def has_mathematics():
    try:
        sqlite3.connect(":memory:").execute("SELECT EXP(1.0), SQRT(2.0), LN(3.0)")
    except sqlite3.OperationalError:
        return False
    return sqlite3.sqlite_version_info >= (3, 35)


pytestmark = pytest.mark.skipif(not has_mathematics(), reason="SQLite lacks mathematical functions")


def database(rows, columns=("x0", "x1", "x2"), table="data"):
    quoted = ['"' + column.replace('"', '""') + '"' for column in columns]
    name = '"' + table.replace('"', '""') + '"'
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE TABLE {name} (id, {', '.join(quoted)})")
    numbered = [[k, *row] for k, row in enumerate(rows)]
    connection.executemany(f"INSERT INTO {name} VALUES (?{', ?' * len(columns)})", numbered)
    return connection


@pytest.fixture(scope="module")
def data():
    connection = database(ROWS[:N].tolist())
    yield connection
    connection.close()


def ask(connection, query):
    cursor = connection.execute(query)
    return [column[0] for column in cursor.description], cursor.fetchall()


@pytest.mark.parametrize("name", REGRESSIONS)
def test_regressions_agree(name, data):
    names, rows = ask(data, to_sql(model(name), "data"))
    mean, std = (values[:N] for values in expected(name))
    assert names == (["mean", "std"] if mean.shape[1] == 1 else ["mean_0", "std_0", "mean_1", "std_1"])
    values = np.array(rows)
    np.testing.assert_allclose(values[:, 0::2], mean, **TOLERANCE)
    np.testing.assert_allclose(values[:, 1::2], std, **TOLERANCE)


@pytest.mark.parametrize("name", CLASSIFICATIONS)
def test_classifications_agree(name, data):
    names, rows = ask(data, to_sql(model(name), "data", keep=["id"]))
    labels, probabilities = (values[:N] for values in expected(name))
    assert names == ["id", "label", *(f"p_{label}" for label in model(name).classes_.tolist())]
    assert [row[0] for row in rows] == list(range(N))
    assert [row[1] for row in rows] == labels.tolist()
    np.testing.assert_allclose(np.array([row[2:] for row in rows], dtype=float), probabilities, **TOLERANCE)


def test_names_of_the_columns_and_of_the_table():
    """From a table with names that need quoting, and under other names by hand."""
    pandas = pytest.importorskip("pandas", reason="needs the extra files")
    names, table = ['a"b', "c d", "x2; DROP TABLE t"], 'sb_inputs "quoted"'
    est = RVR(gamma=0.3).fit(pandas.DataFrame(X, columns=names), Y)
    connection = database(ROWS[:50].tolist(), names, table)
    _, rows = ask(connection, to_sql(est, ("main", table)))
    np.testing.assert_allclose(np.array(rows)[:, 0], expected("rbf")[0][:50, 0], **TOLERANCE)
    renamed = database(ROWS[:50].tolist(), ["u", "v", "w"], "t")
    _, again = ask(renamed, to_sql(est, "t", columns=["u", "v", "w"]))
    np.testing.assert_allclose(again, rows, **TOLERANCE)


def test_labels_that_need_quoting():
    classes = np.array(["it's", 'a "b"'])
    est = RVC().fit(X, classes[(Y > 0.3).astype(int)])
    names, rows = ask(database(ROWS[:50].tolist()), to_sql(est, "data"))
    assert names[1:] == ['p_a "b"', "p_it's"]
    assert [row[0] for row in rows] == est.predict(ROWS[:50]).tolist()


@pytest.mark.parametrize("name", ["rbf", "steps", "thin plate", "linear spline", "two classes", "softmax"])
def test_nothing_known_is_nothing_said(name):
    _, rows = ask(database([[None, None, None]]), to_sql(model(name), "data"))
    assert set(rows[0]) == {None}


def test_columns_that_the_model_does_without_are_not_read():
    wide = np.random.default_rng(0).standard_normal((60, 20))
    est = make_pipeline(StandardScaler(), SparseBayesRegressor()).fit(wide, wide[:, 7] + 0.01 * wide[:, 3])
    query = to_sql(est, "data")
    kept = {f"x{k}" for k in est[-1].relevance_}
    assert {name for name in (f"x{k}" for k in range(20)) if f'"{name}"' in query} == kept


def test_integers_are_divided_as_numbers():
    est = make_pipeline(StandardScaler(), SparseBayesRegressor()).fit([[1], [2], [4], [7]], [1.0, 2.1, 3.9, 7.0])
    _, rows = ask(database([[1], [2], [5]], ["x0"]), to_sql(est, "data"))
    np.testing.assert_allclose(np.array(rows)[:, 0], est.predict([[1], [2], [5]]), **TOLERANCE)


def test_many_functions_are_not_too_deep():
    x = 10.0 * np.arange(150.0)[:, None]
    est = SparseBayesRegressor(RBF(1.0), noise_variance=0.01).fit(x, np.where(np.arange(150) % 2, 5.0, -5.0))
    assert len(est.relevance_) == 150
    query = to_sql(est, "data")
    _, rows = ask(database(x.tolist(), ["x0"]), query)
    np.testing.assert_allclose(np.array(rows)[:, 0], est.predict(x), **TOLERANCE)


def test_a_query_without_the_word():
    assert "MATERIALIZED" not in to_sql(model("rbf"), "data", materialized=False)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"columns": ["a"]}, "expected 3 names"),
        ({"columns": "abc"}, "expected 3 names"),
        ({"table": ""}, "not empty"),
        ({"table": "a\0b"}, "NUL"),
        ({"keep": ["id", ""]}, "not empty"),
        ({"keep": "id"}, r"such as \['id'\]"),
    ],
)
def test_names_that_cannot_be(change, words):
    with pytest.raises(ValueError, match=words):
        to_sql(model("rbf"), **({"table": "data"} | change))
