"""ArviZ, skl2onnx and MLflow, each the real package."""

import sys
import warnings

import numpy as np
import pytest
from scipy.special import expit, log_expit, softmax
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsebayes import RVC, RVR, ARDRegression, SparseBayesClassifier, SparseBayesRegressor
from sparsebayes.basis import RBF, Laplacian, Linear, Polynomial
from sparsebayes.export import to_inference_data


def numbers(n=80, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, d))
    return X, np.sin(2.0 * X[:, 0]) - X[:, 1] + 0.1 * rng.standard_normal(n)


def labels(y, count):
    return np.array(["ant", "bee", "cow"])[np.digitize(y, np.quantile(y, np.arange(1, count) / count))]


# -- ArviZ -------------------------------------------------------------------------------------------------


@pytest.fixture(params=["0.x", "1.x"])
def version(request, monkeypatch):
    if request.param == "0.x":
        pytest.importorskip("arviz", exc_type=ImportError)
    else:  # ArviZ 1 puts its data together by this package
        pytest.importorskip("arviz_base")
        monkeypatch.setitem(sys.modules, "arviz", None)
    return request.param


@pytest.fixture
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import arviz
    return arviz


def test_draws_have_the_posterior(quiet, version):
    X, y = numbers()
    model = RVR(gamma=0.5).fit(X, y)
    found = to_inference_data(model, X, y, draws=4000)
    weight = found.posterior["weight"]
    posterior = model._posteriors[0]
    assert weight.dims == ("chain", "draw", "function")
    drawn = weight.to_numpy()[0]
    std = np.sqrt(np.diag(posterior.covariance))
    np.testing.assert_allclose((drawn.mean(axis=0) - posterior.mean) / std, 0.0, atol=0.1)
    np.testing.assert_allclose(drawn.std(axis=0) / std, 1.0, atol=0.1)
    mean, std = model.predict(X, return_std=True, uncertainty="posterior")
    predicted = found.posterior_predictive["y"].to_numpy()[0]
    np.testing.assert_allclose((predicted.mean(axis=0) - mean) / std, 0.0, atol=0.1)
    np.testing.assert_allclose(predicted.std(axis=0) / std, 1.0, atol=0.1)
    np.testing.assert_array_equal(found.observed_data["y"].to_numpy(), y)
    f = found.posterior["f"].to_numpy()[0, 0]
    expected = -0.5 * (y - f) ** 2 / model.noise_variance_ - 0.5 * np.log(2.0 * np.pi * model.noise_variance_)
    np.testing.assert_allclose(found.log_likelihood["y"].to_numpy()[0, 0], expected)


def test_arviz_can_use_it(quiet):
    X, y = numbers()
    found = to_inference_data(RVR(gamma=0.5).fit(X, y), X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        waic = quiet.waic(found)
        assert np.isfinite(waic.elpd_waic)
        assert len(quiet.summary(found, var_names=["weight"])) == found.posterior["weight"].shape[2]


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("model", [SparseBayesClassifier(), RVC(gamma=0.5, multi_class="ovr")], ids=["softmax", "ovr"])
def test_classes_for_arviz(quiet, version, model, count):
    X, y = numbers()
    names = labels(y, count)
    model.fit(X, names)
    found = to_inference_data(model, X, names, draws=2000)
    drawn = found.posterior_predictive["y"].to_numpy()[0]
    shares = np.stack([(drawn == k).mean(axis=0) for k in range(count)], axis=1)
    f = found.posterior["f"].to_numpy()[0].reshape(2000, 80, -1)
    logistic = expit(f)
    if count == 2:
        expected = np.concatenate([1.0 - logistic, logistic], axis=2)
    elif model.get_params().get("multi_class") == "softmax":
        expected = softmax(f, axis=2)
    else:
        expected = softmax(log_expit(f), axis=2)
    np.testing.assert_allclose(shares, expected.mean(axis=0), atol=0.06)
    np.testing.assert_array_equal(model.classes_[found.observed_data["y"].to_numpy()], names)
    assert np.all(found.log_likelihood["y"].to_numpy() <= 0.0)
    assert found.posterior["weight"].ndim == (3 if count == 2 else 4)


def test_other_likelihoods_for_arviz(quiet, version):
    X, y = numbers()
    several = to_inference_data(RVR(gamma=0.5).fit(X, np.column_stack([y, -y])), X, np.column_stack([y, -y]), draws=50)
    assert several.posterior_predictive["y"].shape == (1, 50, 80, 2)
    robust = SparseBayesRegressor(likelihood="student-t").fit(X, y)
    assert to_inference_data(robust, X, y, draws=50).log_likelihood["y"].shape == (1, 50, 80)
    counts = np.random.default_rng(0).poisson(np.exp(X[:, 0] + 1.0))
    model = SparseBayesRegressor(likelihood="poisson").fit(X, counts)
    drawn = to_inference_data(model, X, counts, draws=2000).posterior_predictive["y"].to_numpy()[0]
    np.testing.assert_allclose(drawn.mean(axis=0), model.predict(X), rtol=0.15)


def on_average(found):
    """Log of the mean density of every observation over the draws: what leave-one-out estimates are made of."""
    return np.log(np.mean(np.exp(found.log_likelihood["y"].to_numpy()[0]), axis=0))


@pytest.mark.parametrize("settings", [{}, {"noise": "varies"}, {"likelihood": "poisson"}], ids=str)
def test_densities_for_arviz_average_to_the_predictive_density(quiet, settings):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (100, 1))
    if settings.get("likelihood") == "poisson":
        y = rng.poisson(np.exp(X[:, 0] + 1.0)).astype(float)
    else:
        y = 3.0 + np.sin(2.0 * X[:, 0]) + np.exp(2.0 * X[:, 0] - 2.0) * rng.standard_normal(100)
    model = SparseBayesRegressor(Linear() + RBF(1.0), **settings).fit(X, y)
    found = to_inference_data(model, X, y, draws=4000)
    np.testing.assert_allclose(on_average(found), model.log_density(X, y, "posterior"), atol=0.06)
    np.testing.assert_allclose(found.posterior_predictive["y"].to_numpy().mean(axis=(0, 1)), model.predict(X), rtol=0.1)


