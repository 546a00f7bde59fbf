r"""The Gaussian that is nearest to the posterior of the weights of a log rate.

Beyond the papers.  Laplace's Gaussian has the curvature at the mode, which is the rate there.  Where counts are zero
the mode takes the log rate far down, the curvature vanishes, and the variance :math:`v` of the log rate is next to the
prior's: rates :math:`e^y` integrated over it, :math:`e^{m+v/2}`, are beyond all counts, although a log rate one or two
standard deviations up would long have been seen.  Here mean and covariance are both free.  Of all Gaussians
:math:`q=N(\mathbf m,\mathbf V)` the nearest (in :math:`\mathrm{KL}(q\|p)`) maximises

.. math::

    \mathcal F(\mathbf m,\mathbf V) = \sum_n c_n[t_n(m_n+o) - r_n] - \tfrac12\mathbf m^\top\mathbf A\mathbf m
      - \tfrac12\mathrm{tr}(\mathbf A\mathbf V) + \tfrac12\log|\mathbf V| ,\qquad r_n = e^{m_n+o+v_n/2} ,

where :math:`m_n=\varphi_n^\top\mathbf m`, :math:`v_n=\varphi_n^\top\mathbf V\varphi_n`, and row n counts :math:`c_n`
times.  The expected rates are inside the objective, so that they cannot run away: at its maximum

.. math::

    \boldsymbol\Phi^\top\mathbf C(\mathbf t-\mathbf r) = \mathbf A\mathbf m ,\qquad
    \mathbf V^{-1} = \mathbf A + \boldsymbol\Phi^\top\mathbf C\,\mathrm{diag}(\mathbf r)\boldsymbol\Phi ,

the equations of the mode with the expected rate in the place of the rate at the mode.  :math:`\mathcal F` is concave in
the mean and the Cholesky factor of the covariance together, so that there is one maximum.  For a given covariance the
best mean is the mode of counts whose log rates are larger by :math:`v_n/2`; with it the second equation is one in the
covariance alone, and solved as that of a classifier is (``nearest.py``).
"""

from __future__ import annotations

import numpy as np

from sparsebayes.design import DenseDesign
from sparsebayes.inference.models.evidence import Array
from sparsebayes.inference.models.linalg import cholesky, inverse_upper
from sparsebayes.inference.models.mode import LaplaceProblem
from sparsebayes.inference.models.nearest import nearest_root
from sparsebayes.inference.models.newton import Mode, find_mode
from sparsebayes.likelihood import Poisson


def nearest_to_rates(
    columns: Array, counts: Array, weights: Array, offset: float, alpha: Array, mode: Array
) -> tuple[Array, Array]:
    """Mean and covariance of the Gaussian nearest to the posterior of the weights of a log rate.

    Parameters
    ----------
    columns : ndarray of shape (N, a)
        Functions in the model on the rows.
    counts, weights : ndarray of shape (N,)
        Counts, and how often each row counts.
    offset : float
        Log rate at zero output.
    alpha, mode : ndarray of shape (a,)
        Prior precisions, and the mode of the posterior.
    """
    design, every = DenseDesign(columns), np.ones(len(alpha), dtype=bool)

    def best_mean(mixed: Array) -> Mode:
        """The mean for a covariance, from the rows in its units, whose squares sum to the variances of log rates."""
        raised = Poisson(counts, weights, offset + 0.5 * np.sum(mixed**2, axis=1))
        problem = LaplaceProblem(design, raised, every)
        return find_mode(problem.active(np.flatnonzero(every).tolist()).at(mode), alpha)

    def expected(root: Array) -> Array:
        mixed = columns @ root
        return (mixed.T * best_mean(mixed).point.curvature.diagonal[:, 0]) @ mixed

    # Any beginning leads to the same end.  This one is narrow, all variances of log rates below one, so that no rate is
    # out of range.
    rates = np.maximum(weights * np.exp(columns @ mode + offset), 1.0)
    root = nearest_root(expected, alpha, inverse_upper(cholesky((columns.T * rates) @ columns + np.diag(alpha))))
    return best_mean(columns @ root).mean, root @ root.T
