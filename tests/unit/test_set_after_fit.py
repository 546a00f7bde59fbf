"""A fitted estimator answers from what it was fitted with, whatever its parameters are set to afterwards."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array
from scipy.sparse.linalg import aslinearoperator
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

import sparsebayes
from sparsebayes import RVC, RVR, SparseBayesClassifier, SparseBayesRegressor, SparseKernelPCA
from sparsebayes.basis import RBF, Bias, Heaviside, Laplacian, Linear
from sparsebayes.estimators import regression
from sparsebayes.explain import attributions, inclusion
from sparsebayes.report import write_report
from sparsebayes.testing import check_posterior


def rows(n=30):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (n, 2)) + 3.0
    return X, np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.2 * rng.standard_normal(n)


def three_classes(y):
    return np.array(["a", "b", "c"])[np.digitize(y, np.quantile(y, [0.3, 0.7]))]


def counts(y):
    return np.random.default_rng(1).poisson(np.exp(0.5 * y))


def answers(model, X):
    """What a fitted model says of itself, and of rows."""
    found = {
        "predict": model.predict(X),
        "terms": list(map(str, model.terms())),
        "support": (model.get_support(), model.transform(X)) if hasattr(model, "get_support") else None,
    }
    if hasattr(model, "predict_proba"):
        return found | {"predict_proba": model.predict_proba(X), "decision": model.decision_function(X)}
    found["interval"] = model.predict_interval(X, 0.9)
    found["attributions"] = attributions(model, X[:5], X[:20]).std
    if not isinstance(model.log_marginal_likelihood_, float) or "noise_variance_" not in vars(model):
        return found
    found["noise"] = model.predict_noise(X)
    for uncertainty in ("calibrated", "posterior", "conformal", *(() if model._kernel is None else ("augmented",))):
        found[uncertainty] = model.predict(X, return_std=True, uncertainty=uncertainty)
    return found


CASES = {
    "kernel": (RVR(gamma=1.0), {"gamma": 9.0, "kernel": "laplacian"}, None),
    "learned kernel": (RVR(kernel=RBF(0.5), gamma="evidence"), {"gamma": "scale", "kernel": Laplacian(2.0)}, None),
    "scale": (RVR(), {"kernel": "precomputed"}, None),
    "columns": (SparseBayesRegressor(), {"basis": RBF(1.0)}, None),
    "basis": (SparseBayesRegressor(RBF(1.0)), {"basis": None}, None),
    "columns of the fit": (SparseBayesRegressor(Linear() + RBF(1.0)), {"basis": Linear()}, None),
    "centres by chance": (SparseBayesRegressor(RBF(1.0, centres=10), random_state=3), {"random_state": 4}, None),
    "intercept": (SparseBayesRegressor(RBF(1.0), fit_intercept=False), {"fit_intercept": True}, None),
    "noise": (RVR(noise_variance=0.04), {"noise_variance": None, "noise": "varies"}, None),
    "outliers": (RVR(likelihood="outliers"), {"likelihood": "gaussian"}, None),
    "student-t": (RVR(likelihood="student-t"), {"likelihood": "poisson"}, None),
    "gaussian": (RVR(), {"likelihood": "outliers", "support": "conservative", "shared_support": True}, None),
    "counts": (RVR(likelihood="poisson"), {"likelihood": "gaussian"}, counts),
    "no counts": (RVR(), {"likelihood": "poisson"}, counts),
    "classes": (RVC(class_weight={"a": 3.0}), {"class_weight": None, "gamma": 5.0}, three_classes),
    "one against the rest": (
        SparseBayesClassifier(multi_class="ovr"),
        {"multi_class": "softmax", "basis": RBF(1.0), "shared_support": False, "evidence": "laplace"},
        three_classes,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_every_answer_is_that_of_the_fit(name, tmp_path):
    estimator, later, targets = CASES[name]
    X, y = rows()
    y = y if targets is None else targets(y)
    model, other = (clone(estimator).fit(X, y) for _ in range(2))
    expected, included = answers(model, X), model.inclusion_
    other.set_params(**later)
    assert {key: value for key, value in other.get_params(deep=False).items() if key in later} == later
    sparsebayes.save(other, tmp_path / "one.model")
    travelled = pickle.loads(pickle.dumps(other)), sparsebayes.load(tmp_path / "one.model")
    for fitted in (other, *travelled):
        np.testing.assert_equal(answers(fitted, X), expected)
    np.testing.assert_array_equal(other.inclusion_, included)
    np.testing.assert_array_equal(inclusion(travelled[1], X, y).inclusion, included)
    # The next fit is one with the new parameters.
    if name in ("kernel", "columns", "basis"):
        new = clone(estimator).set_params(**later).fit(X, y)
        np.testing.assert_array_equal(other.fit(X, y).predict(X), new.predict(X))


@pytest.mark.parametrize("estimator", [SparseBayesRegressor, SparseBayesClassifier, RVR, RVC])
def test_an_object_of_the_callers_may_be_changed(estimator):
    X, y = rows()
    y = y if issubclass(estimator, SparseBayesRegressor | RVR) else y > np.median(y)
    kernel = RBF(1.0)
    first, same = estimator(kernel).fit(X, y), estimator(RBF(1.0)).fit(X, y)
    kernel.set_params(width=3.0)
    np.testing.assert_equal(answers(first, X), answers(same, X))
    np.testing.assert_array_equal(first.inclusion_, same.inclusion_)
    inner = estimator(Bias() + RBF(1.0)).fit(X, y)
    expected = answers(inner, X)
    name = "kernel" if issubclass(estimator, RVR | RVC) else "basis"
    inner.set_params(**{f"{name}__rbf__width": 3.0})
    np.testing.assert_equal(answers(inner, X), expected)


def test_a_kernel_that_learning_has_left_as_it_was_is_no_object_of_the_callers(monkeypatch):
    """What is learned from a part of the rows may be worse on all of them than what was given."""
    learn = regression._learn
    monkeypatch.setattr(regression, "MOST_ROWS", 20)
    monkeypatch.setattr(regression, "_learn", lambda *given: replace(learn(*given), kernel=RBF(1e-3)))
    X, y = rows()
    kernel = RBF(1.0)
    model = RVR(kernel, gamma="evidence").fit(X, y)
    kernel.set_params(width=50.0)
    assert model.kernel_.width == 1.0


def test_containers_that_columns_came_in_may_still_come():
    X, y = rows()
    model = SparseBayesRegressor().fit(X, y)
    expected, names = model.predict(X), model.get_feature_names_out()
    model.set_params(basis=RBF(1.0))
    for same in (csr_array(X), aslinearoperator(X)):
        np.testing.assert_allclose(model.predict(same), expected)
    np.testing.assert_array_equal(model.get_feature_names_out(), names)
    functions = SparseBayesRegressor(RBF(1.0)).fit(X, y).set_params(basis=None)
    assert not hasattr(functions, "transform")
    with pytest.raises(TypeError, match="Sparse data was passed"):
        functions.predict(csr_array(X))


@pytest.mark.parametrize("make", [np.asfortranarray, csc_array, np.array])
@pytest.mark.parametrize(
    "estimator",
    [
        SparseBayesRegressor(fit_intercept=False),
        SparseBayesClassifier(fit_intercept=False),
        RVC(fit_intercept=False),
        SparseBayesRegressor(likelihood="poisson", fit_intercept=False),
    ],
)
def test_rows_that_are_written_into_later_are_not_those_of_the_fit(estimator, make):
    X, y = rows()
    if make is csc_array and isinstance(estimator, RVC):
        pytest.skip("kernels take dense rows")
    if isinstance(estimator, SparseBayesClassifier | RVC):
        y = (y > np.median(y)).astype(float)
    elif estimator.likelihood == "poisson":
        y = counts(y).astype(float)
    weights, held = np.linspace(0.5, 1.5, len(y)), make(X)
    model, other = (clone(estimator).fit(each, y, weights) for each in (make(X), held))
    values = held if isinstance(held, np.ndarray) else held.data
    values *= 3.0
    y[:], weights[:] = 0.0, 7.0
    assert str(other.support_report()) == str(model.support_report())
    np.testing.assert_equal(answers(other, X), answers(model, X))
    np.testing.assert_array_equal(other.inclusion_, model.inclusion_)


def test_refits_that_calibrate_are_of_the_same_model():
    X, y = rows()
    model, other = (RVR(gamma=1.0, noise_variance=0.04).fit(X, y) for _ in range(2))
    other.set_params(gamma=50.0, noise_variance=None, tol=1e-4, verbose=-1)
    low, high = model.calibrate(X, y, folds=4).predict_interval(X, uncertainty="conformal")
    below, above = other.calibrate(X, y, folds=4).predict_interval(X, uncertainty="conformal")
    np.testing.assert_allclose([below, above], [low, high], atol=0.01)
    # How the refits are searched is as it is now.
    assert {refit.tol for refit in other._refits} == {1e-4}
    gram = np.exp(-np.square(X[:, None] - X).sum(axis=2))
    with pytest.raises(ValueError, match="precomputed"):
        RVR(kernel="precomputed").fit(gram, y).set_params(kernel="rbf").calibrate(gram, y, folds=3)


def test_a_live_random_state_does_not_travel(tmp_path):
    X, y = rows()
    model = SparseBayesRegressor(RBF(1.0, centres=10), random_state=np.random.RandomState(0)).fit(X, y)
    sparsebayes.save(model.set_params(random_state=None), tmp_path / "one.model")
    np.testing.assert_array_equal(sparsebayes.load(tmp_path / "one.model").predict(X), model.predict(X))


def test_a_kernel_that_is_a_function_is_not_copied():
    class Held:
        """It cannot be copied, as what holds a connection or a lock cannot."""

        def __call__(self, A, B):
            return np.exp(-np.square(A[:, None] - B).sum(axis=2))

        def __deepcopy__(self, memo):
            raise TypeError("no copies")

    X, y = rows()
    labels = y > np.median(y)
    assert RVC(Held()).fit(X, labels).score(X, labels) > 0.8


def test_the_report_and_the_audit_are_of_the_fit(tmp_path):
    X, y = rows()
    model, other = (SparseBayesRegressor(noise_variance=0.04).fit(X, y) for _ in range(2))
    other.set_params(basis=RBF(1.0), noise_variance=None, likelihood="poisson", fit_intercept=False)
    for name, est in (("one", model), ("other", other)):
        write_report(tmp_path / name, est, X, y, X_test=X[:15], y_test=y[:15], explain=True)
    assert (tmp_path / "one").read_text(encoding="utf-8") == (tmp_path / "other").read_text(encoding="utf-8")
    assert check_posterior(other, X, y) == check_posterior(model, X, y)


def test_chunks_go_on_with_what_may_change():
    X, y = rows()
    begun = SparseBayesRegressor(Linear()).partial_fit(X[:20], y[:20])
    expected = begun.predict(X)
    begun.set_params(basis=Linear() + Bias())
    np.testing.assert_array_equal(begun.predict(X), expected)
    with pytest.raises(ValueError, match="cannot be changed afterwards"):
        begun.partial_fit(X[20:], y[20:])
    begun.set_params(basis=Linear(), noise_variance=0.5).partial_fit(X[20:], y[20:])
    whole = SparseBayesRegressor(Linear(), noise_variance=0.5).fit(X, y)
    np.testing.assert_allclose(begun.predict(X), whole.predict(X), rtol=1e-8)
    again = inclusion(begun.set_params(noise_variance=None), X, y).inclusion
    np.testing.assert_allclose(again, inclusion(whole, X, y).inclusion, rtol=1e-5)


def test_before_a_fit_and_after_one_that_failed_parameters_are_those_that_are_set():
    X, y = rows()
    model = SparseBayesRegressor(Heaviside())
    assert not hasattr(model, "get_support")
    model.fit(X, y)
    with pytest.raises(ValueError, match="tol"):
        model.set_params(tol=-1.0).fit(X, y)
    assert hasattr(model.set_params(basis=None), "get_support")
    with pytest.raises(Exception, match="not fitted"):
        check_is_fitted(model)


def test_principal_components():
    X, _ = rows()
    kept = SparseKernelPCA(gamma=1.0).fit(X)
    Z, back = kept.transform(X), kept.inverse_transform(kept.transform(X))
    kept.set_params(kernel="precomputed", gamma=5.0, centring="exact")
    np.testing.assert_array_equal(kept.transform(X), Z)
    np.testing.assert_array_equal(kept.inverse_transform(Z), back)
    gram = np.exp(-np.square(X[:, None] - X).sum(axis=2))
    again = kept.fit(gram)
    assert not hasattr(again, "relevance_vectors_")
    with pytest.raises(ValueError, match="kernel='precomputed'"):
        again.set_params(kernel="rbf").inverse_transform(again.transform(gram))