@pytest.mark.parametrize("settings", [{}, {"multi_class": "ovr"}], ids=str)
@pytest.mark.parametrize("count", [2, 3])
def test_densities_of_classes_for_arviz_average_to_their_probabilities(quiet, settings, count):
    X, y = numbers()
    names = labels(y + 0.5 * np.random.default_rng(1).standard_normal(80), count)
    model = SparseBayesClassifier(**settings).fit(X, names)
    found = np.exp(on_average(to_inference_data(model, X, names, draws=4000)))
    expected = model.predict_proba(X)[np.arange(80), np.searchsorted(model.classes_, names)]
    np.testing.assert_allclose(found, expected, atol=0.05)


def test_a_model_draws_for_arviz_itself(quiet, version):
    X, y = numbers()
    model = RVR(gamma=0.5).fit(X, y)
    found, other = model.to_inference_data(X, y, draws=20), to_inference_data(model, X, y, draws=20)
    np.testing.assert_array_equal(found["posterior"]["weight"].values, other["posterior"]["weight"].values)


def test_wrong_calls_of_arviz(monkeypatch):
    X, y = numbers()
    model = RVR().fit(X, y)
    with pytest.raises(ValueError, match="draws=0"):
        to_inference_data(model, X, y, draws=0)
    with pytest.raises(TypeError, match="StandardScaler"):
        to_inference_data(StandardScaler().fit(X), X, y)
    with pytest.raises(ValueError, match="y has shape"):
        to_inference_data(model, X, y[:-1])
    classes = RVC().fit(X, y > 0.0)
    with pytest.raises(ValueError, match="labels among"):
        to_inference_data(classes, X, np.arange(80))
    monkeypatch.setitem(sys.modules, "arviz", None)
    monkeypatch.setitem(sys.modules, "arviz_base", None)
    with pytest.raises(ImportError, match=r"sparsebayes\[arviz\]"):
        to_inference_data(model, X, y)


# -- skl2onnx ----------------------------------------------------------------------------------------------

REGRESSIONS = {
    "rbf": RVR(gamma=0.5),
    "columns": SparseBayesRegressor(),
    "sum": SparseBayesRegressor(Linear() + RBF(1.0) + Laplacian(2.0) + Polynomial(2)),
    "ard": ARDRegression(),
}


def run(model, X):
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {session.get_inputs()[0].name: X}), strict=True))


@pytest.fixture
def skl2onnx():
    skl2onnx = pytest.importorskip("skl2onnx")
    from sparsebayes.export.skl2onnx import register

    register()
    return skl2onnx


