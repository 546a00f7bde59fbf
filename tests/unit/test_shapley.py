"""Exact attributions: by definition, to rounding, in the time that is promised."""

import sys
from functools import cache

import numpy as np
import pandas as pd
import pytest
from coalitions import enumerate_coalitions
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sparsebayes
from sparsebayes import RVC, RVR, SparseBayesClassifier, SparseBayesRegressor
from sparsebayes.basis import RBF, Cauchy, Heaviside, Laplacian, Linear, LinearSpline, Polynomial
from sparsebayes.explain import attributions, quadrature, shapley
from sparsebayes.explain.quadrature import product_values

D = 10
EXACT = {"rtol": 0.0, "atol": 1e-10}


def problem(n=80, d=D, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, d))
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] + 0.1 * rng.standard_normal(n)
    return X, y


MODELS = {
    "rbf": RVR(gamma=0.3),
    "a width for each input": RVR(kernel=RBF(list(np.linspace(1.0, 4.0, D)))),
    "laplacian": RVR(kernel="laplacian", gamma=0.2),
    "linear kernel": RVR(kernel="linear"),
    "linear spline, factors of both signs": SparseBayesRegressor(LinearSpline()),
    "columns": SparseBayesRegressor(),
    "monomials": SparseBayesRegressor(Polynomial(3, interaction_only=True) + Polynomial(2)),
    "steps and columns": SparseBayesRegressor(Heaviside() + Linear()),
    "a sum of everything": SparseBayesRegressor(Linear() + RBF(2.0) + Laplacian(3.0) + Polynomial(2)),
}


@cache
def fitted(name):
    return MODELS[name].fit(*problem())


@pytest.mark.parametrize("value", ["baseline", "interventional"])
@pytest.mark.parametrize("name", MODELS)
def test_equal_to_all_coalitions(name, value):
    X, model = problem()[0], fitted(name)
    background = X[:4]
    asked = {"value": value, "as_array": True, "return_std": True, "uncertainty": "posterior"}
    values, std = shapley(model, X[10:12], background, **asked)
    rows = background.mean(axis=0, keepdims=True) if value == "baseline" else background
    for found, x in zip(values, X[10:12], strict=True):
        np.testing.assert_allclose(found, enumerate_coalitions(model.predict, x, rows), **EXACT)
    # The standard deviation, too, from coalitions: attributions of every kept function by itself.
    posterior = model._posteriors[0]
    by_function = enumerate_coalitions(lambda Z: model._values(Z)[:, posterior.functions], X[10], rows)
    expected = np.sqrt(np.einsum("jf,fg,jg->j", by_function, posterior.covariance, by_function))
    np.testing.assert_allclose(std[0], expected, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("value", ["baseline", "interventional"])
@pytest.mark.parametrize("name", MODELS)
def test_attributions_add_up(name, value):
    X, model = problem()[0], fitted(name)
    found = attributions(model, X, X[:7], value=value)
    np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), model.predict(X), **EXACT)
    reference = X[:7].mean(axis=0, keepdims=True) if value == "baseline" else X[:7]
    np.testing.assert_allclose(found.base_values, model.predict(reference).mean(), **EXACT)
    if value == "baseline":  # else of a mean of outputs, of which predictions say nothing
        bar = model.predict(reference, return_std=True, uncertainty="posterior")[1][0]
        np.testing.assert_allclose(found.base_std**2 + model.noise_variance_, bar**2, rtol=1e-9)


@pytest.mark.parametrize("r", [2, 3, 30, 101, 400])
@pytest.mark.parametrize("signed", [False, True])
def test_products_add_up_for_many_factors(r, signed):
    rng = np.random.default_rng(r)
    a, b = (rng.uniform(-1.0 if signed else 0.0, 1.0, (20, r)) * 2.0 for _ in range(2))
    found = product_values(a, b)
    scale = np.prod(np.maximum(np.abs(a), np.abs(b)), axis=1)
    np.testing.assert_allclose((found.sum(axis=1) - (a.prod(axis=1) - b.prod(axis=1))) / scale, 0.0, atol=1e-13)


