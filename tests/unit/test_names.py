"""What functions are called, wherever they are named: by what they are, and not by their place in a dictionary."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest

import sparsebayes
from sparsebayes import RVC, RVR, SparseBayesClassifier, SparseBayesRegressor
from sparsebayes.basis import RBF, Bias, Gabor, Heaviside, Linear, Polynomial, Precomputed
from sparsebayes.estimators.names import name_functions
from sparsebayes.estimators.summary import function_names
from sparsebayes.explain import inclusion
from sparsebayes.report import RelevanceDisplay, write_report
from sparsebayes.report.case import Case, Input
from sparsebayes.report.search import _names

AFTER_A_COLUMN = [
    SparseBayesRegressor(Linear() + RBF(1.0)),
    SparseBayesRegressor(Bias() + Linear() + RBF(1.0)),
    SparseBayesRegressor(Bias() + RBF(1.0) + RBF(0.5)),
    SparseBayesClassifier(Bias() + Linear() + RBF(1.0)),
    SparseBayesClassifier(Linear() + RBF(1.0), shared_support=False),
    RVR(Linear() + RBF(1.0)),
    RVR(RBF(2.0) + Linear() + RBF(0.5)),
    RVC(Linear() + RBF(1.0)),
]


def people(n=60):
    """Targets that go with the age alone, and hardly with the height."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=["age", "income", "height"])
    return frame, 3.0 * frame["age"] + 0.1 * rng.normal(size=n)