@pytest.mark.parametrize(
    ("name", "opset"), [*((name, None) for name in REGRESSIONS), ("sum", 15), ("sum", 17), ("sum", 19)]
)
def test_pipelines_export_whole(skl2onnx, name, opset):
    X, y = numbers()
    model = make_pipeline(StandardScaler(), PCA(2), REGRESSIONS[name]).fit(X, y)
    graph = skl2onnx.to_onnx(model, X[:1], target_opset=opset, options={type(model[-1]): {"return_std": True}})
    said = run(graph, X)
    mean, std = model.predict(X, return_std=True)
    assert said["variable"].shape == (80, 1)
    np.testing.assert_allclose(said["variable"][:, 0], mean, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(said["std"][:, 0], std, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("multi_class", ["softmax", "ovr"])
def test_pipelines_of_classes_export_whole(skl2onnx, count, multi_class):
    X, y = numbers()
    model = make_pipeline(StandardScaler(), PCA(2), RVC(multi_class=multi_class)).fit(X, labels(y, count))
    graph = skl2onnx.to_onnx(model, X[:1], options={id(model): {"zipmap": False}})
    said = run(graph, X)
    np.testing.assert_array_equal(said["label" if "label" in said else "output_label"], model.predict(X))
    probabilities = next(values for key, values in said.items() if "prob" in key)
    np.testing.assert_allclose(probabilities, model.predict_proba(X), atol=1e-5)


def test_single_precision_and_several_targets(skl2onnx):
    X, y = numbers()
    rows = X.astype(np.float32)
    model = make_pipeline(StandardScaler(), RVR(gamma=0.5)).fit(X, np.column_stack([y, 2.0 * y]))
    said = run(skl2onnx.to_onnx(model, rows[:1]), rows)
    assert list(said) == ["variable"]
    assert said["variable"].dtype == np.float32
    np.testing.assert_allclose(said["variable"], model.predict(X), atol=1e-4)


def test_a_step_that_selects_is_not_taken_for_one_that_predicts(skl2onnx):
    """Of one kept column the graph would be valid, with the model's predictions in the column's place."""
    X, _ = numbers()
    pipeline = make_pipeline(SparseBayesRegressor(), LinearRegression()).fit(X, np.exp(X[:, 1]))
    with pytest.raises(NotImplementedError, match=r"step before LinearRegression.*ColumnTransformer"):
        skl2onnx.to_onnx(pipeline, X[:1])
    kept = ColumnTransformer([("kept", "passthrough", pipeline[0].get_support(indices=True).tolist())]).fit(X)
    said = run(skl2onnx.to_onnx(make_pipeline(kept, pipeline[1]), X[:1]), X)["variable"][:, 0]
    np.testing.assert_allclose(said, pipeline.predict(X), atol=1e-10)


def test_skl2onnx_is_missing(monkeypatch):
    from sparsebayes.export.skl2onnx import register

    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(ImportError, match=r"sparsebayes\[onnx\]"):
        register()


# -- MLflow ------------------------------------------------------------------------------------------------


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file:{tmp_path / 'runs'}")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    import mlflow

    return mlflow


@pytest.mark.filterwarnings("ignore")
def test_mlflow_saves_and_loads(mlflow, tmp_path):
    from sparsebayes.export import mlflow as flavour

    X, y = numbers()
    for model, target in ((RVR(gamma=0.5), y), (SparseBayesClassifier(), labels(y, 3))):
        model.fit(X, target)
        path = tmp_path / type(model).__name__
        flavour.save_model(model, path, input_example=X[:3])
        np.testing.assert_array_equal(flavour.load_model(path).predict(X), model.predict(X))
        general = mlflow.pyfunc.load_model(str(path))
        np.testing.assert_array_equal(general.predict(X), model.predict(X))
        assert general.metadata.signature is not None
        names = {p.name for p in path.iterdir()}
        assert {"MLmodel", "requirements.txt", "model.sparsebayes.json"} <= names
        assert not any(name.endswith(".pkl") for name in names)
        with pytest.raises(ValueError, match="exists already"):
            flavour.save_model(model, path)


@pytest.mark.filterwarnings("ignore")
def test_mlflow_logs(mlflow):
    from sparsebayes.export import mlflow as flavour

    X, y = numbers()
    model = RVR(gamma=0.5).fit(X, y)
    with mlflow.start_run():
        info = flavour.log_model(model, name="sinc")
    np.testing.assert_array_equal(flavour.load_model(info.model_uri).predict(X), model.predict(X))
    np.testing.assert_array_equal(mlflow.pyfunc.load_model(info.model_uri).predict(X), model.predict(X))


def test_what_pyfunc_may_ask(tmp_path):
    from sparsebayes.export import save
    from sparsebayes.export.mlflow import _load_pyfunc

    X, y = numbers()
    model = RVR(gamma=0.5).fit(X, y)
    save(model, tmp_path / "m.json")
    predictor = _load_pyfunc(str(tmp_path / "m.json"))
    std = predictor.predict(X, {"predict_method": "predict_std"})
    np.testing.assert_array_equal(std, model.predict(X, return_std=True)[1])
    with pytest.raises(ValueError, match="predict_method='transform'"):
        predictor.predict(X, {"predict_method": "transform"})
    assert predictor.get_raw_model().n_features_in_ == 3


def test_mlflow_is_missing(monkeypatch, tmp_path):
    from sparsebayes.export import mlflow as flavour

    monkeypatch.setitem(sys.modules, "mlflow", None)
    monkeypatch.setitem(sys.modules, "mlflow.models", None)
    with pytest.raises(ImportError, match=r"sparsebayes\[mlflow\]"):
        flavour.save_model(RVR().fit(*numbers()), tmp_path / "m")