def test_products_whose_factors_vanish_or_underflow():
    a = np.array([[0.0, 0.5, 2.0], [0.0, 0.0, 1.0], [1e-300, 1.0, 1.0], [0.0, 0.0, 0.0]])
    b = np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 1.0], [1.0, 1e-300, 1.0], [0.0, 1.0, 0.0]])
    found = product_values(a, b)
    for one, x, z in zip(found, a, b, strict=True):
        expected = enumerate_coalitions(lambda rows: rows.prod(axis=1), x, z[None])
        np.testing.assert_allclose(one, expected, rtol=1e-13, atol=1e-300)


@pytest.mark.parametrize("signed", [False, True])
def test_fewer_nodes_say_the_same(signed, monkeypatch):
    rng = np.random.default_rng(0)
    b = rng.uniform(0.5, 1.0, (200, 60)) * (np.where(rng.random((200, 60)) < 0.5, -1.0, 1.0) if signed else 1.0)
    a = b * (1.0 + rng.uniform(-1.0, 1.0, (200, 60)) * 10.0 ** rng.uniform(-4.0, 0.0, (200, 1)))
    few = product_values(a, b)
    used = quadrature.nodes_needed(0.5 * (a + b) / np.maximum(abs(a), abs(b)), (a - b) / np.maximum(abs(a), abs(b)))
    assert used.min() < 8
    assert 12 < used.max() <= 30
    monkeypatch.setattr(quadrature, "_ELLIPSES", ())
    all_nodes = product_values(a, b)
    scale = np.prod(np.maximum(np.abs(a), np.abs(b)), axis=1)[:, None]
    np.testing.assert_allclose(few / scale, all_nodes / scale, rtol=0.0, atol=1e-15)


def test_no_digits_are_lost_at_a_hundred_inputs():
    """Two kinds of factors by symmetry have the values that the integral gives in closed form."""
    r = 100
    a, b = np.full((1, r), 1.0), np.full((1, r), 0.25)
    np.testing.assert_allclose(product_values(a, b), (1.0 - 0.25**r) / r, rtol=1e-13)


@pytest.mark.parametrize(
    ("model", "labels"),
    [
        (RVC(gamma=0.3), 2),
        (SparseBayesClassifier(), 3),
        (RVC(gamma=0.3, multi_class="ovr"), 3),
    ],
)
def test_classes(model, labels):
    X, y = problem()
    model.fit(X, np.digitize(y, np.quantile(y, np.arange(1, labels) / labels)))
    found = attributions(model, X[:5], X[20:], value="interventional")
    outputs = np.hstack([p.predict(model._values(X[:5])) for p in model._posteriors])
    total = found.base_values + found.values.sum(axis=1)
    np.testing.assert_allclose(total.reshape(5, -1), outputs, **EXACT)
    assert found.values.shape == ((5, D) if labels == 2 else (5, D, labels))
    assert found.output_names == ([] if labels == 2 else ["0", "1", "2"])
    if labels == 2:
        expected = enumerate_coalitions(lambda Z: model._posteriors[0].predict(model._values(Z))[:, 0], X[0], X[20:24])
        found = attributions(model, X[:1], X[20:24], value="interventional")
        np.testing.assert_allclose(found.values[0], expected, **EXACT)


def test_several_targets_and_counts():
    X, y = problem()
    model = RVR(gamma=0.3).fit(X, np.column_stack([y, -2.0 * y]))
    found = attributions(model, X[:3])
    assert found.values.shape == (3, D, 2)
    np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), model.predict(X[:3]), **EXACT)
    counts = SparseBayesRegressor(likelihood="poisson").fit(X, np.random.default_rng(0).poisson(np.exp(X[:, 0] + 1.0)))
    found = attributions(counts, X)
    log_rate = counts._posteriors[0]._log_rate(counts._values(X))[0]
    np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), log_rate, **EXACT)


