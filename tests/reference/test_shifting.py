"""All functions moved at once, against dense algebra and on problems whose answer is known."""

import numpy as np
import pytest

from sparsebayes import RVC, RVR, datasets
from sparsebayes.basis import RBF
from sparsebayes.basis.arrays import bind_elsewhere
from sparsebayes.basis.places import HostPlaces
from sparsebayes.design import DenseDesign
from sparsebayes.inference.models.active import ActiveSet
from sparsebayes.inference.models.linalg import tall_qr
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.inference.search.shifting import _displacements, _secants, shift

RNG = np.random.default_rng(0)


def dense_problem(centres, off=0.0, noise=1e-3, targets=1, barred=()):
    """Functions on a fine grid, targets that are sums of functions a little off it, and a model beside them."""
    X = np.linspace(-4.0, 4.0, 300)[:, None]
    grid = np.linspace(-4.0, 4.0, 801)[:, None]
    functions = RBF(1.0, centres=grid).bind(X)
    weights = np.array([[1.0, 0.5], [-0.7, 0.9], [0.8, -1.1]])[: len(centres), :targets]
    truth = RBF(1.0, centres=np.array(centres)[:, None] + off).bind(X).evaluate(X) @ weights
    t = truth + noise * RNG.standard_normal(truth.shape)
    eligible = ~np.isin(np.arange(801), barred)
    problem = GaussianProblem(DenseDesign(functions.evaluate(X)), t, np.ones(300), eligible, places=functions.places)
    numbers = functions.places.nearest(np.array(centres)[:, None])
    part = problem.restrict(np.union1d(numbers, np.arange(0, 801, 100)))
    place = {int(member): k for k, member in enumerate(part.members)}
    model = [place[int(i)] for i in numbers]
    return problem, ActiveSet.from_model(part, model, np.ones(len(model)), 1.0 / max(noise, 1e-3) ** 2)


@pytest.mark.parametrize("targets", [1, 2])
def test_displacements_solve_the_linearised_problem(targets):
    problem, active = dense_problem([-2.0, 0.0, 1.5], off=0.1, targets=targets)
    numbers = np.array(active.problem.lift(active.indices))
    secants = _secants(problem.places, numbers, 0.05)
    found = _displacements(active, numbers, secants)
    # The same by least squares in all displacements and all weights of every target at once.
    Phi = problem.design.columns(numbers)
    G = problem.design.columns(secants.neighbours[:, 0]) - Phi
    mean, beta = active.mean, active.beta
    blocks, rows = [], []
    for k in range(targets):
        weights = np.zeros((300, 3 * targets))
        weights[:, 3 * k : 3 * k + 3] = Phi
        blocks.append(np.sqrt(beta) * np.hstack([G * mean[:, k], weights]))
        rows.append(np.sqrt(beta) * (problem.targets[:, k] - Phi @ mean[:, k]))
    prior = np.diag([0.05 / 0.2] * 3 + [np.sqrt(a) for _ in range(targets) for a in active.alpha])
    pulled = np.concatenate([np.zeros(3), *(-np.sqrt(active.alpha) * mean[:, k] for k in range(targets))])
    xi = np.linalg.lstsq(np.vstack([*blocks, prior]), np.concatenate([*rows, pulled]), rcond=None)[0][:3]
    np.testing.assert_allclose(found[:, 0], xi * secants.towards[:, 0, 0], rtol=1e-6, atol=1e-9)


def test_functions_move_to_where_they_belong():
    problem, active = dense_problem([-2.0, 0.0, 1.5], off=0.13)
    moved = shift(active, 0.3, learn_noise=False)
    places = np.sort(problem.places.at(moved.problem.lift(moved.indices))[:, 0])
    np.testing.assert_allclose(places, [-1.87, 0.13, 1.63], atol=0.011)
    assert moved.objective() > active.objective() + 100.0


def test_functions_move_to_no_place_that_is_barred():
    _, active = dense_problem([-2.0, 0.0, 1.5], off=0.13)
    reached = shift(active, 0.3, learn_noise=False)
    barred = reached.problem.lift(reached.indices)
    problem, active = dense_problem([-2.0, 0.0, 1.5], off=0.13, barred=barred[:2])
    moved = shift(active, 0.3, learn_noise=False)
    assert moved is not None
    assert problem.eligible[moved.problem.lift(moved.indices)].all()


