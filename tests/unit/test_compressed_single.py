"""Coordinates of a compression in single precision: what they round is within the bounds that the certificate uses."""

import numpy as np

from sparsebayes.basis import RBF
from sparsebayes.design import compressed


def test_what_single_precision_rounds_is_within_the_bounds(monkeypatch):
    monkeypatch.setattr(compressed, "_SINGLE_BYTES", 0)
    X = np.random.default_rng(0).uniform(-3.0, 3.0, (9000, 2))
    functions = RBF(2.5).bind(X)
    design = compressed.compress_kernel(functions, X, 1e-8, 500)
    assert design.left.dtype == np.float32
    rows, columns = design.remainders
    some = np.arange(0, 9000, 60)
    off = np.abs(functions.evaluate(X, some) - design.columns(some))
    assert np.all(off <= np.sqrt(np.outer(rows, columns[some])) + 1e-12)
    assert off.max() > 0.0
