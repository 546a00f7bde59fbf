import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

import sparsebayes
from sparsebayes import RVC, RVR, SparseBayesClassifier, SparseBayesRegressor
from sparsebayes.datasets import load, make_sinc
from sparsebayes.estimators.summary import verdict


@pytest.fixture(scope="module")
def sinc():
    X, y = make_sinc(60, noise=0.1, random_state=0)
    return RVR(gamma=1 / 16).fit(X, y), X, y


class TestSummary:
    def test_says_what_was_learned(self, sinc):
        model = sinc[0]
        text = str(model.summary())
        assert f"{len(model.relevance_)} functions" in text
        assert f"{model.log_marginal_likelihood_:.2f}" in text
        assert model.status_.value in text
        assert all(f"rbf of row {row}" in text for row in model.relevance_)

    def test_weights_are_the_posterior(self, sinc):
        model = sinc[0]
        found = {weight.place: weight for weight in model.summary().weights}
        for k, coef in enumerate(model.coef_):
            assert found[k].mean == coef
            assert found[k].std == pytest.approx(np.sqrt(model.sigma_[k, k]))
            assert found[k].determined == pytest.approx(1 - model.alpha_[k] * model.sigma_[k, k])

    def test_features_by_their_names(self):
        pandas = pytest.importorskip("pandas")
        rng = np.random.default_rng(0)
        X = pandas.DataFrame(rng.normal(size=(50, 3)), columns=["u", "v", "w"])
        model = SparseBayesRegressor().fit(X, 2 * X["v"] + 0.1 * rng.normal(size=50))
        assert model.summary().weights[0].function == "v"

    @pytest.mark.parametrize("est", [SparseBayesClassifier(), RVC(multi_class="ovr"), RVC()], ids=str)
    def test_several_classes(self, est):
        X, y = load("iris", return_X_y=True)
        weights = est.fit(X, y).summary().weights
        assert len(weights) == np.isfinite(est.alpha_).sum()
        assert {weight.output for weight in weights} <= {"0", "1", "2"}

    def test_several_targets(self, sinc):
        _, X, y = sinc
        text = str(RVR(gamma=1 / 16).fit(X, np.column_stack([y, 2 - y])).summary())
        assert "target 0: rbf" in text
        assert "target 1: rbf" in text

    def test_of_several_certificates_the_worst_is_told(self, sinc):
        good = replace(sinc[0].certificate_, left_aside=0)
        assert "No single change of the model raises its evidence by more than 0.001 nats" in verdict([good, good])
        text = verdict([replace(good, kept_gain=0.5), replace(good, excluded_gain=7.25), good])
        assert "would still raise its evidence by 7.25 nats" in text
        assert "; 12 further functions" in verdict([replace(good, left_aside=12), good])
        # A noise that is held is not moved, and what its release would bring is told beside.
        held = replace(good, noise_held=True, noise_gain=3.5)
        assert "releasing it would, by 3.5 nats" in verdict([good, held])

    def test_needs_a_fit(self):
        with pytest.raises(NotFittedError):
            RVR().summary()


class TestNotebooks:
    def test_the_diagram_comes_first_and_the_summary_once_fitted(self, sinc):
        html = sinc[0]._repr_html_()
        assert "sk-" in html
        assert "log evidence" in html
        assert "log evidence" not in RVR()._repr_html_()
        assert "log evidence" in sinc[0]._repr_mimebundle_()["text/html"]
        assert "log evidence" not in make_pipeline(sinc[0])._repr_html_()

    def test_names_are_escaped(self):
        pandas = pytest.importorskip("pandas")
        X = pandas.DataFrame({"<b>": np.arange(20.0), "c": np.arange(20.0) % 3})
        html = SparseBayesRegressor().fit(X, np.arange(20.0)).summary()._repr_html_()
        assert "&lt;b&gt;" in html
        assert "<b>" not in html


class TestLazyImport:
    def test_every_public_name_is_there(self):
        for name in sparsebayes.__all__:
            assert getattr(sparsebayes, name) is not None
            assert name in dir(sparsebayes)

    def test_an_unknown_name_is_an_attribute_error(self):
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            sparsebayes.nothing  # noqa: B018

    def test_importing_imports_no_numerical_library(self):
        code = (
            "import sparsebayes, sparsebayes.cli.main, sys;"
            "print([m for m in ('numpy', 'scipy', 'sklearn', 'matplotlib') if m in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout == "[]\n"
