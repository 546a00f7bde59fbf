import re
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

from sparsebayes import RVC, RVR, SparseBayesClassifier, SparseBayesRegressor
from sparsebayes.basis import RBF
from sparsebayes.datasets import load, make_sinc
from sparsebayes.report import write_report
from sparsebayes.report.case import Case, Input
from sparsebayes.report.charts import _std_of_mean, effect_charts, width_charts
from sparsebayes.report.replay import chapters, play
from sparsebayes.report.search import _reached
from sparsebayes.report.svg import Chart, labelled, ticks

VOID = {"meta", "link", "input"}


class Checker(HTMLParser):
    """Every element that opens closes in its turn, and no name is given twice."""

    def __init__(self):
        super().__init__()
        self.stack, self.ids = [], []

    def handle_starttag(self, tag, attrs):
        self.ids += [value for key, value in attrs if key == "id"]
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.ids += [value for key, value in attrs if key == "id"]

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag


def check(page):
    checker = Checker()
    checker.feed(page)
    assert checker.stack == []
    assert len(set(checker.ids)) == len(checker.ids)
    outside = re.findall(r'(?:src|href)="([^"#]+)"|url\((?!#)', page)
    assert [link for link in outside if link and not link.startswith("data:")] == []
    assert not re.search(r"\b(NaN|nan|inf)\b", re.sub(r"<script.*?</script>", "", page, flags=re.S))


def page_of(tmp_path, est, X, y, **further):
    write_report(tmp_path / "r.html", est.fit(X, y), X, y, **further)
    return (tmp_path / "r.html").read_text(encoding="utf-8")


class TestPage:
    @pytest.mark.parametrize(
        "est",
        [RVR(gamma=1 / 16), SparseBayesRegressor(RBF(4.0)), SparseBayesRegressor()],
        ids=["rvr", "basis", "linear"],
    )
    def test_regression(self, est, tmp_path):
        X, y = make_sinc(50, noise=0.1, random_state=0)
        new, observed = make_sinc(30, noise=0.1, random_state=1)
        page = page_of(tmp_path, est, X, y, X_test=new, y_test=observed, feature_names=["<x> & co"])
        check(page)
        assert "&lt;x&gt; &amp; co" in page
        assert "30 rows that it had not seen" in page
        for name in ("fit", "calibration", "relevance", "search", "certificate", "use"):
            assert f'<section id="{name}"' in page

    @pytest.mark.parametrize("est", [RVC(), RVC(multi_class="ovr"), SparseBayesClassifier()], ids=str)
    def test_classification(self, est, tmp_path):
        X, y = load("iris", return_X_y=True)
        page = page_of(tmp_path, est, X, y)
        check(page)
        assert "150 rows that it learned from" in page
        assert "Predicted classes" in page

    def test_two_classes_on_two_inputs_have_a_map(self, tmp_path):
        data = load("ripley_synth")
        X, y = data.data[data.train_idx], data.target[data.train_idx]
        page = page_of(tmp_path, RVC(gamma=4.0), X, y)
        check(page)
        assert 'class="cell one"' in page
        assert "above it happens more often, below it less often than stated" in page

    def test_an_empty_model(self, tmp_path):
        rng = np.random.default_rng(0)
        page = page_of(tmp_path, SparseBayesRegressor(), rng.normal(size=(30, 2)), np.ones(30))
        check(page)
        assert "No function was kept" in page

    def test_names_must_fit(self, tmp_path):
        X, y = make_sinc(50, noise=0.1, random_state=0)
        with pytest.raises(ValueError, match="2 names; expected 1"):
            page_of(tmp_path, RVR(), X, y, feature_names=["a", "b"])

    def test_is_the_same_every_time(self, tmp_path):
        X, y = make_sinc(50, noise=0.1, random_state=0)
        assert page_of(tmp_path, RVR(), X, y) == page_of(tmp_path, RVR(), X, y)


