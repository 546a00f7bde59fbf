"""Seven real sets: coverage of 95 % intervals, and log predictive density beside scikit-learn's Gaussian process."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import pdist
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from sparsebayes import RVR, datasets
from sparsebayes.inference import Certificate
from sparsebayes.typing import Array

SETS = ("boston", "abalone", "concrete", "energy", "wine_red", "yacht", "california_housing")
_LARGEST = 2000
# Widths of the kernel, in medians of the distance between rows; the evidence chooses.
_WIDTHS = (0.5, 1.0, 2.0, 4.0)
# Share of the training rows that a model may keep to be chosen.
_KEPT = 0.1
# Share of the training rows that the model with conformal intervals is fitted on; the others calibrate it.
_FITTED = 0.75


@dataclass(frozen=True)
class Row:
    """One set: coverages, negative log predictive densities, and the share of rows kept."""

    name: str
    posterior: float
    conformal: float
    density: float
    process_density: float
    kept: float
    likelihood: str

    def __str__(self) -> str:
        return (
            f"{self.name:<20} posterior {self.posterior:.3f}  conformal {self.conformal:.3f}  NLPD {self.density:.3f}  "
            f"Gaussian process {self.process_density:.3f}  kept {self.kept:.1%}  {self.likelihood}"
        )


def prepared(name: str, seed: int = 0) -> tuple[Array, Array, Array, Array]:
    """Standardised training and test rows: nine tenths (at most 2,000) and the rest (at most 2,000)."""
    data = datasets.load(name)
    X, y = np.asarray(data.data), np.asarray(data.target, dtype=np.float64).ravel()
    numeric = [k for k in range(X.shape[1]) if _is_number(X[0, k])]
    X = X[:, numeric].astype(np.float64)
    complete = np.all(np.isfinite(X), axis=1)
    X, y = X[complete], y[complete]
    order = np.random.default_rng(seed).permutation(len(y))
    cut = min(_LARGEST, round(0.9 * len(y)))
    train, test = order[:cut], order[cut : cut + _LARGEST]
    centre, scale = X[train].mean(axis=0), X[train].std(axis=0)
    Z = (X - centre) / np.where(scale > 0.0, scale, 1.0)
    t = (y - y[train].mean()) / y[train].std()
    return Z[train], t[train], Z[test], t[test]


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def best_model(X: Array, t: Array) -> RVR:
    """The sparse model with the largest evidence.

    The evidence chooses between one width for all inputs, of a few, and one for each input, learned; and then between
    Gaussian noise and Student's t.
    """
    median = float(np.median(pdist(X[:500])))
    models = [RVR(gamma=1.0 / (width * median) ** 2).fit(X, t) for width in _WIDTHS]
    best = _best([*models, RVR(gamma="ard").fit(X, t)], len(t))
    return _best([best, alike(best, likelihood="student-t").fit(X, t)], len(t))


def alike(model: RVR, likelihood: str = "gaussian", support: str = "evidence") -> RVR:
    """A model to be fitted with the same functions."""
    if model.gamma == "ard":
        return RVR(model.kernel_, likelihood=likelihood, support=support)
    return RVR(model.kernel, gamma=model.gamma, likelihood=likelihood, support=support)


def _best(models: list[RVR], n_rows: int) -> RVR:
    """The model with the largest evidence of those that keep few rows; the sparsest where none does."""
    shares = [len(model.relevance_) / n_rows for model in models]
    sparse = [model for model, share in zip(models, shares, strict=True) if share <= _KEPT]
    return max(sparse, key=lambda model: model.log_marginal_likelihood_) if sparse else models[int(np.argmin(shares))]


def one_certificate(certificate: Certificate | list[Certificate]) -> Certificate:
    """The certificate of a model with one target."""
    return certificate[0] if isinstance(certificate, list) else certificate


def _covered(model: RVR, X: Array, t: Array, kind: str) -> float:
    low, high = model.predict_interval(X, 0.95, kind)
    return float(np.mean((t >= low) & (t <= high)))


def study(name: str) -> Row:
    """Measure one set."""
    X, t, X_test, t_test = prepared(name)
    model = best_model(X, t)
    cut = round(_FITTED * len(t))
    halved = alike(model, support="conservative").fit(X[:cut], t[:cut]).calibrate(X[cut:], t[cut:])
    kernel = ConstantKernel(1.0) * RBF(np.sqrt(X.shape[1])) + WhiteKernel(0.1)
    process = GaussianProcessRegressor(kernel, random_state=0).fit(X, t)
    mean, std = process.predict(X_test, return_std=True)
    return Row(
        name,
        _covered(model, X_test, t_test, "posterior"),
        _covered(halved, X_test, t_test, "conformal"),
        -float(np.mean(model.log_density(X_test, t_test))),
        -float(np.mean(norm.logpdf(t_test, mean, std))),
        len(model.relevance_) / len(t),
        model.likelihood,
    )


def coverage_and_density() -> list[Row]:
    """Measure all sets."""
    return [study(name) for name in SETS]


if __name__ == "__main__":
    for chosen in sys.argv[1:] or SETS:
        print(study(chosen), flush=True)
