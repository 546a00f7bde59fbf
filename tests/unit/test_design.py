import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from sparsebayes.basis import RBF, Bias, Linear, Precomputed
from sparsebayes.design import (
    CompressedDesign,
    DenseDesign,
    Design,
    HStack,
    LazyDesign,
    OperatorDesign,
    SparseDesign,
    as_design,
    compress_kernel,
    representatives,
)
from sparsebayes.testing.design import DesignConformance


class OnlyColumns(Design):
    """The least that a design can be: everything else is the protocol's default."""

    def __init__(self, Phi):
        self._Phi = Phi

    @property
    def shape(self):
        return self._Phi.shape

    def columns(self, idx):
        return self._Phi[:, np.arange(self.shape[1])[idx]]


class TestDefaults(DesignConformance):
    def make(self, Phi):
        return OnlyColumns(Phi)


class TestDense(DesignConformance):
    def make(self, Phi):
        return DenseDesign(Phi)


class TestDenseByColumns(DesignConformance):
    def make(self, Phi):
        return DenseDesign(np.asfortranarray(Phi))


class TestDenseSingle(DesignConformance):
    """float32 storage: exact where the entries are, with products in float64."""

    def make(self, Phi):
        return DenseDesign(Phi.astype(np.float32))

    def matrix(self, n=23, m=11, seed=0):
        return super().matrix(n, m, seed).astype(np.float32).astype(np.float64)


class TestCompressed(DesignConformance):
    def make(self, Phi):
        m = max(0, Phi.shape[1] - 1)
        return CompressedDesign(Phi[:, :m], np.eye(m), further=Phi[:, m:])


@pytest.mark.parametrize("weights", [np.ones(40), np.linspace(0.5, 2.0, 40)])
def test_a_compression_on_few_rows_has_the_inner_products_of_all(weights):
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((40, 5)), rng.standard_normal((30, 5))
    design = CompressedDesign(left, right).with_ones()
    gram, _ = design.inner_products(weights, np.zeros((40, 0)))
    few = design.with_rows(np.linalg.cholesky(gram).T).columns(slice(None))
    Phi = np.column_stack([left @ right.T, np.ones(40)])
    np.testing.assert_allclose(few.T @ few, Phi.T @ (weights[:, None] * Phi), rtol=1e-10, atol=1e-10)


class TestSparse(DesignConformance):
    def make(self, Phi):
        return SparseDesign(sparse.csr_array(Phi))


class TestOperator(DesignConformance):
    def make(self, Phi):
        return OperatorDesign(aslinearoperator(Phi))


class TestOperatorOfVectors(DesignConformance):
    """An operator that knows vectors only; SciPy makes the matrix products from them."""

    def make(self, Phi):
        return OperatorDesign(
            LinearOperator(Phi.shape, matvec=lambda x: Phi @ x, rmatvec=lambda v: Phi.T @ v, dtype=np.float64)
        )


class TestLazy(DesignConformance):
    def make(self, Phi):
        return LazyDesign(Precomputed().bind(Phi), Phi, block=4)


class TestStack(DesignConformance):
    """A stack of two kinds of storage is a design like any other."""

    def make(self, Phi):
        half = Phi.shape[1] // 2
        return HStack([DenseDesign(Phi[:, :half]), SparseDesign(sparse.coo_array(Phi[:, half:]))])


def test_as_design_dispatches():
    Phi = np.arange(6.0).reshape(3, 2)
    assert isinstance(as_design(Phi), DenseDesign)
    assert isinstance(as_design(sparse.csr_matrix(Phi)), SparseDesign)
    assert isinstance(as_design(sparse.coo_array(Phi)), SparseDesign)
    assert isinstance(as_design(aslinearoperator(Phi)), OperatorDesign)
    design = as_design(Phi)
    assert as_design(design) is design
    with pytest.raises(TypeError, match="X is of type list; expected a NumPy array"):
        as_design(Phi.tolist())


@pytest.mark.parametrize("make", [DenseDesign, lambda Phi: SparseDesign(sparse.csr_array(Phi))])
def test_integers_and_booleans_are_accepted_and_others_not(make):
    Phi = np.array([[0, 1], [1, 1], [2, 0]])
    np.testing.assert_array_equal(make(Phi).gram([0, 1]), Phi.T @ Phi)
    np.testing.assert_array_equal(make(Phi > 0).sqnorms(), [2.0, 2.0])
    with pytest.raises(TypeError, match="complex128; expected real"):
        make(Phi * 1j)


def test_dense_needs_two_dimensions():
    with pytest.raises(ValueError, match=r"Phi has shape \(3,\)"):
        DenseDesign(np.ones(3))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
def test_dense_holds_no_copy(dtype, order):
    Phi = np.asarray(np.random.default_rng(0).standard_normal((6, 4)), dtype=dtype, order=order)
    for view in (Phi, Phi[:, 1:3], Phi[2:5]):
        design = DenseDesign(view)
        view[0, 0] = 7.0
        assert design.columns([0])[0, 0] == 7.0


def test_single_precision_is_accumulated_in_double():
    Phi = np.full((200_000, 2), 0.1, dtype=np.float32)
    exact = 200_000 * np.float64(np.float32(0.1))
    np.testing.assert_allclose(DenseDesign(Phi).correlate(np.ones(200_000)), exact, rtol=1e-12)
    np.testing.assert_allclose(DenseDesign(Phi).sqnorms(), exact * np.float64(np.float32(0.1)), rtol=1e-11)


