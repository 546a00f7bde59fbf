"""Pages of tables: effects of categories and dates, rows as a spreadsheet numbers them, large numbers for people."""

from pathlib import Path

import numpy as np
import pytest
from commands import succeed, write

from sparsebayes.report.case import Input
from sparsebayes.report.svg import number, ranges


@pytest.fixture
def page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    size, town = rng.uniform(30, 180, 80), rng.choice(["Lyon", "<Nice>", "Paris"], 80)
    days = np.datetime64("2019-01-01") + rng.integers(0, 1500, 80)
    season = np.cos(2 * np.pi / 365.2425 * days.astype(float))
    price = 1e4 * (2.5 * size + 80 * (town == "Paris") + 20 * season + rng.normal(size=80))
    write("h.csv", ["size", "town", "sold", "price"], [size, town, days, price])
    succeed("fit", "h.csv", "-t", "price", "--gamma", "0.05")
    return Path("h.html").read_text(encoding="utf-8")


def test_effects_of_categories_and_dates(page):
    for name in ("size", "town", "sold"):
        assert f"Effect of {name}, all else at its median." in page
    assert ">&lt;Nice&gt;</text>" in page
    assert "sold (year)" in page


def test_the_functions_are_folded_away(page):
    section = page[page.index('<section id="relevance"') :]
    folded = section[section.index("<details>") : section.index("</details>")]
    assert "For the technically minded" in folded
    assert "The kept functions" in folded


def test_words_of_the_trade_are_folded_away(page):
    header = page[page.index("<header>") : page.index("</header>")]
    before, folded = header.split("<details>")
    for name in ("log evidence", "certificate", "status", "time"):
        assert f"<dt>{name}</dt>" in folded
        assert f"<dt>{name}</dt>" not in before
    for name in ("data", "error (RMSE)", "in 95 % error bars"):
        assert f"<dt>{name}</dt>" in before


def test_rows_have_the_numbers_of_a_spreadsheet(page, tmp_path):
    """The first row below the names is number 2."""
    from sparsebayes.tables import TableModel, read_table, reopen

    study = reopen(TableModel.load("h.model"), read_table(Path("h.csv")))
    kept = study.model.estimator.relevance_
    lines = Path("h.csv").read_text(encoding="utf-8").splitlines()
    place = study.target.rows[study.train[kept[0]]]
    assert f"rbf of row {place + 2}<" in page
    assert lines[place + 1].startswith(repr(float(study.table.numbers("size")[study.train[kept[0]]])))


def test_large_numbers_have_commas(page):
    assert number(1234567.0) == "1,235,000"
    assert number(2019.0) == "2019"
    assert number(-0.00012345) == "−0.0001234"
    assert "e+0" not in page[page.index("<svg") : page.index('id="search-title"')]


def test_values_of_a_date_come_back():
    item = Input("d", (0, 1, 2), 18000.0, 100.0, periods=(365.2425,), dated=True)
    X = item.encode(np.array([18100.0, 17900.0]))
    np.testing.assert_allclose(item.values(X), [18100.0, 17900.0])
    np.testing.assert_allclose(X[:, 1] ** 2 + X[:, 2] ** 2, 1.0)
    assert item.text(X[0]) == str(np.datetime64("1970-01-01") + 18100)
    assert item.axis(np.array([0.0])) == 1970.0


def test_ranges_of_one_value():
    assert ranges(["a"], [1.0], [1.0], [1.0], "unit", "title").count("<circle") == 1
