"""What every design must do, as a suite of tests that an implementation inherits.

>>> class TestMine(DesignConformance):
...     def make(self, Phi):
...         return MyDesign(Phi)

Every method of the protocol is compared with the same algebra on a NumPy array.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from sparsebayes.design import Design, HStack, representatives

Floats = NDArray[np.float64]


class DesignConformance(ABC):
    """The conformance suite; pytest collects it through subclasses whose name starts with ``Test``.

    Attributes
    ----------
    rtol : float
        Agreement asked for, relative to the largest entry of the expected result.
    """

    rtol: float = 1e-12

    @abstractmethod
    def make(self, Phi: Floats) -> Design:
        """Return the design under test with the entries of ``Phi``."""

    def matrix(self, n: int = 23, m: int = 11, seed: int = 0) -> Floats:
        """Return a matrix for the tests; override where a design can hold only some matrices."""
        Phi = np.random.default_rng(seed).standard_normal((n, m))
        Phi[np.abs(Phi) < 0.4] = 0.0  # exact zeros, which sparse storage leaves out
        return Phi

    def _pair(self) -> tuple[Floats, Design]:
        Phi = self.matrix()
        return Phi, self.make(Phi.copy())

    def _agree(self, actual: Any, expected: Floats) -> None:
        assert isinstance(actual, np.ndarray), f"expected a NumPy array, got {type(actual).__name__}"
        assert actual.dtype == np.float64, f"expected float64, got {actual.dtype}"
        assert actual.shape == expected.shape, f"expected shape {expected.shape}, got {actual.shape}"
        scale = float(np.max(np.abs(expected), initial=0.0))
        assert_allclose(actual, expected, rtol=self.rtol, atol=self.rtol * max(scale, 1e-300))

    @staticmethod
    def _indices(m: int) -> list[Any]:
        """Return the ways to index: one, several, out of order, repeated, none, all, masked, from the end."""
        mask = np.arange(m) % 3 == 1
        return [[0], [m - 1, 0, 3], [2, 2, 0, 2], [], np.empty(0, dtype=np.intp), np.arange(m), mask, [-1, 1]]

    @staticmethod
    def _weights(n: int) -> list[Floats | None]:
        """Return row weights: none, positive, of both signs, mostly zero."""
        rng = np.random.default_rng(1)
        return [None, rng.uniform(0.1, 2.0, n), rng.standard_normal(n), (np.arange(n) == 2).astype(float)]

    def test_shape(self) -> None:
        """The shape is a pair of ints."""
        Phi, design = self._pair()
        assert tuple(design.shape) == Phi.shape
        assert all(isinstance(size, int) for size in design.shape)

    def test_columns(self) -> None:
        """``columns(idx)`` is Φ[:, idx]."""
        Phi, design = self._pair()
        for idx in self._indices(Phi.shape[1]):
            self._agree(design.columns(idx), Phi[:, np.asarray(idx, dtype=None if len(idx) else np.intp)])

    def test_columns_are_the_callers(self) -> None:
        """What ``columns`` returned may be overwritten."""
        Phi, design = self._pair()
        for idx in ([1], np.arange(Phi.shape[1])):
            design.columns(idx)[...] = np.nan
        self._agree(design.columns([1, 2]), Phi[:, [1, 2]])

    def test_columns_out_of_range(self) -> None:
        """An index past the end is an ``IndexError``."""
        Phi, design = self._pair()
        try:
            design.columns([Phi.shape[1]])
        except IndexError:
            return
        raise AssertionError("columns accepted an index out of range")

    def test_matvec(self) -> None:
        """``matvec(w, idx)`` is Φ[:, idx] w, for a vector and for a matrix of weights."""
        Phi, design = self._pair()
        rng = np.random.default_rng(2)
        for idx in self._indices(Phi.shape[1]):
            columns = Phi[:, np.asarray(idx, dtype=None if len(idx) else np.intp)]
            for shape in [(), (1,), (3,)]:
                w = rng.standard_normal((columns.shape[1], *shape))
                self._agree(design.matvec(w, idx), columns @ w)

    def test_rows(self) -> None:
        """``rows(part)`` is Φ[part]; what comes back may be overwritten."""
        Phi, design = self._pair()
        part = slice(1, Phi.shape[0] - 1)
        found = design.rows(part)
        self._agree(found, Phi[part])
        found[...] = 0.0
        self._agree(design.rows(part), Phi[part])

    def test_correlate(self) -> None:
        """``correlate(V)`` is Φᵀ V, for a vector and for matrices."""
        Phi, design = self._pair()
        rng = np.random.default_rng(3)
        for shape in [(), (1,), (4,), (0,)]:
            V = rng.standard_normal((Phi.shape[0], *shape))
            self._agree(design.correlate(V), Phi.T @ V)

    def test_gram(self) -> None:
        """``gram(idx, weights)`` is Φᵀ diag(weights) Φ[:, idx], whatever the signs of the weights."""
        Phi, design = self._pair()
        for idx in self._indices(Phi.shape[1]):
            columns = Phi[:, np.asarray(idx, dtype=None if len(idx) else np.intp)]
            for weights in self._weights(Phi.shape[0]):
                weighted = columns if weights is None else weights[:, None] * columns
                self._agree(design.gram(idx, weights), Phi.T @ weighted)

    def test_sqnorms(self) -> None:
        """``sqnorms(weights)`` is the diagonal of Φᵀ diag(weights) Φ, whatever the signs of the weights."""
        Phi, design = self._pair()
        for weights in self._weights(Phi.shape[0]):
            rows = np.ones(Phi.shape[0]) if weights is None else weights
            self._agree(design.sqnorms(weights), rows @ Phi**2)

    def test_among(self) -> None:
        """``among(idx)`` is the Gram matrix of some columns, in their order."""
        Phi, design = self._pair()
        idx = np.arange(Phi.shape[1])[::-2]
        self._agree(design.among(idx), Phi[:, idx].T @ Phi[:, idx])

    def test_sqnorms_are_grams_diagonal(self) -> None:
        """The two routes to S agree: the diagonal of the full Gram matrix is ``sqnorms``."""
        Phi, design = self._pair()
        weights = np.random.default_rng(4).standard_normal(Phi.shape[0])
        self._agree(np.diag(design.gram(np.arange(Phi.shape[1]), weights)).copy(), design.sqnorms(weights))

    def test_weights_of_wrong_length(self) -> None:
        """Row weights that do not match the rows are a ``ValueError``."""
        Phi, design = self._pair()
        weights = np.ones(Phi.shape[0] + 1)
        for product in (lambda: design.gram([0], weights), lambda: design.sqnorms(weights)):
            try:
                product()
            except ValueError:
                continue
            raise AssertionError("weights of the wrong length were accepted")

    def test_arguments_are_not_changed(self) -> None:
        """Products leave their arguments as they were, and take arrays of any layout."""
        Phi, design = self._pair()
        V = np.asfortranarray(np.random.default_rng(5).standard_normal((2 * Phi.shape[0], 6)))[::2, ::3]
        weights = np.linspace(-1.0, 1.0, 2 * Phi.shape[0])[::2]
        before = V.copy(), weights.copy()
        self._agree(design.correlate(V), Phi.T @ V)
        self._agree(design.gram([0, 2], weights), Phi.T @ (weights[:, None] * Phi[:, [0, 2]]))
        self._agree(design.sqnorms(weights), weights @ Phi**2)
        assert (before[0] == V).all()
        assert (before[1] == weights).all()

    def test_integer_arguments(self) -> None:
        """Integers are numbers like any other, and the results are float64."""
        Phi, design = self._pair()
        ones = np.ones(Phi.shape[0], dtype=np.int64)
        self._agree(design.correlate(ones), Phi.T @ ones)
        self._agree(design.gram([1], ones), Phi.T @ Phi[:, [1]])
        self._agree(design.matvec([1, 2], [0, 1]), Phi[:, :2] @ np.array([1.0, 2.0]))

    def test_layouts(self) -> None:
        """Rows first, columns first and strided views of a larger array give the same design."""
        Phi = self.matrix()
        large = np.zeros((2 * Phi.shape[0], 3 * Phi.shape[1]))
        large[::2, ::3] = Phi
        for view in (np.ascontiguousarray(Phi), np.asfortranarray(Phi), large[::2, ::3], Phi[::-1][::-1]):
            design = self.make(view)
            self._agree(design.columns([3, 1]), Phi[:, [3, 1]])
            self._agree(design.correlate(np.ones(Phi.shape[0])), Phi.sum(axis=0))
            self._agree(design.sqnorms(), (Phi**2).sum(axis=0))

    def test_one_column_and_one_row(self) -> None:
        """The smallest designs work."""
        for n, m in [(7, 1), (1, 5), (1, 1)]:
            Phi = self.matrix(n, m, seed=6)
            design = self.make(Phi.copy())
            self._agree(design.columns([0]), Phi[:, [0]])
            self._agree(design.correlate(np.ones(n)), Phi.sum(axis=0))
            self._agree(design.gram([m - 1], np.full(n, -2.0)), -2.0 * Phi.T @ Phi[:, [m - 1]])
            self._agree(design.sqnorms(), (Phi**2).sum(axis=0))

    def test_blocks_cover_the_columns(self) -> None:
        """``blocks`` yields every column once, in order."""
        Phi, design = self._pair()
        columns = np.concatenate([np.arange(Phi.shape[1])[block] for block in design.blocks()])
        assert (columns == np.arange(Phi.shape[1])).all()

    def test_extend(self) -> None:
        """``extend`` puts designs side by side, in a flat stack, with all products."""
        first, design = self._pair()
        second, third = self.matrix(m=4, seed=7), self.matrix(m=2, seed=8)
        stack = design.extend(self.make(second.copy())).extend(self.make(third.copy()))
        Phi = np.hstack([first, second, third])
        m = Phi.shape[1]
        assert tuple(stack.shape) == Phi.shape
        rng = np.random.default_rng(9)
        weights = rng.standard_normal(Phi.shape[0])
        for idx in [*self._indices(m), [m - 1, 0, first.shape[1], 0], [first.shape[1] - 1, first.shape[1]]]:
            columns = Phi[:, np.asarray(idx, dtype=None if len(idx) else np.intp)]
            self._agree(stack.columns(idx), columns)
            self._agree(stack.gram(idx, weights), Phi.T @ (weights[:, None] * columns))
            for shape in [(), (2,)]:
                w = rng.standard_normal((columns.shape[1], *shape))
                self._agree(stack.matvec(w, idx), columns @ w)
        self._agree(stack.correlate(weights), Phi.T @ weights)
        self._agree(stack.sqnorms(weights), weights @ Phi**2)
        if isinstance(stack, HStack):
            assert not any(isinstance(part, HStack) for part in stack.parts), "stacks are to be flattened"

    def test_extend_with_other_rows(self) -> None:
        """Designs with different numbers of rows do not go side by side."""
        _, design = self._pair()
        other = self.make(self.matrix(n=5))
        try:
            design.extend(other)
        except ValueError:
            return
        raise AssertionError("designs with different numbers of rows were put side by side")

    def test_representatives(self) -> None:
        """Identical columns are found, through the products alone."""
        Phi = self.matrix()
        Phi[:, [4, 9]] = Phi[:, [1]]
        Phi[:, 8] = Phi[:, 7]
        expected = np.arange(Phi.shape[1])
        expected[[4, 9, 8]] = [1, 1, 7]
        assert (representatives(self.make(Phi)) == expected).all()
