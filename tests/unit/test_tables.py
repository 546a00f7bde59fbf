from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from sparsebayes.tables import Options, TableModel, as_table, learn, learning, read_table, reopen, write_table
from sparsebayes.tables.choice import by_folds
from sparsebayes.tables.encoder import Category, Numeric, learn_encoder
from sparsebayes.tables.target import read_target


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(text):
    Path("t.csv").write_text(text, encoding="utf-8")
    return read_table(Path("t.csv"))


class TestReading:
    @pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
    def test_separators(self, separator):
        table = read(separator.join(["a", '"b,;|"', "c"]) + "\n" + separator.join(["1", "x", "2.5"]) + "\n")
        assert table.names == ["a", "b,;|", "c"]
        assert table.numbers("c").tolist() == [2.5]

    def test_decimal_commas_where_commas_separate_nothing(self):
        assert read("a;b\n1,5;x,y\n-0,25e1;z\n").numbers("a").tolist() == [1.5, -2.5]

    def test_a_first_column_that_numbers_the_rows_is_left_out(self):
        assert read(",a\n0,5\n1,6\n").names == ["a"]

    def test_every_digit_comes_back(self):
        values = np.array([0.1, -0.0, 1e-308, 1 / 3, 12345678901234567.0])
        write_table(Path("out.csv"), {"mean": values, "class": np.array(list("abcde"))})
        table = read_table(Path("out.csv"))
        np.testing.assert_array_equal(table.numbers("mean"), values)
        assert table.texts("class") == list("abcde")

    def test_fingerprints_tell_tables_apart(self):
        table = read("a,b\n1,x\n2,y\n")
        assert table.fingerprint == as_table({"a": [1.0, 2.0], "b": ["x", "y"]}).fingerprint
        for other in ("a,b\n1,x\n2,z\n", "a,c\n1,x\n2,y\n", "a,b\n2,y\n1,x\n", "a,b\n1,x\n2,y\n2,y\n"):
            assert read(other).fingerprint != table.fingerprint

    def test_data_frames(self):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame({"a": [1, 2], "b": ["x", None], "c": [True, False]})
        table = as_table(frame)
        assert table.numbers("a").tolist() == [1.0, 2.0]
        assert table.texts("b") == ["x", ""]
        assert table.texts("c") == ["True", "False"]

    def test_columns_of_different_lengths(self):
        with pytest.raises(ValueError, match="one number of rows"):
            as_table({"a": [1.0], "b": [1.0, 2.0]})


