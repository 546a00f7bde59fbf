"""The verdict: useless, dishonest and unproven models are called so, and good ones too."""

import json
import signal
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from commands import call, succeed, write
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from sparsebayes import RVC, RVR, SparseBayesRegressor
from sparsebayes.report.case import Case, Input
from sparsebayes.report.verdict import Level, judge_case
from sparsebayes.tables import Options, learn, load
from sparsebayes.tables.choice import by_folds
from sparsebayes.tables.learning import Interrupted, reopen

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


class Fixed:
    """A model that says what it is told: mean and std, or probabilities, by the first input."""

    def __init__(self, est, mean, std):
        self.est, self.mean, self.std = est, mean, std

    def __getattr__(self, name):
        return getattr(self.est, name)

    def __sklearn_tags__(self):
        return self.est.__sklearn_tags__()

    def predict(self, X, return_std=False):
        mean = self.mean(X)
        return (mean, np.full(len(X), self.std)) if return_std else mean


def case_of(est, X, y, n_test=40):
    inputs = [Input(f"x{k}", (k,)) for k in range(X.shape[1])]
    return Case(est, X[n_test:], y[n_test:], X[:n_test], y[:n_test], inputs, "y", "t")


def regression(mean, std, noise=0.5, n_test=40):
    X = np.random.default_rng(1).normal(size=(120, 2))
    y = 2.0 * X[:, 0] + noise * np.random.default_rng(2).normal(size=120)
    est = SparseBayesRegressor().fit(X[n_test:], y[n_test:])
    return judge_case(case_of(Fixed(est, mean, std), X, y, n_test))


def said(verdict, level):
    return " ".join(finding.text for finding in verdict.findings if finding.level is level)


