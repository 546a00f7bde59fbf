import hashlib
import json
import os
import pickle
import stat
from contextlib import suppress
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from sparsebayes import RVC, RVR, Sequential, SparseBayesClassifier, SparseBayesRegressor
from sparsebayes.basis import (
    RBF,
    Bias,
    Callable,
    Cauchy,
    Functions,
    Heaviside,
    Kernel,
    Laplacian,
    Linear,
    LinearSpline,
    Polynomial,
    PolynomialKernel,
    Precomputed,
    Sigmoid,
    ThinPlateSpline,
)
from sparsebayes.export import ModelFileError, load, save
from sparsebayes.export.codec import decode, encode

BASES = [
    None,
    Bias() + Linear(),
    Bias() + RBF(1.5) + RBF([0.5, 2.0, 1.0], centres=5),
    Polynomial(3),
    Polynomial(2, interaction_only=True, include_linear=False),
    RBF(np.array([0.5, 2.0, 1.0])),
    Laplacian(np.float64(2.0)),
    Cauchy(0.7),
    LinearSpline(),
    ThinPlateSpline(2.0),
    PolynomialKernel(2, 0.5, 1.0),
    Sigmoid(0.1, -0.2),
    Heaviside(),
    Precomputed(),
]


def problem(n=30, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n)


