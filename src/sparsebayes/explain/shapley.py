r"""Exact attributions of a model's outputs to its inputs, with the posterior's error bars.

The output :math:`y(\mathbf x)=\sum_mw_m\phi_m(\mathbf x)` is linear in the weights, and Shapley values are linear in
the output: :math:`\phi_j=\mathbf a_j^\top\mathbf w` with the attributions :math:`\mathbf a_j` of the functions, so that
the posterior of an attribution is Gaussian with mean :math:`\mathbf a_j^\top\boldsymbol\mu` and variance
:math:`\mathbf a_j^\top\boldsymbol\Sigma\mathbf a_j`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import is_classifier

from sparsebayes.frames import data_frame
from sparsebayes.inference.solvers.solver import is_number
from sparsebayes.posterior import ClassPosterior
from sparsebayes.threads import one_thread

from .problems import opened
from .products import Terms, terms_of
from .quadrature import product_values
from .widening import check_uncertainty, factors, left_out, values_of

Array = NDArray[np.float64]
# Functions, posterior mean and covariance of the weights, and offset of an output.
_Output = tuple[Any, Array, Array, float]

VALUES = ("baseline", "interventional")
# Rows of X that stand for the data where no background is given, and numbers held at once: few enough that their memory
# is used again and not fetched anew.
_BACKGROUND = 100
_NUMBERS = 1 << 14


@dataclass(frozen=True)
class Attributions:
    """Shapley values of every input for every row.

    Attributes
    ----------
    values, std : ndarray of shape (n, d) or (n, d, K)
        Mean and standard deviation of each attribution; for several targets or classes one for each of the K
        outputs.
    base_values, base_std : float or ndarray of shape (K,)
        Output without any input known, its mean over the background, and the posterior's standard deviation of it.
        ``base_values + values.sum(axis=1)`` is the model's output.
    data : ndarray of shape (n, d)
        The rows; all columns also where the values are of groups of them.
    feature_names, output_names : list of str
        Of the inputs, and of the outputs (empty where there is one).
    value : {"baseline", "interventional"}
        The value function.
    """

    values: Array
    std: Array
    base_values: Any
    base_std: Any
    data: Array
    feature_names: list[str]
    output_names: list[str]
    value: str

    def to_explanation(self) -> Any:
        """As a ``shap.Explanation``, with the standard deviations as its ``error_std``."""
        try:
            import shap
        except ImportError:
            raise ImportError("an Explanation needs the package shap: pip install 'sparsebayes[explain]'") from None
        return shap.Explanation(
            values=self.values,
            base_values=np.repeat(np.asarray(self.base_values)[None], len(self.data), axis=0),
            data=self.data,
            feature_names=self.feature_names,
            output_names=self.output_names or None,
            error_std=self.std,
        )

    def to_frame(self, output: int = 0) -> Any:
        """Attributions of one output as a pandas DataFrame, one column for each input."""
        return data_frame(self.values if self.values.ndim == 2 else self.values[:, :, output], self.feature_names)


def shapley(
    model: Any,
    X: Any,
    background: Any = None,
    *,
    value: str = "baseline",
    as_array: bool = False,
    return_std: bool = False,
    uncertainty: str = "calibrated",
) -> Any:
    r"""Exact Shapley values of a fitted model.

    The attributions are of the model's output: a regression's mean, the log rate of counts, the log-odds of two classes
    or the outputs of several, at the posterior mean of the weights (``decision_function`` before it is moderated).

    Parameters
    ----------
    model : estimator or Pipeline
        Fitted; its functions must be products or sums of functions of one input: Gaussian and Laplacian kernels (with
        one width or one for each input), linear splines, the linear kernel, columns, monomials, steps, or sums of them.
        The steps of a pipeline before the model are carried out first: attributions are to what comes out of them.
    X : array-like of shape (n, d)
        Rows to be explained.
    background : array-like of shape (k, d) or (d,), optional
        What an input that is not known is replaced by.  By default the mean of X under ``value="baseline"``, and X
        itself (100 rows of it, evenly spaced) under ``value="interventional"``.
    value : {"baseline", "interventional"}
        What a set S of known inputs is worth.  "baseline": the output at the row with all other inputs at one reference
        point, the mean of ``background``.  "interventional": the mean of the outputs with all other inputs those of
        each row of ``background`` in turn.
    as_array : bool, default=False
        Return arrays also where shap is installed.
    return_std : bool, default=False
        Of arrays: also return the standard deviations.
    uncertainty : {"calibrated", "posterior"}
        Where the standard deviations come from: the posterior of the weights, widened by as much as searches on parts
        of the rows say that it leaves out, and for columns that the model does without, how well the data determine
        their weights (see :mod:`sparsebayes.explain.widening`; regressions); or the posterior alone.  The first may
        have to make these searches, as ``predict(..., return_std=True)`` has.

    Returns
    -------
    shap.Explanation, ndarray, or a tuple (values, std)
        An explanation where shap is installed (the standard deviations are its ``error_std``), else the
        values, of shape (n, d), or (n, d, K) for K outputs.

    Notes
    -----
    O(functions × inputs²) operations a row (and row of the background), exact to rounding (see
    :mod:`sparsebayes.explain.quadrature`).

    Examples
    --------
    >>> import numpy as np
    >>> from sparsebayes import RVR
    >>> from sparsebayes.explain import shapley
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 3))
    >>> model = RVR().fit(X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2])
    >>> values, std = shapley(model, X, as_array=True, return_std=True)
    >>> bool(np.allclose(values.sum(axis=1), model.predict(X) - model.predict(X.mean(axis=0)[None])))
    True
    """
    found = attributions(model, X, background, value=value, uncertainty=uncertainty)
    if not as_array and not return_std:
        try:
            return found.to_explanation()
        except ImportError:
            return found.values
    return (found.values, found.std) if return_std else found.values


def attributions(
    model: Any,
    X: Any,
    background: Any = None,
    *,
    value: str = "baseline",
    groups: Mapping[str, Sequence[int | str]] | None = None,
    uncertainty: str = "calibrated",
) -> Attributions:
    """Exact Shapley values with all that is known of them.

    Parameters
    ----------
    model, X, background, value, uncertainty
        As in :func:`shapley`.
    groups : mapping of str to sequence of int or str, optional
        Columns of X, by number or name, that are one input, such as the indicators of a category: the attributions of a
        group are the sums of those of its columns, and the standard deviations are those of the sums.  Columns in no
        group follow by themselves.
    """
    if value not in VALUES:
        raise ValueError(f"value={value!r}: expected one of {', '.join(map(repr, VALUES))}")
    check_uncertainty(uncertainty)
    est, prepare, names = opened(model)
    X = _rows(est, prepare(X), "X")
    reference = _references(est, X, prepare, background, value)
    labels, parts = _partition(groups or {}, names)
    asked = _Asked.of(est, X, reference, parts)
    outputs = list(_outputs(est))
    values, std = asked.values(outputs)
    if uncertainty == "calibrated" and not is_classifier(est):
        further = asked.together @ np.square((X - reference.mean(axis=0))[:, :, None] * left_out(est))
        std = np.sqrt(np.square(factors(est) * std) + further)
    base_values, base_std = asked.base(outputs)
    single = len(outputs) == 1 and getattr(est, "_single", True)
    return Attributions(
        values=values[:, :, 0] if single else values,
        std=std[:, :, 0] if single else std,
        base_values=float(base_values[0]) if single else base_values,
        base_std=float(base_std[0]) if single else base_std,
        data=X,
        feature_names=labels,
        output_names=[] if single else _output_names(est, len(outputs)),
        value=value,
    )


@dataclass(frozen=True)
class _Asked:
    """Rows and references as the functions of a model take them, and which columns are one input."""

    functions: Any
    X: Array
    reference: Array
    together: Array

    @classmethod
    def of(cls, est: Any, X: Array, reference: Array, groups: Sequence[list[int]]) -> _Asked:
        together = np.zeros((len(groups), X.shape[1]))
        together[
            [k for k, columns in enumerate(groups) for _ in columns], [c for columns in groups for c in columns]
        ] = 1.0
        shift = vars(est).get("X_offset_")
        if shift is None:
            return cls(est._functions, X, reference, together)
        return cls(est._functions, X - shift, reference - shift, together)  # columns are functions less their means

    def values(self, outputs: list[_Output]) -> tuple[Array, Array]:
        """Attributions of every output and their standard deviations, (n, inputs, K)."""
        n, d = self.X.shape
        values, std = (np.zeros((n, len(self.together), len(outputs))) for _ in range(2))
        if self.functions is None:
            return values, std
        terms, count = terms_of(self.functions), len(self.functions)
        step = max(1, _NUMBERS // max(1, d * count))
        with one_thread():
            at_reference = [t.evaluate(self.reference) for t in terms]
            for start in range(0, n, step):
                part = slice(start, start + step)
                by_column = _by_function(terms, self.X[part], at_reference, count)
                by_function = by_column if self._apart else np.einsum("gd,ndf->ngf", self.together, by_column)
                for k, (functions, mean, covariance, _) in enumerate(outputs):
                    mine = by_function[:, :, functions]
                    values[part, :, k] = mine @ mean
                    squares = np.einsum("njf,njf->nj", mine @ covariance, mine)
                    std[part, :, k] = np.sqrt(np.maximum(squares, 0.0))
        return values, std

    @property
    def _apart(self) -> bool:
        """Whether every column is an input of its own."""
        return self.together.shape == (self.X.shape[1],) * 2 and bool(np.all(np.diag(self.together) == 1.0))

    def base(self, outputs: list[_Output]) -> tuple[Array, Array]:
        """Every output without any input known, and its standard deviation."""
        values = values_of(self.functions, self.reference).mean(axis=0)
        mean = [values[functions] @ weights + offset for functions, weights, _, offset in outputs]
        variance = [max(float(values[f] @ covariance @ values[f]), 0.0) for f, _, covariance, _ in outputs]
        return np.array(mean), np.sqrt(variance)


def _partition(groups: Mapping[str, Sequence[int | str]], names: list[str]) -> tuple[list[str], list[list[int]]]:
    """Groups of columns and the columns that are in none: what they are called, and their numbers."""
    if not isinstance(groups, Mapping):
        raise TypeError(f"groups={groups!r}: expected a mapping of names to columns, such as {{'town': [3, 4, 5]}}")
    numbers, parts = {name: j for j, name in enumerate(names)}, list[list[int]]()
    for group, columns in groups.items():
        parts.append([numbers.get(c, -1) if isinstance(c, str) else c for c in columns])
        if not all(is_number(c, Integral) and 0 <= c < len(names) for c in parts[-1]):
            raise ValueError(
                f"groups[{group!r}] names columns {list(columns)!r}: expected some of 0 to {len(names) - 1}, or names "
                "of columns"
            )
    taken = [c for columns in parts for c in set(columns)]
    if len(set(taken)) < len(taken):
        raise ValueError("groups: a column is in two of them")
    others = sorted(set(range(len(names))).difference(taken))
    return [*groups, *(names[j] for j in others)], [*parts, *([j] for j in others)]


def _by_function(terms: list[Terms], X: Array, references: list[Array], n_functions: int) -> Array:
    """Attributions of every function to every input, (n, d, F), the mean over the references."""
    n, d = X.shape
    found = np.zeros((n, d, n_functions))
    for some, below in zip(terms, references, strict=True):
        above = some.evaluate(X)
        count, r = some.features.shape
        total = np.zeros((n, count, r))
        for b in below:
            total += product_values(above.reshape(-1, r), np.tile(b, (n, 1))).reshape(n, count, r)
        total /= len(below)
        if r == d and np.all(some.features == np.arange(d)):
            found[:, :, some.owners] += total.transpose(0, 2, 1)
            continue
        for i in range(r):
            # A function may have several terms, but never two with the same input.
            found[:, some.features[:, i], some.owners] += total[:, :, i]
    return found


def _outputs(est: Any) -> Iterator[_Output]:
    """Functions, posterior mean and covariance of the weights, and offset of every output."""
    for posterior in est._posteriors:
        if isinstance(posterior, ClassPosterior):
            for k in range(posterior.n_outputs):
                mine = np.flatnonzero(posterior.outputs == k)
                yield posterior.functions[mine], posterior.mean[mine], posterior.covariance[np.ix_(mine, mine)], 0.0
        else:
            yield posterior.functions, posterior.mean, posterior.covariance, posterior.offset


def _output_names(est: Any, count: int) -> list[str]:
    return [str(label) for label in est.classes_] if is_classifier(est) else [f"target {k}" for k in range(count)]


def _rows(est: Any, X: Any, name: str) -> Array:
    if sparse.issparse(X):
        raise TypeError(f"{name} is sparse: attributions are dense; pass {name}.toarray() of the rows to be explained")
    if _needs_no_check(est, X):
        return X
    return np.asarray(est._check_new(X), dtype=np.float64)


def _needs_no_check(est: Any, X: Any) -> bool:
    """Whether scikit-learn would find nothing to say of X; of a few rows, its asking takes longer than the answer."""
    return (
        type(X) is np.ndarray
        and X.dtype == np.float64
        and X.shape[1:] == (est.n_features_in_,)
        and len(X) > 0
        and not hasattr(est, "feature_names_in_")
        and bool(np.isfinite(X).all())
    )


def _references(est: Any, X: Array, prepare: Callable[[Any], Any], background: Any, value: str) -> Array:
    """Rows that stand for inputs that are not known."""
    if background is None:
        if len(X) == 1:
            raise ValueError(
                "background=None: one row of X cannot be its own background; pass rows of the training data"
            )
        rows = X if value == "baseline" else X[np.linspace(0, len(X) - 1, min(len(X), _BACKGROUND)).astype(int)]
    else:
        if np.ndim(background) == 1:
            # A Series of column means keeps the names of its columns.
            is_series = hasattr(background, "to_frame")
            background = background.to_frame().T if is_series else np.reshape(background, (1, -1))
        rows = _rows(est, prepare(background), "background")
    return rows.mean(axis=0, keepdims=True) if value == "baseline" else rows
