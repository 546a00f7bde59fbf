"""What a fitted model says of itself: ``summary()``, as text and as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from sparsebayes.estimators.names import name_functions
from sparsebayes.inference import Certificate, Status
from sparsebayes.posterior import ClassPosterior

_SHOWN = 20


@dataclass(frozen=True)
class Weight:
    r"""One kept weight.

    Attributes
    ----------
    output : str
        Target or class that it feeds; empty where there is one only.
    function : str
        What it multiplies.
    mean, std : float
        Its posterior.
    determined : float
        :math:`\gamma = 1 - \alpha\Sigma_{mm}`: 1 where the data determine it, 0 where the prior does.
    place : int
        Number of its function among the kept ones.
    """

    output: str
    function: str
    mean: float
    std: float
    determined: float
    place: int


@dataclass(frozen=True)
class Summary:
    """A fitted model in a few lines; print it, or let a notebook show it.

    Attributes
    ----------
    title : str
        Class of the estimator.
    facts : dict of str to str
        What was learned, line by line.
    weights : list of Weight
        The kept weights, the best determined first.
    """

    title: str
    facts: dict[str, str]
    weights: list[Weight]

    def __str__(self) -> str:
        width = max(map(len, self.facts))
        lines = [self.title, "=" * len(self.title)]
        lines += [f"{label:<{width}}  {text}" for label, text in self.facts.items()]
        if self.weights:
            shown = self.weights[:_SHOWN]
            name = max(len("function"), *(len(self._name(weight)) for weight in shown))
            lines += ["", f"{'function':<{name}}  {'weight':>11}  {'± std':>10}  determined"]
            lines += [
                f"{self._name(weight):<{name}}  {weight.mean:>11.4g}  {weight.std:>10.3g}  {weight.determined:>9.0%}"
                for weight in shown
            ]
            if len(self.weights) > _SHOWN:
                lines.append(f"… and {len(self.weights) - _SHOWN} more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        facts = "".join(
            f"<tr><th style='text-align:left'>{escape(label)}</th><td style='text-align:left'>{escape(text)}</td></tr>"
            for label, text in self.facts.items()
        )
        weights = "".join(
            f"<tr><td style='text-align:left'>{escape(self._name(weight))}</td><td>{weight.mean:.4g}</td>"
            f"<td>{weight.std:.3g}</td><td>{weight.determined:.0%}</td></tr>"
            for weight in self.weights[:_SHOWN]
        )
        more = len(self.weights) - _SHOWN
        note = f"<p>… and {more} more</p>" if more > 0 else ""
        head = "<tr><th>function</th><th>weight</th><th>± std</th><th>determined</th></tr>"
        table = f"<table>{head}{weights}</table>{note}" if weights else ""
        return f"<div><strong>{escape(self.title)}</strong><table>{facts}</table>{table}</div>"

    @staticmethod
    def _name(weight: Weight) -> str:
        return f"{weight.output}: {weight.function}" if weight.output else weight.function


class Described:
    """Gives an estimator ``summary()`` and, once fitted, shows it in notebooks below scikit-learn's diagram."""

    def summary(self) -> Summary:
        """Return what was learned: print it, or let a notebook show it."""
        return summarise(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle and "relevance_" in vars(self):
            bundle["text/html"] += self.summary()._repr_html_()
        return bundle

    @property
    def _repr_html_(self) -> Any:
        return lambda: self._repr_mimebundle_().get("text/html", "")


def summarise(est: Any) -> Summary:
    """Summary of a fitted estimator."""
    check_is_fitted(est)
    certificates, statuses = listed(est.certificate_), listed(est.status_)
    facts = {"kept": f"{len(est.relevance_)} functions" if len(est.relevance_) != 1 else "1 function"}
    if is_classifier(est):
        facts["classes"] = ", ".join(map(str, est.classes_))
    elif hasattr(est, "noise_variance_"):  # counts have none
        facts["noise (std)"] = ", ".join(f"{sd:.4g}" for sd in np.sqrt(np.atleast_1d(est.noise_variance_)))
    facts["log evidence"] = f"{est.log_marginal_likelihood_:.2f}"
    facts |= kernel_gain(est)
    facts["moves"] = str(est.n_iter_)
    facts["status"] = " ".join(dict.fromkeys(status.value for status in statuses))
    facts["certificate"] = verdict(certificates)
    return Summary(type(est).__name__, facts, sorted(weights(est), key=lambda w: -abs(w.mean) / w.std))


def listed(value: Any) -> list[Any]:
    """One thing, or one for each of several models, as a list."""
    return value if isinstance(value, list) else [value]


def kernel_gain(est: Any) -> dict[str, str]:
    """A line on what learned kernel parameters gained over those they began with, where there are any."""
    gain: dict[str, float] | None = getattr(est, "kernel_gain_", None)
    if gain is None:
        return {}
    told = [f"{gain['evidence']:+.1f} nats of evidence"] if "evidence" in gain else []
    if "density" in gain:
        told.append(f"{gain['density']:+.3f} ± {gain['density_error']:.3f} nats for each row left out")
    kept = not any(gain.values())
    return {"gain by learning": "none: no other kernel was better than that of the start" if kept else "; ".join(told)}


def converged(est: Any) -> bool:
    """Whether every search of a fitted estimator ended at a local maximum."""
    statuses: list[Status] = listed(est.status_)
    return all(status.converged for status in statuses)


def verdict(certificates: list[Certificate]) -> str:
    """What the certificates say, in a sentence."""
    if not all(c.converged for c in certificates):
        gain = max(c.gain for c in certificates)
        return f"A single change of the model would still raise its evidence by {gain:.3g} nats."
    tol = max(c.tol for c in certificates)
    aside = max(c.left_aside for c in certificates)
    among = f"; {aside} further functions of the dictionary were no candidates" if aside else ""
    released = max((c.noise_gain for c in certificates if c.noise_held), default=0.0)
    held = f" at the noise that is held; releasing it would, by {released:.3g} nats" if released > tol else ""
    return (
        f"No single change of the model raises its evidence by more than {tol:g} nats{held} (checked on the "
        f"data{among})."
    )


def function_names(est: Any, features: list[str] | None = None, rows: Sequence[int] | None = None) -> list[str]:
    """Names of the kept functions in the order of ``relevance_``, the intercept last where one is kept.

    Parameters
    ----------
    est : estimator
        Fitted.
    features : list of str, optional
        Names of the columns of X.
    rows : sequence of int, optional
        What the training rows are called; their numbers, from 0, by default.
    """
    if features is None:
        features = [str(name) for name in getattr(est, "feature_names_in_", [])]
    count = len(est.relevance_)
    names = name_functions(est.relevance_functions_[:count], est._centred_on, features, rows)
    return names + ["intercept"] * (len(est.relevance_functions_) - count)


def weights(est: Any, features: list[str] | None = None, rows: Sequence[int] | None = None) -> list[Weight]:
    """Posterior of every kept weight; names as in :func:`function_names`."""
    names = function_names(est, features, rows)
    alpha = np.atleast_2d(est.alpha_)
    found = []
    for k, posterior in enumerate(est._posteriors):
        joint = isinstance(posterior, ClassPosterior) and posterior.n_outputs > 1
        outputs = posterior.outputs if joint else np.full(len(posterior.functions), k)
        for j, (m, output) in enumerate(zip(posterior.functions, outputs, strict=True)):
            variance = float(posterior.covariance[j, j])
            label = "" if len(alpha) == 1 else str(est.classes_[output]) if is_classifier(est) else f"target {output}"
            determined = 1.0 - float(alpha[output, m]) * variance
            found.append(
                Weight(label, names[m], float(posterior.mean[j]), float(np.sqrt(variance)), determined, int(m))
            )
    return found
