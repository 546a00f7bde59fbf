"""What a new user tries on the first day: examples, options, predictions on standard output, habits from elsewhere."""

import csv
import inspect
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import call, fail, succeed, write, write_problem
from sklearn.base import clone

import sparsebayes
from sparsebayes import RVC, RVR
from sparsebayes.tables import Options, learn
from sparsebayes.tables.validation import cross_validate


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


class TestHabitsOfSupportVectors:
    @pytest.mark.parametrize(
        ("make", "name", "words"),
        [
            (RVR, "C", "no penalty"),
            (RVR, "epsilon", "noise_variance"),
            (RVC, "probability", "predict_proba"),
            (RVC, "decision_function_shape", "multi_class"),
            (RVC, "nu", "evidence"),
        ],
    )
    def test_a_parameter_that_has_something_else_in_its_place(self, make, name, words):
        with pytest.raises(TypeError, match=f"{make.__name__} has no parameter '{name}'.*{words}"):
            make(**{name: 1})

    @pytest.mark.parametrize(
        ("make", "words"), [(RVR, "puts a function on every row"), (RVC, "needs sums over all rows|puts a function on")]
    )
    def test_chunks_without_targets_beside_them_are_refused_in_words(self, make, words):
        rng = np.random.default_rng(0)
        chunks = [(rng.standard_normal((20, 2)), np.arange(20) % 2) for _ in range(2)]
        with pytest.raises(TypeError, match=words):
            make().fit(chunks)

    def test_another_unknown_parameter_is_as_everywhere(self):
        with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
            RVR(nonsense=1)

    @pytest.mark.parametrize("make", [RVR, RVC])
    def test_help_shows_the_parameters(self, make):
        assert list(inspect.signature(make).parameters) == [
            name for name in make.__init__.__annotations__ if name != "return"
        ]

    def test_support_vectors(self):
        model = RVR(gamma=1.0)
        assert not hasattr(model, "support_vectors_")
        model.fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 0.5, 0.1])
        np.testing.assert_array_equal(model.support_vectors_, model.relevance_vectors_)
        assert clone(model).get_params() == model.get_params()


class TestPredict:
    @pytest.fixture(autouse=True)
    def model(self, folder):
        rng = np.random.default_rng(0)
        x = rng.normal(size=40)
        write(
            "d.csv", ["id", "x", "town", "y"], [range(101, 141), x, ["a", "b"] * 20, 2 * x + 0.1 * rng.normal(size=40)]
        )
        succeed("fit", "d.csv", "-t", "y", "--kernel", "columns", "--no-report")

    def test_to_standard_output_with_a_key_and_limits(self):
        result = call("predict", "d.model", "d.csv", "--keep", "id", "--keep", "town")
        assert (result.exit_code, result.stderr) == (0, "")
        rows = list(csv.DictReader(io.StringIO(result.stdout)))
        assert list(rows[0]) == ["id", "town", "mean", "std", "lower", "upper"]
        assert [row["id"] for row in rows] == [str(k) for k in range(101, 141)]
        mean, std, lower, upper = (np.array([float(r[n]) for r in rows]) for n in ("mean", "std", "lower", "upper"))
        np.testing.assert_allclose(upper - mean, 1.959964 * std, rtol=1e-5)
        np.testing.assert_allclose(mean - lower, 1.959964 * std, rtol=1e-5)

    def test_remarks_do_not_mix_with_the_table(self):
        write("new.csv", ["x", "town"], [["", "1"], ["a", "q"]])
        result = call("predict", "d.model", "new.csv")
        assert result.stdout.splitlines()[0] == "mean,std,lower,upper"
        assert len(result.stdout.splitlines()) == 3
        assert "1 missing numbers" in result.stderr
        assert "1 cells hold categories" in result.stderr

    def test_an_infinite_cell_is_named(self):
        write("new.csv", ["x", "town"], [["1", "inf"], ["a", "b"]])
        assert "new.csv: column 'x' has an infinite value in data row 2" in fail("predict", "d.model", "new.csv")

    def test_what_cannot_be_kept(self):
        assert "did you mean 'town'" in fail("predict", "d.model", "d.csv", "--keep", "Towns")
        assert "--out" in fail("predict", "d.model", "d.csv", "--json")


