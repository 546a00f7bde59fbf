import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel, sigmoid_kernel
from sklearn.preprocessing import PolynomialFeatures

from sparsebayes.basis import (
    RBF,
    Basis,
    Bias,
    Callable,
    Cauchy,
    Heaviside,
    Kernel,
    Laplacian,
    Linear,
    LinearSpline,
    Polynomial,
    PolynomialKernel,
    Precomputed,
    Sigmoid,
    Sum,
    ThinPlateSpline,
    from_specifications,
)
from sparsebayes.basis.kernels import squared_distances

REBUILDABLE = [
    Bias(),
    Linear(),
    Polynomial(3),
    Polynomial(2, interaction_only=True, include_linear=False),
    RBF(2.5),
    RBF([0.3, 1.0, 1e-2]),
    Laplacian(np.array([0.3, 1.0, 7.0])),
    Cauchy(0.7),
    LinearSpline(),
    ThinPlateSpline(2.0),
    PolynomialKernel(2, 0.5, 1.0),
    Sigmoid(0.1, -0.2),
    Heaviside(),
    Precomputed(),
    Bias() + Linear() + RBF(1.0) + RBF(3.0),
]


def inputs(n=20, d=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


@pytest.mark.parametrize("basis", REBUILDABLE, ids=repr)
class TestEveryBasis:
    def test_evaluate_and_restrict_agree(self, basis):
        X, Z = inputs(), inputs(7, seed=1)
        functions = basis.bind(X)
        m = len(functions)
        full = functions.evaluate(Z)
        assert full.shape == (7, m)
        assert full.dtype == np.float64
        assert full.flags.writeable
        for idx in ([0], [m - 1, 0, 0], [], np.arange(m), slice(0, m, 2), np.arange(m) % 2 == 0):
            part = functions.restrict(idx)
            chosen = np.arange(m)[np.asarray(idx, dtype=np.intp) if isinstance(idx, list) else idx]
            assert len(part) == len(chosen)
            np.testing.assert_allclose(functions.evaluate(Z, idx), full[:, chosen], rtol=1e-13, atol=1e-13)
            np.testing.assert_allclose(part.evaluate(Z), full[:, chosen], rtol=1e-13, atol=1e-13)
            assert part.rows.tolist() == functions.rows[chosen].tolist()
            every = functions.specifications()
            assert part.specifications() == [every[j] for j in chosen]
        with pytest.raises(IndexError):
            functions.evaluate(Z, [m])

    def test_specifications_round_trip(self, basis):
        X, Z = inputs(), inputs(7, seed=1)
        functions = basis.bind(X)
        specs = functions.specifications()
        rebuilt = from_specifications(json.loads(json.dumps(specs)), 3)
        assert rebuilt.specifications() == specs
        np.testing.assert_array_equal(rebuilt.evaluate(Z), functions.evaluate(Z))
        backwards = from_specifications(specs[::-1], 3).evaluate(Z)[:, ::-1]
        np.testing.assert_allclose(backwards, functions.evaluate(Z), rtol=1e-13, atol=1e-13)

    def test_rows_and_centres(self, basis):
        X = inputs()
        functions = basis.bind(X)
        assert functions.rows.dtype == np.intp
        assert functions.rows.shape == (len(functions),)
        centres = functions.centres
        if centres is None:
            assert (functions.rows == -1).all() or isinstance(basis, Precomputed)
            return
        assert centres.shape == (len(functions), 3)
        of_rows = functions.rows >= 0
        assert np.isnan(centres[~of_rows]).all()
        known = ~np.isnan(centres[of_rows])
        assert known.any(axis=1).all()
        np.testing.assert_array_equal(centres[of_rows][known], X[functions.rows[of_rows]][known])

    def test_clones_and_parameters(self, basis):
        copy = clone(basis)
        assert copy is not basis
        assert repr(copy) == repr(basis)
        assert copy.set_params(**copy.get_params()) is copy
        assert set(copy.get_params()) == set(basis.get_params())

    def test_bound_functions_do_not_follow_the_basis(self, basis):
        basis = clone(basis)
        X = inputs()
        functions = basis.bind(X)
        before = functions.specifications()
        for key, value in basis.get_params().items():
            if isinstance(value, (float, np.ndarray)):
                basis.set_params(**{key: value * 2})
            elif isinstance(value, list):
                value[0] = 99.0
        assert functions.specifications() == before

    @pytest.mark.parametrize(
        ("X", "error", "words"),
        [
            (np.ones(3), ValueError, "expected .samples, features"),
            (np.ones((0, 3)), ValueError, "at least one sample"),
            (np.array([[1.0, np.nan, 2.0]]), ValueError, "NaN or infinity"),
            (sparse.eye_array(3), TypeError, "toarray"),
            (np.ones((3, 3)) * 1j, TypeError, "complex"),
        ],
    )
    def test_inputs_are_checked(self, basis, X, error, words):
        with pytest.raises(error, match=words):
            clone(basis).bind(X)

    def test_number_of_features_is_checked(self, basis):
        with pytest.raises(ValueError, match="X has 2 features; these basis functions take 3"):
            basis.bind(inputs()).evaluate(np.ones((4, 2)))


X, Z = inputs(15), inputs(8, seed=1)


def spline(x, c):
    """PHJ eq. 22, term by term."""
    low = min(x, c)
    return 1 + x * c + x * c * low - (x + c) / 2 * low**2 + low**3 / 3


def thin_plate(x, c):
    rho = np.linalg.norm(x - c) / 2.0
    return rho**2 * math.log(rho) if rho > 0 else 0.0


@pytest.mark.parametrize(
    ("basis", "expected"),
    [
        (RBF(2.5), rbf_kernel(Z, X, gamma=1 / 2.5**2)),
        (RBF([1.0, 2.0, 4.0]), rbf_kernel(Z / [1, 2, 4], X / [1, 2, 4], gamma=1.0)),
        (Laplacian(2.0), laplacian_kernel(Z, X, gamma=0.5)),
        (Cauchy(2.0), 1 / (1 - np.log(rbf_kernel(Z, X, gamma=0.25)))),
        (ThinPlateSpline(2.0), np.array([[thin_plate(z, x) for x in X] for z in Z])),
        (LinearSpline(), np.array([[np.prod([*map(spline, z, x)]) for x in X] for z in Z])),
        (PolynomialKernel(3, 0.5, 1.0), polynomial_kernel(Z, X, degree=3, gamma=0.5, coef0=1.0)),
        (Sigmoid(0.5, 0.1), sigmoid_kernel(Z, X, gamma=0.5, coef0=0.1)),
        (Callable(laplacian_kernel), laplacian_kernel(Z, X)),
        (Bias(), np.ones((8, 1))),
        (Linear(), Z),
        (Polynomial(3), PolynomialFeatures(3, include_bias=False).fit_transform(Z)),
        (
            Polynomial(3, interaction_only=True),
            PolynomialFeatures(3, interaction_only=True, include_bias=False).fit_transform(Z),
        ),
        (Polynomial(2, include_linear=False), PolynomialFeatures(2).fit_transform(Z)[:, 4:]),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Basis) else "",
)
def test_values(basis, expected):
    np.testing.assert_allclose(basis.bind(X).evaluate(Z), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("d", [1, 2, 17, 40])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_rbf_is_exact_at_its_centre_and_beside_it(d, offset):
    """Whatever the offset and the scale of the inputs, where an expansion of the square would cancel."""
    X = 1e3 * inputs(30, d) + offset
    near = X + 1e-3
    np.testing.assert_allclose(np.diag(RBF(1e-2).bind(X).evaluate(X)), 1.0, rtol=0, atol=1e-15)
    exact = np.exp(-np.square((near - X) / 1e-2).sum(axis=1))
    np.testing.assert_allclose(np.diag(RBF(1e-2).bind(X).evaluate(near)), exact, rtol=1e-7)


def test_squared_distances_by_products_are_accurate():
    rng = np.random.default_rng(0)
    C = rng.standard_normal((50, 30))
    X = np.vstack([C[:10] * (1 + 1e-9), rng.standard_normal((20, 30)), 1e4 * rng.standard_normal((5, 30))])
    exact = np.array([[np.square(x - c).sum() for c in C] for x in X])
    np.testing.assert_allclose(squared_distances(X, C), exact, rtol=1e-11, atol=1e-30)
    C[0] = 1e6  # an outlying centre must not spoil the others
    exact = np.array([[np.square(x - c).sum() for c in C] for x in X])
    np.testing.assert_allclose(squared_distances(X, C), exact, rtol=1e-7, atol=1e-30)


def test_heaviside_steps_at_the_first_row_of_every_value():
    X = np.array([[2.0, 5.0], [1.0, 5.0], [2.0, 7.0], [0.0, 5.0]])
    functions = Heaviside().bind(X)
    assert functions.rows.tolist() == [0, 1, 3, 0, 2]
    assert functions.specifications()[3] == {"kind": "heaviside", "feature": 1, "threshold": 5.0}
    np.testing.assert_array_equal(functions.evaluate([[1.5, 7.0], [2.0, 4.0]]), [[0, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    assert functions.centres is not None
    np.testing.assert_array_equal(functions.centres[[0, 4]], [[2.0, np.nan], [np.nan, 7.0]])
    single = X[[0, 1, 3], :1]  # one input, no repeated value: function m steps at row m
    np.testing.assert_array_equal(Heaviside().bind(single).evaluate(single), single >= single.T)


def test_precomputed_columns():
    functions = Precomputed().bind(rbf_kernel(X))
    assert functions.rows.tolist() == list(range(15))
    between = rbf_kernel(Z, X)
    np.testing.assert_array_equal(functions.restrict([3, 1]).evaluate(between), between[:, [3, 1]])


class TestCentres:
    def test_given_centres_are_copied(self):
        mine = Z.copy()
        functions = RBF(1.0, centres=mine).bind(X)
        mine[:] = 0.0
        assert (functions.rows == -1).all()
        np.testing.assert_array_equal(functions.centres, Z)
        np.testing.assert_allclose(functions.evaluate(X), rbf_kernel(X, Z, gamma=1.0))

    @pytest.mark.parametrize("random_state", [None, 0, 7])
    def test_a_number_covers_the_inputs(self, random_state):
        grid = np.arange(100.0)[:, None]
        functions, again = (RBF(1.0, centres=9).bind(grid, random_state=random_state) for _ in range(2))
        assert functions.rows.tolist() == again.rows.tolist()
        assert len(np.unique(functions.rows)) == 9
        np.testing.assert_array_equal(functions.centres, grid[functions.rows])
        assert np.abs(grid - grid[functions.rows].T).min(axis=1).max() <= 99 / 8

    def test_a_number_is_capped_at_the_distinct_rows(self):
        rows = LinearSpline(centres=10).bind(np.repeat(X[:4], 3, axis=0)).rows
        assert (rows // 3).tolist() == [0, 1, 2, 3]

    def test_a_number_is_in_units_of_the_width(self):
        grid = np.array([[0.0, 0.0], [100.0, 0.0], [0.0, 1.0]])
        assert RBF([1e4, 1e-2], centres=2).bind(grid).rows.tolist() == [0, 2]
        assert 1 in RBF(1.0, centres=2).bind(grid).rows

    @pytest.mark.parametrize("centres", [0, -2, True, np.ones((2, 5)), np.empty((0, 3)), [[np.nan, 1, 1]]])
    def test_errors(self, centres):
        with pytest.raises(ValueError, match="centres"):
            RBF(1.0, centres=centres).bind(X)

    def test_repeated_centres_give_equal_columns(self):
        many = inputs(40, 30)
        many[[7, 39]] = many[0]
        values = PolynomialKernel(2, 0.1, 1.0).bind(many).evaluate(inputs(50, 30, seed=2))
        np.testing.assert_array_equal(values[:, 7], values[:, 0])
        np.testing.assert_array_equal(values[:, 39], values[:, 0])


@pytest.mark.parametrize(
    ("basis", "words"),
    [
        (RBF(0.0), "width=0.0; expected a positive number"),
        (RBF([1.0, 2.0]), "3 inputs"),
        (RBF("scale"), "width='scale'"),
        (RBF(None), "width=None"),
        (Cauchy(np.inf), "width=inf"),
        (Polynomial(0), "degree=0; expected a positive integer"),
        (Polynomial(2.0), "degree=2.0"),
        (Polynomial(2, interaction_only="yes"), "interaction_only='yes'; expected True or False"),
        (Polynomial(1, include_linear=False), "has no function of 3 inputs"),
        (PolynomialKernel(gamma=np.nan), "gamma=nan; expected a finite number"),
        (Sigmoid(coef0="0"), "coef0='0'"),
    ],
    ids=lambda value: "",
)
def test_parameters_are_checked(basis, words):
    with pytest.raises(ValueError, match=words):
        basis.bind(X)


class TestSum:
    def test_is_flat(self):
        basis = Bias() + (Linear() + RBF(2.0)) + RBF(3.0)
        assert isinstance(basis, Sum)
        assert repr(basis) == "Bias() + Linear() + RBF(width=2.0) + RBF(width=3.0)"
        functions = basis.bind(X)
        parts = [b.bind(X).evaluate(Z) for b in basis.bases]
        np.testing.assert_array_equal(functions.evaluate(Z), np.hstack(parts))
        assert functions.rows.tolist() == [-1] * 4 + [*range(15)] * 2
        assert functions.centres is not None
        assert np.isnan(functions.centres[:4]).all()
        assert (Bias() + Linear()).bind(X).centres is None

    def test_interleaved_restriction(self):
        functions = (RBF(2.0) + RBF(3.0)).bind(X)
        idx = [20, 3, 4, 18, 0, 0, 29]
        part = functions.restrict(idx)
        np.testing.assert_allclose(part.evaluate(Z), functions.evaluate(Z)[:, idx])
        assert part.join(functions).restrict(slice(7)).specifications() == part.specifications()

    def test_parameters_by_kind(self):
        basis = Bias() + RBF(2.0) + RBF(3.0)
        basis.set_params(rbf__width=5.0, rbf_2=Cauchy(1.0))
        assert repr(basis) == "Bias() + RBF(width=5.0) + Cauchy()"
        with pytest.raises(ValueError, match="no term 'linear'"):
            basis.set_params(linear__width=2.0)
        with pytest.raises(TypeError, match="expected a Basis"):
            basis.set_params(bias=1.0)

    def test_takes_bases_only(self):
        with pytest.raises(TypeError):
            Bias() + 1  # type: ignore[operator]
        with pytest.raises(TypeError, match="expected Basis objects"):
            Sum(Bias(), 3)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="no bases"):
            Sum()

    def test_joins_only_the_same_inputs(self):
        with pytest.raises(ValueError, match=r"take \[2, 3\] inputs"):
            Bias().bind(X).join(Bias().bind(X[:, :2]))


class TestCallable:
    def test_specification_names_the_function_and_cannot_be_rebuilt(self):
        functions = Callable(rbf_kernel, centres=2).bind(X)
        specs = functions.specifications()
        assert specs[0]["function"] == "rbf_kernel"
        json.dumps(specs)
        with pytest.raises(ValueError, match="carry no code"):
            from_specifications(specs, 3)

    @pytest.mark.parametrize(
        ("function", "error", "words"),
        [
            (lambda X, Z: np.ones((2, 2)), ValueError, r"returned shape \(2, 2\); expected \(8, 15\)"),
            (lambda X, Z: np.full((8, 15), np.nan), ValueError, "NaN"),
            (lambda X, Z: 1j * (X @ Z.T), TypeError, "complex"),
            (3, TypeError, "function=3; expected a callable"),
        ],
    )
    def test_results_are_checked(self, function, error, words):
        with pytest.raises(error, match=words):
            Callable(function).bind(X).evaluate(Z)


@pytest.mark.parametrize(
    ("specs", "words"),
    [
        ([], "empty"),
        ([{"kind": "nonesuch"}], "unknown; known kinds are"),
        ([{}], "kind None"),
        ([{"kind": "rbf", "width": 1.0}], "lacks .'centre'"),
        ([{"kind": "rbf", "centre": [0.0, 0.0, 0.0]}], "lacks .'width'"),
        ([{"kind": "rbf", "width": 1.0, "gamma": 2.0, "centre": [0.0, 0.0, 0.0]}], "gamma"),
        ([{"kind": "rbf", "width": -1.0, "centre": [0.0, 0.0, 0.0]}], "width=-1.0"),
        ([{"kind": "rbf", "width": 1.0, "centre": [0.0]}], r"shape \(m, 3\)"),
        ([{"kind": "linear", "feature": 3}], "outside 0..2"),
        ([{"kind": "heaviside", "feature": -1, "threshold": 0.0}], "outside 0..2"),
        ([{"kind": "precomputed", "column": 5}], "outside 0..2"),
        ([{"kind": "polynomial", "powers": [1, 2]}], "expected 3 integers"),
    ],
)
def test_specifications_are_checked(specs, words):
    with pytest.raises(ValueError, match=words):
        from_specifications(specs, 3)


def test_a_new_kernel_is_a_few_lines():
    class Epanechnikov(Kernel):
        kind = "epanechnikov"

        def _evaluate(self, X, centres):
            return np.maximum(0.0, 1.0 - squared_distances(X, centres))

    functions = (Bias() + Epanechnikov(centres=4)).bind(X)
    rebuilt = from_specifications(functions.specifications(), 3)
    np.testing.assert_array_equal(rebuilt.evaluate(Z), functions.evaluate(Z))
    with pytest.raises(TypeError, match=r"kind 'rbf' of .*Impostor is taken by RBF"):
        type("Impostor", (Kernel,), {"kind": "rbf", "__module__": __name__})


@given(
    data=st.lists(st.tuples(*[st.floats(-1e3, 1e3)] * 2), min_size=1, max_size=12),
    width=st.floats(1e-3, 1e3),
)
@settings(max_examples=50, deadline=None)
def test_gaussians_are_symmetric_and_bounded(data, width):
    X = np.array(data)
    K = RBF(width).bind(X).evaluate(X)
    assert ((K >= 0) & (K <= 1)).all()
    np.testing.assert_array_equal(K, K.T)
    assert (np.diag(K) == 1).all()