def test_a_model_that_kept_nothing():
    X = np.random.default_rng(0).standard_normal((30, 3))
    model = SparseBayesRegressor().fit(X, np.full(30, 2.5))
    found = attributions(model, X, uncertainty="posterior")
    assert np.all(found.values == 0.0)
    assert np.all(found.std == 0.0)
    assert np.all(attributions(model, X).std < 1e-6)  # there is no noise in which an effect could hide
    assert found.base_values == pytest.approx(2.5)


def test_steps_of_a_pipeline_come_first():
    X, y = problem()
    pipeline = make_pipeline(StandardScaler(), RVR(gamma=0.1)).fit(X * 7.0 + 3.0, y)
    found = attributions(pipeline, X * 7.0 + 3.0)
    np.testing.assert_allclose(
        found.base_values + found.values.sum(axis=1), pipeline.predict(X * 7.0 + 3.0), rtol=0.0, atol=1e-9
    )


def test_names_of_a_frame():
    pandas = pytest.importorskip("pandas")
    X, y = problem(d=4)
    frame = pandas.DataFrame(X, columns=list("abcd"))
    found = attributions(RVR().fit(frame, y), frame, frame.mean())
    assert list(found.to_frame().columns) == list("abcd")


def test_shap_takes_what_it_is_given():
    shap = pytest.importorskip("shap")
    X, y = problem(d=4)
    model = RVR(gamma=0.3).fit(X, y)
    found = shapley(model, X)
    assert isinstance(found, shap.Explanation)
    np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), model.predict(X), **EXACT)
    np.testing.assert_array_equal(found.error_std, attributions(model, X).std)
    assert found.feature_names == ["x0", "x1", "x2", "x3"]


def test_arrays_where_shap_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "shap", None)
    X, y = problem(d=4)
    model = RVR(gamma=0.3).fit(X, y)
    assert isinstance(shapley(model, X), np.ndarray)
    with pytest.raises(ImportError, match=r"sparsebayes\[explain\]"):
        attributions(model, X).to_explanation()


def test_beside_kernel_explainer():
    """With all coalitions of a few inputs shap's own estimate is exact, and the same."""
    shap = pytest.importorskip("shap")
    X, y = problem(d=6)
    model = RVR(gamma=0.3).fit(X, y)
    background = X[:10]
    expected = shap.KernelExplainer(model.predict, background).shap_values(X[20:23], silent=True, nsamples=2**6)
    values = shapley(model, X[20:23], background, value="interventional", as_array=True)
    np.testing.assert_allclose(values, expected, atol=1e-8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, X: shapley(m, X, value="marginal"), "value='marginal'"),
        (lambda m, X: shapley(m, X[:1]), "one row of X cannot be its own background"),
        (lambda m, X: shapley(m, X[:, :2]), "features"),
        (lambda m, X: shapley(m, X, X[:, :2]), "features"),
    ],
)
def test_what_is_wrong_is_said(call, message):
    X, y = problem(d=4)
    with pytest.raises(ValueError, match=message):
        call(RVR().fit(X, y), X)


def test_plain_arrays_are_looked_at_too():
    X, y = problem(d=4)
    model, holes = RVR().fit(X, y), X.copy()
    holes[3, 1] = np.nan
    for given in ((holes, X), (X, holes), (X[:0], X)):
        with pytest.raises(ValueError, match=r"NaN|0 sample"):
            shapley(model, *given, value="interventional")
    named = RVR().fit(pd.DataFrame(X, columns=list("abcd")), y)
    with pytest.warns(UserWarning, match="feature names"):
        shapley(named, X, as_array=True)


def test_what_has_no_closed_form_is_refused():
    X, y = problem(d=4)
    with pytest.raises(TypeError, match=r"'cauchy'.*KernelExplainer"):
        shapley(RVR(kernel=Cauchy(2.0)).fit(X, y), X)
    with pytest.raises(TypeError, match="degree 3"):
        shapley(RVR(kernel="poly").fit(X, y), X)
    with pytest.raises(TypeError, match="StandardScaler"):
        shapley(StandardScaler().fit(X), X)


