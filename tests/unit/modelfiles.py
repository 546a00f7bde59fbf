"""What the tests of the model file share."""

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from sparsebayes.basis import (
    RBF,
    Bias,
    Cauchy,
    Functions,
    Heaviside,
    Laplacian,
    Linear,
    LinearSpline,
    Polynomial,
    PolynomialKernel,
    Precomputed,
    Sigmoid,
    ThinPlateSpline,
)
from sparsebayes.export import load, save
from sparsebayes.inference.objective import Supports

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
    a, b = (one.all() if isinstance(one, Supports) else one for one in (a, b))  # a file has the list
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
    # All of it, but for the training data and what is derived from them.
    travels = {name: value for name, value in vars(est).items() if name not in type(est)._left_behind}
    assert set(vars(again)) == set(travels)
    for name, value in travels.items():
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


def run_program(name, *arguments):
    """Run a program that lies beside the tests and return what it printed, JSON."""
    done = subprocess.run(
        [sys.executable, "-W", "error", Path(__file__).with_name(name), *map(str, arguments)],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