class TestEncoder:
    def learn(self, table, **options):
        return learn_encoder(table, np.arange(table.n_rows), leave_out={"y"}, **options)

    def test_kinds_of_columns(self):
        table = read("n,c,b,gap,y\n1,x,no,1,0\n2,z,yes,,0\n3,y,no,3,0\n")
        encoder, notes = self.learn(table)
        assert [type(column) for column in encoder.columns] == [Numeric, Category, Category, Numeric]
        assert encoder.features == ["n", "c = x", "c = y", "c = z", "b = yes", "gap"]
        X = encoder.encode(table).X
        np.testing.assert_allclose(X[:, [0, 5]].mean(axis=0), 0.0, atol=1e-15)
        np.testing.assert_allclose(X[:, 0].std(), 1.0)
        np.testing.assert_array_equal(X[:, 1:5], [[1, 0, 0, 0], [0, 0, 1, 1], [0, 1, 0, 0]])
        assert X[1, 5] == 0.0  # the median of 1 and 3 is also the mean
        assert notes == ["'gap': 1 missing value filled in with the median 2"]

    def test_a_gap_is_filled_by_what_half_of_the_others_are_below(self):
        table = read("n,y\n1,0\n2,0\n,0\n900,0\n")
        encoder, _ = self.learn(table)
        X = encoder.encode(table).X
        assert X[2, 0] == X[1, 0]
        # Filled in, the column has mean zero and unit variance, as every other has.
        np.testing.assert_allclose([X.mean(), X.std()], [0.0, 1.0], atol=1e-12)

    @pytest.mark.parametrize("zone", ["-05:00", "-0500", "-05"])
    def test_zones_are_taken_to_the_same_clock(self, zone):
        table = read(f"d,y\n2024-03-31 12:00{zone},0\n2024-03-31 17:00Z,0\n2024-03-31 22:00+05:00,0\n2024-04-01,1\n")
        days = table.days("d", False)
        np.testing.assert_allclose(days[:3], days[1], rtol=0, atol=1e-9)
        assert days[3] - days[1] == pytest.approx(7.0 / 24.0)

    def test_centres_and_levels_are_those_of_the_training_rows(self):
        table = read("n,c,y\n1,x,0\n3,z,0\n100,w,0\n")
        encoder, _ = learn_encoder(table, np.array([0, 1]), leave_out={"y"})
        encoded = encoder.encode(table)
        np.testing.assert_array_equal(encoded.X, [[-1.0, 0.0], [1.0, 1.0], [98.0, 0.0]])
        assert (encoded.filled, encoded.unknown) == (0, 1)

    def test_numbers_that_name_categories(self):
        encoder, _ = self.learn(read("zip,y\n7,0\n9,0\n8,0\n"), categorical={"zip"})
        assert encoder.features == ["zip = 7", "zip = 8", "zip = 9"]

    def test_a_missing_category_is_a_level(self):
        encoder, _ = self.learn(read("c,d,y\nx,1,0\n,2,0\nz,3,0\n"))
        assert encoder.features[0] == "c = (missing)"

    def test_comes_back_from_plain_data(self):
        encoder, _ = self.learn(read("n,c,y\n1,x,0\n3,z,0\n100,w,0\n"))
        assert type(encoder).from_data(encoder.to_data(), len(encoder.features)) == encoder


CODES = [1, 7, 3, 7, 1, 3] * 10
# Labels of a categorical column with what they are as texts, and whether numbers would do for them.
LABELS = {
    "whole": (CODES, ["1", "3", "7"], "number"),
    "parts": ([0.5 * c for c in CODES], ["0.5", "1.5", "3.5"], "number"),
    "gaps": ([None if c == 3 else c for c in CODES], ["", "1", "7"], "number"),
    "digits": ([str(c) for c in CODES], ["1", "3", "7"], "number"),
    "texts": (["abc"[c % 3] for c in CODES], ["a", "b"], "text"),
    "truths": ([c > 1 for c in CODES], ["False", "True"], "boolean"),
    "prices": ([f"${c}" for c in CODES], ["$1", "$3", "$7"], "text"),
    "days": ([f"2024-03-0{c}" for c in CODES], ["2024-03-01", "2024-03-03", "2024-03-07"], "text"),
}