def test_columns_that_are_one_input():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 4))
    model = RVR(gamma=0.3).fit(X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2])
    groups = {"first": [0], "pair": [1, 2], "last": [3]}
    alone, together = attributions(model, X), attributions(model, X, groups=groups)
    assert together.feature_names == list(groups)
    np.testing.assert_allclose(
        together.values, np.column_stack([alone.values[:, c].sum(axis=1) for c in groups.values()]), atol=1e-12
    )
    np.testing.assert_allclose(together.std[:, [0, 2]], alone.std[:, [0, 3]], atol=1e-12)
    # All together are the output less the base's, whose error is known without attributions.
    whole = attributions(model, X, groups={"all": range(4)}, uncertainty="posterior")
    away = model._values(X) - model._values(X.mean(axis=0)[None])
    np.testing.assert_allclose(whole.values[:, 0], model.predict(X) - whole.base_values, atol=1e-10)
    np.testing.assert_allclose(whole.std[:, 0], np.sqrt(np.sum(away @ model.sigma_ * away, axis=1)), atol=1e-10)
    with pytest.raises(ValueError, match="two of them"):
        attributions(model, X, groups={"a": [0, 1], "b": [1]})
    with pytest.raises(TypeError, match=r"groups=.*expected a mapping"):
        attributions(model, X, groups=[[0, 1]])
    for wrong in ([4], [-1], ["x4"], [0.5], [True]):
        with pytest.raises(ValueError, match=r"groups\['a'\].*expected some of 0 to 3, or names"):
            attributions(model, X, groups={"a": wrong})