class TestRegression:
    def test_a_good_model(self):
        verdict = regression(lambda X: 2.0 * X[:, 0], 0.5)
        assert verdict.level is Level.GOOD
        assert "It is of use" in said(verdict, Level.GOOD)
        assert "honest" in said(verdict, Level.GOOD)
        assert "shuffling, each alone, costs nothing that these rows could show: x1" in said(verdict, Level.GOOD)
        assert verdict.baselines["the mean"] > verdict.baselines["a linear model"]

    def test_no_better_than_the_mean(self):
        verdict = regression(lambda X: X[:, 1], 3.0)
        assert verdict.level is Level.FAILURE
        assert "of no use" in said(verdict, Level.FAILURE)

    def test_bars_that_are_far_too_narrow(self):
        verdict = regression(lambda X: 2.0 * X[:, 0], 0.05)
        assert "surer than it should be" in said(verdict, Level.FAILURE)

    def test_bars_that_are_somewhat_too_narrow(self):
        verdict = regression(lambda X: 2.0 * X[:, 0], 0.33)
        assert "surer than it should be" in said(verdict, Level.WARNING)
        assert verdict.headline == "Usable with care"

    def test_bars_that_are_too_wide_for_so_few_functions(self):
        verdict = regression(lambda X: 2.0 * X[:, 0], 2.0)
        assert "comes from too few rows" in said(verdict, Level.WARNING)
        # The noise has a variance of about a quarter, a prediction one of four.
        assert "94% of the uncertainty" in said(verdict, Level.WARNING)

    def test_bars_of_a_model_that_allows_for_outliers_need_not_hold_them(self):
        rng = np.random.default_rng(0)
        X, outlier = rng.normal(size=(200, 2)), rng.random(200) < 0.25
        y = 2.0 * X[:, 0] + 0.1 * rng.normal(size=200) + np.where(outlier, 20.0 * rng.normal(size=200), 0.0)
        model = SparseBayesRegressor(likelihood="outliers").fit(X[80:], y[80:])
        case = case_of(model, X, y, 80)
        assert case.result.coverage < 0.85
        assert "It is honest about its errors" in said(judge_case(case), Level.GOOD)

    def test_other_kinds_of_models_are_those_of_scikit_learn(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(90, 2))
        y = 1e3 + 50.0 * np.sin(X[:, 0]) + 5.0 * rng.normal(size=90)
        verdict = judge_case(
            case_of(SparseBayesRegressor().fit(X[40:], y[40:]), X, y), ("random forest", "support vectors")
        )
        machine = TransformedTargetRegressor(SVR(), transformer=StandardScaler())
        others = {"random forest": RandomForestRegressor(random_state=0), "support vectors": machine}
        others |= {"the mean": DummyRegressor(), "a linear model": RidgeCV(np.logspace(-3, 3, 13))}
        for name, other in others.items():
            errors = other.fit(X[40:], y[40:]).predict(X[:40]) - y[:40]
            assert verdict.baselines[name] == pytest.approx(np.sqrt(np.mean(errors**2)), rel=0.01)

    def test_a_linear_model_that_is_better(self):
        verdict = regression(lambda X: 1.2 * X[:, 0], 1.0)
        assert "A plain linear model is better" in said(verdict, Level.WARNING)

    def test_equal_figures_are_not_called_better(self):
        """A model that is nothing but its mean, beside a linear one that has found nothing either."""
        X = np.random.default_rng(1).normal(size=(120, 2))
        y = np.sin(1000.0 * X[:, 0])  # as good as noise
        est = SparseBayesRegressor().fit(X[40:], y[40:])
        linear = RidgeCV(np.logspace(-3, 3, 13)).fit(X[40:], y[40:])
        slightly = Fixed(est, lambda X: linear.predict(X) + 1e-6 * (np.sin(1000.0 * X[:, 0]) - linear.predict(X)), 1.0)
        verdict = judge_case(case_of(slightly, X, y))
        assert "does about as well" in said(verdict, Level.GOOD)
        assert "It is better than a plain linear model" not in said(verdict, Level.GOOD)

    def test_no_advice_that_was_taken_already(self):
        X = np.random.default_rng(1).normal(size=(120, 2))
        y = 2.0 * X[:, 0] + 0.5 * np.random.default_rng(2).normal(size=120)
        for est, advice in ((SparseBayesRegressor(), False), (RVR("linear"), True)):
            fitted = Fixed(est.fit(X[40:], y[40:]), lambda X: 1.2 * X[:, 0], 1.0)
            text = said(judge_case(case_of(fitted, X, y)), Level.WARNING)
            assert "A plain linear model" in text
            assert ("--kernel columns" in text) is advice

    def test_a_few_rows_of_another_table_say_little(self):
        """Without training rows at hand the mean is that of the other test rows, and of one row there is none."""
        X = np.random.default_rng(1).normal(size=(120, 2))
        y = 2.0 * X[:, 0] + 0.5 * np.random.default_rng(2).normal(size=120)
        est = SparseBayesRegressor().fit(X[40:], y[40:])
        for n in (1, 6, 40):
            inputs = [Input("a", (0,)), Input("b", (1,))]
            verdict = judge_case(Case(est, X[:0], y[:0], X[:n], y[:n], inputs, "y", "t"))
            others = [y[:n].mean() if n == 1 else np.delete(y[:n], k).mean() for k in range(n)]
            if n > 1:
                np.testing.assert_allclose(verdict.baselines["the mean"], np.sqrt(np.mean((y[:n] - others) ** 2)))
            assert verdict.level is (Level.GOOD if n == 40 else Level.WARNING)
            text = " ".join(finding.text for finding in verdict.findings)
            assert ("1 test row cannot tell" in text) is (n == 1)
            assert ("rough" in text) is (n < 10)

    @pytest.mark.parametrize("column", [0, 1])
    def test_errors_that_are_larger_in_places(self, column):
        """On average the bars may hold 95 %; where errors are small they are too wide, elsewhere too narrow."""
        X = np.random.default_rng(1).normal(size=(160, 2))
        spread = np.where(X[:, column] > 0.0, 1.0, 0.1)
        y = 2.0 * X[:, 0] + spread * np.random.default_rng(2).normal(size=160)
        est = SparseBayesRegressor().fit(X[40:], y[40:])
        text = said(judge_case(case_of(est, X, y)), Level.WARNING)
        assert "times larger for some" in text
        assert column == 0 or "values of x1 than" in text
        assert "--noise varies" in text
        even = 2.0 * X[:, 0] + 0.5 * np.random.default_rng(2).normal(size=160)
        verdict = judge_case(case_of(SparseBayesRegressor().fit(X[40:], even[40:]), X, even))
        assert "times larger" not in said(verdict, Level.WARNING)

    def test_no_rows_held_back(self):
        assert "No rows were held back" in said(regression(lambda X: 2.0 * X[:, 0], 0.5, n_test=0), Level.WARNING)


