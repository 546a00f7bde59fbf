"""The report: one HTML file that needs no network, in light, dark and on paper."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sparsebayes._version import __version__
from sparsebayes.atomic import write_atomically
from sparsebayes.estimators.summary import converged, listed
from sparsebayes.estimators.uncertainty import ErrorBars
from sparsebayes.inference import Certificate, Status

from .case import Case, Input
from .charts import (
    calibration_chart,
    class_key,
    effect_charts,
    fit_charts,
    importance_chart,
    mean_is_banded,
    residual_chart,
    several_classes,
    term_chart,
    width_charts,
)
from .explanation import Explanation, explain_case, inclusion_chart, sets_in_html, strength_chart, swarm_charts
from .measures import ClassificationTest, figure
from .search import Search, searches_of
from .svg import number
from .verdict import Verdict, judge_case

_VECTORS_SHOWN = 25
_INPUTS_SHOWN = 6
# Rows that are shown as those predicted worst, and the inputs beside them.
_WORST, _BESIDE = 5, 3
# Where a regression on the classes chose the functions, there is one record, and nothing to play.
_IN_ONE_STEP = (
    "The search took a single step: a regression on the classes chose the functions, and the probabilities of the "
    "classes decided how strongly all of them together are held back."
)
# What few readers ask for, and the length of a text that has a wide card.
_TECHNICAL = ("error bars", "log evidence", "status", "certificate", "time")
_WIDE = 70

_Figure = tuple[str, str]


def write_report(
    path: str | os.PathLike[str],
    est: Any,
    X: ArrayLike,
    y: ArrayLike,
    *,
    X_test: ArrayLike | None = None,
    y_test: ArrayLike | None = None,
    feature_names: list[str] | None = None,
    target: str = "y",
    title: str | None = None,
    explain: bool = False,
) -> None:
    """Write a report on a fitted estimator: one HTML file to send on.

    Parameters
    ----------
    path : path-like
        The file to write; replaced if it exists, and written whole or not at all.
    est : estimator
        Fitted, of one target.
    X, y : array-like
        What it was fitted to.
    X_test, y_test : array-like, optional
        Rows that it has not seen, to judge it by.
    feature_names : list of str, optional
        Names of the columns of X.
    target : str
        Name of the target.
    title : str, optional
        Of the page.
    explain : bool, default=False
        Also say which columns carry effects and how sure that is, and what each input does to each prediction.
    """
    X = np.asarray(X, dtype=np.float64)
    names = feature_names or [str(name) for name in getattr(est, "feature_names_in_", [])]
    if names and len(names) != X.shape[1]:
        raise ValueError(f"feature_names has {len(names)} names; expected {X.shape[1]}, one for each column of X")
    inputs = [Input(names[k] if names else f"x{k}", (k,)) for k in range(X.shape[1])]
    held = np.empty((0, X.shape[1])) if X_test is None else np.asarray(X_test, dtype=np.float64)
    truth = np.asarray(y)[:0] if y_test is None else np.asarray(y_test)
    heading = title or f"{type(est).__name__} of {target}"
    case = Case(est._as_fitted, X, np.asarray(y), held, truth, inputs, target, heading, facts=dict(est.summary().facts))
    if explain:
        case = replace(case, explanation=explain_case(case))
    write_atomically(path, render_report(case).encode("utf-8"))


def render_report(case: Case) -> str:
    """Return the page of a case."""
    assets = files("sparsebayes.report") / "assets"
    style, script = ((assets / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    found = case.importances
    sections = [
        _fit(case),
        _calibration(case),
        _relevance(case, found),
        _explanation(case),
        _search(case),
        _certificate(case),
        _use(case),
    ]
    # The policy lets the page load nothing: what it shows is in it.
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
        "script-src 'unsafe-inline'; img-src data:\">"
        '<link rel="icon" href="data:,">'
        f"<title>{escape(case.title)}</title><style>{style}</style></head><body>"
        f'<a class="skip" href="#main">Skip to the content</a>{_head(case)}<main id="main">{"".join(sections)}</main>'
        f"<footer>Made with sparsebayes {escape(__version__)}.</footer><script>{script}</script></body></html>\n"
    )


def _verdict(verdict: Verdict) -> str:
    """The verdict in words, with a mark that does not depend on seeing colours."""
    items = "".join(
        f'<li class="{finding.level.name.lower()}">{escape(finding.text)}</li>' for finding in verdict.findings
    )
    level = verdict.level.name.lower()
    return f'<div id="verdict" class="verdict {level}"><p>{escape(verdict.headline)}</p><ul>{items}</ul></div>'


def _head(case: Case) -> str:
    plain = _facts({name: text for name, text in case.facts.items() if name not in _TECHNICAL})
    technical = _facts({name: text for name, text in case.facts.items() if name in _TECHNICAL})
    folded = f"<details><summary>For the technically minded: the search</summary>{technical}</details>"
    notes = "".join(f"<li>{escape(note)}</li>" for note in case.notes)
    return (
        f"<header><h1>{escape(case.title)}</h1>{_verdict(case.verdict or judge_case(case))}"
        f"<p class='lead'>{escape(_lead(case))}</p>{plain}"
        f"{f'<ul class=notes>{notes}</ul>' if notes else ''}{folded if technical else ''}</header>"
    )


def _facts(facts: dict[str, str]) -> str:
    cards = "".join(
        f"<div{' class=wide' if len(text) > _WIDE else ''}><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>"
        for name, text in facts.items()
    )
    return f"<dl>{cards}</dl>" if cards else ""


def _lead(case: Case) -> str:
    kept, result = len(case.est.relevance_), case.result
    rows = f"{result.n} rows that it had not seen" if case.tested else f"the {result.n} rows that it learned from"
    functions = f"{kept} function{'s' * (kept != 1)}"
    if isinstance(result, ClassificationTest):
        return (
            f"The model keeps {functions}. On {rows} it is right in {result.accuracy:.1%} of the cases (95 % interval "
            f"{result.low:.1%} to {result.high:.1%}); always naming the most frequent class is right in "
            f"{result.baseline:.1%}."
        )
    explained = "" if np.isnan(result.r2) else f"it explains {result.r2:.0%} of the variance, "
    return (
        f"The model keeps {functions}. On {rows} its root mean square error is {figure(result.rmse)} (95 % interval "
        f"{figure(result.low)} to {figure(result.high)}), {explained}and "
        f"{result.coverage:.0%} of the observations lie within its 95 % error bars."
    )


def _section(name: str, title: str, *content: str) -> str:
    heading = f'<h2 id="{name}-title">{title}</h2>'
    return f'<section id="{name}" aria-labelledby="{name}-title">{heading}{"".join(content)}</section>'


def _figures(figures: Iterable[_Figure]) -> str:
    drawn = "".join(f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>" for caption, svg in figures)
    return f'<div class="grid">{drawn}</div>'


def _fit(case: Case) -> str:
    title = "The fit and its probabilities" if case.classifies else "The fit and its error bars"
    return _section("fit", title, _figures(fit_charts(case)))


def _calibration(case: Case) -> str:
    if case.classifies:
        figures = _figures([calibration_chart(case)])
        return _section("calibration", "Errors and calibration", figures, _confusion(case), _worst(case))
    figures = _figures([residual_chart(case), calibration_chart(case), *width_charts(case)])
    return _section("calibration", "Residuals and calibration", _error_bars(case), figures, _worst(case))


def _worst(case: Case) -> str:
    """The rows that were predicted worst, with the inputs that matter most."""
    X, y = case.judged
    if case.classifies:
        p, classes = case.est.predict_proba(X), case.est.classes_
        truth = np.sum(np.where(np.asarray(y)[:, None] == classes[None, :], p, 0.0), axis=1)
        worst = [k for k in np.argsort(truth, kind="stable")[:_WORST] if truth[k] < p[k].max()]
        head = ["true class", "predicted", "probability of the true class"]
        cells = [[str(y[k]), str(classes[np.argmax(p[k])]), f"{truth[k]:.1%}"] for k in worst]
    else:
        mean, std = case.est.predict(X, return_std=True)
        errors = np.asarray(y, dtype=np.float64) - mean
        worst = np.argsort(-np.abs(errors), kind="stable")[:_WORST].tolist()
        head = [f"observed {case.target}", "predicted", "difference / std"]
        cells = [
            [number(float(y[k])), number(float(mean[k])), f"{errors[k] / std[k]:+.1f}".replace("-", "−")] for k in worst
        ]
    if not cells:
        return ""
    shown = [item for item, _, _ in case.importances[:_BESIDE]] if len(case.inputs) > 1 else case.inputs
    names = ["row", *head, *(item.name for item in shown)]
    rows = "".join(
        f'<tr><th scope="row">{case.judged_numbers[k]}</th>'
        + "".join(f"<td>{escape(text)}</td>" for text in (*texts, *(item.text(X[k]) for item in shown)))
        + "</tr>"
        for k, texts in zip(worst, cells, strict=True)
    )
    columns = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    which = "that matter most" if len(shown) < len(case.inputs) else "of the model"
    return _table(
        f"<tr>{columns}</tr>", rows, f"The {case.rows_name} that were predicted worst, with the inputs {which}"
    )


def _error_bars(case: Case) -> str:
    """What the error bars were multiplied by, and why, in a sentence."""
    if not isinstance(case.est, ErrorBars) or case.est.std_scale_ == 1.0:
        return ""
    return (
        f"<p>The error bars are typically {float(case.est.std_scale_):.2f} times those of the posterior: learned again "
        "without some of its rows, the model needed bars of that length for 95 % of them to lie inside.</p>"
    )


def _confusion(case: Case) -> str:
    X, y = case.judged
    predicted = case.est.predict(X)
    classes = case.est.classes_
    head = "".join(f'<th scope="col">{escape(str(label))}</th>' for label in classes)
    rows = "".join(
        f'<tr><th scope="row">{escape(str(truth))}</th>'
        + "".join(
            f"<td{' class=right' if truth == label else ''}>{int(np.sum((y == truth) & (predicted == label)))}</td>"
            for label in classes
        )
        + "</tr>"
        for truth in classes
    )
    return _table(f"<tr><th>true class</th>{head}</tr>", rows, f"Predicted classes (columns) of the {case.rows_name}")


def _table(head: str, rows: str, caption: str) -> str:
    # The wrapper scrolls sideways on narrow screens, and must then be reachable by keyboard.
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption, quote=True)}"><table>'
        f"<caption>{escape(caption)}</caption><thead>{head}</thead><tbody>{rows}</tbody></table></div>"
    )


def _relevance(case: Case, found: list[tuple[Input, float, float]]) -> str:
    figures = [
        (f"Which inputs matter: what shuffling each costs on the {case.rows_name}.", importance_chart(case, found)),
    ]
    ranked = [item for item, _, _ in found]
    band = "" if case.classifies else " The band holds 95 % of single observations."
    if not case.classifies and mean_is_banded(case):
        band = (
            " The wide band holds 95 % of single observations; the narrow one says how sure the line itself is (95 %)."
        )
    numeric = {item.name for item in ranked if not item.levels}
    ticks = " Ticks at the foot: the rows."
    effects = [
        (f"Effect of {name}, all else at its median.{band}{ticks if name in numeric else ''}", svg)
        for name, svg in effect_charts(case, ranked)
    ]
    key = _key(class_key(case), len(case.est.classes_)) if several_classes(case) and effects else ""
    return _section(
        "relevance", "What matters, and by how much", key, _figures([*figures, *effects]), _functions(case, ranked)
    )


def _key(classes: list[str], count: int) -> str:
    """Which colour is which class."""
    named = "".join(f'<span class="c{k}">{escape(label)}</span>' for k, label in enumerate(classes))
    rest = f" ({count - len(classes)} rarer classes are not drawn)" if count > len(classes) else ""
    return f'<p class="key">Classes in the charts of effects: {named}{rest}</p>'


def _explanation(case: Case) -> str:
    """Which columns carry effects and how sure that is, and what each input does to each prediction."""
    shown = case.explanation
    if not isinstance(shown, Explanation):
        return ""
    parts = []
    bars = inclusion_chart(shown)
    if shown.columns is not None:
        beside = (
            "The model is a sum of columns, and these are its own."
            if shown.own
            else "The model has curves; the sets and probabilities are of straight lines beside it. An input that acts "
            "in a curve, or only together with others, can be low here and still matter above."
        )
        parts += [f"<p>{beside}</p>", sets_in_html(shown)]
    figures = [] if bars is None else [bars]
    if shown.attributions is not None:
        figures += [strength_chart(case, shown), *swarm_charts(case, shown)]
    else:
        parts.append(f"<p>What each input does to a prediction has no exact answer here: {escape(shown.refused)}</p>")
    return _section("explain", "Which columns, and how sure", *parts, _figures(figures))


def _functions(case: Case, ranked: list[Input]) -> str:
    """The kept functions, folded away."""
    if not case.terms:
        return _vectors(case, ranked)
    caption = "Which functions matter: how much each moves the prediction; bar: uncertainty of its weight."
    return (
        "<details><summary>For the technically minded: the kept functions</summary>"
        f"{_figures([(caption, term_chart(case))])}{_vectors(case, ranked)}</details>"
    )


def _vectors(case: Case, ranked: list[Input]) -> str:
    """The kept functions, with their centres in the inputs' own units."""
    terms, count = case.terms[:_VECTORS_SHOWN], len(case.terms)
    if not terms:
        return "<p>No function was kept: the model predicts the same for every row.</p>"
    centres = np.asarray(getattr(case.est, "relevance_vectors_", np.empty((0, len(case.names)))))
    shown = ranked[:_INPUTS_SHOWN] if len(centres) and np.all(np.isfinite(centres)) else []
    head = "".join(f'<th scope="col">{escape(item.name)}</th>' for item in shown)
    rows = "".join(
        f'<tr><th scope="row">{escape(f"{w.output}: {w.function}" if w.output else w.function)}</th>'
        f"<td>{number(w.mean)}</td><td>{number(w.std, 2)}</td><td>{number(size, 3)}</td>"
        + "".join(f"<td>{escape(item.text(centres[w.place]))}</td>" for item in shown)
        + "</tr>"
        for w, size in terms
    )
    caption = f"The kept functions{f' ({len(terms)} largest of {count})' if count > len(terms) else ''}" + (
        ", and where they are centred" if shown else ""
    )
    columns = '<th scope="col">weight</th><th scope="col">± std</th><th scope="col">size</th>'
    return _table(f"<tr><th>function</th>{columns}{head}</tr>", rows, caption)


