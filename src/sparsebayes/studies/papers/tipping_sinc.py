"""The sinc figures: linear splines on noise-free and on noisy samples, beside support vector regression."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.svm import SVR

from sparsebayes import SparseBayesRegressor, datasets
from sparsebayes.basis import Bias, LinearSpline
from sparsebayes.studies.drawing import fit_panel
from sparsebayes.studies.framework import BESIDE, LOWER, ONE_FUNCTION, TIPPING, Outcome, Row, Study, of_squares
from sparsebayes.typing import Array

_SEED = 0
# The spline of eq. 22 is an integral from zero: it is positive definite for inputs that are not negative.
_SHIFT = 10.0
_FIXED = "fit_intercept=False, noise_variance=0.01²"
_LEARNED = "fit_intercept=False"
_ORIGIN = "the paper does not say where its spline begins; shifted to 0, the SVM has the paper's 36 vectors"
# Rows come in order of x, so folds must be shuffled.
_FOLDS = KFold(5, shuffle=True, random_state=0)


def spline(X: Array, Z: Array) -> Array:
    """Eq. 22 of the report, for scikit-learn."""
    x, z = X[:, :1], Z[:, :1].T
    low = np.minimum(x, z)
    return 1.0 + x * z + x * z * low - 0.5 * (x + z) * low**2 + low**3 / 3.0


def machine(X: Array, y: Array, noise: float | None = None, solver: str = "sequential") -> SparseBayesRegressor:
    """A bias and a spline on every row."""
    return SparseBayesRegressor(Bias() + LinearSpline(), fit_intercept=False, noise_variance=noise, solver=solver).fit(
        X, y
    )


def vectors(model: SparseBayesRegressor) -> int:
    """Splines kept; the bias is no vector."""
    return sum(function["kind"] != "bias" for function in model.relevance_functions_)


def noise_free() -> tuple[list[Row], dict[str, Any]]:
    """100 samples without noise, at a fixed noise variance of 0.01²."""
    X, y = datasets.make_sinc(100, noise=0.0)
    model, shifted = machine(X, y, 0.01**2), machine(X + _SHIFT, y, 0.01**2)
    svm = SVR(C=1e4, epsilon=0.01).set_params(kernel=spline).fit(_unit(X), y)
    mean = np.asarray(model.predict(X))
    rows = [
        Row("no noise: relevance vectors", 9.0, vectors(model), LOWER, settings=_FIXED),
        Row("no noise: largest error", 0.0070, _largest(model, X, y), LOWER, why=_ORIGIN, settings=_FIXED),
        Row("no noise: relevance vectors, inputs from 0", 9.0, vectors(shifted), BESIDE, why=_ORIGIN),
        Row("no noise: largest error, inputs from 0", 0.0070, _largest(shifted, X + _SHIFT, y), BESIDE, why=_ORIGIN),
        Row("no noise: support vectors", 36.0, len(svm.support_), BESIDE),
        Row("no noise: largest error of the SVM", 0.010, float(np.max(np.abs(svm.predict(_unit(X)) - y))), BESIDE),
    ]
    return rows, {"x": X[:, 0], "y": y, "grid": X[:, 0], "mean": mean, "at": _rows_kept(model, X)}


def _largest(model: SparseBayesRegressor, X: Array, y: Array) -> float:
    return float(np.max(np.abs(np.asarray(model.predict(X)) - y)))


def _unit(X: Array) -> Array:
    """Inputs from 0 to 1, which the machine's optimiser needs."""
    return (X + _SHIFT) / (2.0 * _SHIFT)


def _rows_kept(model: SparseBayesRegressor, X: Array) -> NDArray[np.intp]:
    places = [f["centre"][0] for f in model.relevance_functions_ if f["kind"] != "bias"]
    return np.flatnonzero(np.isin(X[:, 0], places))


def noisy(draws: int, reduced: str) -> tuple[list[Row], dict[str, Any]]:
    """Uniform noise of ±0.2, the noise variance learned; means over draws, so that none that fails is hidden."""
    found, shown = [], {}
    for k in range(draws):
        X, y, clean = datasets.make_sinc(
            100, noise=0.2, distribution="uniform", random_state=_SEED + k, return_clean=True
        )
        model, other = machine(X, y), machine(X, y, solver="mackay")
        mean = np.asarray(model.predict(X))
        svm = GridSearchCV(SVR().set_params(kernel=spline), {"C": [1e3, 1e4], "epsilon": [0.1, 0.2]}, cv=_FOLDS).fit(
            _unit(X), y
        )
        errors = [float(np.sqrt(np.mean((p - clean) ** 2))) for p in (mean, other.predict(X), svm.predict(_unit(X)))]
        found.append((vectors(model), vectors(other), len(svm.best_estimator_.support_), *errors))
        if k == 0:
            shown = {"x": X[:, 0], "y": y, "grid": X[:, 0], "truth": clean, "mean": mean, "at": _rows_kept(model, X)}
    kept, kept_other, support, error, error_other, svm_error = (float(value) for value in np.mean(found, axis=0))
    median, worst = (float(f([one[3] for one in found])) for f in (np.median, np.max))
    floor = 0.2 / np.sqrt(3.0) * np.sqrt(6.0 / 100.0)
    lucky = f"least squares on six known functions would err by {floor:.3f} on average: the paper's draw is a lucky one"
    what = "uniform noise ±0.2"
    rows = [
        Row(
            f"{what}: relevance vectors",
            6.0,
            kept,
            LOWER,
            *ONE_FUNCTION,
            "the mean over draws, beside the paper's single one",
            reduced=reduced,
            settings=_LEARNED,
        ),
        Row(
            f"{what}: RMS error",
            0.0245,
            error,
            LOWER,
            *of_squares(0.0245, 6.0, root=True),
            f"{lucky}; the worst draw errs by {worst:.3f}",
            reduced=reduced,
            settings=_LEARNED,
        ),
        Row(f"{what}: RMS error, median of the draws", 0.0245, median, BESIDE, reduced=reduced, settings=_LEARNED),
        Row(f"{what}: RMS error, worst draw", None, worst, BESIDE, reduced=reduced, settings=_LEARNED),
        Row(
            f"{what}: relevance vectors",
            6.0,
            kept_other,
            BESIDE,
            reduced=reduced,
            settings='fit_intercept=False, solver="mackay"',
        ),
        Row(
            f"{what}: RMS error",
            0.0245,
            error_other,
            BESIDE,
            reduced=reduced,
            settings='fit_intercept=False, solver="mackay"',
        ),
        Row(f"{what}: support vectors", 29.0, support, BESIDE, reduced=reduced),
        Row(f"{what}: RMS error of the SVM", 0.0291, svm_error, BESIDE, reduced=reduced),
    ]
    return rows, shown


def run(quick: bool) -> Outcome:
    """Both figures."""
    draws = 9 if quick else 51
    first, clean = noise_free()
    second, noise = noisy(draws, f"{draws} of 51 draws" if quick else "")
    return Outcome(first + second, {"clean": clean, "noisy": noise})


def draw(figure: Any, data: Mapping[str, Any]) -> None:
    """Both fits, relevance vectors circled."""
    left, right = figure.subplots(1, 2, sharey=True)
    fit_panel(left, data["clean"], "no noise, σ = 0.01 fixed")
    fit_panel(right, data["noisy"], "uniform noise ±0.2, σ learned")


STUDY = Study(
    "tipping-sinc",
    TIPPING,
    "sinc figures",
    "The sinc function by linear splines, without and with noise, beside a support vector machine.",
    run,
    draw,
    "42 of 51 draws with noise",
    seed=_SEED,
)