def test_columns_in_no_group_stay_by_themselves():
    """So that what is said adds up to the model's output."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((50, 4)), columns=["left", "a", "b", "right"])
    model = SparseBayesRegressor().fit(X, X["left"] - X["a"] + 2.0 * X["b"])
    alone, together = attributions(model, X), attributions(model, X, groups={"pair": ["a", "b"]})
    assert together.feature_names == ["pair", "left", "right"]
    np.testing.assert_allclose(together.base_values + together.values.sum(axis=1), model.predict(X), atol=1e-10)
    np.testing.assert_allclose(together.values[:, 1:], alone.values[:, [0, 3]], atol=1e-12)
    np.testing.assert_allclose(together.std[:, 1:], alone.std[:, [0, 3]], atol=1e-12)
    by_number = attributions(model, X, groups={"left": np.array([1, 2])})  # as another column is called
    np.testing.assert_array_equal(by_number.values, together.values)
    assert by_number.feature_names == ["left", "left", "right"]


class TestErrorBars:
    """The posterior knows nothing of the choice of functions; what it leaves out was measured on rows left out."""

    def test_the_excess_of_error_bars_is_that_of_the_functions(self):
        X, y = problem(d=4)
        model = RVR(gamma=0.3).fit(X, y)
        plain, wide = attributions(model, X, uncertainty="posterior"), attributions(model, X)
        np.testing.assert_array_equal(plain.values, wide.values)
        # The same factor everywhere, such that noise and functions together have the calibrated variance.
        ratio = wide.std / plain.std
        own = model.predict(X, return_std=True, uncertainty="posterior")[1] ** 2 - model.noise_variance_
        calibrated = model.predict(X, return_std=True)[1] ** 2
        assert model.std_scale_ > 1.0
        np.testing.assert_allclose(ratio, ratio[0, 0], rtol=1e-9)
        np.testing.assert_allclose(ratio[0, 0] ** 2 * own.mean() + model.noise_variance_, calibrated.mean(), rtol=1e-9)

    def test_other_rows_have_no_say(self, tmp_path):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((80, 3))
        y = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.2 * rng.standard_normal(80)
        model = RVR(gamma=0.5).fit(X, y)
        alone = attributions(model, X[:2], X)
        for others in (X[2:], 4.0 * X[2:], 100.0 * X[2:]):  # the farther out the less the posterior's spread
            together = attributions(model, np.vstack([X[:2], others]), X)
            np.testing.assert_allclose(together.values[:2], alone.values, atol=1e-12)
            np.testing.assert_allclose(together.std[:2], alone.std, rtol=1e-9)
        sparsebayes.save(model, tmp_path / "one.model")
        loaded = attributions(sparsebayes.load(tmp_path / "one.model"), X[:2], X)
        np.testing.assert_array_equal(loaded.std, alone.std)

    def test_units_of_the_target_and_copies_of_rows_have_none(self):
        X, y = problem(d=4)
        weights = np.random.default_rng(3).integers(1, 4, len(y))
        model = RVR(gamma=0.3).fit(X, y, sample_weight=weights)
        found = attributions(model, X)
        other = attributions(RVR(gamma=0.3).fit(X, -1e3 * y + 7.0, sample_weight=weights), X)
        np.testing.assert_allclose(other.std, 1e3 * found.std, rtol=1e-4)
        copied = RVR(gamma=0.3).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
        np.testing.assert_allclose(attributions(copied, X).std, found.std, rtol=1e-4)

    def test_columns_that_were_left_out(self):
        """As far as least squares beside the kept columns determine their weights, with these columns' priors."""
        rng = np.random.default_rng(2)
        X = rng.standard_normal((60, 5)) @ rng.standard_normal((5, 5))
        y = 2.0 * X[:, 0] + rng.standard_normal(60)
        weights = rng.integers(1, 3, 60).astype(float)
        model = SparseBayesRegressor().fit(X, y, sample_weight=weights)
        kept, out = model.relevance_, np.flatnonzero(model.coef_ == 0.0)
        assert len(out)
        found = attributions(model, X, uncertainty="calibrated")
        centred = X - model.X_offset_
        intercept = np.ones((60, 1)) if len(model.alpha_) > len(kept) else np.zeros((60, 0))
        for j in out:
            Phi = np.column_stack([centred[:, kept], intercept, centred[:, j]])
            precision = Phi.T * weights @ Phi / model.noise_variance_ + np.diag([*model.alpha_, 0.0])
            error = np.sqrt(np.linalg.inv(precision)[-1, -1])
            np.testing.assert_allclose(found.std[:, j], np.abs(X[:, j] - X[:, j].mean()) * error, rtol=1e-7)
        together = attributions(model, X, groups={"all": range(5)})
        assert np.all(together.std[:, 0] ** 2 >= np.sum(found.std[:, out] ** 2, axis=1) - 1e-12)

    def test_an_unknown_kind(self):
        X, y = problem(d=4)
        with pytest.raises(ValueError, match="uncertainty='sure': expected one of 'calibrated', 'posterior'"):
            attributions(RVR(gamma=0.3).fit(X, y), X, uncertainty="sure")

    def test_those_of_each_of_several_targets_are_its_own(self):
        X, y = related()
        noise = 10.0 * np.random.default_rng(5).standard_normal(len(y))
        both = attributions(SparseBayesRegressor().fit(X, np.column_stack([noise, y])), X, np.zeros(4))
        for k, target in enumerate((noise, y)):
            alone = attributions(SparseBayesRegressor().fit(X, target), X, np.zeros(4))
            np.testing.assert_allclose(both.std[:, :, k], alone.std, rtol=1e-6)
            np.testing.assert_allclose(both.base_std[k], alone.base_std, rtol=1e-6)

    def test_outliers_say_nothing_of_a_column_that_was_left_out(self):
        X, y = related()
        bad = np.arange(len(y)) < 12
        robust = SparseBayesRegressor(likelihood="outliers").fit(X, np.where(bad, y + 30.0, y))
        good = SparseBayesRegressor().fit(X[~bad], y[~bad])
        np.testing.assert_array_equal(robust.relevance_, good.relevance_)
        found, expected = (attributions(model, X, np.zeros(4)).std[:, 1] for model in (robust, good))
        np.testing.assert_allclose(found, expected, rtol=0.05)


def related():
    """Columns 1 and 3 have nothing of their own to say, and column 1 is nearly column 0."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    X[:, 1] = 0.97 * X[:, 0] + 0.25 * X[:, 1]
    return X, 2.0 * X[:, 0] + X[:, 2] + 0.1 * rng.standard_normal(60)