class TestClasses:
    def verdict(self, y_of, sharpness):
        X = np.random.default_rng(3).normal(size=(160, 2))
        y = y_of(X, np.random.default_rng(4).random(160))
        est = RVC("linear").fit(X[60:], y[60:])

        class Said(Fixed):
            def predict_proba(self, X):
                p = 1.0 / (1.0 + np.exp(-sharpness * X[:, 0]))
                return np.column_stack([1.0 - p, p])

            def predict(self, X):
                return self.est.classes_[np.argmax(self.predict_proba(X), axis=1)]

        return judge_case(case_of(Said(est, None, None), X, y, 60))

    @staticmethod
    def noisy(X, u):
        return np.where(u < 1.0 / (1.0 + np.exp(-1.5 * X[:, 0])), "yes", "no")

    def test_honest(self):
        verdict = self.verdict(self.noisy, 1.5)
        assert verdict.level is Level.GOOD
        assert "Its probabilities hold" in said(verdict, Level.GOOD)

    def test_shares_of_wrong_answers_of_plain_models(self):
        X = np.random.default_rng(3).normal(size=(160, 2))
        y = self.noisy(X + 0.5, np.random.default_rng(4).random(160))
        baselines = judge_case(case_of(RVC("linear").fit(X[60:], y[60:]), X, y, 60)).baselines
        assert baselines["the most frequent class"] == pytest.approx(np.mean(y[:60] == "no"))
        linear = LogisticRegression().fit(X[60:], y[60:])
        assert baselines["a linear model"] == pytest.approx(1.0 - linear.score(X[:60], y[:60]))

    def test_too_sure(self):
        assert "not calibrated" in said(self.verdict(self.noisy, 40.0), Level.FAILURE)

    def test_of_no_use(self):
        verdict = self.verdict(lambda X, u: np.where(u < 0.5, "yes", "no"), 1.5)
        assert "of no use" in said(verdict, Level.FAILURE)


class TestCommandLine:
    def test_a_useless_model_is_a_failure(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(60, 30))
        write("noise.csv", [*(f"g{k}" for k in range(30)), "y"], [*X.T.tolist(), rng.normal(size=60).tolist()])
        result = call("fit", "noise.csv", "-t", "y", "--kernel", "columns")
        assert result.exit_code == 3
        assert result.stdout.startswith("Do not use this model as it is\n  ✗ It is of no use")
        page = Path("noise.html").read_text(encoding="utf-8")
        assert '<div id="verdict" class="verdict failure"><p>Do not use this model as it is</p>' in page
        assert load("noise.model").target == "y"

    def test_a_good_model_is_a_success(self):
        X = RNG.normal(size=(80, 2))
        write("good.csv", ["a", "b", "y"], [*X.T.tolist(), (X[:, 0] + 0.1 * RNG.normal(size=80)).tolist()])
        content = json.loads(succeed("fit", "good.csv", "-t", "y", "--kernel", "columns", "--json"))
        assert content["verdict"]["level"] == "good"
        assert content["verdict"]["baselines"]["the mean"] > content["test_rows"]["rmse"]


class TestChoice:
    @pytest.mark.parametrize(
        ("function", "kept"),
        [(lambda X: X @ [1.0, -2.0], "columns"), (lambda X: np.sin(3.0 * X[:, 0]) * np.cos(2.0 * X[:, 1]), "rbf")],
    )
    def test_what_suits_the_rows_is_kept(self, function, kept):
        X = np.random.default_rng(5).uniform(-1.5, 1.5, (90, 2))
        y = function(X) + 0.05 * np.random.default_rng(6).normal(size=90)
        study = learn({"a": X[:, 0], "b": X[:, 1], "y": y}, "y", Options(test=0.0))
        assert study.choice.measure == "folds"
        assert set(study.choice.scores) == {"rbf", "columns", "both"}
        assert study.choice.kept == study.model.functions == kept
        assert any("kept: mean log density of 90 rows left out in 5 folds" in note for note in study.notes)

    def test_curves_are_judged_by_models_of_many_rows(self):
        """Of 320 rows a weak curve cannot be seen; of 1,300 it can, and the model that is kept learns from 1,600."""
        X = np.random.default_rng(5).uniform(-1.5, 1.5, (1600, 6))
        y = X.sum(axis=1) + 0.5 * np.sin(3.0 * X[:, 0]) * np.sin(3.0 * X[:, 1])
        y += 0.8 * np.random.default_rng(6).normal(size=1600)
        learned = []

        def search(estimator, X, y):
            learned.append(len(y))
            estimator.fit(X, y)

        choice = by_folds({"rbf": RVR(gamma=0.05, effort="fast"), "columns": SparseBayesRegressor()}, X, y, 0, search)
        assert (choice.n_folds, choice.n_rows) == (2, 640)
        assert set(learned) == {1280}
        few = by_folds({"columns": SparseBayesRegressor()}, X[:300], y[:300], 0, search)
        assert (few.n_folds, few.n_rows) == (5, 300)

    def test_the_width_beside_the_columns_of_classes_is_the_one_learned_without_them(self):
        """Laplace's evidence grows as widths shrink, so that it would choose the narrowest."""
        X = np.random.default_rng(5).normal(size=(120, 2))
        y = np.where(X[:, 0] + np.random.default_rng(6).normal(size=120) > 0.0, "p", "q")
        model = learn({"a": X[:, 0], "b": X[:, 1], "y": y}, "y", Options(kernel="both", test=0.0)).model
        alone = learn({"a": X[:, 0], "b": X[:, 1], "y": y}, "y", Options(kernel="rbf", test=0.0)).model
        assert model.estimator.basis.bases[1].width == alone.estimator.kernel_.width

    def test_both_together_are_saved_exported_and_reported(self):
        X = np.random.default_rng(7).uniform(-2, 2, (60, 2))
        y = 3.0 * X[:, 0] + np.sin(4.0 * X[:, 1]) + 0.05 * RNG.normal(size=60)
        write("both.csv", ["a", "b", "y"], [*X.T.tolist(), y.tolist()])
        succeed("fit", "both.csv", "-t", "y", "--kernel", "both")
        model = load("both.model")
        assert model.functions == "both"
        page = Path("both.html").read_text(encoding="utf-8")
        assert "rbf of row" in page
        assert "For the technically minded" in page
        succeed("export", "both.model", "--format", "sql", "--out", "both.sql")
        write("new.csv", ["a", "b", "y"], [*(X[:20] + 0.01).T.tolist(), y[:20].tolist()])
        assert (
            "all its rows are test rows" in json.loads(succeed("report", "both.model", "new.csv", "--json"))["notes"][0]
        )

    def test_several_classes_are_compared_by_rows_left_out_too(self):
        x = np.linspace(0.0, 3.0, 24)
        study = learn({"x": x, "z": x**2, "y": np.array(list("abc"))[x.astype(int).clip(0, 2)]}, "y", Options(test=0.0))
        assert study.choice.measure == "folds"
        assert set(study.choice.scores) == {"rbf", "columns", "both"}
        assert study.model.functions == study.choice.kept


