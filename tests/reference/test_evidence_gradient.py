"""The evidence gradient against finite differences: every kernel with parameters, sums of bases."""

import numpy as np
import pytest

from sparsebayes.basis import (
    RBF,
    Bias,
    Cauchy,
    Laplacian,
    Linear,
    LinearSpline,
    PolynomialKernel,
    Sigmoid,
    ThinPlateSpline,
)
from sparsebayes.design import DenseDesign
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.kernel_learning.gradients import Held, LogNormal, objective

KERNELS = [
    RBF(1.3),
    RBF([0.8, 2.0, 1.1]),
    Laplacian(1.5),
    Laplacian([0.8, 2.0, 1.1]),
    Cauchy(0.9),
    Cauchy([0.8, 2.0, 1.1]),
    ThinPlateSpline(1.7),
    ThinPlateSpline([0.8, 2.0, 1.1]),
    PolynomialKernel(3, 0.5, 1.2),
    PolynomialKernel(2, [0.4, -0.3, 0.8], -0.7),
    Sigmoid(0.4, -0.3),
    Sigmoid([0.4, -0.3, 0.8], 0.2),
    Bias() + Linear() + RBF(0.7) + LinearSpline() + RBF([0.8, 2.0, 1.1]) + Sigmoid(0.4, 0.1),
]


class Bound:
    """Functions on fixed inputs, as the learner sees them."""

    def __init__(self, functions, X):
        self.functions, self.X = functions, X

    def columns(self, log_theta, idx):
        return self.functions.with_parameters(np.exp(log_theta)).evaluate(self.X, idx)

    def pullback(self, log_theta, idx, gradient):
        return self.functions.with_parameters(np.exp(log_theta)).pullback(self.X, idx, gradient)


def held(Phi, rng, chosen):
    n = len(Phi)
    alpha = np.exp(rng.normal(size=len(chosen)))
    weights, every = rng.uniform(0.5, 2.0, n), np.ones(Phi.shape[1], dtype=bool)
    problem = GaussianProblem(DenseDesign(Phi), rng.standard_normal((n, 2)), weights, every)
    return Held(problem, chosen, alpha, 3.0, learn_noise=True)


@pytest.mark.parametrize("basis", KERNELS, ids=repr)
def test_gradient_of_the_objective(basis):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((30, 3))
    functions = basis.bind(X)
    theta = np.log([p.value for p in functions.parameters])
    assert len(theta)
    chosen = sorted(rng.choice(len(functions), 8, replace=False).tolist())
    model = held(functions.evaluate(X), rng, chosen)
    family = Bound(functions, X)
    prior = LogNormal(theta + 0.3, np.full(len(theta), 2.0), theta - 9, theta + 9)

    def value(x):
        return objective(family, [model], prior, x[: len(theta)], [x[len(theta) :]])[0]

    here = np.concatenate([theta, model.logs])
    _, by_theta, (by_logs,) = objective(family, [model], prior, theta, [model.logs])
    gradient = np.concatenate([by_theta, by_logs])
    # Fourth-order differences, so that neither rounding nor curvature reaches the fifth digit.
    step = 2e-3
    for p, shift in enumerate(step * np.eye(len(here))):
        near, far = value(here + shift) - value(here - shift), value(here + 2 * shift) - value(here - 2 * shift)
        numeric = (8 * near - far) / (12 * step)
        assert gradient[p] == pytest.approx(numeric, rel=1e-5, abs=1e-5 * np.linalg.norm(gradient) * 1e-2)


@pytest.mark.parametrize("basis", KERNELS, ids=repr)
def test_derivatives_of_the_functions(basis):
    rng = np.random.default_rng(4)
    X, Z = rng.standard_normal((10, 3)), rng.standard_normal((7, 3))
    functions = basis.bind(X)
    log_theta, idx = np.log([p.value for p in functions.parameters]), [9, 0, len(functions) - 1]
    for p in range(len(log_theta)):
        shift = np.zeros(len(log_theta))
        shift[p] = 1e-4
        numeric = (
            functions.with_parameters(np.exp(log_theta + shift)).evaluate(Z, idx)
            - functions.with_parameters(np.exp(log_theta - shift)).evaluate(Z, idx)
        ) / 2e-4
        np.testing.assert_allclose(functions.dcolumns(Z, idx, p), numeric, rtol=1e-6, atol=1e-7)
        G = rng.standard_normal((7, 3))
        assert functions.pullback(Z, idx, G)[p] == pytest.approx(np.sum(G * functions.dcolumns(Z, idx, p)))


def test_parameters_are_called_as_in_set_params():
    basis = RBF(2.0) + Linear() + RBF([1.0, 3.0])
    functions = basis.bind(np.eye(2))
    assert [p.name for p in functions.parameters] == ["rbf__width", "rbf_2__width[0]", "rbf_2__width[1]"]
    assert [p.name for p in functions.per_input().parameters][:2] == ["rbf__width[0]", "rbf__width[1]"]
    assert set(basis.get_params()) >= {"rbf__width", "rbf_2__width"}
