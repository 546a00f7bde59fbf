"""Pipelines of scikit-learn's own steps in model files: data only, and the same predictions to the last bit."""

import json

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from sparsebayes import RVC, RVR, SparseBayesRegressor, load, save
from sparsebayes.export import ModelFileError
from sparsebayes.export.modelfile import _canonical, _digest

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = X[:, 0] + 0.1 * RNG.normal(size=40)
STEPS = [
    StandardScaler(),
    MinMaxScaler(),
    MaxAbsScaler(),
    RobustScaler(),
    Normalizer(),
    PowerTransformer(),
    QuantileTransformer(n_quantiles=10),
    PolynomialFeatures(2),
    SimpleImputer(),
    PCA(2),
    VarianceThreshold(),
    "passthrough",
]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: getattr(step, "__class__", str).__name__)
def test_every_step_comes_back(step, tmp_path):
    model = Pipeline([("step", step), ("model", RVR(gamma=0.5))]).fit(X, Y)
    save(model, tmp_path / "p.model")
    again = load(tmp_path / "p.model")
    assert isinstance(again, Pipeline)
    for ours, theirs in zip(again.predict(X, return_std=True), model.predict(X, return_std=True), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert str(again.get_params()) == str(model.get_params())


def test_columns_of_a_table(tmp_path):
    pandas = pytest.importorskip("pandas", reason="needs the extra files")
    frame = pandas.DataFrame({"a": X[:, 0], "b": RNG.choice(["x", "y", "z"], 40), "c": X[:, 1], "d": ["p", "q"] * 20})
    frame.loc[3, "a"] = np.nan
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["a"]),
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["b"]),
        (OrdinalEncoder(), ["d"]),
        remainder="passthrough",
    )
    for model, target in ((SparseBayesRegressor(), Y), (RVC("linear"), Y > 0)):
        pipeline = make_pipeline(columns, model).fit(frame, target)
        save(pipeline, tmp_path / "p.model", metadata={"about": "columns"})
        again, metadata = load(tmp_path / "p.model", with_metadata=True)
        assert metadata == {"about": "columns"}
        np.testing.assert_array_equal(again.predict(frame), pipeline.predict(frame))


def altered(path, change):
    document = json.loads(path.read_text())
    change(document["payload"])
    document["sha256"] = _digest(_canonical(document["payload"]))
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    "change",
    [
        lambda steps: steps.pop(),
        lambda steps: steps[0]["$tuple"][1]["$transformer"].update({"class": "FunctionTransformer2"}),
        lambda steps: steps[0]["$tuple"][1]["$transformer"]["state"].update({"transform": 1}),
        lambda steps: steps[0]["$tuple"][1]["$transformer"]["state"].update({"__class__": 1}),
        lambda steps: steps[0].update({"$tuple": [1, 2, 3]}),
    ],
    ids=range(5),
)
def test_what_is_no_pipeline_is_refused(change, tmp_path):
    path = tmp_path / "p.model"
    save(make_pipeline(StandardScaler(), RVR(gamma=0.5)).fit(X, Y), path)
    altered(path, lambda payload: change(payload["estimator"]["state"]["steps"]))
    with pytest.raises(ModelFileError):
        load(path)


def test_another_version_of_scikit_learn_is_said(tmp_path):
    path = tmp_path / "p.model"
    save(make_pipeline(StandardScaler(), RVR(gamma=0.5)).fit(X, Y), path)
    altered(
        path,
        lambda payload: payload["estimator"]["state"]["steps"][0]["$tuple"][1]["$transformer"].update(sklearn="0.1"),
    )
    with pytest.warns(UserWarning, match=r"fitted with scikit-learn 0\.1"):
        load(path)