class TestCategoricalColumns:
    """Their type says that they hold categories, whatever the labels are."""

    @pytest.mark.parametrize("kind", LABELS)
    def test_every_label_has_an_indicator(self, kind):
        pandas = pytest.importorskip("pandas")
        cells, levels, as_what = LABELS[kind]
        table = as_table(pandas.DataFrame({"c": pandas.Categorical(cells), "y": np.arange(60.0)}))
        encoder, notes = learn_encoder(table, np.arange(60), leave_out={"y"})
        assert encoder.columns == (Category("c", tuple(levels), as_what),)
        assert notes == []
        assert encoder.encode(table.take(range(9))).unknown == 0
        np.testing.assert_array_equal(encoder.encode(as_table({"c": cells})).X, encoder.encode(table).X)

    @pytest.mark.parametrize("kind", LABELS)
    @pytest.mark.parametrize("suffix", ["parquet", "feather"])
    def test_files_keep_the_type(self, kind, suffix, tmp_path):
        pandas = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        cells, levels, _ = LABELS[kind]
        if (kind, suffix) == ("truths", "feather"):
            pytest.skip("Arrow has no dictionary of truth values")
        frame = pandas.DataFrame({"c": pandas.Categorical(cells), "n": [float(c) for c in CODES]})
        getattr(frame, f"to_{suffix}")(tmp_path / f"t.{suffix}")
        table = read_table(tmp_path / f"t.{suffix}")
        assert table.categories == {"c"}
        encoder, _ = learn_encoder(table, np.arange(60), leave_out=set())
        assert [type(column) for column in encoder.columns] == [Category, Numeric]
        assert encoder.columns[0].levels == tuple(levels)

    def test_those_of_polars_and_of_arrow(self):
        polars = pytest.importorskip("polars")
        texts = [str(c) for c in CODES]
        frame = polars.DataFrame(
            {
                "c": polars.Series(texts, dtype=polars.Categorical),
                "e": polars.Series(texts, dtype=polars.Enum(["1", "3", "7"])),
                "t": polars.Series(texts),
            }
        )
        assert as_table(frame).categories == {"c", "e"}
        pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
        coded = pandas.ArrowDtype(pyarrow.dictionary(pyarrow.int32(), pyarrow.int64()))
        assert as_table({"a": pandas.Series(CODES, dtype=coded), "b": CODES}).categories == {"a"}

    def test_a_target_of_categories_is_one_of_classes(self):
        pandas = pytest.importorskip("pandas")
        for kind in ("whole", "digits", "days"):
            target = read_target(as_table({"y": pandas.Categorical(LABELS[kind][0])}), "y")
            assert target.task == "classification"
            assert sorted(set(target.values)) == LABELS[kind][1]
        asked = read_target(as_table({"y": pandas.Categorical(CODES)}), "y", "regression")
        np.testing.assert_array_equal(asked.values, CODES)

    def test_names_of_the_rows_are_set_aside_and_too_many_left_out(self):
        pandas = pytest.importorskip("pandas")
        numbers = np.arange(60)
        twice = pandas.Categorical(np.append(numbers[1:], 1))
        table = as_table({"id": pandas.Categorical(numbers), "m": twice, "n": numbers})
        encoder, notes = learn_encoder(table, numbers, leave_out=set(), use={"n"})
        assert encoder.names == ["n"]
        assert [note.split(":")[0] for note in notes] == ["'id' set aside", "'m' left out"]

    def test_a_model_takes_them_as_numbers_too(self):
        pandas = pytest.importorskip("pandas")
        y = np.array([{1: 0.0, 3: 5.0, 7: 1.0}[c] for c in CODES]) + 0.1 * np.random.default_rng(0).normal(size=60)
        model = learn({"c": pandas.Categorical(CODES), "y": y}, "y", Options(kernel="columns", test=0.0)).model
        found = model.predict({"c": [1, 3, 7]})["mean"]
        np.testing.assert_allclose(found, [0.0, 5.0, 1.0], atol=0.2)
        np.testing.assert_array_equal(model.predict({"c": ["1", "3.0", "7"]})["mean"], found)


