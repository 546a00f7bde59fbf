"""What to think of a model, in words and from measured things: is it of use, is it honest, are there enough rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, kruskal
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.svm import SVC, SVR

from sparsebayes.estimators.checks import CONSTANT
from sparsebayes.estimators.summary import converged
from sparsebayes.typing import Array

from .case import Case
from .measures import ClassificationTest, RegressionTest, figure, is_robust

_RESAMPLES = 2000
_SEED = 0
_SMALLEST = 1e-15
# A gain that chance may have made counts as none where it is below this share of the baseline's error.
_SLIGHT = 0.1
# Error bars of 95 % that hold less than this share of the rows are wrong, and not only somewhat too narrow.
_GROSS = 0.8
_BY_CHANCE = 0.025
# Standard errors by which stated probabilities may miss what came true; and the miss that makes them useless.
_HONEST, _GROSS_GAP = 2.6, 0.2
# With fewer rows than this, little can be learned; with fewer test rows, little can be said.
_FEW_ROWS, _FEW_TEST_ROWS = 20, 10
# With fewer rows than this, nothing can be said at all.
_FEWEST_TO_JUDGE = 4
_ROWS_PER_FUNCTION = 3
# The share of the predictive variance from the weights above which more rows would help.
_UNCERTAIN = 0.5
_DISPENSABLE = 0.01
# Errors are said to vary where thirds of this many rows and more differ by this factor, and chance by less than this.
_ROWS_TO_SEE, _FACTOR, _BY_MERE_CHANCE = 60, 2.0, 1e-3
_NAMED = 8
_LINEAR = "a linear model"
FURTHER = ("random forest", "support vectors")


class Level(IntEnum):
    """How good the news is."""

    GOOD = 0
    WARNING = 1
    FAILURE = 2


@dataclass(frozen=True)
class Finding:
    """One sentence, and how good the news is."""

    level: Level
    text: str


@dataclass(frozen=True)
class Verdict:
    """What to think of a model.

    Attributes
    ----------
    findings : list of Finding
        Sentences, in the order in which to read them.
    baselines : dict of str to float
        Error of plain models on the same rows: RMSE, or the share of wrong answers.
    """

    findings: list[Finding]
    baselines: dict[str, float] = field(default_factory=dict)

    @property
    def level(self) -> Level:
        """The worst of the findings."""
        return max((finding.level for finding in self.findings), default=Level.GOOD)

    @property
    def headline(self) -> str:
        """The verdict in a few words."""
        if self.level is Level.FAILURE:
            return "Do not use this model as it is"
        if self.level is Level.WARNING:
            return "Usable with care"
        return "A good model, as far as these rows can tell"

    def as_data(self) -> dict[str, Any]:
        """Plain data, for machines."""
        return {
            "level": self.level.name.lower(),
            "headline": self.headline,
            "findings": [{"level": f.level.name.lower(), "text": f.text} for f in self.findings],
            "baselines": self.baselines,
        }


def judge_case(case: Case, further: Sequence[str] = ()) -> Verdict:
    """Judge a model by the rows that were held back, beside plain models of the same rows.

    Parameters
    ----------
    case : Case
        The model and its rows.
    further : sequence of str
        Other models to compare with, of those in ``FURTHER``.
    """
    if case.classifies:
        findings, baselines = _classes(case)
    else:
        findings, baselines = _numbers(case)
    if not case.tested:
        findings.insert(
            0,
            Finding(
                Level.WARNING,
                "No rows were held back: all figures are of rows the model has seen, and say little of new ones.",
            ),
        )
    findings += _rows(case)
    if not converged(case.est):
        findings.append(Finding(Level.WARNING, "The search ended before convergence; the status below says why."))
    findings += _inputs(case)
    return Verdict(findings, baselines | {name: _error_of(case, name) for name in further if len(case.y)})


def _error_of(case: Case, name: str) -> float:
    """Error of another kind of model on the rows that the model is judged by."""
    X, y = case.judged
    if case.classifies:
        made: Any = {"random forest": RandomForestClassifier(random_state=_SEED), "support vectors": SVC()}[name]
        return float(np.mean(made.fit(case.X, case.y).predict(X) != y))
    values = np.asarray(case.y, dtype=np.float64)
    centre, scale = float(values.mean()), float(values.std()) or 1.0
    made = {"random forest": RandomForestRegressor(random_state=_SEED), "support vectors": SVR()}[name]
    predicted = centre + scale * made.fit(case.X, (values - centre) / scale).predict(X)
    return float(np.sqrt(np.mean((np.asarray(y, dtype=np.float64) - predicted) ** 2)))


def _numbers(case: Case) -> tuple[list[Finding], dict[str, float]]:
    X, y = case.judged
    y = np.asarray(y, dtype=np.float64)
    mean, std = case.est.predict(X, return_std=True)
    errors = {"model": (y - mean) ** 2}
    known = len(case.y) > 0
    # Without the training rows, the mean of the other rows: that of all knows each row's own value.
    constant = DummyRegressor().fit(case.X, case.y).predict(X) if known else _mean_of_others(y)
    errors["the mean"] = (y - constant) ** 2
    if known:
        linear = RidgeCV(np.logspace(-3, 3, 13)).fit(case.X, np.asarray(case.y, dtype=np.float64))
        errors[_LINEAR] = (y - linear.predict(X)) ** 2
    rmse = {name: float(np.sqrt(squares.mean())) for name, squares in errors.items()}
    what, values = "its error", rmse
    if is_robust(case.est):
        errors = {name: np.sqrt(squares) for name, squares in errors.items()}
        what, values = "its typical error", {name: float(np.median(sizes)) for name, sizes in errors.items()}
    findings = [_against(case, what, values, errors, figure(values["model"]))]
    findings += _against_linear(case, values, errors)
    result = case.result
    assert isinstance(result, RegressionTest)
    findings += _coverage(case, result)
    findings += _scatter(case)
    noise = float(np.mean(np.atleast_1d(getattr(case.est, "noise_variance_", np.nan))))
    share = 1.0 - noise / float(np.mean(std**2))
    if share > _UNCERTAIN:
        findings.append(
            Finding(
                Level.WARNING,
                f"{share:.0%} of the uncertainty of a prediction comes from too few rows, not from noise: more rows "
                "would help.",
            )
        )
    return findings, {name: value for name, value in rmse.items() if name != "model"}


def _classes(case: Case) -> tuple[list[Finding], dict[str, float]]:
    X, y = case.judged
    result = case.result
    assert isinstance(result, ClassificationTest)
    p = case.est.predict_proba(X)
    losses = {"model": _losses(p, case.est.classes_, y)}
    wrong = {"model": 1.0 - result.accuracy}
    known = len(case.y) > 0
    dummy = DummyClassifier(strategy="prior").fit(*((case.X, case.y) if known else (X, y)))
    losses["the most frequent class"] = _losses(np.asarray(dummy.predict_proba(X)), np.asarray(dummy.classes_), y)
    wrong["the most frequent class"] = float(np.mean(dummy.predict(X) != y))
    if known and len(np.unique(case.y)) > 1:
        linear = LogisticRegression(max_iter=1000).fit(case.X, case.y)
        losses[_LINEAR] = _losses(linear.predict_proba(X), linear.classes_, y)
        wrong[_LINEAR] = float(np.mean(linear.predict(X) != y))
    findings = [_against(case, "the share of wrong answers", wrong, losses, f"{wrong['model']:.1%}")]
    findings += _against_linear(case, wrong, losses)
    stated = p.max(axis=1)
    gap = float(np.mean(stated) - result.accuracy)
    error = float(np.sqrt(np.sum(np.maximum(stated * (1.0 - stated), 1e-6)))) / len(stated)
    if abs(gap) > _HONEST * error + 0.5 / len(stated):
        gross = gap > _GROSS_GAP
        word = "surer than it should be" if gap > 0 else "more modest than it need be"
        findings.append(
            Finding(
                Level.FAILURE if gross else Level.WARNING,
                f"Its probabilities are not calibrated: it says {stated.mean():.0%} on average and is right in "
                f"{result.accuracy:.0%} of the cases, {word}.",
            )
        )
    else:
        findings.append(
            Finding(
                Level.GOOD,
                f"Its probabilities hold: it says {stated.mean():.0%} on average and is right in {result.accuracy:.0%}"
                ".",
            )
        )
    return findings, {name: value for name, value in wrong.items() if name != "model"}


def _against(case: Case, what: str, values: dict[str, float], errors: dict[str, Array], ours: str) -> Finding:
    """Whether the model is better than the constant one."""
    plain = next(name for name in values if name not in ("model", _LINEAR))
    theirs = f"{values[plain]:.1%}" if case.classifies else figure(values[plain])
    low = _paired_low(errors[plain] - errors["model"])
    gain = 1.0 - float(errors["model"].mean()) / max(float(errors[plain].mean()), _SMALLEST)
    n = len(errors["model"])
    rows = case.counted(n)
    if n < _FEWEST_TO_JUDGE:
        return Finding(Level.WARNING, f"Whether it is of use, {rows} cannot tell: {what} is {ours}.")
    compared = f"{what} is {ours} on {rows}, and {theirs} for a model that always answers {plain}"
    if gain <= 0.0 or (low <= 0.0 and gain < _SLIGHT):
        return Finding(Level.FAILURE, f"It is of no use: {compared}.")
    if low <= 0.0:
        return Finding(Level.WARNING, f"It may be better than nothing, but chance could have done it: {compared}.")
    return Finding(Level.GOOD, f"It is of use: {compared}.")


def _against_linear(case: Case, values: dict[str, float], errors: dict[str, Array]) -> list[Finding]:
    name = _LINEAR
    if name not in values or len(errors[name]) < _FEWEST_TO_JUDGE:
        return []
    worse = _paired_low(errors["model"] - errors[name])
    better = _paired_low(errors[name] - errors["model"])
    if worse > 0.0:
        remedy = ", which uses every input" if _of_columns(case.est) else "; try 'fit --kernel columns'"
        return [Finding(Level.WARNING, f"A plain linear model is better on these rows{remedy}.")]
    theirs, ours = (f"{values[k]:.1%}" if case.classifies else figure(values[k]) for k in (name, "model"))
    compared = f"{theirs} against {ours}"
    if better > 0.0 and theirs != ours:
        return [Finding(Level.GOOD, f"It is better than a plain linear model ({compared}).")]
    if better > 0.0 and case.classifies:
        return [
            Finding(Level.GOOD, f"A plain linear model is as often right ({compared}); its probabilities are worse.")
        ]
    rows = case.counted(len(errors[name]))
    said = f"A plain linear model does about as well ({compared}): {rows} cannot tell them apart."
    return [Finding(Level.GOOD, said)]


def _of_columns(est: Any) -> bool:
    """Whether the functions of a model are the columns themselves."""
    parameters = est.get_params(deep=False)
    return "kernel" not in parameters and parameters.get("basis") is None


def _mean_of_others(y: Array) -> Array:
    return (y.sum() - y) / max(len(y) - 1, 1)


def _coverage(case: Case, result: RegressionTest) -> list[Finding]:
    hits = round(result.coverage * result.n)
    said = f"its 95 % error bars hold {result.coverage:.0%} of the {case.counted(result.n)}"
    share, expected = getattr(case.est, "outlier_share_", 0.0), 0.95
    if share:
        expected = 0.95 * (1.0 - share)
        said += f", and are for rows that are no outliers ({1.0 - share:.0%} by its estimate)"
    if result.n < _FEWEST_TO_JUDGE:
        return []
    if binom.cdf(hits, result.n, expected) < _BY_CHANCE:
        level = Level.FAILURE if binom.cdf(hits, result.n, _GROSS) < _BY_CHANCE else Level.WARNING
        return [Finding(level, f"It is surer than it should be: {said}.")]
    if binom.sf(hits - 1, result.n, expected) < _BY_CHANCE:
        return [Finding(Level.GOOD, f"It is more modest than it need be: {said}.")]
    return [Finding(Level.GOOD, f"It is honest about its errors: {said}.")]


def _scatter(case: Case) -> list[Finding]:
    """Whether errors, in units of their bars, are of one size along the prediction and every input of numbers."""
    X, y = np.vstack([case.X, case.X_test]), np.concatenate([case.y, case.y_test]).astype(np.float64)
    parameters = case.est.get_params(deep=False)
    if len(y) < _ROWS_TO_SEE or parameters.get("noise") != CONSTANT or parameters.get("likelihood") != "gaussian":
        return []
    mean, std = case.est.predict(X, return_std=True)
    sizes = np.abs(y - mean) / std
    along = {f"predictions of {case.target}": mean}
    along |= {f"values of {item.name}": item.values(X) for item in case.inputs if not item.levels}
    found = []
    for name, values in along.items():
        thirds = np.searchsorted(np.quantile(values, [1 / 3, 2 / 3]), values)
        groups = [sizes[thirds == k] for k in np.unique(thirds)]
        medians = [float(np.median(group)) for group in groups]
        if len(groups) > 1 and max(medians) > _FACTOR * min(medians):
            found.append((float(kruskal(*groups).pvalue), name, max(medians) / max(min(medians), _SMALLEST)))
    if not found or min(found)[0] * len(along) > _BY_MERE_CHANCE:
        return []
    _, name, factor = min(found)
    said = f"Its errors are {figure(factor)} times larger for some {name} than for others, and its error bars do not "
    return [Finding(Level.WARNING, said + "follow: 'fit --noise varies' learns bars that do.")]


def _rows(case: Case) -> list[Finding]:
    n, kept = len(case.y), len(case.est.relevance_)
    findings = []
    if 0 < n < _FEW_ROWS:
        findings.append(Finding(Level.WARNING, f"It learned from {n} rows only; {_FEW_ROWS} are few already."))
    elif n and kept * _ROWS_PER_FUNCTION > n:
        findings.append(
            Finding(Level.WARNING, f"It keeps {kept} functions of {n} rows, which is many: more rows would help.")
        )
    if case.tested and len(case.y_test) < _FEW_TEST_ROWS:
        rows = case.counted(len(case.y_test))
        said = f"Its figures are of {rows} only, and rough; 'fit --cv 5' tests on all rows."
        findings.append(Finding(Level.WARNING, said))
    return findings


def _inputs(case: Case) -> list[Finding]:
    """Inputs that make no difference."""
    if len(case.inputs) < 2:
        return []
    found = case.importances
    largest = max(rise for _, rise, _ in found)
    idle = [item.name for item, rise, spread in found if rise <= max(_DISPENSABLE * largest, spread)]
    if largest <= 0.0 or not idle:
        return []
    shown = ", ".join(idle[:_NAMED]) + (f" and {len(idle) - _NAMED} more" if len(idle) > _NAMED else "")
    said = f"Inputs whose shuffling, each alone, costs nothing that these rows could show: {shown}."
    return [Finding(Level.GOOD, said)]


def _paired_low(differences: Array) -> float:
    """Lower end of the 95 % bootstrap interval of a mean difference."""
    drawn = np.random.default_rng(_SEED).integers(len(differences), size=(_RESAMPLES, len(differences)))
    return float(np.percentile(differences[drawn].mean(axis=1), 2.5))


def _losses(p: Array, classes: NDArray[Any], y: NDArray[Any]) -> Array:
    truth = np.sum(np.where(np.asarray(y)[:, None] == np.asarray(classes)[None, :], p, 0.0), axis=1)
    return -np.log(np.maximum(truth, _SMALLEST))
