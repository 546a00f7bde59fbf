"""The section of a report on which columns carry effects, how sure that is, and what each input does to a row."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsebayes.estimators import SparseBayesClassifier, SparseBayesRegressor
from sparsebayes.explain import Attributions, CredibleSet, CredibleSets, Inclusion, attributions, inclusion

from .case import Case, Input
from .svg import bar_list, swarm

Array = NDArray[np.float64]

_BARS = 12
_SWARMS = 8
# Rows that are explained, and rows that stand for inputs that are not known.
_ROWS, _BACKGROUND = 200, 100
_SEED = 0
_CLASSES = 4
_MEMBERS = 6
# Probability below which a column is not worth a bar.
_NEGLIGIBLE = 0.005


@dataclass(frozen=True)
class Explanation:
    """What is known beyond the model itself.

    Attributes
    ----------
    columns : Inclusion or None
        How probable it is that each column carries an effect; None where the training rows are not at hand.
    own : bool
        Whether these are the functions of the model itself, and not of a linear model beside it.
    names : list of str
        Of the columns.
    outputs : list of str
        Of the classes where there are several, else empty.
    attributions : Attributions or None
        Of every input, for rows that the model is judged by; None where its functions have no exact ones.
    refused : str
        Why there are none.
    """

    columns: Inclusion | None
    own: bool
    names: list[str]
    outputs: list[str]
    attributions: Attributions | None
    refused: str = ""

    @property
    def sets(self) -> CredibleSets | None:
        """Sets of columns of which one carries an effect, with probability .95."""
        return None if self.columns is None else self.columns.credible_sets()

    @property
    def probability(self) -> Array:
        """Largest inclusion probability of every column over the classes."""
        return np.zeros(0) if self.columns is None else np.atleast_2d(self.columns.inclusion).max(axis=0)

    @property
    def strength(self) -> Array:
        """Mean absolute attribution of every input, over the rows and the outputs."""
        if self.attributions is None:
            return np.zeros(0)
        size = np.abs(self.attributions.values).mean(axis=0)
        return size if size.ndim == 1 else size.mean(axis=1)

    def in_words(self) -> str:
        """The sets in one line."""
        if self.sets is None:
            return ""
        return "; ".join(self.named(one) for one in self.sets) or "no column for certain"

    def named(self, one: CredibleSet) -> str:
        """A set by the names of its members, and of its class where there are several."""
        return (f"{self.outputs[one.output]}: " if self.outputs else "") + _members(one, self.names)

    def as_data(self) -> dict[str, Any]:
        """Plain data, for machines."""
        found: dict[str, Any] = {"of_the_model_itself": self.own}
        if self.columns is not None and self.sets is not None:
            found["inclusion"] = dict(zip(self.names, self.probability.tolist(), strict=True))
            found["credible_sets"] = [
                {
                    **({"output": self.outputs[one.output]} if self.outputs else {}),
                    "members": {self.names[m]: p for m, p in zip(one.members, one.probabilities, strict=True)},
                    "probability": one.probability,
                    "smallest_correlation": one.purity,
                }
                for one in self.sets
            ]
        if self.attributions is not None:
            names = self.attributions.feature_names
            found["mean_absolute_attribution"] = dict(zip(names, self.strength.tolist(), strict=True))
        return found


def explain_case(case: Case) -> Explanation:
    """Ask which columns carry effects, and what each input does to the rows that the model is judged by."""
    own = case.est.get_params(deep=False).get("basis", "") is None
    columns = None
    if len(case.y):
        est = case.est if own else _of_columns(case).fit(case.X, case.y)
        columns = inclusion(est, case.X, case.y)
    outputs = [str(c) for c in case.est.classes_] if case.classifies and len(case.est.classes_) > 2 else []
    found, refused = None, ""
    X = case.sample(_ROWS)[0]
    rows = case.X if len(case.X) else X
    # At random: rows at equal steps may all be of one weekday.
    some = rows[np.random.default_rng(_SEED).permutation(len(rows))[:_BACKGROUND]]
    groups = {item.name: item.columns for item in case.inputs}
    try:
        found = attributions(case.est, X, some, value="interventional", groups=groups)
    except (TypeError, ValueError, NotImplementedError) as error:
        refused = str(error)
    return Explanation(columns, own, case.names, outputs, found, refused)


def _of_columns(case: Case) -> Any:
    """A linear model of the columns, to stand beside one of other functions."""
    if case.classifies:
        return SparseBayesClassifier()
    return SparseBayesRegressor(likelihood=case.est.likelihood)


def _members(one: CredibleSet, names: list[str]) -> str:
    if len(one) == 1:
        return names[one.members[0]]
    shown = [f"{names[m]} ({p:.0%})" for m, p in zip(one.members[:_MEMBERS], one.probabilities, strict=False)]
    more = f" or {len(one) - _MEMBERS} others" if len(one) > _MEMBERS else ""
    return f"one of {' or '.join(shown)}{more}"


def _sure(probability: float) -> str:
    return "more than 99.9 %" if probability > 0.999 else f"{100.0 * probability:.1f} %"


def inclusion_chart(shown: Explanation) -> tuple[str, str] | None:
    """Bars of the inclusion probabilities: caption and SVG; None where no column has any."""
    order = [m for m in np.argsort(-shown.probability, kind="stable")[:_BARS] if shown.probability[m] >= _NEGLIGIBLE]
    if not order:
        return None
    of = " (the largest over the classes)" if shown.outputs else ""
    caption = f"How probable it is that each column has an effect of its own in a straight line{of}; 1 is certain."
    sizes = shown.probability[order]
    chart = bar_list([shown.names[m] for m in order], sizes, np.zeros(len(order)), "probability", "inclusion", most=1.0)
    return caption, chart


def sets_in_html(shown: Explanation) -> str:
    """The credible sets, one sentence each."""
    sets = shown.sets
    if sets is None:
        return ""
    if not len(sets):
        return (
            "<p>No column, and no set of columns that go together, has an effect with probability 95 %: the data can "
            "be explained in several ways.</p>"
        )
    lines = []
    for one in sets:
        pure = f"; they correlate by {one.purity:.2f} at least, and the data cannot tell which" if len(one) > 1 else ""
        lines.append(f"<li>{escape(shown.named(one))} ({_sure(one.probability)}{pure})</li>")
    return (
        "<p>Effects that are there with a probability of 95 % or more; where several columns could carry one, it is "
        f'named with all of them:</p><ul class="sets">{"".join(lines)}</ul>'
    )


def strength_chart(case: Case, shown: Explanation) -> tuple[str, str]:
    """How much each input moves the predictions, on average over the rows."""
    assert shown.attributions is not None
    order = np.argsort(-shown.strength, kind="stable")[:_BARS]
    spread = shown.attributions.std.mean(axis=0)
    spread = spread if spread.ndim == 1 else spread.mean(axis=1)
    names = [shown.attributions.feature_names[j] for j in order]
    caption = (
        f"What each input does to a prediction, on average over {len(shown.attributions.data)} {case.rows_name}: its "
        "share of the difference from the mean prediction (Shapley values, exact); bar: uncertainty of the weights."
    )
    return caption, bar_list(names, shown.strength[order], spread[order], _unit(case), "mean absolute attribution")


def swarm_charts(case: Case, shown: Explanation) -> list[tuple[str, str]]:
    """Every row's attributions, a chart for each class where there are several."""
    assert shown.attributions is not None
    values = shown.attributions.values
    order = np.argsort(-shown.strength, kind="stable")[:_SWARMS]
    names = [shown.attributions.feature_names[j] for j in order]
    inputs = {item.name: item for item in case.inputs}
    shades = [_shades(inputs[name], shown.attributions.data) for name in names]
    dots = "A dot is a row: to the right, the input raises the prediction; red: its value is high, blue: low"
    caption = f"{dots}{' (grey: a category)' if any(inputs[name].levels for name in names) else ''}."
    if values.ndim == 2:
        chart = swarm(names, [values[:, j] for j in order], shades, _unit(case), "attributions of every row")
        return [(caption, chart)]
    classes = list(shown.attributions.output_names[:_CLASSES])
    # A class without functions is what the others are measured against: all its attributions are zero.
    still = [label for k, label in enumerate(classes) if not np.any(values[:, :, k])]
    none = f" {' and '.join(still)}: no columns of its own, the other classes are measured against it." if still else ""
    return [
        (
            f"{label}. {caption}{none}",
            swarm(names, [values[:, j, k] for j in order], shades, _unit(case), f"attributions to {label}"),
        )
        for k, label in enumerate(classes)
        if label not in still
    ]


def _unit(case: Case) -> str:
    if case.classifies:
        classes = case.est.classes_
        return f"log odds of {classes[1]}" if len(classes) == 2 else "output of the class (log odds)"
    return f"log of {case.target}" if getattr(case.est, "likelihood", "") == "poisson" else case.target


def _shades(item: Input, X: Array) -> Array:
    """Values from the lowest to the highest as 0 to 1, by rank; a category has none."""
    if item.levels:
        return np.full(len(X), np.nan)
    values = X[:, item.columns[0]]
    below = np.array([np.mean(values < v) + 0.5 * np.mean(values == v) for v in values])
    return below if np.ptp(values) > 0.0 else np.full(len(X), 0.5)