class TestProgram:
    def test_as_a_module(self):
        """Where the script is not on the path, as on many a Windows machine."""
        here = os.environ | {"PYTHONPATH": str(Path(sparsebayes.__file__).parents[1])}
        done = subprocess.run(
            [sys.executable, "-m", "sparsebayes", "--version"], capture_output=True, text=True, env=here
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("sparsebayes ")

    def test_an_export_that_there_is_none_of(self):
        rng = np.random.default_rng(0)
        x = rng.normal(size=60)
        write("c.csv", ["x", "n"], [x, rng.poisson(np.exp(1 + x))])
        call("fit", "c.csv", "-t", "n", "--kernel", "columns", "--likelihood", "poisson", "--no-report")
        message = fail("export", "c.model", "--format", "sql", "--out", "c.sql")
        assert "a model of counts (likelihood='poisson') has no export" in message
        assert "Posterior" not in message


class TestExamples:
    @pytest.mark.parametrize(("name", "target"), [("houses", "price"), ("patients", "diabetes")])
    def test_a_table_that_can_be_fitted(self, name, target):
        assert f"sparsebayes fit {name}.csv --target {target}" in succeed("example", f"{name}.csv")
        content = json.loads(
            succeed("fit", f"{name}.csv", "-t", target, "--kernel", "columns", "--json", "--no-report")
        )
        assert content["verdict"]["level"] != "failure"

    def test_another_name(self):
        assert "houses.csv or patients.csv" in fail("example", "cars.csv")


class TestOptions:
    def test_counts_are_offered_poisson_and_fitted_so(self):
        rng = np.random.default_rng(0)
        x = rng.normal(size=80)
        write("c.csv", ["x", "n"], [x, rng.poisson(np.exp(1 + x))])
        content = json.loads(succeed("fit", "c.csv", "-t", "n", "--kernel", "columns", "--json"))
        assert "--likelihood poisson" in content["reason"]
        content = json.loads(
            succeed("fit", "c.csv", "-t", "n", "--kernel", "columns", "--likelihood", "poisson", "--json")
        )
        assert content["noise_std"] is None
        assert "--likelihood poisson takes" not in content["reason"]
        assert sparsebayes.load("c.model").estimator_.likelihood == "poisson"
        rows = list(csv.DictReader(io.StringIO(call("predict", "c.model", "c.csv").stdout)))
        assert min(float(row["lower"]) for row in rows) >= 0.0

    def test_what_is_no_count_is_named_with_its_column(self):
        write("c.csv", ["x", "n"], [range(30), [2.5, *range(29)]])
        message = fail("fit", "c.csv", "-t", "n", "--likelihood", "poisson")
        assert "c.csv: the target 'n' has the value 2.5, and --likelihood poisson takes counts" in message

    def test_what_suits_counts_is_judged_by_probabilities(self):
        """A mean log density of counts above zero would be none."""
        rng = np.random.default_rng(0)
        x = rng.normal(size=80)
        write("c.csv", ["x", "n"], [x, rng.poisson(np.exp(3 + 0.5 * x))])
        content = json.loads(succeed("fit", "c.csv", "-t", "n", "--likelihood", "poisson", "--json", "--no-report"))
        assert all(-5.0 < score < 0.0 for score in content["tried"].values())

    @pytest.mark.parametrize("likelihood", ["outliers", "student-t"])
    @pytest.mark.parametrize("further", [(), ("--gamma", "ard"), ("--kernel", "both"), ("--kernel", "laplacian")])
    def test_outliers_with_functions_on_the_rows(self, likelihood, further):
        """Estimators refuse to learn widths with these likelihoods; the command line finds one all the same."""
        rng = np.random.default_rng(0)
        x, z = rng.uniform(-3, 3, (2, 90))
        far = np.arange(90) % 10 == 0
        write("d.csv", ["x", "z", "y"], [x, z, np.sin(2 * x) + 0.1 * rng.normal(size=90) + 20.0 * far])
        arguments = ["fit", "d.csv", "-t", "y", "--likelihood", likelihood, *further]
        result = call(*arguments, "--json", "--no-report")
        assert result.exit_code in (0, 3), result.output
        est = sparsebayes.load("d.model").estimator_
        assert est.likelihood == likelihood
        if further == ():
            # Squares of errors would be those of the outliers: no model that leaves them alone could be of use.
            assert result.exit_code == 0
            verdict = json.loads(result.stdout)["verdict"]
            assert "It is of use: its typical error is 0." in verdict["findings"][0]["text"]
            said = " ".join(finding["text"] for finding in verdict["findings"])
            assert ("are for rows that are no outliers (" in said) is (likelihood == "outliers")
            assert "nothing that these rows could show: x" not in said

    def test_ard(self):
        write_problem()
        succeed("fit", "data.csv", "-t", "y", "--gamma", "ard", "--no-report")
        est = sparsebayes.load("data.model").estimator_
        assert (est.gamma, len(est.kernel_.width)) == ("ard", 3)

    def test_baselines_and_folds(self):
        write_problem()
        arguments = ["fit", "data.csv", "-t", "y", "--kernel", "columns", "--baseline", "--cv", "4", "--json"]
        content = json.loads(succeed(*arguments))
        assert set(content["verdict"]["baselines"]) == {
            "the mean",
            "a linear model",
            "random forest",
            "support vectors",
        }
        assert "40 rows, each left out once in 4 folds" in content["facts"]["error (RMSE) in folds"]

    def test_folds_of_classes(self):
        x = np.random.default_rng(0).normal(size=60)
        write("d.csv", ["x", "y"], [x, np.where(x > 0, "p", "q")])
        arguments = ["fit", "d.csv", "-t", "y", "--kernel", "columns", "--cv", "3", "--json", "--no-report"]
        assert "60 rows, each left out once" in json.loads(succeed(*arguments))["facts"]["accuracy in folds"]
        assert "from 2 to 28" in fail(*arguments[:-3], "31")
        rare = np.where(np.arange(60) < 3, "r", np.where(x > 0, "p", "q"))
        write("d.csv", ["x", "y"], [x, rare])
        assert "the rarest class has 3 rows, of which a fold would leave 1" in fail(*arguments[:-3], "2")
        assert "60 rows, each left out once" in json.loads(succeed(*arguments))["facts"]["accuracy in folds"]

    def test_what_folds_predict_stands_at_its_row(self):
        x = np.random.default_rng(1).normal(size=60)
        for y in (2.0 * x + 1.0, np.where(x > 0, "p", "q")):
            options = Options(kernel="columns")
            found = cross_validate(learn({"x": x, "y": y}, "y", options), options, 4)
            if y.dtype.kind == "f":
                np.testing.assert_allclose(found["mean"], y, atol=1e-3)
            else:
                assert np.mean(found["class"] == y) > 0.9
                np.testing.assert_allclose(found["p(p)"] + found["p(q)"], 1.0, rtol=1e-12)
                assert np.mean((found["p(p)"] > 0.5) == (x > 0)) > 0.9

    def test_an_identifier_that_is_wanted(self):
        data = {"key": np.arange(5, 45), "x": np.random.default_rng(0).normal(size=40), "y": np.arange(40) * 2.0}
        assert learn(data, "y", Options(kernel="columns")).model.encoder.names == ["x"]
        assert learn(data, "y", Options(kernel="columns", use=("key",))).model.encoder.names == ["key", "x"]

    def test_options_that_make_no_sense(self):
        write_problem()
        assert "'student-t'" in fail("fit", "data.csv", "-t", "y", "--likelihood", "cauchy")
        assert "did you mean 'a'?" in fail("fit", "data.csv", "-t", "y", "--use", "A")
        write("d.csv", ["x", "y"], [range(40), ["p", "q"] * 20])
        assert "no meaning in classification" in fail("fit", "d.csv", "-t", "y", "--likelihood", "poisson")
        assert "--noise varies has no meaning in classification" in fail("fit", "d.csv", "-t", "y", "--noise", "varies")


class TestExplain:
    """``--explain``: which columns carry effects, how sure that is, and what each input does to each row."""

    def table(self, y, path="d.csv"):
        rng = np.random.default_rng(0)
        a, c = rng.normal(size=(2, 120))
        b = a + 0.01 * rng.normal(size=120)  # a's twin
        town = rng.choice(["x", "y", "z"], 120)
        write(path, ["a", "b", "c", "town", "t"], [a, b, c, town, y(a, c, town, rng)])

    def test_twins_are_named_together(self):
        self.table(lambda a, c, town, rng: 2 * a + 3 * (town == "y") + 0.3 * rng.normal(size=120))
        arguments = ["fit", "d.csv", "-t", "t", "--kernel", "columns", "--explain"]
        content = json.loads(succeed(*arguments, "--json"))
        found = content["explanation"]
        assert found["of_the_model_itself"]
        assert set(found["inclusion"]) == {"a", "b", "c", "town = x", "town = y", "town = z"}
        sets = [set(one["members"]) for one in found["credible_sets"]]
        assert {"a", "b"} in sets
        assert {"town = y"} in sets
        assert len(sets) == 2
        strength = found["mean_absolute_attribution"]
        assert set(strength) == {"a", "b", "c", "town"}
        assert strength["town"] > 1.0 > strength["c"]
        page = Path("d.html").read_text(encoding="utf-8")
        section = page[page.index('<section id="explain"') : page.index('<section id="search"')]
        assert section.count("<svg") == 3
        assert "one of " in section
        assert "the data cannot tell which" in section
        assert "effects (95 % sure)" in succeed(*arguments)

    def test_a_model_with_curves_has_a_linear_one_beside_it(self):
        self.table(lambda a, c, town, rng: np.sin(2 * a) + c + 0.1 * rng.normal(size=120))
        found = json.loads(succeed("fit", "d.csv", "-t", "t", "--kernel", "rbf", "--explain", "--json"))["explanation"]
        assert not found["of_the_model_itself"]
        assert {"c"} in [set(one["members"]) for one in found["credible_sets"]]
        assert "The model has curves" in Path("d.html").read_text(encoding="utf-8")

    def test_several_classes(self):
        self.table(lambda a, c, town, rng: np.where(c > 0.6, "high", np.where(c > -0.6, "mid", "low")))
        found = json.loads(succeed("fit", "d.csv", "-t", "t", "--kernel", "columns", "--explain", "--json"))
        assert {one["output"] for one in found["explanation"]["credible_sets"]} <= {"high", "low", "mid"}
        page = Path("d.html").read_text(encoding="utf-8")
        section = page[page.index('<section id="explain"') : page.index('<section id="search"')]
        assert section.count("<svg") == 5  # probabilities, strengths, and the rows of each class

    def test_functions_without_exact_attributions_say_so(self):
        self.table(lambda a, c, town, rng: c + 0.1 * rng.normal(size=120))
        succeed("fit", "d.csv", "-t", "t", "--kernel", "poly", "--explain")
        assert "has no exact answer here" in Path("d.html").read_text(encoding="utf-8")

    def test_the_report_of_a_saved_model(self):
        self.table(lambda a, c, town, rng: c + 0.1 * rng.normal(size=120))
        succeed("fit", "d.csv", "-t", "t", "--kernel", "columns", "--no-report")
        found = json.loads(succeed("report", "d.model", "d.csv", "--explain", "--json"))["explanation"]
        assert [set(one["members"]) for one in found["credible_sets"]] == [{"c"}]
        # Of another table only the predictions can be explained.
        self.table(lambda a, c, town, rng: c + 0.2 * rng.normal(size=120), "other.csv")
        found = json.loads(succeed("report", "d.model", "other.csv", "--explain", "--json"))["explanation"]
        assert "inclusion" not in found
        assert found["mean_absolute_attribution"]["c"] > 0.5