def _search(case: Case) -> str:
    searches = searches_of(case)
    if not searches:
        return ""
    by_regression = all(status is Status.INDICATORS for status in listed(case.est.status_))
    if by_regression and all(search.n_records == 1 for search in searches):
        return _section("search", "How the model was found", f"<p>{_IN_ONE_STEP}</p>")
    intro = (
        "<p>The search adds a function, deletes one, or re-estimates how strongly one is held back, and each move "
        "raises the objective. Drag the slider, or use the arrow keys, to play it again. A line that begins anew is a "
        "new start. The highest one is kept, unless it uses up many more rows than a lower one without predicting rows "
        "left out better. The intercept counts as a function here.</p>"
    )
    return _section(
        "search",
        "How the model was found",
        intro,
        _chooser(searches),
        *(_replay(k, one) for k, one in enumerate(searches)),
    )


def _chooser(searches: list[Search]) -> str:
    """Which of several searches is shown."""
    if len(searches) == 1:
        return ""
    options = "".join(f'<option value="{k}">{escape(one.label)}</option>' for k, one in enumerate(searches))
    return (
        '<div class="controls"><label for="which">Each class has a model of its own; shown is that of</label>'
        f'<select id="which">{options}</select></div>'
    )


def _replay(place: int, search: Search) -> str:
    """One search, with what it takes to play it; only the first is shown before another is chosen."""
    mark = f"-{place}" if place else ""
    controls = (
        f'<div class="controls"><button id="play{mark}" class="play" type="button" aria-pressed="false">Play</button>'
        f'<label for="step{mark}">Record</label>'
        f'<input id="step{mark}" class="step" type="range" min="1" max="{search.n_records}" value="{search.kept}">'
        f'</div><p id="said{mark}" class="said" role="status" aria-live="polite"></p>'
    )
    figures = _figures(
        [
            ("The objective. The marker is where the slider stands.", search.evidence),
            ("Functions: filled are those in the model at that moment.", search.functions),
        ]
    )
    data = f'<script type="application/json">{search.data}</script>'
    return f'<div class="search"{" hidden" if place else ""}>{controls}{figures}{data}</div>'


