"""Classification on random small problems: it ascends to Laplace's evidence."""

import numpy as np
from exploring import examples
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from solver_cases import KINDS, Long, cholesky, dictionary, few, full, seeds, solvers, tolerance

from sparsebayes import Sequential, SparseBayesClassifier

# -- classes -----------------------------------------------------------------------------------------------


def laplace_evidence(Phi, alpha, y):
    """Laplace's log evidence of a logistic model, by plain damped Newton from zero in extended precision."""
    Phi, alpha = np.asarray(Phi, dtype=Long), np.asarray(alpha, dtype=Long)
    sign = np.where(y > 0, Long(1), Long(-1))

    def height(w):
        return -np.sum(np.logaddexp(Long(0), -sign * (Phi @ w))) - 0.5 * np.sum(alpha * w**2)

    def factor(w):
        p = expit((Phi @ w).astype(Long))
        return cholesky((Phi * (p * (1 - p))[:, None]).T @ Phi + np.diag(alpha))

    def solve(lower, b):
        x = b.copy()
        for j in range(len(x)):
            x[j] /= lower[j, j]
            x[j + 1 :] -= lower[j + 1 :, j] * x[j]
        for j in reversed(range(len(x))):
            x[j] /= lower[j, j]
            x[:j] -= lower[j, :j] * x[j]
        return x

    w = np.zeros(len(alpha), dtype=Long)
    for _ in range(500):
        gradient = Phi.T @ (sign * expit(-sign * (Phi @ w))) - alpha * w
        step = solve(factor(w), gradient)
        if gradient @ step < 1e-24:
            break
        length = Long(1)
        while height(w + length * step) < height(w) and length > 1e-10:
            length /= 2
        w = w + length * step
    log_det = 2 * np.sum(np.log(np.diagonal(factor(w))))
    return float(height(w) + 0.5 * np.sum(np.log(alpha)) - 0.5 * log_det)


@st.composite
def labelled(draw):
    rng = np.random.default_rng(draw(seeds))
    n, m = draw(st.integers(6, 40)), draw(st.integers(1, 20))
    X = dictionary(rng, n, m, draw(st.sampled_from(KINDS)))
    output = X[:, 0] / np.abs(X[:, 0]).max() + draw(st.sampled_from([0.0, 0.3, 2.0])) * rng.standard_normal(n)
    y = (output > np.median(output)).astype(int)
    y[0], y[1] = 0, 1
    return X, y


@given(problem=labelled(), solver=solvers, fit_intercept=st.booleans())
@examples(60)
def test_two_classes_ascend_to_a_laplace_evidence(problem, solver, fit_intercept):
    X, y = problem
    Phi = full(X, fit_intercept)
    count = 0
    last = {}

    def look(record, active):
        nonlocal count
        assert record.objective >= last.get(record.start, -np.inf) - tolerance(record.objective, len(y))
        last[record.start] = record.objective
        count += 1
        if count <= 5 or count % 10 == 0:
            value = laplace_evidence(Phi[:, active.indices], active.alpha, y)
            assert abs(value - record.evidence) <= 1e-6 * max(1.0, abs(value)), (record, value)

    model = SparseBayesClassifier(
        fit_intercept=fit_intercept, solver=Sequential(callback=look, **solver), evidence="laplace", random_state=0
    ).fit(X, y)
    assert model.status_.converged
    assert model.certificate_.converged
    value = laplace_evidence(
        np.column_stack(
            [
                (X - model.X_offset_)[:, model.relevance_],
                np.ones((len(y), model.alpha_.shape[1] - len(model.relevance_))),
            ]
        ),
        model.alpha_[0],
        y,
    )
    assert abs(value - model.log_marginal_likelihood_) <= 1e-6 * max(1.0, abs(value))


@given(problem=labelled(), multi_class=st.sampled_from(["softmax", "ovr"]), seed=seeds)
@few
def test_several_classes_ascend(problem, multi_class, seed):
    X, _ = problem
    X = X[:, :8]
    rng = np.random.default_rng(seed)
    y = np.digitize(X[:, 0] / np.abs(X[:, 0]).max() + 0.5 * rng.standard_normal(len(X)), [-0.3, 0.3])
    y[:3] = [0, 1, 2]
    model = SparseBayesClassifier(multi_class=multi_class, evidence="laplace").fit(X, y)
    histories = model.history_ if multi_class == "ovr" else [model.history_]
    for history in histories:
        for start in {record.start for record in history}:
            objective = np.array([record.objective for record in history if record.start == start])
            assert np.all(np.diff(objective) >= -1e-9 * np.maximum(1.0, np.maximum(np.abs(objective[1:]), len(y))))
    statuses = model.status_ if multi_class == "ovr" else [model.status_]
    certificates = model.certificate_ if multi_class == "ovr" else [model.certificate_]
    assert all(status.converged for status in statuses)
    assert all(certificate.converged for certificate in certificates)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, rtol=1e-9)