@pytest.mark.filterwarnings("ignore:Interrupted")
class TestInterrupts:
    def observer(self, at):
        seen = []

        def observe(record, active):
            seen.append(record)
            if len(seen) == at:
                signal.raise_signal(signal.SIGINT)

        return observe

    def data(self):
        X = np.random.default_rng(8).normal(size=(60, 2))
        return {"a": X[:, 0], "b": X[:, 1], "y": X[:, 0] + 0.1 * X[:, 1] ** 2}

    def test_learn_raises_with_the_study_so_far(self):
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with pytest.raises(Interrupted) as caught:
                learn(self.data(), "y", Options(gamma=1.0), self.observer(3))
        finally:
            signal.signal(signal.SIGINT, before)
        assert isinstance(caught.value, KeyboardInterrupt)
        assert not caught.value.study.model.estimator.status_.converged
        assert len(caught.value.study.model.predict(self.data())["mean"]) == 60
        assert any(note.startswith("interrupted") for note in caught.value.study.notes)

    @pytest.mark.parametrize("likelihood", ["gaussian", "student-t"])
    def test_while_the_width_is_learned_from_some_of_the_rows(self, likelihood):
        """On large tables that is where most of the time goes; the model of those rows is better than none."""
        X = np.random.default_rng(8).normal(size=(700, 2))
        data = {"a": X[:, 0], "b": X[:, 1], "y": X[:, 0] + 0.1 * X[:, 1] ** 2}
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with pytest.raises(Interrupted) as caught:
                learn(data, "y", Options(kernel="rbf", likelihood=likelihood), self.observer(3))
        finally:
            signal.signal(signal.SIGINT, before)
        study = caught.value.study
        assert (len(study.train), len(study.test)) == (500, 140)
        assert "the model is of 500 of the 560 training rows" in study.notes
        again = reopen(study.model, data)
        np.testing.assert_array_equal(again.train, study.train)
        np.testing.assert_array_equal(again.test, study.test)

    def test_the_command_line_writes_the_model_and_exits_130(self, monkeypatch):
        from sparsebayes.cli import work

        monkeypatch.setattr(work, "learn", partial(learn, observe=self.observer(3)))
        data = self.data()
        write("data.csv", list(data), [column.tolist() for column in data.values()])
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            assert call("fit", "data.csv", "-t", "y", "--gamma", "1").exit_code == 130
        finally:
            signal.signal(signal.SIGINT, before)
        assert load("data.model").estimator_.status_.name == "INTERRUPTED"
        assert Path("data.html").exists()


def test_a_model_of_counts_is_judged():
    X = np.random.default_rng(9).normal(size=(80, 1))
    y = np.random.default_rng(10).poisson(np.exp(1.0 + X[:, 0])).astype(float)
    est = RVR("linear", likelihood="poisson").fit(X[30:], y[30:])
    assert judge_case(case_of(est, X, y, 30)).level is not Level.FAILURE