def test_sparse_sums_duplicates_without_touching_the_callers_array():
    Phi = sparse.csc_array((np.array([1.0, 2.0, 3.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    np.testing.assert_array_equal(SparseDesign(Phi).sqnorms(), [9.0, 9.0])
    assert Phi.nnz == 3


def test_operator_without_adjoint_is_refused():
    with pytest.raises(TypeError, match="rmatvec"):
        OperatorDesign(LinearOperator((3, 2), matvec=lambda x: np.zeros(3), dtype=np.float64))
    with pytest.raises(TypeError, match="complex"):
        OperatorDesign(aslinearoperator(np.eye(2) * 1j))


@pytest.mark.parametrize("max_bytes", [1, 8 * 40 * 3, 1 << 20])
def test_lazy_stays_within_its_budget(max_bytes):
    X = np.random.default_rng(0).standard_normal((40, 2))
    functions = (Bias() + Linear() + RBF(1.5)).bind(X)
    design = LazyDesign(functions, X, max_bytes=max_bytes)
    assert design.functions is functions
    dense = DenseDesign(functions.evaluate(X))
    widths = [block.stop - block.start for block in design.blocks()]
    assert max(widths) == min(max(1, max_bytes // (8 * 40)), len(functions))
    weights = np.linspace(-1, 1, 40)
    np.testing.assert_allclose(design.gram([0, 5, 41], weights), dense.gram([0, 5, 41], weights), atol=1e-12)
    np.testing.assert_allclose(design.sqnorms(weights), dense.sqnorms(weights), atol=1e-12)


def test_lazy_checks_its_arguments():
    functions = Linear().bind(np.ones((3, 2)))
    with pytest.raises(ValueError, match="X has 3 features; the functions take 2"):
        LazyDesign(functions, np.ones((4, 3)))
    with pytest.raises(ValueError, match="block=0"):
        LazyDesign(functions, np.ones((4, 2)), block=0)


def test_stack_takes_designs_only():
    with pytest.raises(TypeError, match="as_design"):
        HStack([DenseDesign(np.eye(2)), np.eye(2)])  # type: ignore[list-item]


@given(
    labels=st.lists(st.integers(0, 6), min_size=1, max_size=30),
    order=st.sampled_from("CF"),
    n=st.integers(1, 9),
)
@settings(max_examples=60, deadline=None)
def test_representatives_are_the_first_equal_columns(labels, order, n):
    distinct = np.random.default_rng(1).integers(-1, 2, (n, 7)).astype(float)  # few values: many near misses
    Phi = np.asarray(distinct[:, labels], order=order)
    expected = [
        next(j for j in range(m + 1) if (Phi[:, j] == Phi[:, m]).all()) if Phi[:, m].any() else m
        for m in range(Phi.shape[1])
    ]
    assert representatives(DenseDesign(Phi)).tolist() == expected


def test_representatives_are_exact():
    Phi = np.random.default_rng(0).standard_normal((30, 6))
    Phi[:, 3] = Phi[:, 0]
    Phi[:, 4] = Phi[:, 1]
    Phi[17, 4] = np.nextafter(Phi[17, 4], 9.0)  # one bit of one entry
    Phi[5, [0, 3]] = [0.0, -0.0]
    Phi[:, 5] = -Phi[:, 2]
    assert representatives(DenseDesign(Phi)).tolist() == [0, 1, 2, 0, 4, 5]


def test_representatives_of_zero_columns_are_themselves():
    assert representatives(DenseDesign(np.zeros((4, 3)))).tolist() == [0, 1, 2]
    assert representatives(DenseDesign(np.zeros((4, 0)))).size == 0


def test_representatives_of_repeated_rows_in_many_dimensions():
    """Repeated training rows are repeated functions, also where distances come from a matrix product."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 24))
    X[[10, 33, 59]] = X[4]
    functions = RBF(5.0).bind(X)
    expected = np.arange(60)
    expected[[10, 33, 59]] = 4
    for design in (LazyDesign(functions, X, block=7), DenseDesign(functions.evaluate(X))):
        assert (representatives(design) == expected).all()


def test_representatives_of_all_equal_columns_in_bounded_blocks(monkeypatch):
    monkeypatch.setattr("sparsebayes.design.protocol.BLOCK_BYTES", 8 * 20 * 5)
    asked = []

    class Watched(DenseDesign):
        def columns(self, idx):
            asked.append(len(idx))
            return super().columns(idx)

    assert (representatives(Watched(np.ones((20, 300)))) == 0).all()
    assert max(asked) == 5
    assert sum(asked) == 300


def test_representatives_compare_no_pairs():
    """Of five thousand distinct columns none is produced."""

    class NoColumns(DenseDesign):
        def columns(self, idx):
            raise AssertionError("no column is a candidate")

    Phi = np.random.default_rng(0).standard_normal((200, 5000))
    assert (representatives(NoColumns(Phi)) == np.arange(5000)).all()


@pytest.mark.parametrize("tolerance", [1e-1, 1e-3])
@pytest.mark.parametrize("elsewhere", [False, True])
def test_entries_of_a_compressed_kernel_are_wrong_by_no_more_than_it_says(elsewhere, tolerance):
    rng = np.random.default_rng(0)
    X = rng.uniform(-4.0, 4.0, (300, 2))
    functions = RBF(1.5, centres=rng.uniform(-3.0, 3.0, (120, 2)) if elsewhere else None).bind(X)
    design = compress_kernel(functions, X, tolerance, 300)
    assert design.rank < len(functions)
    for compressed in (design, design.with_ones()):
        off = np.abs(functions.evaluate(X) - compressed.columns(np.arange(len(functions))))
        rows, columns = compressed.remainders
        assert np.all(off <= np.sqrt(np.maximum(np.outer(rows, columns[: len(functions)]), 0.0)) + 1e-12)
        assert off.max() <= compressed.error + 1e-12
        assert compressed.error < 10.0 * off.max()
