"""What is saved comes back to the last bit; what is not data is refused."""

import hashlib
import json
import pickle

import numpy as np
import pytest
from modelfiles import BASES, assert_round_trip, kernel_matrix, problem, resealed, same
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, SplineTransformer, StandardScaler

from sparsebayes import RVC, RVR, Sequential, SparseBayesClassifier, SparseBayesRegressor
from sparsebayes.basis import (
    RBF,
    Bias,
    Callable,
    Cauchy,
    Kernel,
    Linear,
    PolynomialKernel,
)
from sparsebayes.export import ModelFileError, load, save
from sparsebayes.export.codec import decode, encode


@pytest.mark.parametrize("basis", BASES, ids=repr)
def test_round_trip_of_every_basis(basis, path):
    X, y = problem()
    assert_round_trip(SparseBayesRegressor(basis).fit(X, y), X, path)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian", "sigmoid", "precomputed", Cauchy(2.0)])
@pytest.mark.parametrize("d", [2, 20])
def test_round_trip_of_every_kernel(kernel, d, path):
    X, y = problem(40, d)
    if kernel == "precomputed":
        X = kernel_matrix(X, X)
    assert_round_trip(RVR(kernel).fit(X, y), X, path)


def test_round_trip_of_arrays_in_the_order_of_a_frame(path):
    pandas = pytest.importorskip("pandas")
    X, y = problem(50, 20)
    frame = pandas.DataFrame(X, columns=[f"in {k}" for k in range(20)])
    again = assert_round_trip(RVR("poly").fit(frame, y), frame, path)
    assert again.feature_names_in_.dtype == object


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("est", [RVR(gamma=0.3), SparseBayesRegressor()], ids=repr)
def test_round_trip_of_several_targets(est, shared, path):
    X, y = problem()
    targets = np.column_stack([y, X[:, 2], y + X[:, 2]])
    assert_round_trip(clone(est).set_params(shared_support=shared).fit(X, targets), X, path)


@pytest.mark.parametrize("multi_class", ["softmax", "ovr"])
@pytest.mark.parametrize("labels", [["no", "yes"], [0, 1, 2], [False, True], np.array([3, 7], dtype=np.int16)])
@pytest.mark.parametrize("est", [RVC(gamma=0.3), SparseBayesClassifier(), SparseBayesClassifier(RBF(2.0))], ids=repr)
def test_round_trip_of_classifiers(est, labels, multi_class, path):
    X, y = problem(40)
    noisy = y + np.random.default_rng(1).standard_normal(40)
    t = np.array(labels)[np.digitize(noisy, [0.0, 1.0][: len(labels) - 1])]
    weight = dict.fromkeys(np.unique(t).tolist(), 2.0)
    assert_round_trip(clone(est).set_params(multi_class=multi_class, class_weight=weight).fit(X, t), X, path)


def test_names_of_classes_that_are_strings_of_numpy_in_an_array_of_objects(path):
    X, y = problem(40)
    names = np.array([np.str_("no"), np.str_("yes")], dtype=object)
    est = RVC(gamma=0.3).fit(X, names[(y > np.median(y)).astype(int)])
    save(est, path)
    np.testing.assert_array_equal(load(path).predict(X), est.predict(X))


@pytest.mark.parametrize("est", [RVR(fit_intercept=False), SparseBayesRegressor(RBF()), SparseBayesRegressor()])
def test_round_trip_of_a_model_without_functions(est, path):
    X, _ = problem()
    again = assert_round_trip(est.fit(X, np.zeros(len(X))), X, path)
    assert len(again.relevance_) == 0


def test_round_trip_of_parameters_of_many_types(path):
    X, y = problem()
    solver = Sequential(effort="fast", tol=np.float64(1e-3), random_state=3)
    est = RVR(RBF(np.float64(1.0), centres=X[:10]), solver=solver, noise_variance=[0.01], max_iter=np.int64(500))
    assert_round_trip(est.fit(X, y), X, path)


def test_round_trip_of_generated_functions(path):
    X, y = problem(40, 18)
    solver = Sequential(candidates=lambda centres, rng: rng.standard_normal((5, 18)), rounds=2, random_state=0)
    est = SparseBayesRegressor(PolynomialKernel(2, 0.1, 1.0), solver=solver).fit(X, y)
    assert_round_trip(est.set_params(solver__candidates=None), X, path)


@pytest.mark.parametrize(
    "value",
    [
        [float("inf"), float("-inf"), float("nan"), -0.0, 5e-324, 1.7976931348623157e308, 0.1],
        {"$array": 1, "plain": [True, None, 2**80, "\ud800 ä \0"]},
        {"a": {"$x": {"$dict": ()}}},
        ((), (1, (2.0,)), [[]], {}),
        {0: 1.0, np.int64(3): 2.0, True: 0.5, 2.5: "x", "a": None},
        np.float32(0.1),
        np.bool_(True),
        np.str_("text"),
        np.array(3.5),
        np.empty((0, 3)),
        np.array([1.0, np.nan, -np.inf])[::-1],
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(24, dtype=np.int16).reshape(2, 3, 4),
        np.array([True, False]),
        np.array(["a", "longer", ""]),
        np.array([["x"], ["yz"]], dtype=object),
        np.arange(3, dtype=np.uint8),
        Bias() + RBF(2.0) + RBF(3.0),
        RBF(1.0).bind(np.ones((2, 3))).restrict([]),
        Linear().bind(np.ones((1, 3))),
    ],
    ids=lambda value: f"{type(value).__name__} {str(value)[:20]!a}",
)
def test_values_survive(value):
    node = json.loads(json.dumps(encode(value, "value"), allow_nan=False))
    assert same(decode(node), value)


