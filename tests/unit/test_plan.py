"""What can be exported, and what is refused with the way out."""

import numpy as np
import pytest
from exported import CLASSIFICATIONS, REGRESSIONS, X, Y, model
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from sparsebayes import RVR, SparseBayesRegressor
from sparsebayes.basis import Bias, Callable, Precomputed, Sum, WidthKernel
from sparsebayes.basis.base import _KINDS
from sparsebayes.export import make_plan, to_c, to_onnx, to_sql
from sparsebayes.export.formulas import KERNELS, SIMPLE

each_writer = pytest.mark.parametrize(
    "write", [to_onnx, to_c, lambda est: to_sql(est, "data")], ids=["onnx", "c", "sql"]
)


def gram(A, B):
    return A @ B.T


def test_there_are_twenty_models_and_more_of_every_kind():
    assert len(REGRESSIONS) + len(CLASSIFICATIONS) >= 20
    kinds = {
        spec["kind"]
        for name in (*REGRESSIONS, *CLASSIFICATIONS)
        for spec in getattr(getattr(model(name), "steps", [[None, model(name)]])[-1][1], "relevance_functions_", [])
    }
    assert kinds == set(SIMPLE) | set(KERNELS)


def test_noise_varies_in_the_models_that_are_called_so():
    assert model("noise that varies").noise_varies_
    assert list(model("noise of which one varies").noise_varies_) == [False, True]


def test_every_kind_of_the_library_has_a_closed_form_or_cannot_have_one():
    ours = {kind for kind, cls in _KINDS.items() if cls.__module__.startswith("sparsebayes.")}
    assert ours - set(SIMPLE) - set(KERNELS) == {Callable.kind, Precomputed.kind}


@each_writer
@pytest.mark.parametrize(
    ("est", "inputs", "words"),
    [
        (RVR(gram), X, "Python function.*fit with a kernel by name"),
        (SparseBayesRegressor(Sum(Bias(), Callable(gram))), X, "Python function"),
        (RVR("precomputed"), X @ X.T, "precomputed.*columns that the caller computes"),
        (SparseBayesRegressor(Precomputed()), X, "precomputed"),
        (LinearRegression(), X, "type LinearRegression: expected a fitted RVR"),
        (make_pipeline(PCA(2), RVR()), X, "step PCA: only StandardScaler"),
        (make_pipeline(MinMaxScaler(clip=True), RVR()), X, "clip=False"),
    ],
    ids=lambda value: str(value)[:30] if isinstance(value, str) else "",
)
def test_what_has_no_closed_form_is_refused(write, est, inputs, words):
    with pytest.raises(TypeError, match=words):
        write(est.fit(inputs, Y))


@each_writer
@pytest.mark.parametrize("est", [RVR(), make_pipeline(MinMaxScaler(), RVR())], ids=["model", "pipeline"])
def test_before_the_fit(write, est):
    with pytest.raises(NotFittedError):
        write(est)


def test_a_kernel_of_the_users_own_is_named():
    class Ramp(WidthKernel):
        kind = "test_ramp"

        def _evaluate(self, X, centres):
            return np.maximum(0.0, 1.0 - np.abs(self.scaled(X)[:, :1] - self.scaled(centres)[:, 0]))

    try:
        est = SparseBayesRegressor(Ramp(2.0)).fit(X, X[:, 0])
        with pytest.raises(TypeError, match=r"'test_ramp': no closed form.*rbf"):
            to_c(est)
    finally:
        del _KINDS["test_ramp"]


def test_shifts_and_scales_follow_one_another():
    plan = make_plan(model("rbf"))
    once = plan.after(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 5.0]), ["a", "b", "c"])
    twice = once.after(np.full(3, 0.5), np.full(3, 3.0))
    x = np.array([0.3, -0.7, 2.0])
    inner = ((x - 0.5) / 3.0 - [1.0, 2.0, 3.0]) / [2.0, 4.0, 5.0]
    np.testing.assert_allclose((x - twice.centre) / twice.scale, inner)
    assert twice.names == ["a", "b", "c"]
    assert make_plan(plan) is plan
