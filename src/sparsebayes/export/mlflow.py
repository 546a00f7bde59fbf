"""An MLflow flavour over the model file: what is saved is data and never code.

>>> import pytest; _ = pytest.importorskip("mlflow")
>>> import os, tempfile
>>> from sparsebayes import RVR
>>> from sparsebayes.datasets import make_sinc
>>> from sparsebayes.export import mlflow as flavour
>>> X, y = make_sinc(100, noise=0.1, random_state=0)
>>> model = RVR(gamma=1 / 4**2).fit(X, y)
>>> with tempfile.TemporaryDirectory() as folder:
...     flavour.save_model(model, os.path.join(folder, "sinc"))
...     again = flavour.load_model(os.path.join(folder, "sinc"))
>>> bool((again.predict(X) == model.predict(X)).all())
True
"""

from __future__ import annotations

import os
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from sparsebayes._version import __version__

from .modelfile import load, save

FLAVOR_NAME = "sparsebayes"
_FILE = "model.sparsebayes.json"


def _mlflow(name: str = "mlflow") -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # MLflow warns of its own types while it is imported
            return import_module(name)
    except ImportError:
        raise ImportError(
            "the MLflow flavour needs the package mlflow-skinny or mlflow: pip install 'sparsebayes[mlflow]'"
        ) from None


def get_default_pip_requirements() -> list[str]:
    """What a saved model needs to be loaded elsewhere."""
    return [f"sparsebayes=={__version__}"]


def save_model(
    model: Any,
    path: str | os.PathLike[str],
    mlflow_model: Any = None,
    signature: Any = None,
    input_example: Any = None,
    pip_requirements: list[str] | None = None,
    metadata: dict[str, Any] | None = None,
) -> None:
    """Save a fitted estimator of this library as an MLflow model.

    Parameters
    ----------
    model : estimator
        Fitted.
    path : path-like
        Folder to make; it must not exist.
    mlflow_model : mlflow.models.Model, optional
        The model to add the flavour to.
    signature : mlflow.models.ModelSignature, optional
        Of inputs and outputs; inferred where an input example is given.
    input_example : array-like or DataFrame, optional
        A few rows of X, from which the signature is inferred.
    pip_requirements : list of str, optional
        By default this version of this library.
    metadata : dict, optional
        Passed on to MLflow.
    """
    models, pyfunc = _mlflow("mlflow.models"), _mlflow("mlflow.pyfunc")
    folder = Path(path)
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"path={os.fspath(path)!r} exists already; give the name of a folder that does not")
    folder.mkdir(parents=True, exist_ok=True)
    record = models.Model() if mlflow_model is None else mlflow_model
    if input_example is not None and signature is None:
        signature = models.infer_signature(input_example, np.asarray(model.predict(input_example)))
    if signature is not None:
        record.signature = signature
    if metadata is not None:
        record.metadata = metadata
    save(model, folder / _FILE)
    pyfunc.add_to_model(record, loader_module=__name__, data=_FILE, env={"virtualenv": "requirements.txt"})
    record.add_flavor(FLAVOR_NAME, sparsebayes_version=__version__, data=_FILE)
    requirements = get_default_pip_requirements() if pip_requirements is None else pip_requirements
    (folder / "requirements.txt").write_text("".join(f"{line}\n" for line in requirements))
    record.save(os.fspath(folder / "MLmodel"))


def log_model(model: Any, name: str, **settings: Any) -> Any:
    """Log a fitted estimator to the active run.

    Parameters
    ----------
    model : estimator
        Fitted.
    name : str
        Name of the model.
    **settings
        Those of :func:`save_model`, and ``registered_model_name``.
    """
    models = _mlflow("mlflow.models")
    return models.Model.log(artifact_path=None, name=name, flavor=import_module(__name__), model=model, **settings)


def load_model(model_uri: str | os.PathLike[str], dst_path: str | None = None) -> Any:
    """Load the estimator of an MLflow model; no code in it is executed, since there is none.

    Parameters
    ----------
    model_uri : str
        A path, or ``models:/…``, ``runs:/…``.
    dst_path : str, optional
        Folder that the model is copied to.
    """
    artifacts = _mlflow("mlflow.artifacts")
    folder = artifacts.download_artifacts(artifact_uri=os.fspath(model_uri), dst_path=dst_path)
    record = _mlflow("mlflow.models").Model.load(folder)
    if FLAVOR_NAME not in record.flavors:
        raise ValueError(
            f"model_uri={os.fspath(model_uri)!r} has the flavours {sorted(record.flavors)}; expected {FLAVOR_NAME!r}"
        )
    return load(Path(folder) / record.flavors[FLAVOR_NAME]["data"])


def _load_pyfunc(path: str) -> Any:
    """Load for ``mlflow.pyfunc.load_model``; the file, or the folder that it is in."""
    place = Path(path)
    return _Predictor(load(place / _FILE if place.is_dir() else place))


class _Predictor:
    """What pyfunc calls.

    The parameter ``predict_method`` chooses "predict" (default), "predict_proba", "decision_function" or, for
    regressions, "predict_std".
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(self, X: Any, params: dict[str, Any] | None = None) -> Any:
        """Predict the rows of a table."""
        method = (params or {}).get("predict_method", "predict")
        further = ("predict_proba", "decision_function") if is_classifier(self.model) else ("predict_std",)
        known = ("predict", *further)
        if method not in known:
            raise ValueError(f"predict_method={method!r}: expected one of {', '.join(map(repr, known))}")
        if method == "predict_std":
            return self.model.predict(X, return_std=True)[1]
        return np.asarray(getattr(self.model, method)(X))

    def get_raw_model(self) -> Any:
        """Return the estimator itself."""
        return self.model
