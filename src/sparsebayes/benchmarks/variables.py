"""Rows about variables: inclusion probabilities, credible sets, attributions (``sparsebayes bench variables``)."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsebayes.benchmarks.measure import Check, Outcome, Row
from sparsebayes.benchmarks.rows import Plan

Array = NDArray[np.float64]

_HIGH = ("prostate", "riboflavin", "colon")


def _count(plan: Plan, draws: int, quick: int) -> int:
    return quick if plan.quick else draws


def enumeration(plan: Plan) -> list[Row]:
    """Single effects against all 4,096 supports of 12 correlated columns."""
    from sparsebayes.explain import single_effects

    apart, seconds = [], []
    for seed in range(_count(plan, 20, 8)):
        rng = np.random.default_rng(seed)
        n, m = 60, 12
        chol = np.linalg.cholesky(0.5 ** np.abs(np.subtract.outer(np.arange(m), np.arange(m))))
        X = rng.standard_normal((n, m)) @ chol.T
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        w = np.zeros(m)
        w[rng.choice(m, 3, replace=False)] = rng.standard_normal(3)
        y = X @ w + rng.standard_normal(n)
        y -= y.mean()
        start = time.perf_counter()
        found = single_effects(X, y)
        seconds.append(time.perf_counter() - start)
        exact = _all_supports(X, y, found)
        apart.append(float(np.abs(found.inclusion - exact).mean()))
    checks = [Check("|inclusion - exact|, mean", float(np.mean(apart)), 0.05)]
    return [Row("single effects against enumeration, M = 12", [Outcome("single effects", seconds)], checks)]


def _all_supports(X: Array, y: Array, found: Any) -> Array:
    """Exact inclusion probabilities at the same noise, prior variance and expected number of effects."""
    from sparsebayes.explain.enumeration import enumerate_supports

    state = found._found[0][1]
    noise, prior, m = state.hyper.noise, state.hyper.prior, X.shape[1]
    probability = 1.0 - (1.0 - 0.5 / m) ** len(state.effects)
    return enumerate_supports(X, y, noise, prior, probability)


def blocks(plan: Plan) -> list[Row]:
    """Credible sets on blocks of ten columns that correlate by .95, beside LassoCV and stability selection."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import Lasso, LassoCV

    from sparsebayes import SparseBayesRegressor
    from sparsebayes.explain import inclusion

    rows = []
    for effects in (1, 3, 5):
        covered, exact, sizes, found_causes, total, seconds = [], [], [], 0, 0, []
        rivals: dict[str, list[tuple[float, float, int]]] = {"LassoCV": [], "stability selection": []}
        for seed in range(_count(plan, 100, 10)):
            X, y, causes = _block_problem(seed, effects)
            model = SparseBayesRegressor().fit(X, y)
            start = time.perf_counter()
            sets = inclusion(model, X, y).credible_sets()
            seconds.append(time.perf_counter() - start)
            covered += [bool(set(one.members) & causes) for one in sets]
            exact += _exact_sets(X, y, causes, {one.members[0] // 10 for one in sets})
            sizes += [len(one) for one in sets]
            found_causes += sum(any(cause in one.members for one in sets) for cause in causes)
            total += effects
            if seed < _count(plan, 20, 3):  # the rivals take most of the time
                lasso = LassoCV(cv=5)
                share, rng = np.zeros(X.shape[1]), np.random.default_rng(seed)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)  # the rival's, at its own settings
                    chosen = set(np.flatnonzero(lasso.fit(X, y).coef_).tolist())
                    for _ in range(30):
                        half = rng.choice(len(y), len(y) // 2, replace=False)
                        share += Lasso(alpha=float(lasso.alpha_)).fit(X[half], y[half]).coef_ != 0.0
                rivals["LassoCV"].append(_scores(chosen, causes))
                chosen = set(np.flatnonzero(share / 30 >= 0.6).tolist())
                rivals["stability selection"].append(_scores(chosen, causes))
        checks = [
            Check("coverage of 95 % sets", float(np.mean(covered)), 0.94, at_least=True),
            Check("power", found_causes / total, 0.9 if effects == 1 else -np.inf, at_least=True),
            Check("median size", float(np.median(sizes)), 10.0),
        ]
        error = np.sqrt(0.95 * 0.05 / len(covered))
        notes = [
            f"{len(covered)} sets: the standard error of a coverage of .95 is {error:.3f}; exact sets, of a posterior "
            f"that knows the noise, the other effects and the block, cover {np.mean(exact):.3f} of the same effects"
        ]
        for name, scores in rivals.items():
            true, power, count = np.mean(scores, axis=0)
            notes.append(f"{name}: {true:.2f} of its columns are causes, power {power:.2f}, {count:.1f} columns")
        name = f"blocks of 10 at .95, N = 500, M = 1000, {effects} effects"
        rows.append(Row(name, [Outcome("single effects", seconds)], checks, notes))
    return rows


def few(plan: Plan) -> list[Row]:
    """Credible sets of few rows and many columns with common factors: several sums of effects are about as good."""
    from sparsebayes.explain import single_effects

    covered, seconds, draws = [], [], _count(plan, 60, 30)
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((40, 5)) @ rng.standard_normal((5, 300)) + rng.standard_normal((40, 300))
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        causes = rng.choice(300, 3, replace=False)
        signal = X[:, causes] @ rng.choice([-1.0, 1.0], 3)
        y = signal + rng.standard_normal(40) * np.sqrt(signal.var() * 0.3 / 0.7)
        start = time.perf_counter()
        sets = single_effects(X, y).credible_sets()
        seconds.append(time.perf_counter() - start)
        covered += [bool(set(one.members) & set(causes.tolist())) for one in sets]
    checks = [Check("coverage of 95 % sets", float(np.mean(covered)), 0.94, at_least=True)]
    name = "five factors, N = 40, M = 300, 3 effects"
    return [Row(name, [Outcome("single effects", seconds)], checks, [f"{len(covered)} sets of {draws} draws"])]


def classes(plan: Plan) -> list[Row]:
    """Credible sets of two classes on blocks of ten columns that correlate by .95."""
    from sparsebayes import SparseBayesClassifier
    from sparsebayes.explain import inclusion

    rows = []
    for n, effects, strength in ((60, 1, 2.0), (60, 2, 5.0), (200, 3, 2.0)):
        covered, sizes, found_causes, seconds, draws = [], [], 0, [], _count(plan, 40, 10)
        for seed in range(draws):
            rng = np.random.default_rng(seed)
            X, causes = _blocks(rng, n, 500, effects)
            signal = strength * X[:, causes] @ rng.choice([-1.0, 1.0], effects)
            y = signal + rng.logistic(size=n) > 0.0
            model = SparseBayesClassifier().fit(X, y)
            start = time.perf_counter()
            sets = inclusion(model, X, y).credible_sets()
            seconds.append(time.perf_counter() - start)
            covered += [bool(set(one.members) & set(causes.tolist())) for one in sets]
            sizes += [len(one) for one in sets]
            found_causes += sum(any(cause in one.members for one in sets) for cause in causes)
        checks = [Check("coverage of 95 % sets", float(np.mean(covered)), 0.94, at_least=True)]
        notes = [
            f"{len(covered)} sets, median size {np.median(sizes):.0f}, hold {found_causes / (draws * effects):.2f} of "
            "all causes"
        ]
        name = f"two classes, blocks of 10 at .95, N = {n}, M = 500, {effects} effects of {strength:g}"
        rows.append(Row(name, [Outcome("single effects", seconds)], checks, notes))
    return rows


def _blocks(rng: np.random.Generator, n: int, m: int, effects: int) -> tuple[Array, NDArray[np.intp]]:
    """Columns in blocks of ten, and some of them, each in a block of its own."""
    common = np.repeat(rng.standard_normal((n, m // 10)), 10, axis=1)
    X = np.sqrt(0.95) * common + np.sqrt(0.05) * rng.standard_normal((n, m))
    return X, 10 * rng.choice(m // 10, effects, replace=False) + rng.integers(0, 10, effects)


def _exact_sets(X: Array, y: Array, causes: set[int], blocks: set[int]) -> list[bool]:
    """Whether 95 % sets hold the cause, in blocks where one was found, if nothing else had to be learned."""
    places = sorted(causes)
    weights = np.sign(np.linalg.lstsq(X[:, places], y, rcond=None)[0])  # they are 1 and -1
    noise = float(np.var(y - X[:, places] @ weights))
    held = []
    for cause, weight in zip(places, weights, strict=True):
        if cause // 10 not in blocks:
            continue
        columns = X[:, 10 * (cause // 10) :][:, :10]
        left = y - X[:, places] @ weights + weight * X[:, cause]
        precision = 1.0 + np.sum(np.square(columns), axis=0) / noise
        log_factors = 0.5 * np.square(columns.T @ left / noise) / precision - 0.5 * np.log(precision)
        alpha = np.exp(log_factors - log_factors.max())
        order = np.argsort(-alpha)
        members = order[: int(np.searchsorted(np.cumsum(alpha[order]) / alpha.sum(), 0.95)) + 1]
        held.append(cause % 10 in members)
    return held


def _block_problem(seed: int, effects: int) -> tuple[Array, Array, set[int]]:
    """Each effect explains a tenth of the variance of the target."""
    rng = np.random.default_rng(seed)
    n = 500
    X, causes = _blocks(rng, n, 1000, effects)
    signal = X[:, causes] @ rng.choice([-1.0, 1.0], effects)
    share = 0.1 * effects
    y = signal + rng.standard_normal(n) * np.sqrt(signal.var() * (1.0 - share) / share)
    return X, y, {int(cause) for cause in causes}


def _scores(chosen: set[int], causes: set[int]) -> tuple[float, float, int]:
    return len(chosen & causes) / max(1, len(chosen)), len(chosen & causes) / len(causes), len(chosen)


def trap(plan: Plan) -> list[Row]:
    """Two causes, and a column that correlates with both more than either does with the target."""
    from sparsebayes import SparseBayesRegressor
    from sparsebayes.explain import inclusion

    good, seconds, draws = 0, [], _count(plan, 50, 10)
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((500, 50))
        X[:, 2] = 0.95 * (X[:, 0] + X[:, 1]) / np.sqrt(2.0) + np.sqrt(1.0 - 0.95**2) * rng.standard_normal(500)
        y = X[:, 0] + X[:, 1] + rng.standard_normal(500)
        model = SparseBayesRegressor().fit(X, y)
        start = time.perf_counter()
        sets = inclusion(model, X, y).credible_sets()
        seconds.append(time.perf_counter() - start)
        good += sorted(one.members for one in sets) == [(0,), (1,)]
    checks = [Check("draws with both causes and nothing false, of 50", 50.0 * good / draws, 48.0, at_least=True)]
    return [Row(f"the two-effect trap, {draws} draws", [Outcome("single effects", seconds)], checks)]


def stability(plan: Plan) -> list[Row]:
    """Jaccard index of what is chosen on subsamples of four fifths of the rows, beside LassoCV's."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LassoCV

    from sparsebayes import SparseBayesClassifier, SparseBayesRegressor, datasets
    from sparsebayes.explain import inclusion

    rows = []
    for name in _HIGH:
        try:
            data = datasets.load(name)
        except (FileNotFoundError, OSError, ValueError) as error:
            rows.append(Row(f"stability on {name}", [], [], [f"not run: {error}"]))
            continue
        X, y = np.asarray(data.data, dtype=np.float64), np.asarray(data.target)
        classes = name == "colon"
        X = np.log(X) if classes else X
        number = np.unique(y, return_inverse=True)[1].astype(np.float64) if classes else y
        ours, lasso, largest, probabilities, seconds = [], [], [], [], []
        for seed in range(_count(plan, 20, 4)):
            rows_ = np.random.default_rng(seed).choice(len(y), int(0.8 * len(y)), replace=False)
            Z = (X[rows_] - X[rows_].mean(axis=0)) / np.maximum(X[rows_].std(axis=0), 1e-12)
            model = (SparseBayesClassifier() if classes else SparseBayesRegressor()).fit(Z, y[rows_])
            start = time.perf_counter()
            found = inclusion(model, Z, y[rows_])
            sets = found.credible_sets()
            seconds.append(time.perf_counter() - start)
            probabilities.append(found.inclusion)
            ours.append({member for one in sets for member in one.members})
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                chosen = LassoCV(cv=5, max_iter=2000).fit(Z, number[rows_])
            lasso.append(set(np.flatnonzero(chosen.coef_).tolist()))
            order = np.argsort(-np.abs(chosen.coef_), kind="stable")
            largest.append(lasso[-1].intersection(order[: len(ours[-1])].tolist()))
        mine, theirs = _jaccard(ours), _jaccard(lasso)
        checks = [Check("Jaccard / LassoCV's", mine / max(theirs, 1e-12), 2.0, at_least=True)]
        notes = [
            f"Jaccard {mine:.3f} ({np.mean([len(s) for s in ours]):.1f} columns), "
            f"LassoCV {theirs:.3f} ({np.mean([len(s) for s in lasso]):.1f}), as many of its columns as the sets hold, "
            f"of the largest weights, {_jaccard(largest):.3f}; of the inclusion probabilities of all "
            f"columns, which are those of a choice where they are 0 and 1, {_shared(probabilities):.3f}"
        ]
        rows.append(Row(f"stability on {name}", [Outcome("single effects", seconds)], checks, notes))
    return rows


def _jaccard(chosen: list[set[int]]) -> float:
    """Mean over all pairs; two empty choices agree in nothing."""
    return float(np.mean([len(a & b) / max(1, len(a | b)) for a, b in combinations(chosen, 2)]))


def _shared(probabilities: list[Array]) -> float:
    """What pairs have in common of what either has: Jaccard's index, of probabilities."""
    pairs = combinations(probabilities, 2)
    return float(np.mean([np.minimum(a, b).sum() / np.maximum(a, b).sum() for a, b in pairs]))


def duration(plan: Plan) -> list[Row]:
    """Single effects after the sequential fit that they start from."""
    from sparsebayes import SparseBayesRegressor
    from sparsebayes.datasets import make_spikes
    from sparsebayes.explain import inclusion

    n, m, k = (300, 1500, 20) if plan.quick else (1000, 5000, 100)
    X, y, _ = make_spikes(n, m, k, noise=0.01, random_state=0)
    fits, effects = [], []
    for _ in range(plan.effort.repeats):
        start = time.perf_counter()
        model = SparseBayesRegressor().fit(X, y)
        fits.append(time.perf_counter() - start)
        start = time.perf_counter()
        inclusion(model, X, y)
        effects.append(time.perf_counter() - start)
    outcomes = [Outcome("single effects", effects), Outcome("sequential fit", fits)]
    checks = [Check("time / sequential fit", outcomes[0].median / outcomes[1].median, 3.0)]
    return [Row(f"time, N = {n}, M = {m}", outcomes, checks)]


def attribution(plan: Plan) -> list[Row]:
    """Exact Shapley values: their sums, all coalitions, their time, and shap's KernelExplainer."""
    from sparsebayes import RVR, SparseBayesRegressor
    from sparsebayes.basis import RBF
    from sparsebayes.explain import attributions

    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 100))
    model = SparseBayesRegressor(RBF(10.0), noise_variance=1e-6, fit_intercept=False).fit(X, rng.standard_normal(50))
    Z = rng.standard_normal((100, 100))
    found, seconds = attributions(model, Z), []
    for _ in range(max(3, plan.effort.repeats)):
        start = time.process_time()  # one thread of the processor: other programs on the machine do not count
        attributions(model, Z)
        seconds.append((time.process_time() - start) / len(Z))
    total = found.base_values + found.values.sum(axis=1)
    checks = [
        Check("additivity", float(np.abs(total - model.predict(Z)).max()), 1e-10),
        Check("ms of the processor a row", 1e3 * float(np.median(seconds)), 1.0),
    ]
    name = f"Shapley values, 100 inputs, {len(model.relevance_)} functions"
    rows = [Row(name, [Outcome("exact, a row", seconds)], checks)]
    X = rng.uniform(-1.0, 1.0, (100, 10))
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(100)
    model = RVR(gamma=0.3).fit(X, y)
    return [*rows, *(_beside_sampling(plan, model, X[:n], X[5]) for n in (5, 100))]


def _beside_sampling(plan: Plan, model: Any, X: Array, reference: Array) -> Row:
    """Exact Shapley values of some rows, all coalitions by their definition, and shap's KernelExplainer."""
    from sparsebayes.explain import attributions

    found, own = attributions(model, X, reference, uncertainty="posterior"), []
    for _ in range(max(3, plan.effort.repeats)):
        start = time.process_time()
        attributions(model, X, reference, uncertainty="posterior")
        own.append((time.process_time() - start) / len(X))
    exact = np.array([_coalitions(model.predict, x, reference) for x in X])
    checks = [Check("|exact - all coalitions|", float(np.abs(found.values - exact).max()), 1e-10)]
    outcomes, notes = [Outcome("exact, a row", own)], []
    try:
        import shap
    except ImportError:
        notes.append("KernelExplainer not run: shap is not installed")
    else:
        explainer = shap.KernelExplainer(model.predict, reference[None])
        theirs, sampled = [], explainer.shap_values(X, nsamples=2**10, silent=True)
        for _ in own:
            start = time.process_time()
            explainer.shap_values(X, nsamples=2**10, silent=True)
            theirs.append((time.process_time() - start) / len(X))
        rival = Outcome("KernelExplainer, all coalitions, a row", theirs, float(np.abs(sampled - exact).max()))
        ratio = rival.median / outcomes[0].median
        outcomes.append(rival)
        checks.append(Check("times faster than KernelExplainer", ratio, 100.0, at_least=True))
    return Row(f"Shapley values, 10 inputs, {len(X)} rows", outcomes, checks, notes)


def _coalitions(output: Callable[[Array], Any], x: Array, reference: Array) -> Array:
    """Shapley values by their definition."""
    from math import comb

    d = len(x)
    known = (np.arange(2**d)[:, None] >> np.arange(d)) & 1 == 1
    worth = np.asarray(output(np.where(known, x, reference)))
    values = np.zeros(d)
    for j in range(d):
        without = np.flatnonzero(~known[:, j])
        weights = np.array([1.0 / (d * comb(d - 1, int(size))) for size in known[without].sum(axis=1)])
        values[j] = weights @ (worth[without + 2**j] - worth[without])
    return values


def calibration(plan: Plan) -> list[Row]:
    """How often 95 % intervals of attributions hold those of models fitted again to resampled rows."""
    from sparsebayes import RVR, SparseBayesRegressor
    from sparsebayes.explain import attributions

    rng = np.random.default_rng(0)
    refits = _count(plan, 50, 8)
    rows = []
    X = rng.uniform(0.0, 1.0, (200, 5))
    smooth = 10.0 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20.0 * (X[:, 2] - 0.5) ** 2 + 10.0 * X[:, 3] + 5.0 * X[:, 4]
    Z = rng.standard_normal((200, 8))
    problems = {
        "Laplacian kernel": (RVR(kernel="laplacian"), X, smooth + rng.standard_normal(200)),
        "Gaussian kernel": (RVR(), X, smooth + rng.standard_normal(200)),
        "columns": (SparseBayesRegressor(), Z, Z[:, :3] @ [2.0, -1.0, 0.5] + rng.standard_normal(200)),
    }
    for name, (model, inputs, y) in problems.items():
        first, reference = attributions(model.fit(inputs, y), inputs[:40], inputs.mean(axis=0)), inputs.mean(axis=0)
        inside = []
        for _ in range(refits):
            again = rng.integers(0, len(y), len(y))
            refitted = model.fit(inputs[again], y[again])
            other = attributions(refitted, inputs[:40], reference, uncertainty="posterior")
            inside.append(np.abs(other.values - first.values) <= 1.96 * first.std)
        share = float(np.mean(inside))
        rows.append(Row(f"attributions refitted, {name}", [], [Check("inside 95 %", share, 0.9, at_least=True)]))
    return rows


VARIABLES: dict[str, Callable[[Plan], list[Row]]] = {
    "variables-enumeration": enumeration,
    "variables-blocks": blocks,
    "variables-few": few,
    "variables-classes": classes,
    "variables-trap": trap,
    "variables-stability": stability,
    "variables-time": duration,
    "variables-shapley": attribution,
    "variables-calibration": calibration,
}
