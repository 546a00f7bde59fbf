r"""
Five functions for a noisy sinc
===============================

One Gaussian of width 4 on each of 100 rows; the evidence keeps five of them and learns the noise.
"""

import numpy as np

from sparsebayes import RVR
from sparsebayes.datasets import make_sinc
from sparsebayes.report import plot_fit

X, y = make_sinc(100, noise=0.1, random_state=0)
model = RVR(gamma=1 / 4**2).fit(X, y)
plot_fit(model, X, y, truth=lambda x: np.sinc(x / np.pi))

# %%
# The summary says what was kept and how the search ended.

print(model.summary())