def test_functions_that_are_right_stay():
    _, active = dense_problem([-2.0, 0.0, 1.5])
    assert shift(active, 0.3, learn_noise=False) is None


def test_a_coarse_dictionary_is_not_moved_in():
    functions = RBF(1.0, centres=np.arange(-4.0, 4.5, 0.5)[:, None]).bind(np.zeros((1, 1)))
    assert _secants(functions.places, np.array([3, 8]), 0.2) is None


def test_the_linearised_problem_of_a_classifier_is_that_of_its_rows():
    from sparsebayes.inference.models.laplace import LaplaceActive
    from sparsebayes.inference.models.mode import LaplaceProblem
    from sparsebayes.likelihood import Bernoulli

    X, y = datasets.make_ripley(60, random_state=0)
    Phi = RBF(1.0).bind(X).evaluate(X)
    whole = LaplaceProblem(DenseDesign(Phi), Bernoulli(y, np.ones(60)), np.ones(60, dtype=bool))
    part = whole.restrict(np.arange(0, 60, 2))
    active = LaplaceActive.from_model(part, [0, 5, 9], np.array([0.1, 0.2, 0.3]))
    numbers, neighbours = np.array([0, 10, 18]), np.array([1, 7])
    gram, gradient = active.beside(numbers, neighbours)
    columns = Phi[:, [0, 10, 18, 1, 7]]
    p = 1.0 / (1.0 + np.exp(-Phi[:, numbers] @ active.mean))
    np.testing.assert_allclose(gram, columns.T @ ((p * (1.0 - p))[:, None] * columns), rtol=1e-10)
    np.testing.assert_allclose(gradient[:, 0], columns.T @ (y - p), rtol=1e-8, atol=1e-10)


def test_fits_with_shifts_are_certified_and_better():
    X, y = datasets.make_sinc2d(13_000, random_state=0)
    model = RVR(gamma=0.16).fit(X, y)
    evidences = {(r.start, k): r.objective for k, r in enumerate(model.history_) if r.start == 0}
    assert "shift" in {record.move for record in model.history_}
    assert np.all(np.diff(list(evidences.values())) >= -1e-6)
    assert model.certificate_.converged
    X, y = datasets.make_ripley(13_000, random_state=0)
    classifier = RVC(gamma=1.0, evidence="laplace").fit(X, y)
    assert "shift" in {record.move for record in classifier.history_}
    assert classifier.certificate_.converged


def test_nearest_is_the_first_of_the_closest():
    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [5.0, 5.0], [1.0, 0.0]])
    places = HostPlaces(points, np.array([True, True, False, True, False]))
    np.testing.assert_array_equal(places.nearest(np.array([[0.1, 0.0], [0.9, 0.2], [9.0, 9.0]])), [0, 1, 3])


@pytest.mark.parametrize("features", [2, 7])
def test_places_on_a_device_are_those_of_the_host(features):
    xp = pytest.importorskip("array_api_strict")
    X = RNG.standard_normal((200, features))
    X[50:60] = X[:10]
    host, there = RBF(0.7).bind(X).places, bind_elsewhere(RBF(0.7), xp.asarray(X)).places
    asked = RNG.standard_normal((30, features))
    np.testing.assert_array_equal(there.nearest(asked), host.nearest(asked))
    np.testing.assert_allclose(there.at([3, 55]), host.at([3, 55]))
    assert len(there) == len(host) == 200


@pytest.mark.parametrize("rows", [5, 1000, 20_000])
def test_tall_matrices_are_factored_in_blocks(rows):
    matrix = RNG.standard_normal((rows, 5))
    basis, factor = tall_qr(matrix.copy())
    np.testing.assert_allclose(basis @ factor, matrix, atol=1e-12)
    np.testing.assert_allclose(basis.T @ basis, np.eye(5), atol=1e-13)
    np.testing.assert_array_equal(np.tril(factor, -1), 0.0)
