r"""Error bars of attributions that hold what a model fitted again would say.

The posterior is that of the weights of the functions that were kept, and knows nothing of the choice of these.  What it
leaves out, searches on parts of the rows have measured: the noise's part of error bars has to be a times as wide
(``noise_scale_``), the functions' part b times (``spread_scale_``).  The noise is what it is, so all of the difference
belongs to the functions: with the noise variance :math:`\sigma^2` and the posterior's variance v of the output,

.. math::

    f^2 = \frac{a^2\sigma^2+b^2v-\sigma^2}{v} = b^2+\frac{a^2-1}{\bar g}, \qquad
    \bar g = \frac v{\sigma^2} = \frac1N\sum_m\gamma_m,

is what their variances are to be multiplied by, and no less than one.  On average over the rows of the fit, v is as
large a part of the noise as there are well-determined weights for each row (:math:`\gamma_m=1-\alpha_m\Sigma_{mm}`), so
that f belongs to the model: no row that is explained changes what is said of another.

A column that was left out has a weight of zero and an error bar of none, though the next sample may bring it in.  The
data determine its weight, beside the functions that were kept, to :math:`1/\sqrt{s_m}` (Tipping & Faul 2003, eq. 20),
and so its attribution to :math:`|x_m-r_m|/\sqrt{s_m}`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsebayes.estimators.uncertainty import ErrorBars
from sparsebayes.posterior import GaussianPosterior
from sparsebayes.typing import Array

from .problems import relative_precision

UNCERTAINTIES = ("calibrated", "posterior")


def check_uncertainty(uncertainty: str) -> None:
    """Refuse a kind of error bars that there is not."""
    if uncertainty not in UNCERTAINTIES:
        raise ValueError(f"uncertainty={uncertainty!r}: expected one of {', '.join(map(repr, UNCERTAINTIES))}")


def factors(est: ErrorBars) -> Array:
    """What the standard deviations of every output are multiplied by; one where nothing is known."""
    return np.array([calibration.functions_scale for calibration in est._calibrations()])


def left_out(est: Any) -> Array:
    """Standard errors of the weights of columns that were left out, (d, K); zero where they are not known.

    They are known of the columns of regressions, as long as the model holds the rows that it was fitted to.
    """
    d, count = est.n_features_in_, len(est._posteriors)
    found = np.zeros((d, count))
    data = est._fitted_to
    of_columns = est.get_params(deep=False).get("basis", 0) is None
    if not of_columns or data is None or not isinstance(data.X, np.ndarray):
        return found
    weights = np.broadcast_to(1.0 if data.sample_weight is None else data.sample_weight, len(data.X))
    rows = np.flatnonzero(weights > 0.0)
    columns, weights = data.X[rows] - est.X_offset_, weights[rows]
    targets = np.reshape(data.y, (len(data.X), -1))[rows]
    values = values_of(est._functions, columns)
    for k, posterior in enumerate(est._posteriors):
        if isinstance(posterior, GaussianPosterior):
            beta = weights / posterior.noise(values)
            if est.likelihood != "gaussian":
                beta = beta * relative_precision(est, k, values, targets[:, k], rows)
            cross = (values[:, posterior.functions] * beta[:, None]).T @ columns
            # T&F eq. 19: S less what the kept functions explain of the column.
            s = beta @ np.square(columns) - np.einsum("fm,fm->m", cross, posterior.covariance @ cross)
            outside = (np.atleast_2d(est.coef_)[k] == 0.0) & (s > 0.0)
            found[outside, k] = 1.0 / np.sqrt(s[outside])
    return found


def values_of(functions: Any, X: Array) -> Array:
    """The kept functions on rows, of which a model may have none."""
    return np.zeros((len(X), 0)) if functions is None else functions.evaluate(X)