class TestRowsAndLines:
    def test_rows_that_were_predicted_worst(self, tmp_path):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(120, 2))
        y = X[:, 0] + 0.1 * rng.normal(size=120)
        y[103] += 5.0
        page = page_of(tmp_path, SparseBayesRegressor(), X[:90], y[:90], X_test=X[90:], y_test=y[90:])
        table = page[page.index("The test rows that were predicted worst") :]
        assert table.index('<tr><th scope="row">13</th>') < table.index("</tr><tr>", table.index("<tbody>"))

    def test_classes_that_were_mistaken(self, tmp_path):
        X = np.random.default_rng(0).normal(size=(120, 2))
        y = np.where(X[:, 0] > 0.0, "p", "q")
        y[107] = "q" if X[107, 0] > 0 else "p"
        X[107, 0] *= 10.0
        page = page_of(tmp_path, SparseBayesClassifier(), X[:90], y[:90], X_test=X[90:], y_test=y[90:])
        table = page[page.index("The test rows that were predicted worst") :]
        assert '<tr><th scope="row">17</th>' in table[: table.index("</table>")]

    def test_a_tick_for_every_place_that_has_rows(self):
        rng = np.random.default_rng(0)
        X = np.column_stack([rng.choice([0.0, 1.0, 9.0], 80), rng.normal(size=80)])
        est = SparseBayesRegressor().fit(X, X[:, 0] + 0.1 * rng.normal(size=80))
        case = Case(est, X, X[:, 0], X[:0], X[:0, 0], [Input("a", (0,)), Input("b", (1,))], "y", "t")
        (_, svg), *_ = effect_charts(case, case.inputs)
        (ticks,) = re.findall(r'<path class="bar faint" d="([^"]*)"', svg)
        assert ticks.count("M") == 3

    def test_how_sure_the_line_is(self):
        """The posterior's variance of the mean, without the noise, as widened as all error bars are."""
        X = np.random.default_rng(0).normal(size=(60, 2))
        y = X[:, 0] + 0.3 * np.random.default_rng(1).normal(size=60)
        est = SparseBayesRegressor().fit(X, y)
        case = Case(est, X, y, X[:0], y[:0], [Input("a", (0,)), Input("b", (1,))], "y", "t")
        Phi = est._values(X)
        expected = est.spread_scale_ * np.sqrt(np.sum((Phi @ est.sigma_) * Phi, axis=1))
        np.testing.assert_allclose(_std_of_mean(case, X), expected, rtol=1e-6)


class TestErrorBarsByLength:
    def case(self, rows, wrong=0):
        """The rows with the longest bars are far outside of them."""
        rng = np.random.default_rng(3)
        X, y = make_sinc(60, noise=0.1, random_state=0)
        new = rng.uniform(-10.0, 10.0, (rows, 1))
        est = RVR(gamma=1 / 9).fit(X, y)
        observed = np.array(est.predict(new))
        observed[np.argsort(est.predict(new, return_std=True)[1])[rows - wrong :]] += 10.0
        return Case(est, X, y, new, observed, [Input("a", (0,))], "y", "t")

    @pytest.mark.parametrize(("wrong", "agree"), [(0, 10), (40, 8)])
    def test_tenths_that_agree(self, wrong, agree):
        ((caption, svg),) = width_charts(self.case(200, wrong))
        assert f"{agree} of the 10 tenths agree" in caption
        assert svg.count("<circle") == 10

    def test_few_rows_and_bars_of_one_length_say_nothing(self):
        assert width_charts(self.case(99)) == []
        rng = np.random.default_rng(1)
        X, y = rng.normal(size=(200, 2)), rng.normal(size=200)
        est = SparseBayesRegressor(support="conservative").fit(X, y)
        assert len(est.relevance_) == 0
        case = Case(est, X, y, X, y, [Input("a", (0,)), Input("b", (1,))], "y", "t")
        assert width_charts(case) == []


class TestReplay:
    def test_ends_with_what_was_kept(self):
        X, y = make_sinc(80, noise=0.1, random_state=0)
        est = RVR(gamma=1 / 16).fit(X, y)
        story = chapters(est.history_)
        assert len(story) > 1
        assert all(chapter.begin is not None for chapter in story)
        for chapter, after in zip(story, [*story[1:], None], strict=True):
            part = est.history_[chapter.first : after.first if after else None]
            end = play(part, chapter.begin)
            if part[0].start == est.certificate_.start:
                assert sorted(set(end) - {80}) == est.relevance_.tolist()

    def test_a_search_that_began_with_an_unknown_model_is_played_backwards(self):
        def record(start, added, removed, n_active):
            return SimpleNamespace(start=start, objective=0.0, added=added, removed=removed, n_active=n_active)

        kicked = [record(3, (7,), (1, 2), 4), record(3, (), (), 4), record(3, (1,), (8,), 4)]
        assert chapters(kicked)[0].begin is None
        (found,) = chapters(kicked, 2, [1, 5, 6, 7])
        assert sorted(found.begin) == [1, 2, 5, 6, 8]
        assert sorted(play(kicked, found.begin)) == [1, 5, 6, 7]
        assert chapters(kicked, 2, [1, 5, 6])[0].begin is None

    def test_claims_nothing_that_the_records_do_not_tell(self):
        X, y = make_sinc(50, noise=0.1, random_state=0)
        history = RVR(gamma=1 / 16).fit(X, y).history_
        odd = [replace(record, n_active=record.n_active + 7) for record in history]
        assert all(chapter.begin is None for chapter in chapters(odd))


def test_the_replay_stands_where_the_model_was_reached():
    """Where widths are learned a start is gone on with at other widths, and its last record may be another model's."""

    def record(start, objective):
        return SimpleNamespace(start=start, objective=objective)

    history = [record(0, -9.0), record(1, -8.0), record(1, -5.0), record(2, -6.0), record(1, -3.0), record(3, -7.0)]
    assert _reached(history, SimpleNamespace(start=1, objective=-5.0 + 1e-9)) == 2
    assert _reached(history, SimpleNamespace(start=7, objective=-5.0)) == 5  # not recorded: the last


