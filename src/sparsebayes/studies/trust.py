"""What the noise, the error bars, the robust likelihoods and the support can be trusted for, measured.

Every study prints what it measured and whether it reached what was asked.  ``python -m sparsebayes.studies.trust`` runs
all of them, ``... trust noise blocks`` some.  The real sets need the environment variable ``SPARSEBAYES_DATA``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from sparsebayes import RVR, SparseBayesRegressor, datasets
from sparsebayes.basis import Heaviside
from sparsebayes.studies.real_sets import coverage_and_density, one_certificate
from sparsebayes.typing import Array

_NOISE = 0.1 / np.sqrt(50)


def verdict(text: str, reached: bool) -> None:
    """Print one line of the table."""
    print(f"{'reached' if reached else 'MISSED '}  {text}", flush=True)


def _spikes(
    n: int, m: int, k: int, noise: float, seed: int, support: str
) -> tuple[SparseBayesRegressor, Array, Array, float]:
    """Model, true weights, least squares on the true support, and the time of the fit."""
    X, y, w = datasets.make_spikes(n, m, k, noise=noise, random_state=seed)
    begin = time.perf_counter()
    model = SparseBayesRegressor(fit_intercept=False, support=support).fit(X, y)
    seconds = time.perf_counter() - begin
    true = np.flatnonzero(w)
    oracle = np.zeros(m)
    oracle[true] = np.linalg.lstsq(X[:, true], y, rcond=None)[0]
    return model, w, oracle, seconds


def _counts(model: SparseBayesRegressor, w: Array) -> tuple[int, int]:
    """True and false functions kept."""
    true = set(np.flatnonzero(w).tolist())
    kept = set(model.relevance_.tolist())
    return len(true & kept), len(kept - true)


def noise(draws: int = 100) -> None:
    """Default noise with twice as many unrelated functions as rows."""
    for k in (3, 8):
        ratios, flagged = [], []
        for seed in range(draws):
            model, *_ = _spikes(50, 100, k, _NOISE, seed, "evidence")
            ratios.append(model.noise_variance_ / _NOISE**2)
            flagged.append(one_certificate(model.certificate_).noise_degenerate)
        inside = (np.array(ratios) >= 0.5) & (np.array(ratios) <= 2.0)
        silent = int(np.sum(~inside & ~np.array(flagged)))
        text = f"noise, {k} true weights: within a factor 2 in {inside.mean():.0%}, others unflagged: {silent}"
        verdict(text, inside.mean() >= 0.9 and silent == 0)


def conservative(draws: int = 100) -> None:
    """The same problem with the conservative support."""
    for k in (3, 8):
        found = [_counts(*_spikes(50, 100, k, _NOISE, seed, "conservative")[:2]) for seed in range(draws)]
        true, false = np.mean(found, axis=0)
        verdict(f"conservative, {k} true: {true / k:.1%} found, {false:.2f} false", true >= 0.9 * k and false <= 1.0)


def spikes(draws: int = 20) -> None:
    """256 × 1,024 with 40 spikes."""
    found, sigmas = [], []
    for seed in range(draws):
        model, w, *_ = _spikes(256, 1024, 40, 0.005, seed, "conservative")
        found.append(_counts(model, w))
        sigmas.append(np.sqrt(model.noise_variance_) / 0.005)
    true, false = np.array(found).T
    text = f"256 × 1024: true {true.min()}, false at most {false.max()}, sigma {min(sigmas):.3f} to {max(sigmas):.3f}"
    verdict(text, true.min() == 40 and false.max() <= 2 and max(np.abs(np.array(sigmas) - 1.0)) <= 0.2)


def large_spikes(draws: int = 10) -> None:
    """1,000 × 5,000 with 100 spikes."""
    found, ratios, times = [], [], []
    for seed in range(draws):
        model, w, oracle, seconds = _spikes(1000, 5000, 100, 0.005, seed, "conservative")
        times.append(seconds)
        found.append(_counts(model, w))
        ratios.append((np.sum((model.coef_ - w) ** 2), np.sum((oracle - w) ** 2)))
    true, false = np.array(found).T
    error, best = np.mean(ratios, axis=0)
    text = (
        f"1000 × 5000: true {true.min()}, false at most {false.max()}, NMSE {error / best:.3f} × least squares, "
        f"{max(times):.2f} s at most"
    )
    verdict(text, true.min() == 100 and false.max() <= 2 and error <= 1.1 * best and max(times) <= 2.0)


def blocks(draws: int = 20) -> None:
    """Noisy blocks with the Heaviside dictionary."""
    worst, sizes = 0.0, []
    for seed in range(draws):
        X, y = datasets.make_blocks(1024, noise=1.0, sd=7.0, random_state=seed)
        model = SparseBayesRegressor(Heaviside(), fit_intercept=False, support="conservative").fit(X, y)
        places = X[model.relevance_, 0]
        worst = max(worst, *(float(np.min(np.abs(places - jump))) * 1024 for jump in datasets.blocks_jumps()))
        sizes.append(len(places))
    verdict(
        f"blocks: jumps within {worst:.2f} samples, {min(sizes)} to {max(sizes)} functions",
        worst <= 1.0 and max(sizes) <= 14,
    )


def far_away(draws: int = 20) -> None:
    """Augmented error bars twenty widths from the data."""
    short, below = np.inf, np.inf
    for seed in range(draws):
        X, y = datasets.make_sinc(100, noise=0.1, random_state=seed)
        model = RVR(gamma=1 / 9).fit(X, y)
        far = model.predict(np.array([[10.0 + 60.0], [-10.0 - 60.0]]), True, "augmented")[1]
        near = model.predict(X, True, "augmented")[1]
        short = min(short, float(np.min(far**2) / (model.noise_variance_ + np.var(y))))
        below = min(below, float(np.min(far) / np.max(near)))
    text = f"augmented, 20 widths away: std² ≥ {short:.6f} × (σ² + 1/α*), std ≥ {below:.2f} × that at the data"
    verdict(text, short >= 1.0 - 1e-9 and below >= 1.0)


def contaminated_sinc(n: int, seed: int) -> tuple[Array, Array, Array, Array, NDArray[np.bool_]]:
    """Inputs, targets, targets with outliers, true values, and which rows are outliers."""
    X, y, clean = datasets.make_sinc(n, noise=0.1, random_state=seed, return_clean=True)
    rng = np.random.default_rng(seed)
    bad = np.zeros(n, dtype=np.bool_)
    bad[rng.choice(n, n // 5, replace=False)] = True
    return X, y, np.where(bad, rng.uniform(-5.0, 5.0, n), y), clean, bad


def outliers(draws: int = 50) -> None:
    """A fifth of the targets replaced by anything."""
    errors: dict[str, list[float]] = {name: [] for name in ("none", "gaussian", "outliers", "student-t")}
    areas: dict[str, list[float]] = {"outliers": [], "student-t": []}
    for seed in range(draws):
        X, y, spoilt, clean, bad = contaminated_sinc(100, seed)
        for name, values in errors.items():
            robust = "gaussian" if name == "none" else name
            model = RVR(gamma=1 / 16, likelihood=robust).fit(X, y if name == "none" else spoilt)
            values.append(float(np.sqrt(np.mean((model.predict(X) - clean) ** 2))))
            if name in areas:
                areas[name].append(float(roc_auc_score(bad, model.outlier_probability_)))
    base = float(np.mean(errors["none"]))
    print(f"         sinc without outliers: RMSE {base:.4f}; ignoring them: {np.mean(errors['gaussian']):.4f}")
    for name, area in areas.items():
        ratio = float(np.mean(errors[name])) / base
        text = f"{name}: RMSE {ratio:.3f} × that without outliers, AUC {np.mean(area):.3f}"
        verdict(text, ratio <= 1.3 and float(np.mean(area)) >= 0.95)


def classics(draws: int = 1) -> None:
    """The stars of Cygnus, and stack loss."""
    for name, needed, allowed in (("starsCYG", {11, 20, 30, 34}, {7, 9, 14}), ("stackloss", {1, 3, 4, 21}, {2})):
        data = datasets.load(name)
        model = SparseBayesRegressor(likelihood="outliers").fit(data.data, data.target)
        flags = set((np.flatnonzero(model.outlier_probability_ > 0.5) + 1).tolist())
        verdict(f"{name}: flags {sorted(flags)}", needed <= flags <= needed | allowed)


def real_sets(draws: int = 1) -> None:
    """Coverage and log density on seven sets, beside a Gaussian process."""
    rows = coverage_and_density()
    for row in rows:
        print(f"         {row}")
    posterior, conformal = (float(np.mean([getattr(row, kind) for row in rows])) for kind in ("posterior", "conformal"))
    verdict(f"posterior coverage {posterior:.3f}", 0.90 <= posterior <= 0.98)
    verdict(f"conformal coverage {conformal:.3f}", 0.94 <= conformal <= 0.96)
    better = sum(row.density <= row.process_density and row.kept <= 0.1 for row in rows)
    verdict(f"log density at or below the Gaussian process's with at most 10 % of the rows: {better} of 7", better >= 3)


STUDIES: dict[str, Callable[..., None]] = {
    study.__name__: study
    for study in (noise, conservative, spikes, large_spikes, blocks, far_away, outliers, classics, real_sets)
}


def main(names: list[str]) -> None:
    """Run the studies of these names, or all; ``name=draws`` sets the number of draws."""
    for name in names or list(STUDIES):
        study, _, draws = name.partition("=")
        if study not in STUDIES:
            raise SystemExit(f"no study {study!r}; choose from {', '.join(STUDIES)}")
        STUDIES[study](**({"draws": int(draws)} if draws else {}))


if __name__ == "__main__":
    main(sys.argv[1:])
