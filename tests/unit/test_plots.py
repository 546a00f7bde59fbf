import sys

import numpy as np
import pytest
from scipy.stats import binomtest

from sparsebayes import RVC, RVR, SparseBayesRegressor
from sparsebayes.datasets import load, make_sinc
from sparsebayes.report import plot_calibration, plot_decision, plot_evidence, plot_fit, plot_relevance
from sparsebayes.report.calibration import CalibrationDisplay
from sparsebayes.report.measures import classification_test, coverage_curve, importances, regression_test, reliability

pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def close():
    pyplot.switch_backend("Agg")
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def sinc():
    X, y = make_sinc(60, noise=0.1, random_state=0)
    return RVR(gamma=1 / 16).fit(X, y), X, y


@pytest.fixture(scope="module")
def ripley():
    data = load("ripley_synth")
    X, y = data.data[data.train_idx], data.target[data.train_idx]
    return RVC(gamma=4.0).fit(X, y), X, y


class TestFit:
    def test_shows_everything(self, sinc):
        est, X, y = sinc
        shown = plot_fit(est, X, y, truth=lambda x: np.sinc(x / np.pi))
        labels = shown.ax_.get_legend_handles_labels()[1]
        assert f"relevance vectors ({len(est.relevance_)})" in labels
        assert len(labels) == 5
        circles = shown.ax_.get_lines()[-1]
        np.testing.assert_array_equal(circles.get_xdata(), X[est.relevance_, 0])
        np.testing.assert_array_equal(circles.get_ydata(), y[est.relevance_])

    def test_a_notebook_shows_no_numbers_below_it(self, sinc):
        est, X, y = sinc
        assert repr(plot_fit(est, X, y)) == "<FitDisplay>"
        assert repr(plot_evidence(est)) == "<EvidenceDisplay>"

    def test_a_model_without_centres(self, sinc):
        _, X, y = sinc
        assert len(plot_fit(SparseBayesRegressor().fit(X, y), X, y).vectors) == 0

    @pytest.mark.parametrize(("X", "y"), [(np.ones((3, 2)), np.ones(3)), (np.ones((3, 1)), np.ones((3, 2)))])
    def test_what_it_cannot_show(self, X, y):
        with pytest.raises(ValueError, match="expected"):
            plot_fit(None, X, y)


