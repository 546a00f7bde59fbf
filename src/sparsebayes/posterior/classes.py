"""Class probabilities, integrated over a Gaussian posterior of the weights."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax, softmax

from sparsebayes.posterior.far import reduced, restored, within
from sparsebayes.typing import Array

# Factors of a covariance that are tried: half orders of magnitude.
TEMPERS = (1.0, 0.3, 0.1, 0.03, 0.01)


def moderation(variance: Array, unit: Array | float = 1.0) -> Array:
    r""":math:`\kappa(v) = (1+\pi v/8)^{-1/2}`: :math:`E[\sigma(y)] \approx \sigma(\kappa(v)\bar y)` (MacKay 1992).

    Of outputs and variances in units u it is :math:`u\kappa(u^2v) = (u^{-2}+\pi v/8)^{-1/2}`, a number where
    :math:`u^2` is none.
    """
    return 1.0 / np.sqrt(np.maximum((1.0 / unit) ** 2 + np.pi * variance / 8.0, np.finfo(np.float64).tiny))


def moderated_gaps(y: Array, variance: Array, unit: Array | float = 1.0) -> Array:
    """Outputs (n, K) below the largest of each row, moderated by the variances of these differences, centred."""
    gap = y - np.max(y, axis=1, keepdims=True)
    decided = within(moderation(np.maximum(variance, 0.0), unit) * gap)
    return decided - decided.mean(axis=1, keepdims=True)


@dataclass(frozen=True)
class ClassPosterior:
    """Posterior of the kept weights of one or several coupled outputs.

    Attributes
    ----------
    functions : ndarray of int, shape (a,)
        Which of the model's kept functions each weight belongs to.
    outputs : ndarray of int, shape (a,)
        Which output it feeds.
    n_outputs : int
        Number of outputs: 1 for two classes (logistic), else one for each class (softmax).
    mean, covariance : ndarray of shape (a,), (a, a)
        Mode of the posterior, and covariance of the Gaussian about it that is nearest to the posterior.
    temper : float
        What the covariance is multiplied by where outputs are integrated over it: see :meth:`tempered`.
    """

    functions: NDArray[np.intp]
    outputs: NDArray[np.intp]
    n_outputs: int
    mean: Array
    covariance: Array
    temper: float = 1.0

    def predict(self, values: Array) -> Array:
        """Outputs at the mode, (n, K), from the values of all kept functions; finite however far out the inputs are."""
        values, units = reduced(values)
        return restored(self._outputs(values), units[:, None])

    def _outputs(self, values: Array) -> Array:
        y = np.zeros((len(values), self.n_outputs))
        for k in range(self.n_outputs):
            mine = self.outputs == k
            y[:, k] = values[:, self.functions[mine]] @ self.mean[mine]
        return y

    def decide(self, values: Array, *, moderated: bool) -> Array:
        """Outputs whose logistic or softmax is the class probability, (n, K).

        Moderated outputs integrate over the posterior of the weights.  With several classes the log-odds of each
        against the class of the largest output are moderated by the variance of their difference: for two classes
        exactly the logistic rule, and the class of the largest output remains the most probable one.
        """
        if not moderated:
            return self.predict(values)
        values, units = reduced(values)
        y, v = self._outputs(values), self._covariance(values)
        if self.n_outputs == 1:
            return within(moderation(np.maximum(v[:, 0], 0.0), units[:, None]) * y)
        rows, best = np.arange(len(y)), np.argmax(y, axis=1)
        own = np.diagonal(v, axis1=1, axis2=2)
        return moderated_gaps(y, own + own[rows, best, None] - 2.0 * v[rows, best], units[:, None])

    def tempered(self, values: Array, left_out: Array, targets: Array, counts: Array) -> ClassPosterior:
        """The same with that ``temper``, at most one, with which left-out rows are predicted best.

        Where classes are separable the posterior is skewed: its mean lies farther from zero than its mode, and
        probabilities that are integrated about the mode are too timid.  That says nothing of how well the weights are
        determined: their covariance stays.

        Parameters
        ----------
        values : ndarray of shape (N, a)
            Values of all kept functions on the training rows.
        left_out, targets : ndarray of shape (N, K)
            Outputs of every row by the model without it, and its class, one-hot.
        counts : ndarray of shape (N,)
            Sample weights.
        """
        variance = np.empty_like(left_out)  # weights of different classes have no covariance here
        for k in range(self.n_outputs):
            mine = self.outputs == k
            own = values[:, self.functions[mine]]
            variance[:, k] = np.einsum("np,np->n", own @ self.covariance[np.ix_(mine, mine)], own)
        rows, best = np.arange(len(left_out)), np.argmax(left_out, axis=1)
        apart = variance + variance[rows, best, None]
        apart[rows, best] = 0.0
        decided = [log_softmax(moderated_gaps(left_out, factor * apart), axis=1) for factor in TEMPERS]
        best = int(np.argmax([counts @ np.sum(targets * one, axis=1) for one in decided]))
        return replace(self, temper=TEMPERS[best])

    @property
    def differences(self) -> Array:
        """Combinations of the outputs by whose variances they are moderated: each alone, or one for each pair."""
        first, second = np.triu_indices(self.n_outputs, 1)
        eye = np.eye(self.n_outputs)
        return eye if self.n_outputs == 1 else eye[first] - eye[second]

    def probabilities(self, values: Array, *, moderated: bool) -> Array:
        """Probability of the positive class, (n, 1), or of each of K classes, (n, K)."""
        y = self.decide(values, moderated=moderated)
        return expit(y) if self.n_outputs == 1 else softmax(y, axis=1)

    def _covariance(self, values: Array) -> Array:
        """Covariance of the outputs that they are integrated over, (n, K, K)."""
        mine = values[:, self.functions]
        groups = [np.flatnonzero(self.outputs == k) for k in range(self.n_outputs)]
        found = np.zeros((len(values), self.n_outputs, self.n_outputs))
        for k, group in enumerate(groups):
            terms = (mine[:, group] @ self.covariance[group]) * mine
            for j, other in enumerate(groups):
                found[:, k, j] = terms[:, other].sum(axis=1)
        return self.temper * found