def test_ticks_have_names_of_their_own():
    assert [text for _, text in labelled(2023.9, 2026.2)] == ["2024", "2024.5", "2025", "2025.5", "2026"]
    assert [text for _, text in labelled(0.0, 1.0)] == ["0", "0.2", "0.4", "0.6", "0.8", "1"]


def test_ticks_are_round_and_inside():
    for low, high in ((0.0, 1.0), (-3.2e-5, 7.7e-5), (990.0, 1010.0), (-1e9, 2e9)):
        found = ticks(low, high)
        assert 3 <= len(found) <= 8
        assert low <= found[0] <= found[-1] <= high


def test_numbers_of_rows_are_whole():
    for most in (1, 2, 3, 7, 11, 19, 260):
        found = ticks(-0.04 * most, 1.04 * most, whole=True)
        assert found[0] == 0.0
        assert 2 <= len(found) <= 7
        assert all(place == round(place) for place in found)


def test_numbers_at_the_edge_are_not_cut():
    """A label stands in the middle of its tick, but never beyond the picture."""
    drawn = Chart([8000.0, 50000.0], [0.0, 1.0], ("income", ""), "t").render()
    place = float(re.search(r'class="tick" x="([\d.]+)" y="[\d.]+">50,000<', drawn)[1])
    assert place + 3.1 * len("50,000") <= 420.0


class TestClasses:
    def test_a_class_without_functions_has_no_empty_chart(self, tmp_path):
        rng = np.random.default_rng(5)
        X = rng.normal(size=(150, 2))
        g = X[:, 0] + 0.3 * rng.normal(size=150)
        page = page_of(
            tmp_path, SparseBayesClassifier(shared_support=False), X, np.digitize(g, [-0.7, 0.7]), explain=True
        )
        section = page[page.index('<section id="explain"') : page.index('<section id="search"')]
        assert "no columns of its own, the other classes are measured against it" in section
        assert section.count("attributions to") == 2

    def test_what_classes_do_not_have_is_not_spoken_of(self, tmp_path):
        X = np.random.default_rng(0).normal(size=(40, 2))
        page = page_of(tmp_path, SparseBayesClassifier(), X, X[:, 0] > 0)
        assert "The fit and its probabilities" in page
        assert "noise level" not in page
        assert "noise level" in page_of(tmp_path, SparseBayesRegressor(), X, X[:, 0] + 0.1 * X[:, 1])

    """Reports on classes: one input, several classes coupled or apart."""

    def data(self):
        X = np.random.default_rng(0).normal(size=(90, 2))
        return X, np.where(X[:, 0] > 0.5, "a", np.where(X[:, 1] > 0, "b", "c"))

    def test_one_input_and_labels_that_are_texts(self, tmp_path):
        x = np.random.default_rng(0).normal(size=(60, 1))
        page = page_of(tmp_path, RVC(gamma=1.0, evidence="laplace"), x, np.where(x[:, 0] > 0, "yes", "no"))
        check(page)
        assert "functions by their place" in page

    @pytest.mark.parametrize("multi_class", ["softmax", "ovr"])
    def test_a_single_step_is_told_and_not_played(self, tmp_path, multi_class):
        page = page_of(tmp_path, RVC(gamma=1.0, multi_class=multi_class), *self.data())
        check(page)
        assert "The search took a single step: a regression on the classes" in page
        assert 'class="step"' not in page

    def test_a_lane_of_functions_for_each_class(self, tmp_path):
        X, y = self.data()
        page = page_of(tmp_path, RVC(gamma=1.0, shared_support=False), X, y)
        check(page)
        search = page[page.index('<section id="search"') : page.index('<section id="certificate"')]
        beside = re.findall(r'class="tick y"[^>]*>([abc])<title>', search)
        assert beside == ["a", "b", "c"]
        names = re.findall(r"<title>([abc]): ", search)
        heights = re.findall(r'<rect data-f="\d+"[^>]* y="([\d.]+)"', search)
        assert len(heights) == len(names)
        assert len(set(zip(names, heights, strict=True))) == len(set(names)) == 3  # a height for each class

    def test_a_search_for_each_class_that_has_a_model_of_its_own(self, tmp_path):
        X, y = self.data()
        est = RVC(gamma=1.0, multi_class="ovr", evidence="laplace")
        page = page_of(tmp_path, est, X, y)
        check(page)
        assert page.count('<div class="search"') == 3
        assert page.count('<div class="search" hidden>') == 2
        assert re.findall(r'<option value="\d">(\w)</option>', page) == ["a", "b", "c"]
        said = re.findall(r'class="step" type="range" min="1" max="(\d+)"', page)
        assert [int(n) for n in said] == [len(history) for history in est.history_]

    def test_effects_have_a_curve_for_each_class(self, tmp_path):
        X, y = self.data()
        page = page_of(tmp_path, RVC(gamma=1.0), X, y, explain=True)
        assert page.count('class="curve c0"') == page.count('class="curve c2"') == 2
        assert '<span class="c0">a</span><span class="c1">b</span><span class="c2">c</span>' in page
        check(page)