class TestOthers:
    def test_decision(self, ripley):
        est, X, y = ripley
        shown = plot_decision(est, X, y)
        np.testing.assert_allclose(shown.probabilities.sum(axis=2), 1.0)
        assert len(shown.vectors) == len(est.relevance_)
        point = np.array([[shown.across[3], shown.up[90]]])
        np.testing.assert_allclose(shown.probabilities[90, 3], est.predict_proba(point)[0])
        with pytest.raises(ValueError, match="2 inputs"):
            plot_decision(est, np.ones((3, 1)), np.ones(3))

    def test_the_plot_of_the_other_task_is_named(self, sinc, ripley):
        with pytest.raises(TypeError, match="RVR is none; plot_fit"):
            plot_decision(sinc[0], np.ones((3, 2)), np.ones(3))
        with pytest.raises(TypeError, match="RVC is none; plot_decision"):
            plot_fit(ripley[0], np.ones((3, 1)), np.ones(3))

    def test_relevance_orders_terms_by_their_size(self, sinc):
        est, X, _ = sinc
        shown = plot_relevance(est, X, n_shown=3)
        assert len(shown.names) == 3
        assert np.all(np.diff(shown.sizes) <= 0)
        values = np.exp(-((X - X[est.relevance_].T) ** 2) / 16)
        sizes = np.std(values * est.coef_, axis=0)
        assert shown.sizes[0] == pytest.approx(np.max(sizes))
        # The bar is the size of the same term with one standard deviation of its weight for the weight.
        bars = np.std(values * np.sqrt(np.diag(est.sigma_)[: len(est.coef_)]), axis=0)
        np.testing.assert_allclose(shown.uncertainties, bars[np.argsort(-sizes)[:3]], rtol=1e-9)

    def test_evidence_marks_the_start_that_was_kept(self, sinc):
        est = sinc[0]
        shown = plot_evidence(est)
        assert shown.objective[-1] == est.history_[-1].objective
        kept = [text for text in shown.ax_.get_legend_handles_labels()[1] if "kept" in text]
        assert kept == [f"start {est.certificate_.start}, kept"]

    def test_a_start_that_is_gone_on_with_is_no_line_across_the_others(self):
        est = RVR(gamma=1 / 16).fit(*make_sinc(100, noise=0.1, random_state=0))
        starts = np.array([record.start for record in est.history_])
        assert np.any(np.diff(starts) < 0)
        for line, start in zip(plot_evidence(est).ax_.get_lines(), dict.fromkeys(starts), strict=True):
            np.testing.assert_array_equal(np.isnan(line.get_ydata()), starts != start)

    def test_a_search_of_one_record_is_seen(self, ripley):
        est = ripley[0]
        assert len(est.history_) == 1
        assert plot_evidence(est).ax_.get_lines()[0].get_marker() == "o"

    def test_calibration(self, sinc, ripley):
        for est, X, y in (sinc, ripley):
            shown = plot_calibration(est, X, y)
            assert np.all((shown.low <= shown.observed) & (shown.observed <= shown.high))

    def test_calibration_of_honest_models_is_near_the_diagonal(self, sinc):
        """Of new rows; its bars are Wilson's of these many rows."""
        X, y = make_sinc(1000, noise=0.1, random_state=1)
        shown = CalibrationDisplay.from_estimator(sinc[0], X, y)
        np.testing.assert_allclose(shown.observed, shown.stated, atol=0.1)
        expected = [binomtest(round(share * 1000), 1000).proportion_ci(method="wilson") for share in shown.observed]
        np.testing.assert_allclose(shown.low, [ends.low for ends in expected], atol=1e-9)
        np.testing.assert_allclose(shown.high, [ends.high for ends in expected], atol=1e-9)

    @pytest.mark.parametrize("count", [2, 3])
    def test_calibration_of_probabilities(self, count):
        rng, classes = np.random.default_rng(0), np.array(["a", "b", "c"])[:count]
        p = rng.dirichlet(np.array([1.0, 2.0, 0.5])[:count], 20_000)
        labels = classes[np.sum(rng.random(20_000)[:, None] > np.cumsum(p, axis=1), axis=1)]
        shown = CalibrationDisplay.from_predictions(labels, p, classes)
        np.testing.assert_allclose(shown.observed, shown.stated, atol=0.06)
        # Of two classes the second one's probability, of several that of the one that is predicted.
        assert shown.stated[0] < 0.1 if count == 2 else shown.stated[0] > 1.0 / 3.0
        assert shown.stated[-1] > 0.9

    def test_every_plot_takes_axes(self, sinc, ripley):
        ax = pyplot.subplots()[1]
        for plot, arguments in (
            (plot_fit, sinc),
            (plot_decision, ripley),
            (plot_relevance, sinc[:2]),
            (plot_evidence, sinc[:1]),
            (plot_calibration, sinc),
        ):
            shown = plot(*arguments, ax=ax)
            assert shown.ax_ is ax
            assert shown.figure_ is ax.figure

    def test_without_matplotlib(self, monkeypatch, sinc):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        with pytest.raises(ImportError, match="sparsebayes\\[plot\\]"):
            plot_evidence(sinc[0])


class TestMeasures:
    def test_regression(self):
        rng = np.random.default_rng(0)
        y = rng.normal(size=4000)
        found = regression_test(y, np.zeros(4000), np.ones(4000))
        assert found.low < found.rmse < found.high
        assert found.rmse == pytest.approx(1.0, abs=0.05)
        assert found.coverage == pytest.approx(0.95, abs=0.015)
        assert found.log_density == pytest.approx(-0.5 * np.log(2 * np.pi) - 0.5, abs=0.05)
        assert regression_test(y, y, np.ones(4000)).r2 == 1.0

    def test_coverage_finds_error_bars_that_are_too_small(self):
        y = np.random.default_rng(0).normal(size=4000)
        levels = np.array([0.5, 0.9])
        np.testing.assert_allclose(coverage_curve(y, 0 * y, 0 * y + 1, levels), levels, atol=0.03)
        assert np.all(coverage_curve(y, 0 * y, 0 * y + 0.5, levels) < levels - 0.1)

    def test_classification(self):
        p = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
        found = classification_test(["a", "b", "b"], p, ["a", "b"])
        assert found.accuracy == pytest.approx(2 / 3)
        assert found.low < found.accuracy < found.high
        assert found.log_loss == pytest.approx(-np.log([0.9, 0.8, 0.4]).mean())

    def test_reliability_leaves_empty_bins_out(self):
        found = reliability([0.05, 0.05, 1.0], [0, 1, 1])
        np.testing.assert_allclose(found.stated, [0.05, 1.0])
        np.testing.assert_allclose(found.observed, [0.5, 1.0])
        assert found.n.tolist() == [2, 1]

    def test_only_inputs_that_matter_are_important(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(100, 3))
        est = SparseBayesRegressor().fit(X, X[:, 0] + X[:, 1] + 0.1 * rng.normal(size=100))
        rises = importances(est, X, X[:, 0] + X[:, 1], [(0, 1), (2,)]).mean(axis=1)
        assert rises[0] > 1.0
        assert abs(rises[1]) < 0.05
