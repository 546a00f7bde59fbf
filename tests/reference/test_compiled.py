"""The compiled settling of a Gaussian model against the one in NumPy that it repeats."""

import importlib.util
import inspect
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from exploring import examples
from hypothesis import given
from hypothesis import strategies as st

from sparsebayes import RVR
from sparsebayes.datasets import make_sinc
from sparsebayes.design import DenseDesign
from sparsebayes.inference.models import compiled, gaussian
from sparsebayes.inference.models.gaussian import GaussianModel, Gram, Posterior, Products
from sparsebayes.inference.models.problem import GaussianProblem

ROOT = Path(__file__).parents[2]


def hook():
    """The module that compiles when the package is installed."""
    specification = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Compiled from the source as it is, whatever is installed."""
    if not hook().compilers():
        pytest.skip("there is no C compiler")
    path = tmp_path_factory.mktemp("compiled") / "settle.library"
    assert hook().compile_library(compiled.SOURCE, path)
    found = compiled.load(path)
    assert found is not None
    return found


def posed(draw, rng, Phi, signal):
    """A model of some of these functions, anywhere from its settled precisions; None where it has no posterior."""
    (n, m), cost = Phi.shape, draw(st.sampled_from([0.0, 0.0, 1.5]))
    t = signal + draw(st.sampled_from([0.01, 0.3])) * rng.normal(size=signal.shape)
    weights = rng.integers(1, 4, n).astype(float) if draw(st.booleans()) else np.ones(n)
    data = Gram(GaussianProblem(DenseDesign(Phi), t, weights, np.ones(m, dtype=bool), inclusion_cost=cost))
    functions = rng.choice(m, draw(st.integers(1, m)), replace=False).astype(np.intp)
    products = Products(data, functions)
    alpha = np.exp(2.0 * rng.normal(size=len(functions))) / data.mean_square
    beta = 1.0 / (draw(st.sampled_from([0.1, 0.003])) * data.mean_square)
    posterior = Posterior.of(products, alpha, beta)
    return None if posterior is None else GaussianModel(posterior, learn_noise=draw(st.booleans()))


@st.composite
def distinct(draw):
    """Functions that are far from dependent."""
    rng, targets = np.random.default_rng(draw(st.integers(0, 2**32 - 1))), draw(st.integers(1, 3))
    m = draw(st.integers(1, 45))
    Phi = rng.normal(size=(2 * m + 8, m)) * np.exp(rng.normal(size=m))
    return posed(draw, rng, Phi, Phi[:, :3] @ rng.normal(size=(min(3, m), targets)))


@st.composite
def alike(draw):
    """Kernels on a line, more of them than rows, up to nearly dependent ones."""
    rng, targets = np.random.default_rng(draw(st.integers(0, 2**32 - 1))), draw(st.integers(1, 3))
    x, centres = np.sort(rng.uniform(-5.0, 5.0, 30)), rng.uniform(-5.0, 5.0, draw(st.integers(2, 45)))
    Phi = np.exp(-((x[:, None] - centres) ** 2) / draw(st.sampled_from([0.3, 2.0, 10.0])))
    return posed(draw, rng, Phi, np.sinc(x)[:, None] * rng.normal(size=targets))


def both(model, library, tol, *, closely):
    """Settled in NumPy and by the library."""
    here = model.posterior
    expected = model._settled(tol) if closely else model._relaxed(tol)
    return expected, model._compiled(library, here.products, here.alpha, tol, closely=closely)


class TestSameAnswer:
    @examples(100)
    @given(distinct(), st.sampled_from([1e-2, 1e-6]), st.booleans())
    def test_to_rounding(self, library, model, tol, closely):
        expected, found = both(model, library, tol, closely=closely)
        assert found.indices == expected.indices
        assert found.objective == pytest.approx(expected.objective, abs=1e-10 * max(1.0, abs(expected.objective)))
        np.testing.assert_allclose(found.alpha, expected.alpha, rtol=1e-6)
        assert found.beta == pytest.approx(expected.beta, rel=1e-8)

    @examples(100)
    @given(alike(), st.sampled_from([1e-2, 1e-6]), st.booleans())
    def test_where_functions_are_nearly_dependent(self, library, model, tol, closely):
        if model is None:
            return
        expected, found = both(model, library, tol, closely=closely)
        # Single steps stand or fall by rounding here, so that the two may end a tolerance or so apart; among thousands
        # of draws there are some on which they end in different maxima.
        scale = max(1.0, abs(expected.objective))
        assert found.objective >= model.objective - 1e-9 * scale
        assert found.objective == pytest.approx(expected.objective, abs=10.0 * tol + gaussian._ROUNDING * scale)
        if closely and tol == 1e-6:
            assert found._settled(tol).objective <= found.objective + 10.0 * tol + gaussian._ROUNDING * scale

    @pytest.mark.parametrize("closely", [False, True])
    @pytest.mark.parametrize("targets", [1, 2])
    def test_the_posterior_is_that_of_its_precisions(self, library, targets, closely):
        rng = np.random.default_rng(3)
        Phi, weights = rng.normal(size=(80, 40)), np.ones(80)
        t = Phi[:, :5] @ rng.normal(size=(5, targets)) + 0.3 * rng.normal(size=(80, targets))
        data = Gram(GaussianProblem(DenseDesign(Phi), t, weights, np.ones(40, dtype=bool)))
        products = Products(data, np.arange(40))
        model = GaussianModel(Posterior.of(products, np.full(40, 0.5), 2.0), learn_noise=True)
        found = model._compiled(library, products, model.posterior.alpha, 1e-8, closely=closely).posterior
        assert 5 <= len(found.alpha) < 40
        expected = Posterior.of(Products(data, found.products.functions), found.alpha, found.beta)
        for name in ("inverse", "half", "mean", "residual_sumsq", "log_evidence"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.products.gram, expected.products.gram)

    @pytest.mark.parametrize("closely", [False, True])
    def test_a_model_without_posterior(self, library, closely):
        column = np.linspace(-1.0, 1.0, 20)
        Phi = np.column_stack([column, column])
        data = Gram(GaussianProblem(DenseDesign(Phi), column[:, None], np.ones(20), np.ones(2, dtype=bool)))
        products, alpha = Products(data, np.arange(2)), np.full(2, 1e-14)
        assert Posterior.of(products, alpha, 1e6) is None
        model = GaussianModel.empty(data, 1e6, learn_noise=True)
        assert model._compiled(library, products, alpha, 1e-3, closely=closely) is None

    def test_what_is_given_stays_as_it_is(self, library):
        rng = np.random.default_rng(0)
        data = Gram(
            GaussianProblem(
                DenseDesign(rng.normal(size=(30, 8))), rng.normal(size=(30, 1)), np.ones(30), np.ones(8, bool)
            )
        )
        products, alpha = Products(data, np.arange(8)), np.ones(8)
        before = products.gram.copy(), products.projection.copy()
        model = GaussianModel(Posterior.of(products, alpha, 1.0), learn_noise=True)
        model._compiled(library, products, alpha, 1e-6, closely=True)
        np.testing.assert_array_equal(alpha, 1.0)
        np.testing.assert_array_equal(products.gram, before[0])
        np.testing.assert_array_equal(products.projection, before[1])

    @pytest.mark.parametrize("effort", ["fast", "default"])
    def test_the_same_fit(self, library, monkeypatch, effort):
        X, y = make_sinc(100, noise=0.1, random_state=0)
        fits = []
        for used in (library, None):
            monkeypatch.setattr(gaussian, "library", lambda used=used: used)
            fits.append(RVR(gamma=0.1, effort=effort).fit(X, y))
        first, second = fits
        np.testing.assert_array_equal(first.relevance_, second.relevance_)
        assert first.log_marginal_likelihood_ == pytest.approx(second.log_marginal_likelihood_, abs=1e-8)
        assert [r.added for r in first.history_] == [r.added for r in second.history_]


class TestInstallation:
    def test_the_library_is_no_module(self):
        assert hook().LIBRARY.name == compiled.LIBRARY.name
        assert inspect.getmodulename(compiled.LIBRARY.name) is None

    def test_without_a_compiler_nothing_fails(self, monkeypatch, tmp_path):
        module = hook()
        monkeypatch.setattr(module, "compilers", list)
        assert not module.compile_library(compiled.SOURCE, tmp_path / "settle.library")
        assert compiled.load(tmp_path / "settle.library") is None

    def test_a_compiler_that_fails_is_passed_over(self, monkeypatch, tmp_path):
        module = hook()
        monkeypatch.setattr(module, "compilers", lambda: [["false"], ["there-is-no-such-compiler"]])
        assert not module.compile_library(compiled.SOURCE, tmp_path / "settle.library")
        assert not list(tmp_path.iterdir())

    def test_a_library_of_another_source_is_not_used(self, library, monkeypatch, tmp_path):
        other = tmp_path / "settle.c"
        other.write_bytes(compiled.SOURCE.read_bytes() + b"/* changed */\n")
        assert hook().compile_library(other, tmp_path / "settle.library")
        assert compiled.load(tmp_path / "settle.library") is None
        monkeypatch.setattr(compiled, "SOURCE", other)
        assert compiled.load(tmp_path / "settle.library") is not None

    def test_a_file_that_is_no_library_is_not_used(self, tmp_path):
        (tmp_path / "settle.library").write_bytes(b"nothing")
        assert compiled.load(tmp_path / "settle.library") is None

    def test_it_can_be_switched_off(self, library, monkeypatch):
        monkeypatch.setattr(compiled, "load", lambda path: library)
        compiled.library.cache_clear()
        try:
            assert compiled.library() is library
            monkeypatch.setenv(compiled.SWITCH, "0")
            compiled.library.cache_clear()
            assert compiled.library() is None
        finally:
            compiled.library.cache_clear()


def test_rules_are_those_of_the_reference(library):
    # A rule that the C source ignored would go unseen where the defaults suit both.
    rng = np.random.default_rng(1)
    Phi = rng.normal(size=(60, 12))
    t = (Phi[:, :4] @ rng.normal(size=4) + 0.1 * rng.normal(size=60))[:, None]
    data = Gram(GaussianProblem(DenseDesign(Phi), t, np.ones(60), np.ones(12, dtype=bool)))
    products = Products(data, np.arange(12))
    model = GaussianModel(Posterior.of(products, np.ones(12), 1.0), learn_noise=True)
    held = replace(model, learn_noise=False)
    ends = [one._compiled(library, products, np.ones(12), 1e-8, closely=True).beta for one in (model, held)]
    assert ends[0] > 10.0
    assert ends[1] == 1.0