class TestLearning:
    def data(self, n=60):
        rng = np.random.default_rng(1)
        x = rng.uniform(-3, 3, n)
        return {"x": x, "y": np.sinc(x) + 0.05 * rng.normal(size=n)}

    @pytest.mark.parametrize(
        ("values", "task"),
        [([0.5, 1.0, 2.5, 7.0], "regression"), ([0.0, 1.0] * 2, "classification"), (["a", "b"] * 2, "classification")],
    )
    def test_the_target_decides_the_task(self, values, task):
        study = learn({"x": np.arange(40.0), "y": values * 10}, "y")
        assert study.target.task == task

    def test_whole_numbers_are_numbers_with_a_hint(self):
        study = learn({"x": np.arange(40.0), "y": [1.0, 2.0, 3.0, 4.0] * 10}, "y")
        assert study.target.task == "regression"
        assert "--task classification" in study.target.reason

    def test_classes_are_split_in_proportion(self):
        study = learn({"x": np.arange(100.0), "y": ["rare"] * 10 + ["common"] * 90}, "y", Options(kernel="columns"))
        assert np.sum(study.target.values[study.test] == "rare") == 2

    @pytest.mark.parametrize("seed", range(5))
    def test_numbers_are_spread_alike_over_both_parts(self, seed):
        """The ten rows that are far from all others, two of which belong in a test part of a fifth."""
        y = np.concatenate([np.linspace(0.0, 1.0, 90), np.linspace(50.0, 60.0, 10)])
        order = np.random.default_rng(0).permutation(100)
        study = learn({"x": np.arange(100.0), "y": y[order]}, "y", Options(kernel="columns", seed=seed))
        assert np.sum(study.target.values[study.test] > 10.0) == 2

    def test_a_model_from_before_finds_its_test_rows(self, monkeypatch):
        """They were drawn whatever their targets are."""
        data = self.data()
        with monkeypatch.context() as before:
            before.setattr(learning, "_split", partial(learning._split, spread=False))
            study = learn(data, "y", Options(kernel="columns"))
        assert not np.array_equal(study.test, learn(data, "y", Options(kernel="columns")).test)
        np.testing.assert_array_equal(reopen(study.model, data).test, study.test)

    def test_every_row_is_on_one_side(self):
        study = learn(self.data(), "y", Options(test=0.25, seed=3))
        assert sorted([*study.train, *study.test]) == list(range(60))
        assert len(study.test) == 15
        assert not np.array_equal(study.test, learn(self.data(), "y", Options(test=0.25, seed=4)).test)

    def test_rows_without_a_target_are_left_out(self):
        data = self.data()
        data["y"][[4, 9]] = np.nan
        study = learn(data, "y")
        assert len(study.target.rows) == 58
        assert study.notes[0].startswith("2 rows left out")
        assert 4 not in study.target.rows

    def test_a_saved_model_predicts_the_same_and_finds_its_test_rows(self):
        data = self.data()
        study = learn(data, "y")
        study.model.save("m.model")
        model = TableModel.load("m.model")
        for ours, theirs in zip(model.predict(data).values(), study.model.predict(data).values(), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(reopen(model, data).test, study.test)
        assert len(reopen(model, self.data(30)).train) == 0


class _Off(BaseEstimator):
    """Predicts the first column times a number, with bars of one."""

    likelihood = "gaussian"

    def __init__(self, by=0.0):
        self.by = by

    def predict(self, X, return_std=True):
        return self.by * X[:, 0], np.ones(len(X))


@pytest.mark.parametrize(("by", "kept"), [(0.01, "columns"), (1.0, "rbf")], ids=["hardly worse", "worse"])
def test_the_simplest_of_the_functions_that_do_about_as_well_is_kept(by, kept):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 1)), rng.normal(size=200)
    by = by if X[:, 0] @ y < 0.0 else -by  # such that it is worse
    found = by_folds({"rbf": _Off(), "columns": _Off(by)}, X, y, 0, lambda est, X, y: None)
    assert found.scores["rbf"] > found.scores["columns"]
    assert found.kept == kept


def test_a_few_rows_far_outside_do_not_hide_that_functions_on_the_rows_do_better():
    """The standard error was that of their densities: on laser straight lines were kept, at three times the error."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=400)
    X = (y + rng.normal(size=400))[:, None]
    X[:2, 0], y[:2] = 40.0, [0.0, 20.0]  # one far outside the bars of either
    found = by_folds({"rbf": _Off(0.5), "columns": _Off(0.0)}, X, y, 0, lambda est, X, y: None)
    assert found.scores["rbf"] > found.scores["columns"]
    assert found.kept == "rbf"


def test_a_column_that_is_there_is_not_offered_for_one_that_is_missing():
    rng = np.random.default_rng(0)
    above, below = rng.standard_normal((2, 30))
    model = learn({"rooms_above": above, "rooms_below": below, "y": above - below}, "y").model
    with pytest.raises(ValueError, match="lacks the input column 'rooms_below'") as refused:
        model.predict({"rooms_above": [1.0]})
    assert "did you mean" not in str(refused.value)
    with pytest.raises(ValueError, match="did you mean 'Rooms_Below'"):
        model.predict({"rooms_above": [1.0], "Rooms_Below": [1.0]})