def test_byte_order_is_that_of_the_reader():
    assert same(decode(encode(np.array([1.5, 2.5], dtype=">f8"), "value")), np.array([1.5, 2.5]))


def test_loaded_arrays_can_be_written_to(saved):
    *_, path = saved
    load(path).coef_[0] = 1.0


def test_metadata_travel(saved):
    est, X, path = saved
    again, metadata = load(path, with_metadata=True)
    assert metadata == {"note": "ä"}
    assert same(again.predict(X), est.predict(X))
    save(est, path)
    assert load(path, with_metadata=True)[1] is None
    with pytest.raises(TypeError, match="metadata"):
        save(est, path, metadata=["no dict"])


def test_file_is_readable_text_and_no_pickle(saved):
    *_, path = saved
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["format"] == "sparsebayes-model"
    assert document["version"] == 1
    text = json.dumps(document["payload"], separators=(",", ":"))
    assert document["sha256"] == hashlib.sha256(text.encode()).hexdigest()
    with pytest.raises(pickle.UnpicklingError):
        pickle.loads(path.read_bytes())


class TestWhatIsNotDataIsRefused:
    @pytest.mark.parametrize(
        ("est", "attribute", "way_out"),
        [
            (RVR(kernel_matrix), "kernel", "subclass of sparsebayes.basis.Kernel"),
            (RVR(Callable(kernel_matrix)), "kernel.function", "subclass of sparsebayes.basis.Kernel"),
            (SparseBayesRegressor(Bias() + Callable(kernel_matrix)), "basis.bases[1].function", "subclass of"),
            (RVR(random_state=np.random.RandomState(0)), "random_state", "set_params(random_state=None)"),
            (RVR(solver=Sequential(callback=lambda record, active: None)), "solver.callback", "solver__callback=None"),
        ],
        ids=["function", "Callable", "term", "random state", "callback"],
    )
    def test_with_the_attribute_and_the_way_out(self, est, attribute, way_out, path):
        X, y = problem()
        est = clone(est).fit(X, y)
        with pytest.raises(TypeError) as caught:
            save(est, path)
        assert repr(attribute) in str(caught.value)
        assert way_out in str(caught.value)
        assert not path.exists()

    def test_also_where_only_the_functions_remember(self, path):
        X, y = problem()
        est = RVR(kernel_matrix).fit(X, y).set_params(kernel="rbf")
        with pytest.raises(TypeError, match="_functions"):
            save(est, path)

    @pytest.mark.parametrize(
        "value",
        [
            object(),
            {(1,): 2},
            np.array([1j]),
            np.array([None, "a"]),
            np.array([""] * 2000 + ["x" * 1000]),
            {1},
            b"bytes",
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_whatever_it_is(self, value, saved):
        est, _, path = saved
        before = path.read_bytes()
        est.extra_ = value
        with pytest.raises(TypeError, match="extra_"):
            save(est, path)
        assert path.read_bytes() == before

    def test_what_holds_itself(self, saved):
        est, _, path = saved
        est.extra_ = []
        est.extra_.append(est.extra_)
        with pytest.raises(TypeError, match="holds itself"):
            save(est, path)

    def test_other_estimators(self, path):
        X, y = problem()
        with pytest.raises(TypeError, match=r"cannot save the attribute 'steps\[0\]\[1\].func'.*never code"):
            save(make_pipeline(FunctionTransformer(np.abs), RVR()).fit(X, y), path)
        with pytest.raises(TypeError, match=r"pipeline.*'splinetransformer'.*estimator inside"):
            save(make_pipeline(SplineTransformer(n_knots=3), RVR()).fit(X, y), path)
        with pytest.raises(TypeError, match=r"pipeline.*'ridge'.*last step"):
            save(make_pipeline(StandardScaler(), Ridge()).fit(X, y), path)

        class Mine(RVR):
            pass

        with pytest.raises(TypeError, match="Mine"):
            save(Mine().fit(X, y), path)

    def test_before_the_fit(self, path):
        with pytest.raises(NotFittedError):
            save(RVR(), path)


def test_a_kernel_of_the_users_own_travels_by_its_kind(path):
    class Wave(Kernel):
        kind = "wave_of_the_tests"

        def _evaluate(self, X, centres):
            return np.cos(X @ centres.T)

    X, y = problem()
    assert_round_trip(RVR(Wave()).fit(X, y), X, path)
    path.write_text(path.read_text().replace("wave_of_the_tests", "wave_unknown_here"))
    resealed(path, lambda payload: payload)
    with pytest.raises(ModelFileError, match="wave_unknown_here"):
        load(path)