def _certificate(case: Case) -> str:
    noise = "noise_variance_" in vars(case.est)
    items = "".join(f"<li>{escape(line)}</li>" for line in certificate_in_words(listed(case.est.certificate_), noise))
    status = " ".join(dict.fromkeys(status.value for status in listed(case.est.status_)))
    degenerate = any(certificate.noise_degenerate for certificate in listed(case.est.certificate_))
    mark = "good" if converged(case.est) and not degenerate else "bad"
    return _section("certificate", "The certificate", f'<p class="{mark}">{escape(status)}</p><ul>{items}</ul>')


def certificate_in_words(certificates: list[Certificate], noise: bool = True) -> list[str]:
    """What the certificates of a model say, for someone who has not read the papers; of classes, without noise."""

    def worst(name: str) -> float:
        return max(float(getattr(certificate, name)) for certificate in certificates)

    tol = worst("tol")
    apart = ", that of a noise held where it would have collapsed aside" if worst("noise_held") else ""
    lines = [
        "After the search, everything was computed again from the data alone.",
        f"Adding the best function that was left out would raise the objective by {worst('excluded_gain'):.2g} nats.",
        f"Changing or deleting a function that was kept would raise it by at most {worst('kept_gain'):.2g} nats.",
        *([f"Another noise level would raise it by {worst('noise_gain'):.2g} nats."] if noise else []),
        f"The search counts as converged when none of these is above {tol:g} nats{apart} "
        f"(a factor of {np.exp(tol):.4f} in how well the model explains the data).",
        f"The equations are conditioned at {worst('condition_number'):.2g}: about "
        f"{max(0, round(15.65 - np.log10(max(worst('condition_number'), 1.0))))} decimal digits can be trusted.",
    ]
    if any(certificate.noise_degenerate for certificate in certificates):
        lines.append("The data do not determine the noise: the functions can reproduce the targets almost exactly.")
    lines.append("The maximum is a local one: a very different set of functions might explain the data better still.")
    return lines


def _use(case: Case) -> str:
    if case.model_file is None:
        code = 'import sparsebayes\nsparsebayes.save(model, "my.model")\nmodel = sparsebayes.load("my.model")'
        return _section("use", "How to keep the model", f"<pre tabindex=0>{escape(code)}</pre>")
    name = os.path.basename(case.model_file)
    shell = f"sparsebayes predict {name} new.csv --out predictions.csv"
    python = (
        f"import sparsebayes\n\nmodel = sparsebayes.load({name!r})\n"
        "predictions = model.predict(pandas_frame)  # or a dict of columns"
    )
    text = "<p>The model file is data, never code: it is safe to send and to open. From a shell:</p>"
    written = (
        "the most probable class and the probability of each"
        if case.classifies
        else "the prediction, its standard deviation, and the ends of the interval that holds 95 % of observations: "
        "one in forty is below the lower end"
    )
    columns = (
        f"<p>The new file has a column for each input, in the units of the table; the predictions have {written}.</p>"
    )
    return _section(
        "use",
        "How to use the model",
        f"{text}<pre tabindex=0>{escape(shell)}</pre>{columns}<p>From Python:</p>"
        f"<pre tabindex=0>{escape(python)}</pre>",
    )