def bump(n=40, d=1):
    """A line, and a bump about one of the rows."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3.0, 3.0, (n, d))
    return X, X[:, 0] + 2.0 * np.exp(-np.square(X - X[4]).sum(axis=1)) + 0.05 * rng.normal(size=n)


def check_names(model, X, columns):
    """Every name is that of the function beside it."""
    names = function_names(model, columns)
    assert len(names) == len(model.relevance_functions_)
    for name, spec in zip(names, model.relevance_functions_, strict=True):
        if spec["kind"] == "linear":
            assert name == columns[spec["feature"]]
        elif "centre" in spec:
            row = int(re.fullmatch(r"rbf of row (\d+)(, width [\d.]+)?", name)[1])
            np.testing.assert_array_equal(X[row], spec["centre"])
        else:
            assert name in ("bias", "intercept")


@pytest.mark.parametrize("basis", [None, Bias() + Linear(), Bias() + Linear() + RBF(2.5), RBF(2.5) + Linear()], ids=str)
def test_a_column_has_its_own_name_wherever_it_is_told(basis):
    frame, y = people()
    labels = np.where(y > 0.0, "old", "young")
    for model, target in (
        (SparseBayesRegressor(basis, support="conservative"), y),
        (RVR(Linear() if basis is None else basis, support="conservative"), y),
        (SparseBayesClassifier(basis, support="conservative"), labels),
    ):
        model.fit(frame, target)
        check_names(model, frame.to_numpy(), ["age", "income", "height"])
        assert "age" in {weight.function for weight in model.summary().weights}
        assert "age" in str(model.summary())
        assert "age" in model.summary()._repr_html_()
        assert "age" in model.support_report().function
        assert "age" in RelevanceDisplay.from_estimator(model, frame).names
        named = RelevanceDisplay.from_estimator(model, frame, feature_names=["years", "money", "metres"])
        assert "years" in named.names


def test_draws_are_labelled_by_the_functions():
    pytest.importorskip("arviz_base")
    frame, y = people()
    model = SparseBayesRegressor(Bias() + Linear(), support="conservative").fit(frame, y)
    found = model.to_inference_data(frame, y, draws=10)
    assert found.posterior["weight"].coords["function"].to_numpy().tolist() == function_names(model)
    assert "age" in function_names(model)


@pytest.mark.parametrize("model", AFTER_A_COLUMN, ids=str)
@pytest.mark.parametrize("dropped", [0, 3])
def test_a_function_on_a_row_has_the_number_of_that_row(model, dropped, tmp_path):
    """Also where rows without weight come before it, and after the model has been on its way."""
    X, y = bump(d=2)
    y = np.where(y > 0.5, "p", "q") if isinstance(model, (RVC, SparseBayesClassifier)) else y
    model = model.fit(X, y, (np.arange(len(X)) >= dropped).astype(float))
    check_names(model, X, ["one", "two"])
    sparsebayes.save(model, tmp_path / "m.model")
    for other in (pickle.loads(pickle.dumps(model)), sparsebayes.load(tmp_path / "m.model")):
        assert function_names(other) == function_names(model)
        assert other.support_report().function == model.support_report().function


def test_a_file_from_before_rows_were_kept_tells_the_centres():
    X, y = bump()
    model = SparseBayesRegressor(Linear() + RBF(1.0)).fit(X, y)
    del model._rows_of_kept
    assert f"rbf at {X[4, 0]:.4g}" in function_names(model)


def test_functions_on_no_row():
    X, y = bump(d=2)
    given = SparseBayesRegressor(RBF(1.0, centres=X[2:9])).fit(X, y)
    assert f"rbf at ({X[4, 0]:.4g}, {X[4, 1]:.4g})" in function_names(given)
    chunked = SparseBayesRegressor(RBF(1.0, centres=20)).fit([(X[:20], y[:20]), (X[20:], y[20:])])
    assert all(name.startswith("rbf at") for name in function_names(chunked)[:-1])


def test_every_kind_has_a_name():
    X = np.random.default_rng(0).normal(size=(4, 6))
    basis = Bias() + Linear() + Polynomial(2) + Heaviside() + RBF(1.0) + Precomputed()
    functions = basis.bind(X)
    names = name_functions(functions.specifications(), functions.rows.tolist(), list("abcdef"), range(2, 6))
    assert names[:2] == ["bias", "a"]
    assert {"a b", "f^2", f"c >= {X[1, 2]:g}", "rbf of row 5", "precomputed 3"} <= set(names)
    at = name_functions(RBF(1.0, centres=X).bind(X).specifications(), [-1] * 4, [])
    assert at[0] == "rbf at ({}, …)".format(", ".join(f"{x:.4g}" for x in X[0, :4]))


def test_functions_of_one_name_are_told_apart_by_what_they_differ_in():
    functions = (RBF(0.5) + RBF(2.0) + RBF([1.0, 2.0])).bind(np.zeros((2, 2)))
    names = name_functions(functions.specifications(), functions.rows.tolist(), [])
    assert names[::2] == ["rbf of row 0, width 0.5", "rbf of row 0, width 2", "rbf of row 0, width (1, 2)"]
    waves = Gabor(widths=(2.0,), cycles=(0.25,), orientations=2, phases=1, spacing=9.0).bind(np.eye(2))
    told = name_functions(waves.specifications(), [-1] * len(waves), [])
    assert len(set(told)) == len(told) == 8
    assert told[0] == "gabor at (0, 0), orientation 0"


def test_candidates_are_called_what_the_kept_functions_are():
    X, y = bump()
    model = RVR(Linear() + RBF(1.0), support="conservative").fit(X, y)
    found = inclusion(model, X, y)
    assert found.names[:3] == ("x0", "rbf of row 0", "rbf of row 1")
    assert {weight.function for weight in model.summary().weights} <= {*found.names, "intercept"}


class TestReport:
    def case(self, model, X, y):
        inputs = [Input(name, (j,)) for j, name in enumerate("abc"[: X.shape[1]])]
        return Case(model, X, y, X[:0], y[:0], inputs, "y", "t")

    @pytest.mark.parametrize("basis", [Bias() + Linear() + RBF(2.5), RBF(2.5) + Linear(), Linear() + RBF(1.0)], ids=str)
    def test_terms_and_the_search_call_functions_what_they_are(self, basis):
        X, y = bump(d=2)
        model = SparseBayesRegressor(basis, support="conservative").fit(X, y)
        case = self.case(model, X, y)
        names = ["x0", "x1"]
        assert {weight.function for weight, _ in case.terms} == {
            name.replace("x0", "a").replace("x1", "b") for name in function_names(model, names) if name != "intercept"
        }
        kept = dict(zip(model.relevance_.tolist(), function_names(model, ["a", "b"]), strict=False))
        assert _names(case, list(kept)) == kept
        mentioned = {f for record in model.history_ for f in (*record.added, *record.removed)}
        functions = basis.bind(X)
        for number, name in _names(case, sorted(mentioned - {len(functions)})).items():
            (spec,) = functions.restrict([number]).specifications()
            assert name == name_functions([spec], functions.rows[[number]].tolist(), ["a", "b"])[0]

    @pytest.mark.parametrize(
        "model",
        [RVR(gamma=1.0), RVR(Linear() + RBF(1.0)), RVR(gamma="evidence"), RVR(gamma="multiscale")],
        ids=str,
    )
    @pytest.mark.parametrize("copies", [0, 10])
    def test_the_search_names_functions_by_their_own_rows(self, model, copies):
        """Where kernels are learned, copies of rows are one row, and functions have other numbers than rows."""
        X, y = bump()
        X, y = np.vstack([X[:1].repeat(copies, axis=0), X]), np.concatenate([y[:1].repeat(copies), y])
        model = model.fit(X, y)
        kept = dict(zip(model._numbers.tolist(), function_names(model, ["a"]), strict=False))
        assert _names(self.case(model, X, y), list(kept)) == kept

    def test_centres_that_were_chosen_before_widths_were_learned_are_not_taken_for_others(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(-3.0, 3.0, (80, 3)) * [1.0, 5.0, 25.0]
        model = RVR(RBF(1.0, centres=15), gamma="ard").fit(X, np.sin(2.0 * X[:, 0]) + 0.1 * rng.normal(size=80))
        case = self.case(model, X, X[:, 0])
        assert model._n_candidates == 15
        assert case.functions is None
        kept = dict(zip(model._numbers.tolist(), function_names(model, ["a", "b", "c"]), strict=False))
        assert _names(case, [*kept, 14, 15]) == {14: "function 14", 15: "intercept"} | kept

    def test_a_page_names_functions_of_a_model_with_rows_left_out(self, tmp_path):
        X, y = bump()
        model = RVR(gamma=1.0).fit(X, y, (np.arange(len(X)) >= 3).astype(float))
        write_report(tmp_path / "r.html", model, X, y)
        page = (tmp_path / "r.html").read_text(encoding="utf-8")
        assert f"rbf of row {model.relevance_[0]}<" in page
        assert "functions by their place" not in page
