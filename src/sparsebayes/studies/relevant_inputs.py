"""D'Souza et al. 2004, Table 1's question: which of 71 inputs matter?

Run ``python -m sparsebayes.studies.relevant_inputs [--draws N]``.  The paper's recordings are not public, so the
question is put twice: to simulated recordings whose answer is known (71 collinear inputs, 2400 rows, 20 of the inputs
relevant), and to the public M1 recording ``highdim/m1_chewie`` (71 neurons, hand velocity; needs
``SPARSEBAYES_DATA``).  Partial least squares stands beside; its relevant inputs are those with the largest weights, as
many as are relevant in truth.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.cross_decomposition import PLSRegression
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV

from sparsebayes import SparseBayesRegressor, datasets
from sparsebayes.inference import Backfitting
from sparsebayes.typing import Array

_INPUTS, _ROWS, _RELEVANT, _FACTORS = 71, 2400, 20, 10
# The paper's share of the neurons found, and how many inputs beside them are tolerated here.
RECALL, FALSE = 0.93, 0.10


@dataclass(frozen=True)
class Found:
    """Share of the relevant inputs found, share of the irrelevant ones taken for relevant, R² on new rows."""

    recall: float
    false: float
    r2: float


def simulate(seed: int) -> tuple[Array, Array, Array, Array, NDArray[np.bool_]]:
    """Collinear inputs: 10 common factors and a part of their own; signal and noise of the targets equally strong."""
    rng = np.random.default_rng(seed)
    mixing = rng.standard_normal((_FACTORS, _INPUTS))
    X = rng.standard_normal((2 * _ROWS, _FACTORS)) @ mixing / np.sqrt(_FACTORS) + 0.5 * rng.standard_normal(
        (2 * _ROWS, _INPUTS)
    )
    relevant = np.zeros(_INPUTS, dtype=bool)
    relevant[rng.choice(_INPUTS, _RELEVANT, replace=False)] = True
    weights = np.where(relevant, rng.choice([-1.0, 1.0], _INPUTS) * rng.uniform(0.5, 1.5, _INPUTS), 0.0)
    signal = X @ weights
    y = signal + np.std(signal) * rng.standard_normal(len(X))
    return X[:_ROWS], y[:_ROWS], X[_ROWS:], y[_ROWS:], relevant


def judge(chosen: NDArray[np.bool_], relevant: NDArray[np.bool_], r2: float) -> Found:
    """Compare with the truth."""
    return Found(float(np.mean(chosen[relevant])), float(np.mean(chosen[~relevant])), r2)


def backfitting(seed: int) -> Found:
    """Bayesian backfitting on one draw."""
    X, y, X_new, y_new, relevant = simulate(seed)
    model = SparseBayesRegressor(solver=Backfitting()).fit(X, y)
    chosen = np.zeros(_INPUTS, dtype=bool)
    chosen[model.relevance_] = True
    return judge(chosen, relevant, float(model.score(X_new, y_new)))


def pls(seed: int) -> Found:
    """Partial least squares on one draw, its number of projections by 8-fold cross-validation."""
    X, y, X_new, y_new, relevant = simulate(seed)
    model = fit_pls(X, y)
    size = np.abs(model.coef_.ravel() * X.std(axis=0))
    chosen = size >= np.sort(size)[-int(np.sum(relevant))]
    return judge(chosen, relevant, float(model.score(X_new, y_new)))


def fit_pls(X: Array, y: Array) -> PLSRegression:
    """Partial least squares with its number of projections chosen."""
    search = GridSearchCV(PLSRegression(), {"n_components": [1, 2, 3, 5, 8, 12]}, cv=8)
    return search.fit(X, y).best_estimator_


def recording(solver: Backfitting) -> tuple[float, float, float, float]:
    """M1 recording: test R² of least squares, of PLS and of backfitting, and the mean share of inputs of its outputs.

    Each component of the velocity has its own relevant neurons, as each muscle has in the paper.
    """
    data = datasets.load("m1_chewie")
    X, Y = np.asarray(data.data, dtype=np.float64), np.asarray(data.target, dtype=np.float64)
    a, b = data.train_idx, data.test_idx
    squares = LinearRegression().fit(X[a], Y[a])
    projected = fit_pls(X[a], Y[a])
    model = SparseBayesRegressor(solver=solver).fit(X[a], Y[a])
    scores = [float(r2_score(Y[b], fitted.predict(X[b]))) for fitted in (squares, projected, model)]
    return scores[0], scores[1], scores[2], float(np.mean(model.coef_ != 0.0))


def main() -> None:
    """Print both answers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=20)
    arguments = parser.parse_args()
    print("simulated          recall   false    R²")
    for name, method in (("backfitting", backfitting), ("PLS", pls)):
        found = [method(seed) for seed in range(arguments.draws)]
        recall, false, r2 = (float(np.mean([getattr(f, k) for f in found])) for k in ("recall", "false", "r2"))
        verdict = ("met" if recall >= RECALL and false <= FALSE else "missed") if name == "backfitting" else "beside"
        print(f"{name:<16} {100 * recall:7.1f}% {100 * false:6.1f}% {r2:7.3f}   {verdict} ({arguments.draws} draws)")
    print("M1 recording      R² least squares   PLS   backfitting   inputs for each output")
    for initial in (Backfitting().initial, 10.0):  # the second commits to fewer inputs from the start
        squares, projected, ours, share = recording(Backfitting(initial=initial))
        verdict = "met" if ours >= squares and share <= 0.5 else "missed"
        print(f"initial={initial:<9g} {squares:16.3f} {projected:7.3f} {ours:10.3f} {100 * share:18.1f}%   {verdict}")


if __name__ == "__main__":
    main()