def kernel_matrix(X, Z):
    return np.exp(-((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2))


def same(a, b):
    """Equal in type and to the last bit, NaN included."""
    if isinstance(a, Functions):
        return same(a.specifications(), b.specifications()) and a.n_features == b.n_features
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        flags = (a.flags.fnc, a.dtype, a.shape) == (b.flags.fnc, b.dtype, b.shape)
        if a.dtype == object:
            return flags and a.tolist() == b.tolist()
        return flags and a.tobytes() == b.tobytes()
    if isinstance(a, np.generic | float):
        return np.asarray(a).tobytes() == np.asarray(b).tobytes()
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if is_dataclass(a):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    if hasattr(a, "get_params"):
        return same(a.get_params(deep=False), b.get_params(deep=False))
    return a == b


def assert_round_trip(est, X, path):
    save(est, path)
    again = load(path)
    assert type(again) is type(est)
    assert set(vars(again)) == set(vars(est))
    for name, value in vars(est).items():
        assert same(value, getattr(again, name)), name
    if hasattr(est, "predict_proba"):
        assert same(again.predict(X), est.predict(X))
        assert same(again.predict_proba(X), est.predict_proba(X))
    else:
        assert all(map(same, again.predict(X, return_std=True), est.predict(X, return_std=True)))
    check_is_fitted(again)
    assert same(clone(again).get_params(deep=False), clone(est).get_params(deep=False))
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    return again


def resealed(path, change):
    """Apply a change to the payload of a file and make its checksum match again: the work of a stranger."""
    document = json.loads(path.read_text())
    document["payload"] = change(document["payload"])
    text = json.dumps(document["payload"], separators=(",", ":"))
    document["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(json.dumps(document))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "sinc.model"


@pytest.fixture
def saved(path):
    X, y = problem()
    est = RVR(gamma=0.3).fit(X, y)
    save(est, path, metadata={"note": "ä"})
    return est, X, path


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


@pytest.mark.parametrize("est", [RVR(fit_intercept=False), SparseBayesRegressor(RBF()), SparseBayesRegressor()])
def test_round_trip_of_a_model_without_functions(est, path):
    X, _ = problem()
    again = assert_round_trip(est.fit(X, np.zeros(len(X))), X, path)
    assert len(again.relevance_) == 0


def test_round_trip_of_parameters_of_many_types(path):
    X, y = problem()
    solver = Sequential(noise="schedule", noise_fractions=(0.2, 0.1), tol=np.float64(1e-3), random_state=3)
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
        with pytest.raises(TypeError, match=r"Pipeline.*estimator inside"):
            save(make_pipeline(StandardScaler(), RVR()).fit(X, y), path)

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


class TestDamagedFiles:
    def test_mutated_copies_are_the_same_model_or_refused(self, saved, tmp_path):
        est, X, path = saved
        content, expected = path.read_bytes(), est.predict(X, return_std=True)
        rng = np.random.default_rng(0)
        copy, loaded = tmp_path / "copy", 0
        for k in range(300):
            mutant = bytearray(content)
            if k % 3 == 0:
                for place in rng.integers(len(mutant), size=rng.integers(1, 4)):
                    mutant[place] ^= 1 << rng.integers(8)
            elif k % 3 == 1:
                del mutant[rng.integers(len(mutant)) :]
            else:
                mutant += bytes(rng.choice(list(b" \n{}[]0\x00\xff"), size=rng.integers(1, 5)).tolist())
            copy.write_bytes(mutant)
            try:
                again = load(copy)
            except ModelFileError:
                continue
            loaded += 1
            assert all(map(same, again.predict(X, return_std=True), expected))
        assert loaded < 150

    @pytest.mark.parametrize("field", ["format", "version", "sparsebayes", "sha256", "payload"])
    def test_a_missing_field(self, field, saved):
        *_, path = saved
        document = json.loads(path.read_text())
        del document[field]
        path.write_text(json.dumps(document))
        with pytest.raises(ModelFileError, match=path.name):
            load(path)

    @pytest.mark.parametrize(
        ("content", "match"),
        [
            (b"", "JSON"),
            (b"\x89PNG\r\n\x1a\n\x00", "JSON"),
            (pickle.dumps([1]), "JSON"),
            (b"[]", "format"),
            (b'{"format": "other"}', "format"),
            (b'{"format": "sparsebayes-model", "version": 2}', "version is 2"),
            (b'{"format": "sparsebayes-model", "version": true}', "version is True"),
            (b"[" * 100_000, "nested too deeply"),
            (b'{"a":' * 100_000, "nested too deeply"),
            (b"NaN", "JSON"),
            (b"1" * 10_000, "JSON"),
        ],
        ids=range(11),
    )
    def test_other_content(self, content, match, path):
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match=match):
            load(path)

    def test_no_file(self, path):
        with pytest.raises(FileNotFoundError):
            load(path)


def array(**changes):
    return {"$array": {"dtype": "f8", "shape": [1], "order": "C", "base64": "AAAAAAAAAAA="} | changes}


def text_array(**changes):
    return {"$array": {"dtype": "U3", "shape": [2], "order": "C", "items": ["a", "b"]} | changes}


@pytest.mark.parametrize(
    "node",
    [
        array(dtype="O"),
        array(dtype="V8"),
        array(dtype="c16"),
        array(dtype="f4"),
        array(dtype=8),
        array(shape=[2]),
        array(shape=[-1]),
        array(shape=[True]),
        array(shape=[1.0]),
        array(shape=[2**62, 2**62]),
        array(shape=[0, 2**70]),
        array(shape=[1] * 100),
        array(shape=None),
        array(order="K"),
        array(base64="AAAA"),
        array(base64="not base64!"),
        array(base64=None),
        array(base64=["AAAAAAAAAAA="]),
        array(dtype="b1", shape=[8], base64="AgAAAAAAAAA="),
        array(extra=1),
        text_array(dtype="U0"),
        text_array(dtype="U4000000000"),
        text_array(dtype="S3"),
        text_array(dtype="U٣"),
        text_array(items=["a", 1]),
        text_array(items="ab"),
        text_array(shape=[3]),
        {"$array": []},
        {"$array": None},
        {"$scalar": array()["$array"]},
        {"$float": "1.0"},
        {"$float": []},
        {"$tuple": {"a": 1}},
        {"$dict": [["a"]]},
        {"$dict": [[None, 2]]},
        {"$dict": [[[], 2]]},
        {"$dict": 3},
        {"$unknown": 1},
        {"$tuple": [], "$float": "inf"},
        {"$tuple": [], "other": 1},
        {"$enum": {"class": "Status", "member": "NONE"}},
        {"$enum": {"class": "Status", "member": "converged"}},
        {"$enum": {"class": "os", "member": "system"}},
        {"$enum": {"class": ["Status"], "member": "CONVERGED"}},
        {"$dataclass": {"class": "Record", "fields": {}}},
        {"$dataclass": {"class": "Record", "fields": {"other": 1}}},
        {"$dataclass": {"class": "Popen", "fields": {}}},
        {"$solver": {"class": "Sequential", "parameters": {"other": 1}}},
        {"$solver": {"class": "Sequential", "parameters": []}},
        {"$solver": {"class": "RVR", "parameters": {}}},
        {"$basis": {"kind": "callable", "parameters": {"function": "os.system"}}},
        {"$basis": {"kind": "nowhere", "parameters": {}}},
        {"$basis": {"kind": "rbf", "parameters": {"other": 1}}},
        {"$sum": []},
        {"$sum": [1]},
        {"$functions": {"n_features": 0, "parts": []}},
        {"$functions": {"n_features": 1, "parts": [[]]}},
        {"$functions": {"n_features": 1, "parts": [3]}},
        {"$functions": {"n_features": 1, "parts": [[{"kind": "linear", "feature": 1}]]}},
        {"$functions": {"n_features": 1, "parts": [[{"kind": "linear", "feature": 2**70}]]}},
        {"$functions": {"n_features": 1, "parts": [[{"kind": "callable", "function": "f", "centre": [0.0]}]]}},
        {"$functions": {"n_features": 1, "parts": [[{"kind": "rbf", "width": 1.0, "centre": [0.0, 1.0]}]]}},
        {"$functions": {"n_features": 1, "parts": [[{"kind": "rbf", "width": array(), "centre": [0.0]}] * 2]}},
        {"$functions": {"n_features": 1, "parts": [[{"kind": "polynomial", "powers": [10**12]}]]}},
        {"$functions": {"n_features": 1, "parts": [[{"kind": "polynomial"}]]}},
    ],
    ids=lambda node: json.dumps(node)[:60],
)
def test_a_stranger_gets_one_sentence(node, saved):
    *_, path = saved

    def change(payload):
        payload["estimator"]["state"]["extra_"] = node
        return payload

    resealed(path, change)
    with pytest.raises(ModelFileError) as caught:
        load(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("levels", [100, 300, 500, 700, 800, 900, 5000, 100_000])
def test_deep_nesting_is_no_crash(levels, saved):
    *_, path = saved
    document = json.loads(path.read_text())
    document["payload"]["estimator"]["state"]["extra_"] = "HERE"
    text = json.dumps(document["payload"], separators=(",", ":")).replace('"HERE"', "[" * levels + "]" * levels)
    document |= {"sha256": hashlib.sha256(text.encode()).hexdigest(), "payload": "HERE"}
    path.write_text(json.dumps(document).replace('"HERE"', text))
    # How deep is too deep depends on how deep the caller is; a handful of levels never is.
    if levels == 100:
        assert load(path).extra_
        return
    with suppress(ModelFileError):
        load(path)


@pytest.mark.parametrize(
    "payload",
    [
        None,
        {},
        {"estimator": {}, "metadata": None},
        {"estimator": {"class": "Pipeline", "state": {}}, "metadata": None},
        {"estimator": {"class": "RVR", "state": []}, "metadata": None},
        {"estimator": {"class": "RVR", "state": {"predict": 1}}, "metadata": None},
        {"estimator": {"class": "RVR", "state": {"__class__": "RVR"}}, "metadata": None},
        {"estimator": {"class": "RVR", "state": {}}, "metadata": [1]},
    ],
    ids=range(8),
)
def test_a_payload_that_is_no_model(payload, saved):
    *_, path = saved
    resealed(path, lambda _: payload)
    with pytest.raises(ModelFileError):
        load(path)


def test_a_parameter_that_the_file_does_not_know_gets_its_default(saved):
    est, X, path = saved

    def change(payload):
        del payload["estimator"]["state"]["degree"]
        return payload

    resealed(path, change)
    assert load(path).degree == 3
    assert same(load(path).predict(X), est.predict(X))


class TestWriting:
    @pytest.mark.parametrize("function", ["replace", "fsync"])
    def test_a_failure_leaves_the_old_file(self, function, saved, monkeypatch):
        est, _, path = saved
        before = path.read_bytes()

        def fail(*args):
            raise OSError("disk full")

        monkeypatch.setattr(os, function, fail)
        with pytest.raises(OSError, match="disk full"):
            save(est, path, metadata={"other": 1})
        monkeypatch.undo()
        assert path.read_bytes() == before
        assert list(path.parent.iterdir()) == [path]

    def test_an_interrupt_leaves_no_trace(self, saved, monkeypatch):
        est, _, path = saved

        def interrupt(*args):
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "replace", interrupt)
        with pytest.raises(KeyboardInterrupt):
            save(est, path)
        assert list(path.parent.iterdir()) == [path]

    def test_permissions_are_those_of_any_file(self, saved, tmp_path):
        est, _, path = saved
        (tmp_path / "plain").touch()
        assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)
        path.chmod(0o640)
        save(est, path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640

    def test_a_link_stays_a_link(self, saved, tmp_path):
        est, _, path = saved
        link = tmp_path / "latest"
        link.symlink_to(path)
        save(est, link, metadata={"new": True})
        assert link.is_symlink()
        assert load(path, with_metadata=True)[1] == {"new": True}

    def test_places_where_no_file_can_be(self, saved, tmp_path):
        est, *_ = saved
        with pytest.raises(FileNotFoundError, match="create it first"):
            save(est, tmp_path / "nowhere" / "a.model")
        with pytest.raises(IsADirectoryError, match="folder"):
            save(est, tmp_path)
        with pytest.raises(OSError, match="regular file"):
            save(est, os.devnull)
